"""Where a run goes next: every step with every outcome, as one table; and which agent may return what.

Counts and rounds are not in here: whether an outcome is NEEDS_REVISION or EXHAUSTED is said by `rules.review` and
`rules.retry`, this table says what follows from it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.decisions import ErrorCause, HaltOutcome
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import OPTIONS, CallFacts, Choice, HumanGate, Step
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective


class Outcome(StrEnum):
    """What a step came to, when all retries are spent."""

    DONE = "done"
    NEEDS_REVISION = "needs_revision"
    EXHAUSTED = "exhausted"
    ERROR = "error"
    BLOCKER = "blocker"
    ABANDONED = "abandoned"


class Action(StrEnum):
    """What the table may say."""

    ADVANCE = "advance"
    REVISE = "revise"
    REPLAN = "replan"
    HALT = "halt"
    FINISH = "finish"


class Route(NamedTuple):
    """What follows, where to, and why."""

    action: Action
    to: Step | None
    because: str
    halt: HaltOutcome | None = None


def _go(to: Step, because: str) -> Route:
    return Route(Action.ADVANCE, to, because)


def _back(to: Step, because: str) -> Route:
    return Route(Action.REVISE, to, because)


def _error(because: str) -> Route:
    return Route(Action.HALT, None, because, HaltOutcome.ERROR)


_BLOCKER = Route(Action.HALT, None, "a blocker is never outvoted, deferred or retried", HaltOutcome.HALTED)
_LEFT = Route(Action.HALT, None, "a person ended the run; its outputs are kept", HaltOutcome.ABANDONED)
_CANNOT_BE = _error("this step cannot end so; the contract was broken")
_AFTER_RETRY = _error("it failed for good")


def _rows(
    step: Step,
    *,
    done: Route,
    revision: Route = _CANNOT_BE,
    exhausted: Route = _CANNOT_BE,
    error: Route = _AFTER_RETRY,
    abandoned: Route = _CANNOT_BE,
) -> dict[tuple[Step, Outcome], Route]:
    return {
        (step, Outcome.DONE): done,
        (step, Outcome.NEEDS_REVISION): revision,
        (step, Outcome.EXHAUSTED): exhausted,
        (step, Outcome.ERROR): error,
        (step, Outcome.BLOCKER): _BLOCKER,
        (step, Outcome.ABANDONED): abandoned,
    }


ROUTES: Mapping[tuple[Step, Outcome], Route] = {
    **_rows(
        Step.SETUP,
        done=_go(Step.RESEARCH, "the request was weighed"),
        revision=_back(Step.SETUP, "a person changed the request"),
        exhausted=_go(Step.RESEARCH, "the request was changed once already; what was said is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(
        Step.RESEARCH,
        done=_go(Step.RESEARCH_GATE, "enough researchers are done"),
        error=_error("too few researchers are done"),
    ),
    **_rows(
        Step.RESEARCH_GATE,
        done=_go(Step.SPEC, "the research was accepted"),
        revision=_back(Step.RESEARCH, "a person asked for more research"),
        exhausted=_go(Step.SPEC, "research was repeated once already; what was said is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(
        Step.SPEC,
        done=_go(Step.DESIGN, "the specification is done"),
        revision=_back(Step.SPEC, "a person changed the request"),
        exhausted=_go(Step.DESIGN, "the request was changed once already; what was said is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(Step.DESIGN, done=_go(Step.DESIGN_REVIEW, "the design is done")),
    **_rows(
        Step.DESIGN_REVIEW,
        done=_go(Step.PLAN, "the reviewers approve the design"),
        revision=_back(Step.DESIGN, "the reviewers want the design revised"),
        exhausted=_go(Step.PLAN, "the design was revised once; what is still open binds the planner"),
        error=_error("fewer than three reviewers judged the design"),
    ),
    **_rows(Step.PLAN, done=_go(Step.PLAN_GATE, "the plan is done")),
    **_rows(
        Step.PLAN_GATE,
        done=_go(Step.IMPLEMENT, "the plan was approved"),
        revision=_back(Step.PLAN, "a person wants another plan"),
        exhausted=_go(Step.IMPLEMENT, "the plan was revised once already; what was said is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(Step.IMPLEMENT, done=_go(Step.VERIFY, "every implementer is done")),
    **_rows(
        Step.VERIFY,
        done=_go(Step.CODE_REVIEW, "every task has its evidence"),
        revision=Route(Action.REPLAN, Step.PLAN, "tasks lack evidence"),
        exhausted=_go(Step.CODE_REVIEW, "the last iteration is spent; what failed was put back"),
    ),
    **_rows(
        Step.CODE_REVIEW,
        done=_go(Step.KNOWLEDGE, "the reviewers approve the code"),
        revision=_back(Step.IMPLEMENT, "the reviewers want the code fixed"),
        exhausted=_go(Step.KNOWLEDGE, "the last round is spent; what is still open is a known issue"),
        error=_error("fewer than three reviewers judged the code"),
    ),
    **_rows(
        Step.KNOWLEDGE,
        done=_go(Step.EVIDENCE, "what was learnt is written down"),
        error=_go(Step.EVIDENCE, "nothing was learnt; that never stops a run"),
    ),
    **_rows(
        Step.EVIDENCE,
        done=_go(Step.COMMIT, "the evidence is bundled"),
        error=_go(Step.COMMIT, "the evidence could not be bundled; the ledger still holds it"),
    ),
    **_rows(Step.COMMIT, done=Route(Action.FINISH, None, "the work stands in one commit")),
}
"""Total: an outcome that a step cannot have halts the run."""

AGENT_OF: Mapping[Step, Agent | None] = {
    Step.SETUP: Agent.ORCHESTRATOR,  # the intake role speaks for it
    Step.RESEARCH: Agent.RESEARCHER,
    Step.RESEARCH_GATE: None,
    Step.SPEC: Agent.SPEC,
    Step.DESIGN: Agent.DESIGNER,
    Step.DESIGN_REVIEW: Agent.REVIEWER,
    Step.PLAN: Agent.PLANNER,
    Step.PLAN_GATE: None,
    Step.IMPLEMENT: Agent.IMPLEMENTER,
    Step.VERIFY: Agent.VERIFIER,
    Step.CODE_REVIEW: Agent.REVIEWER,
    Step.KNOWLEDGE: Agent.KNOWLEDGE,
    Step.EVIDENCE: None,
    Step.COMMIT: None,
}
"""Who works in a step; None where the harness or a person does."""


CALLS_OF: Mapping[Step, tuple[str, ...]] = {
    Step.SETUP: ("intake",),
    Step.RESEARCH: tuple(focus.value for focus in Focus),
    Step.RESEARCH_GATE: (),
    Step.SPEC: ("spec",),
    Step.DESIGN: ("designer",),
    Step.DESIGN_REVIEW: tuple(perspective.value for perspective in Perspective),
    Step.PLAN: ("planner",),
    Step.PLAN_GATE: (),
    Step.IMPLEMENT: (),
    Step.VERIFY: (),
    Step.CODE_REVIEW: tuple(perspective.value for perspective in Perspective),
    Step.KNOWLEDGE: ("knowledge-agent",),
    Step.EVIDENCE: ("evidence-bundle",),
    Step.COMMIT: ("commit",),
}
"""The calls each step makes; implementers and verifiers follow from the plan's tasks."""


