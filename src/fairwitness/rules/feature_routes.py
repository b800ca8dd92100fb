"""The routing table of a feature run: what follows each step and outcome, and which statuses each agent may return.

The table holds no counts and no rounds: `rules.review` and `rules.feature_retry` decide whether an outcome is
NEEDS_REVISION or EXHAUSTED.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.decisions import ErrorCause, HaltOutcome
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import OPTIONS, CallFacts, GateChoice, HumanGate, Step
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.review import Perspective


class RouteOutcome(StrEnum):
    """The outcome of a step after all retries."""

    DONE = "done"
    NEEDS_REVISION = "needs_revision"
    EXHAUSTED = "exhausted"
    ERROR = "error"
    BLOCKER = "blocker"
    ABANDONED = "abandoned"


class Action(StrEnum):
    """The actions of the routing table."""

    ADVANCE = "advance"
    REVISE = "revise"
    REPLAN = "replan"
    HALT = "halt"
    FINISH = "finish"


class StepRoute(NamedTuple):
    """The action, the next step and the reason."""

    action: Action
    to: Step | None
    because: str
    halt: HaltOutcome | None = None


def _go(to: Step, because: str) -> StepRoute:
    return StepRoute(Action.ADVANCE, to, because)


def _back(to: Step, because: str) -> StepRoute:
    return StepRoute(Action.REVISE, to, because)


def _error(because: str) -> StepRoute:
    return StepRoute(Action.HALT, None, because, HaltOutcome.ERROR)


_BLOCKER = StepRoute(Action.HALT, None, "a reported blocker is final", HaltOutcome.HALTED)
_LEFT = StepRoute(Action.HALT, None, "a person ended the run; its outputs are kept", HaltOutcome.ABANDONED)
_CANNOT_BE = _error("internal error: this step cannot end this way")
_AFTER_RETRY = _error("the step failed and no retry is left")


def _rows(
    step: Step,
    *,
    done: StepRoute,
    revision: StepRoute = _CANNOT_BE,
    exhausted: StepRoute = _CANNOT_BE,
    error: StepRoute = _AFTER_RETRY,
    abandoned: StepRoute = _CANNOT_BE,
) -> dict[tuple[Step, RouteOutcome], StepRoute]:
    return {
        (step, RouteOutcome.DONE): done,
        (step, RouteOutcome.NEEDS_REVISION): revision,
        (step, RouteOutcome.EXHAUSTED): exhausted,
        (step, RouteOutcome.ERROR): error,
        (step, RouteOutcome.BLOCKER): _BLOCKER,
        (step, RouteOutcome.ABANDONED): abandoned,
    }


ROUTES: Mapping[tuple[Step, RouteOutcome], StepRoute] = {
    **_rows(
        Step.SETUP,
        done=_go(Step.RESEARCH, "the request was assessed"),
        revision=_back(Step.SETUP, "a person changed the request"),
        exhausted=_go(Step.RESEARCH, "the request was already changed once; the comment is passed on"),
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
        exhausted=_go(Step.SPEC, "research was already repeated once; the comment is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(
        Step.SPEC,
        done=_go(Step.DESIGN, "the specification is done"),
        revision=_back(Step.SPEC, "a person changed the request"),
        exhausted=_go(Step.DESIGN, "the request was already changed once; the comment is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(Step.DESIGN, done=_go(Step.DESIGN_REVIEW, "the design is done")),
    **_rows(
        Step.DESIGN_REVIEW,
        done=_go(Step.PLAN, "the reviewers approve the design"),
        revision=_back(Step.DESIGN, "the reviewers request changes to the design"),
        exhausted=_go(Step.PLAN, "the design was revised once; open findings bind the planner"),
        error=_error("fewer than three reviewers judged the design"),
    ),
    **_rows(Step.PLAN, done=_go(Step.PLAN_GATE, "the plan is done")),
    **_rows(
        Step.PLAN_GATE,
        done=_go(Step.IMPLEMENT, "the plan was approved"),
        revision=_back(Step.PLAN, "a person rejected the plan"),
        exhausted=_go(Step.IMPLEMENT, "the plan was already revised once; the comment is passed on"),
        abandoned=_LEFT,
    ),
    **_rows(Step.IMPLEMENT, done=_go(Step.VERIFY, "every implementer is done")),
    **_rows(
        Step.VERIFY,
        done=_go(Step.CODE_REVIEW, "every task has its evidence"),
        revision=StepRoute(Action.REPLAN, Step.PLAN, "tasks lack evidence"),
        exhausted=_go(Step.CODE_REVIEW, "no iteration is left; tasks without evidence were reverted"),
    ),
    **_rows(
        Step.CODE_REVIEW,
        done=_go(Step.KNOWLEDGE, "the reviewers approve the code"),
        revision=_back(Step.IMPLEMENT, "the reviewers request changes to the code"),
        exhausted=_go(Step.KNOWLEDGE, "no round is left; open findings are known issues"),
        error=_error("fewer than three reviewers judged the code"),
    ),
    **_rows(
        Step.KNOWLEDGE,
        done=_go(Step.EVIDENCE, "the lessons are recorded"),
        error=_go(Step.EVIDENCE, "no lessons were recorded; the run continues"),
    ),
    **_rows(
        Step.EVIDENCE,
        done=_go(Step.COMMIT, "the evidence is bundled"),
        error=_go(Step.COMMIT, "the evidence could not be bundled; the ledger still holds it"),
    ),
    **_rows(Step.COMMIT, done=StepRoute(Action.FINISH, None, "the work is in one commit")),
}
"""Complete: an outcome that a step cannot have halts the run."""

AGENT_OF: Mapping[Step, FeatureAgent | None] = {
    Step.SETUP: FeatureAgent.ORCHESTRATOR,  # the intake role speaks for it
    Step.RESEARCH: FeatureAgent.RESEARCHER,
    Step.RESEARCH_GATE: None,
    Step.SPEC: FeatureAgent.SPEC,
    Step.DESIGN: FeatureAgent.DESIGNER,
    Step.DESIGN_REVIEW: FeatureAgent.REVIEWER,
    Step.PLAN: FeatureAgent.PLANNER,
    Step.PLAN_GATE: None,
    Step.IMPLEMENT: FeatureAgent.IMPLEMENTER,
    Step.VERIFY: FeatureAgent.VERIFIER,
    Step.CODE_REVIEW: FeatureAgent.REVIEWER,
    Step.KNOWLEDGE: FeatureAgent.KNOWLEDGE,
    Step.EVIDENCE: None,
    Step.COMMIT: None,
}
"""The agent of each step; None if Fair Witness or a person does the work."""


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
"""The calls of each step; those of implementers and verifiers follow from the plan's tasks."""


