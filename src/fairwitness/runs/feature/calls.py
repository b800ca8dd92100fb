"""The calls of a decision: agents run in parallel, each in a worktree of its own.

Calls that ended before are adopted, so after a crash only the others are made again. A failed call is repeated by the
next decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus
from fairwitness.rules.feature_events import PlannedCall, instance_of
from fairwitness.runs.dispatch import DispatchPosition
from fairwitness.runs.feature.answers import store
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.blocking import run_blocking


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call: its brief, and the commit of its worktree."""

    call: PlannedCall
    brief: Brief
    at: str


async def call_all(context: FeatureContext, caller: AgentCaller, asks: Sequence[AgentCall]) -> None:
    """Make calls in parallel and store each answer as it arrives."""
    await caller.together([partial(_ask, context, caller, ask) for ask in asks])


async def _ask(context: FeatureContext, caller: AgentCaller, ask: AgentCall) -> None:
    call = ask.call
    position = DispatchPosition(call.step.value, dispatch_count=max(1, call.visit), retry_count=call.number - 1)
    done = await caller.ask_once(ask.brief, position, ask.at)
    if done.outcome.status is OutcomeStatus.OVER_BUDGET:
        return
    await run_blocking(store, context, ask.brief.role, instance_of(call.step, call.instance), done)
