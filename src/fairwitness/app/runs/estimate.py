"""The estimate of a run before it begins: calls, tokens and dollars, each as a range."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.agent_choice import Prober, chosen, instance_of, settings_of
from fairwitness.app.assembly.models import prices_of, route_of
from fairwitness.app.repository import read_database
from fairwitness.app.runs.begin_feature import policy_for
from fairwitness.app.settings.agents import CASSETTE
from fairwitness.app.settings.tables import feature_settings
from fairwitness.app.views.run import RunView
from fairwitness.contracts.agents.model import ModelUsage
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.contracts.common.budgets import NO_CAPS
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.errors import FairWitnessError
from fairwitness.git.repository import Repository
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.summary import path_of, run_summaries
from fairwitness.rules.cost import LIGHT_CALLS, USUAL_CALLS, CallRange, TokenRange, estimated_run
from fairwitness.rules.feature_paths import BEGINS_ON
from fairwitness.runs.dispatch.budget_account import STARTED, budget_of, of_dispatches

_OUTPUT_PERCENT = 7
"""The usual part of the tokens that a model writes."""
_EARLIER = 5
"""The number of earlier runs that are looked at."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """What a run will probably use."""

    range: TokenRange
    dollars: tuple[float, float] | None
    """None if the price of a model is unknown."""
    is_large: bool
    """Whether it may be more than the amount above which a person is asked."""
    otherwise: "RunEstimate | None" = None
    """What it will use if it leaves the light path; None if it is not on it."""

    @property
    def text(self) -> str:
        """The estimate in one line."""
        runs = self.range.runs
        source = f"{runs} earlier run{'s' * (runs > 1)} here" if runs else "its roles and the size of the repository"
        if self.otherwise is None:
            return f"{self._amount} (from {source})"
        return f"{self._amount} on the light path, {self.otherwise._amount} if it leaves it (from {source})"

    @property
    def _amount(self) -> str:
        calls, tokens = self.range.calls, self.range.tokens
        money = "dollars unknown" if self.dollars is None else "{:.2f} to {:.2f} dollars".format(*self.dollars)
        return (
            f"{calls[0]} to {calls[1]} calls of agents, {_rounded(tokens[0])} to {_rounded(tokens[1])} tokens, {money}"
        )


def _rounded(tokens: int) -> str:
    """Return a number of tokens with two significant digits: more would pretend to know them."""
    step = 10 ** max(0, len(str(tokens)) - 2)
    return f"{round(tokens / step) * step:,}"


def estimate_run(root: Path, agents: str | None, workflow: str, *, light: bool = False) -> RunEstimate | None:
    """Estimate a run, or one phase of autopilot; None if it plays recordings, or if its agents are not ready.

    `light` asks for the light path, as the settings may. Beginning a run says what is missing.
    """
    if agents == CASSETTE:
        return None
    policy = policy_for(feature_settings(root).policy, is_light=light)
    full = _estimated(root, agents, workflow, USUAL_CALLS[Workflow(workflow)], RunPath.FULL)
    if full is None or workflow != Workflow.FEATURE or BEGINS_ON[policy.path] is RunPath.FULL:
        return full
    found = _estimated(root, agents, workflow, LIGHT_CALLS, RunPath.LIGHT)
    if found is None:
        return None
    return replace(found, is_large=full.is_large, otherwise=full)


def _estimated(
    root: Path, agents: str | None, workflow: str, calls: Sequence[CallRange], path: RunPath
) -> RunEstimate | None:
    settings, budget = settings_of(root).settings, feature_settings(root).budget
    prober = Prober(settings)
    try:
        choices = {
            one.role: chosen(ROLES[one.role], instance_of(ROLES[one.role], None), settings, agents, prober)
            for one in calls
        }
        external = {role for role, choice in choices.items() if prober(choice.agent).kind == "acp"}
        found = estimated_run(
            calls,
            ROLES,
            external=external,
            repository_bytes=Repository.open(root).tracked_bytes(),
            earlier=_earlier(root, workflow, path),
        )
        dollars = _dollars(found, choices, settings)
    except FairWitnessError:
        return None
    is_large = found.tokens[1] > budget.ask_above_tokens if dollars is None else dollars[1] > budget.ask_above_dollars
    return RunEstimate(found, dollars, is_large)


def _dollars(
    found: TokenRange, choices: dict[Role, ModelChoice], settings: AgentsSettings
) -> tuple[float, float] | None:
    """Return the dollars of the range, at the cheapest and at the dearest of the models; None if one has no price."""
    prices = prices_of(settings.prices)
    low, high = list[float](), list[float]()
    for choice in choices.values():
        route = route_of(choice.agent, choice.model, settings)
        for tokens, costs in ((found.tokens[0], low), (found.tokens[1], high)):
            out = tokens * _OUTPUT_PERCENT // 100
            usage = ModelUsage(tokens_in=tokens - out, tokens_out=out)
            micros = prices.micros(route.sold_as, usage, url=route.provider.base_url)
            if micros is None:
                return None
            costs.append(micros / 1_000_000)
    return min(low), max(high)


def _earlier(root: Path, workflow: str, path: RunPath) -> tuple[int, ...]:
    """Return the tokens of the last runs of this workflow that ended here on this path and called models.

    Runs of autopilot have different numbers of phases and are not compared.
    """
    if workflow == Workflow.AUTOPILOT:
        return ()
    with read_database(root) as database:
        if database is None:
            return ()
        ledger, used = Ledger(database), list[int]()
        over = [run.run_id for run in run_summaries(database, RunView) if run.workflow == workflow and run.is_over]
        for run_id in over:
            rows = of_dispatches(partial(ledger.observations, run_id))
            is_recorded = any(row.kind == STARTED and row.detail["agent"]["kind"] == "cassette" for row in rows)
            tokens = sum(spending.used.tokens for spending in budget_of(NO_CAPS, rows).spent.values())
            if tokens and not is_recorded and path_of(database, run_id) == path:
                used.append(tokens)
    return tuple(used[:_EARLIER])