class Reading(StrEnum):
    """How an agent's status is interpreted."""

    DONE = "done"
    FAILED = "failed"
    EVIDENCE_DECIDES = "evidence decides"
    VIOLATION = "violation"


READINGS: Mapping[tuple[FeatureAgent, DispatchStatus], Reading] = {
    (agent, status): reading
    for agent in FeatureAgent
    for status, reading in (
        (DispatchStatus.DONE, Reading.EVIDENCE_DECIDES if agent is FeatureAgent.VERIFIER else Reading.DONE),
        (
            DispatchStatus.NEEDS_REVISION,
            Reading.EVIDENCE_DECIDES if agent is FeatureAgent.VERIFIER else Reading.VIOLATION,
        ),
        (DispatchStatus.ERROR, Reading.FAILED),
        (DispatchStatus.TIMEOUT, Reading.FAILED),
    )
}
"""Only the verifier may ask for a revision, and even then the ledger decides; a reviewer's verdict decides the route.
"""


def reading_of(agent: FeatureAgent, status: DispatchStatus, *, replanning: bool) -> Reading:
    """Return how a status is interpreted: NEEDS_REVISION from a replanning planner counts as DONE.

    >>> reading_of(FeatureAgent.PLANNER, DispatchStatus.NEEDS_REVISION, replanning=True).value
    'done'
    >>> reading_of(FeatureAgent.REVIEWER, DispatchStatus.NEEDS_REVISION, replanning=False).value
    'violation'
    """
    if agent is FeatureAgent.PLANNER and status is DispatchStatus.NEEDS_REVISION and replanning:
        return Reading.DONE
    return READINGS[(agent, status)]


def as_read(agent: FeatureAgent, call: CallFacts, *, replanning: bool) -> CallFacts:
    """Return the call; a status that its agent may not return becomes a failure."""
    if call.status is None or reading_of(agent, call.status, replanning=replanning) is not Reading.VIOLATION:
        return call
    return call.model_copy(update={"status": DispatchStatus.ERROR, "cause": ErrorCause.SCHEMA_VIOLATION})


OUTCOME_OF: Mapping[GateChoice, RouteOutcome] = {
    GateChoice.PROCEED: RouteOutcome.DONE,
    GateChoice.APPROVE: RouteOutcome.DONE,
    GateChoice.MODIFY: RouteOutcome.NEEDS_REVISION,
    GateChoice.EXPAND: RouteOutcome.NEEDS_REVISION,
    GateChoice.REVISE: RouteOutcome.NEEDS_REVISION,
    GateChoice.OTHER: RouteOutcome.NEEDS_REVISION,
    GateChoice.ABANDON: RouteOutcome.ABANDONED,
    GateChoice.ABORT: RouteOutcome.ABANDONED,
}
"""The outcome of a step for each choice of a person."""

GATE_OF: Mapping[Step, HumanGate] = {
    Step.SETUP: HumanGate.REQUEST_PUSHBACK,
    Step.RESEARCH_GATE: HumanGate.RESEARCH,
    Step.SPEC: HumanGate.SPEC_PUSHBACK,
    Step.PLAN_GATE: HumanGate.PLAN,
}
"""The human gate of each step that has one."""


def default_choice(gate: HumanGate) -> GateChoice:
    """Return the option that an autonomous run selects.

    >>> default_choice(HumanGate.PLAN).value
    'approve'
    """
    return OPTIONS[gate][0]


def after_plan(*, replanning: bool) -> Step:
    """Return the step after planning: a first plan goes to a person, a replan goes straight back to work."""
    return Step.IMPLEMENT if replanning else Step.PLAN_GATE