class Reading(StrEnum):
    """How an agent's status is read."""

    DONE = "done"
    FAILED = "failed"
    EVIDENCE_DECIDES = "evidence decides"
    VIOLATION = "violation"


READINGS: Mapping[tuple[Agent, DispatchStatus], Reading] = {
    (agent, status): reading
    for agent in Agent
    for status, reading in (
        (DispatchStatus.DONE, Reading.EVIDENCE_DECIDES if agent is Agent.VERIFIER else Reading.DONE),
        (
            DispatchStatus.NEEDS_REVISION,
            Reading.EVIDENCE_DECIDES if agent is Agent.VERIFIER else Reading.VIOLATION,
        ),
        (DispatchStatus.ERROR, Reading.FAILED),
        (DispatchStatus.TIMEOUT, Reading.FAILED),
    )
}
"""Only the verifier may ask for a revision, and even then the ledger's rows decide; a reviewer's verdict routes."""


def reading_of(agent: Agent, status: DispatchStatus, *, replanning: bool) -> Reading:
    """How a status is read: a planner that replans may say NEEDS_REVISION, which then is DONE.

    >>> reading_of(Agent.PLANNER, DispatchStatus.NEEDS_REVISION, replanning=True).value
    'done'
    >>> reading_of(Agent.REVIEWER, DispatchStatus.NEEDS_REVISION, replanning=False).value
    'violation'
    """
    if agent is Agent.PLANNER and status is DispatchStatus.NEEDS_REVISION and replanning:
        return Reading.DONE
    return READINGS[(agent, status)]


def as_read(agent: Agent, call: CallFacts, *, replanning: bool) -> CallFacts:
    """The call with a status its agent may not return turned into the failure it is."""
    if call.status is None or reading_of(agent, call.status, replanning=replanning) is not Reading.VIOLATION:
        return call
    return call.model_copy(update={"status": DispatchStatus.ERROR, "cause": ErrorCause.SCHEMA_VIOLATION})


OUTCOME_OF: Mapping[Choice, Outcome] = {
    Choice.PROCEED: Outcome.DONE,
    Choice.APPROVE: Outcome.DONE,
    Choice.MODIFY: Outcome.NEEDS_REVISION,
    Choice.EXPAND: Outcome.NEEDS_REVISION,
    Choice.REVISE: Outcome.NEEDS_REVISION,
    Choice.OTHER: Outcome.NEEDS_REVISION,
    Choice.ABANDON: Outcome.ABANDONED,
    Choice.ABORT: Outcome.ABANDONED,
}
"""What a person's choice makes of the step."""

GATE_OF: Mapping[Step, HumanGate] = {
    Step.SETUP: HumanGate.REQUEST_PUSHBACK,
    Step.RESEARCH_GATE: HumanGate.RESEARCH,
    Step.SPEC: HumanGate.SPEC_PUSHBACK,
    Step.PLAN_GATE: HumanGate.PLAN,
}
"""The steps at which a person may be asked."""


def default_choice(gate: HumanGate) -> Choice:
    """What an autonomous run selects.

    >>> default_choice(HumanGate.PLAN).value
    'approve'
    """
    return OPTIONS[gate][0]


def after_plan(*, replanning: bool) -> Step:
    """A first plan is shown to a person; one that replaces failing tasks goes straight back to work."""
    return Step.IMPLEMENT if replanning else Step.PLAN_GATE
