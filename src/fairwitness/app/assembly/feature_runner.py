"""Assembles the runner of a feature run from its recorded order."""

from typing import TYPE_CHECKING

from fairwitness.app.run_records.feature import feature_context, order_of
from fairwitness.app.state import scratch_root
from fairwitness.contracts.common.budgets import BudgetCaps, BudgetTable, Caps
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger

if TYPE_CHECKING:  # imported late: reading a budget or cancelling needs no runner
    from fairwitness.runs.feature.runner import FeatureRunner
    from fairwitness.verify.subject import VerifyDeps

PREFIX = "fairwitness"
"""The prefix of the branches of a run's attempts."""
_PYTHON = "python3"


def caps_of(budget: BudgetTable) -> BudgetCaps:
    """Return the limits of a run."""
    none = Caps(tokens=None, money_micros=None, milliseconds=None)
    money = None if budget.dollars is None else round(budget.dollars * 1_000_000)
    time = None if budget.minutes is None else budget.minutes * 60_000
    return BudgetCaps(dispatch=none, phase=none, run=Caps(tokens=budget.tokens, money_micros=money, milliseconds=time))


def runner_of(repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock) -> "FeatureRunner":
    """Return the runner of a feature run."""
    from fairwitness.app.assembly.backends import runner
    from fairwitness.app.assembly.dispatch import DispatchDepsFactory, prover
    from fairwitness.contracts.verify.checks import VerifySettings
    from fairwitness.git.candidates import Candidates
    from fairwitness.git.worktrees import Worktrees
    from fairwitness.runs.dispatch.events import FeatureEvents
    from fairwitness.runs.feature.briefs import FeatureBriefs
    from fairwitness.runs.feature.calls import Caller
    from fairwitness.runs.feature.memory import Memory
    from fairwitness.runs.feature.runner import FeatureRunner
    from fairwitness.runs.graph.repo_context import RepoContext
    from fairwitness.verify.subject import VerifyDeps

    order, budget = order_of(ledger, run_id)
    context = feature_context(repository, ledger, run_id, order, clock=clock)
    settings = VerifySettings.model_validate(order.verify)
    sandbox = runner()
    place = scratch_root(context.state_folder, sandbox.tier)
    worktrees = Worktrees(repository, context.shadow, place / "worktrees", prefix=PREFIX)
    identity = read_identity(repository)
    repo = RepoContext(
        repository, worktrees, Candidates(repository, context.shadow), context.state_folder / "locks", identity
    )
    maker = DispatchDepsFactory(
        repository,
        context.shadow,
        ledger,
        context.state_folder,
        sandbox,
        run_id,
        {"agents": order.agents, "cassettes": order.cassettes},
        clock,
        recorder=FeatureEvents(),
        caps=caps_of(budget),
    )
    deps = VerifyDeps(
        repository=repository,
        runner=sandbox,
        shadow=context.shadow,
        ledger=ledger,
        state=context.state_folder,
        scratch=place,
        settings=settings,
        digest=order.settings_hash.removeprefix("sha256:"),
        clock=clock,
    )
    briefs = FeatureBriefs(context, commands_of(deps, order.base_commit), Memory(context.kept).boxed())
    caller = Caller(context, maker.context, maker.deps, worktrees, identity)
    return FeatureRunner(context, repo, caller, briefs, deps, prover(deps, run_id))


def commands_of(deps: "VerifyDeps", base: str) -> tuple[tuple[str, ...], ...]:
    """Return the beginnings of the check commands that an agent may run, up to the first internal argument."""
    from fairwitness.verify.discovery.repository_checks import discover
    from fairwitness.verify.environment.preparation import TreeView

    found: dict[tuple[str, ...], None] = {}
    for check in discover(TreeView(deps.shadow, deps.repository.tree_of(base)), deps.settings).checks:
        words = [_PYTHON if word == "{python}" else word for word in check.argv]
        known = tuple(words[: next((at for at, word in enumerate(words) if "{" in word), len(words))])
        if known and known[-1].startswith("-"):
            continue  # a shorter prefix would let the agent choose the program
        if len(known) > 1 or (known and known[0] != _PYTHON):
            found[known] = None
    return tuple(found)
