"""Assembles the runner of a feature run from its recorded order."""

from collections.abc import Mapping

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.parts import RunParts, caps_of
from fairwitness.app.run_records.feature import feature_context, order_of
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.tools import Role
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.events import FeatureEvents
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.memory import Memory
from fairwitness.runs.feature.runner import FeatureRunner


def feature_runner_of(
    repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock
) -> FeatureRunner:
    """Return the runner of a feature run."""
    parts = feature_parts(repository, ledger, run_id, clock=clock)
    return feature_runner(feature_context(repository, ledger, run_id, order_of(ledger, run_id)[0], clock=clock), parts)


def feature_parts(
    repository: Repository,
    ledger: Ledger,
    run_id: str,
    *,
    roles: Mapping[Role, RoleSpec] = ROLES,
    clock: Clock = system_clock,
) -> RunParts:
    """Return the parts of a feature run; `roles` sets the time limit and the budget of each role."""
    order, budget = order_of(ledger, run_id)
    return RunParts(
        repository,
        ledger,
        run_id,
        order,
        order.policy.retry,
        caps=caps_of(budget),
        recorder=FeatureEvents(),
        roles=roles,
        clock=clock,
    )


def feature_runner(context: FeatureContext, parts: RunParts) -> FeatureRunner:
    """Return the runner of a feature run that consists of these parts."""
    briefs = FeatureBriefs(context, Memory(context.kept).boxed())
    return FeatureRunner(context, parts.repo, parts.caller, briefs, parts.verify, parts.prove)
