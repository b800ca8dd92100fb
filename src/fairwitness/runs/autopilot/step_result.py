"""The result of a step of a pass, the reading of agents' answers, and the halt of a run that is out of budget."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.autopilot.facts import StepFailureCause
from fairwitness.contracts.autopilot.passes import StepResult
from fairwitness.contracts.autopilot.phase_record import PhaseSteps
from fairwitness.contracts.autopilot.trace import TraceAction, TraceSpan, TraceStatus, TraceStep
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, FailureCategory, StepName
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.budgets import BudgetHalt, BudgetLevel, Resource
from fairwitness.kit.text import visible
from fairwitness.runs.autopilot.log import LoggedEvent
from fairwitness.runs.dispatch import Dispatched
from fairwitness.runs.graph.agent_work import budget_halt

C = TypeVar("C", bound=Contract)

SNIPPET = 200
_CATEGORIES = {
    OutcomeStatus.INVALID_ANSWER: FailureCategory.COORDINATION_FAILURE,
    OutcomeStatus.REFUSED: FailureCategory.SCOPE_CREEP,
    OutcomeStatus.TIMED_OUT: FailureCategory.TOOL_FAILURE,
    OutcomeStatus.CANCELLED: FailureCategory.TOOL_FAILURE,
    OutcomeStatus.AGENT_ERROR: FailureCategory.TOOL_FAILURE,
}


class Halted(Exception):
    """Nothing more may be started; the step is repeated when the run is resumed."""

    def __init__(self, halt: BudgetHalt) -> None:
        """A phase's cap pauses the run; any other cap fails it."""
        super().__init__(halt.reason)
        self.halt, self.reason, refused = halt, halt.reason, halt.refused
        of_phase = refused is not None and refused.level is BudgetLevel.PHASE
        self.setting = "cost_cap_tokens_per_phase" if of_phase else "cost_cap_tokens_total"
        if refused is not None and refused.what is not Resource.TOKENS:
            self.setting = f"budget: {refused.what.value}"
        self.value = 0 if refused is None else refused.used
        self.status = AutopilotRunStatus.PAUSED if of_phase else AutopilotRunStatus.FAILED


@dataclass(frozen=True, slots=True)
class FinishedStep:
    """A step that ended."""

    result: StepResult
    steps: PhaseSteps | None = None
    """What the state file keeps of it."""
    output: str | None = None
    """The path of the document it wrote."""
    error: StepFailureCause | None = None
    new_commits: int = 0
    newly_passing: int = 0
    score_gained: int = 0
    spans: tuple["Span", ...] = ()
    events: tuple[LoggedEvent, ...] = field(default=())
    """Events that belong to it."""


@dataclass(frozen=True, slots=True)
class Span:
    """One action of a step."""

    action: TraceAction
    input: str
    output: str
    duration_ms: int
    is_good: bool

    def at(self, timestamp: str, phase: str, step: StepName) -> TraceSpan:
        """Return the action as a line of the trace."""
        return TraceSpan(
            timestamp=timestamp,
            phase_id=phase,
            step=TraceStep(step.value),
            action=self.action,
            input_summary=visible(self.input)[:SNIPPET],
            output_summary=visible(self.output)[:SNIPPET],
            duration_ms=self.duration_ms,
            status=TraceStatus.SUCCESS if self.is_good else TraceStatus.FAILURE,
        )


def answer(done: Dispatched, shape: type[C]) -> C | StepFailureCause:
    """Return an agent's answer, or why there is none; `Halted` if a budget prevented the call."""
    outcome = done.outcome
    problem = outcome.problems[0] if outcome.problems else outcome.status.value
    if outcome.status is OutcomeStatus.OVER_BUDGET:
        raise Halted(budget_halt(outcome))
    try:
        found = done.answer(shape)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the answer"
        return StepFailureCause(category=FailureCategory.COORDINATION_FAILURE, first_line=f"{place}: {first['msg']}")
    if found is None:
        category = _CATEGORIES.get(outcome.status, FailureCategory.TOOL_FAILURE)
        return StepFailureCause(category=category, first_line=problem.strip() or outcome.status.value)
    return found


def agent_span(role: str, done: Dispatched) -> Span:
    """Return an agent call as a trace span."""
    outcome = done.outcome
    said = outcome.problems[0] if outcome.problems else outcome.status.value
    return Span(TraceAction.AGENT_SPAWN, role, said, outcome.duration_ms, outcome.status is OutcomeStatus.OK)


def first_line(lines: Iterable[str], otherwise: str) -> str:
    """Return the first line that is not blank."""
    return next((line for line in lines if line.strip()), otherwise)
