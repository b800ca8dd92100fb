"""Everything that can happen in a feature run, as one closed union; each event is the `data` of an `Envelope`.

Its tasks are carried out as a graph, and what happens to them is told by the events that every graph has; their
envelopes name the graph as their phase.
"""

from enum import StrEnum
from typing import Annotated, Literal, get_args

from pydantic import Field

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Count, Flag, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.completion import StepId
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.ids import Commit, GitRef, RelPath, SafeName, Sha256, Slug, TaskId
from fairwitness.contracts.common.policy import OnPath, RunPath
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Confidence, Severity
from fairwitness.contracts.feature.pushback import PushbackOption
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope
from fairwitness.contracts.forge import events as graph


class FeatureRunOutcome(StrEnum):
    """The outcome of a feature run."""

    COMMITTED = "committed"
    LOW_CONFIDENCE = "low_confidence"
    ABANDONED = "abandoned"
    HALTED = "halted"
    ERROR = "error"
    OUT_OF_BUDGET = "out_of_budget"


class StepOutcome(StrEnum):
    """The outcome of a step."""

    ADVANCED = "advanced"
    SKIPPED = "skipped"
    REVISED = "revised"
    FAILED = "failed"


class DispatchStatus(StrEnum):
    """The status of a finished agent call; Fair Witness records time-outs."""

    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"
    TIMEOUT = "TIMEOUT"


class Degradation(StrEnum):
    """The ways in which a run may continue in a degraded state."""

    FEWER_RESEARCHERS = "fewer_researchers"
    KNOWLEDGE_FAILED = "knowledge_failed"
    TIER3_INFEASIBLE = "tier3_infeasible"
    SINGLE_MODEL = "single_model"
    DESIGN_NOT_APPROVED = "design_not_approved"
    REPLAN_EXHAUSTED = "replan_exhausted"
    REVIEW_EXHAUSTED = "review_exhausted"
    SANDBOX_TIER = "sandbox_tier"
    UNSEEN_REVIEW = "unseen_review"


class FeatureRunStarted(EventData):
    """A run began."""

    type: Literal["run_started"] = "run_started"
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    baseline_tag: GitRef
    settings_hash: Sha256
    path: OnPath = RunPath.FULL


class PathChanged(EventData):
    """The run continues on another path."""

    type: Literal["path_changed"] = "path_changed"
    path: RunPath
    reason: Text


class FeatureRunResumed(EventData):
    """A run was resumed."""

    type: Literal["run_resumed"] = "run_resumed"
    from_step: StepId


class RunFinished(EventData):
    """A run ended."""

    type: Literal["run_finished"] = "run_finished"
    outcome: FeatureRunOutcome
    confidence: Confidence | None
    commit: Maybe[Commit] = None
    reason: Prose


class FeatureStepStarted(EventData):
    """A step began."""

    type: Literal["step_started"] = "step_started"
    step: StepId


class StepFinished(EventData):
    """A step ended."""

    type: Literal["step_finished"] = "step_finished"
    step: StepId
    outcome: StepOutcome
    reason: Maybe[Text] = None


class DispatchStarted(EventData):
    """An agent was called; its telemetry row follows when it ends."""

    type: Literal["dispatch_started"] = "dispatch_started"
    dispatch_id: SafeName
    step: StepId
    agent: Role
    instance: Text


class DispatchFinished(EventData):
    """An agent's call ended."""

    type: Literal["dispatch_finished"] = "dispatch_finished"
    dispatch_id: SafeName
    status: DispatchStatus
    duration_ms: Count
    tokens: Count
    reason: Maybe[Text] = None
    cause: Maybe[ErrorCause] = None
    """The cause of a failure, which decides about a retry; present exactly if the call failed."""


class CallRefused(EventData):
    """An agent asked for something its role may not do."""

    type: Literal["call_refused"] = "call_refused"
    dispatch_id: SafeName
    tool: Text
    target: Prose
    reason: Text


class ArtifactWritten(EventData):
    """A document was stored."""

    type: Literal["artifact_written"] = "artifact_written"
    path: RelPath
    sha256: Sha256


class PushbackRecorded(EventData):
    """Concerns were raised and answered."""

    type: Literal["pushback_recorded"] = "pushback_recorded"
    step: StepId
    concerns: Count
    worst: Severity | None
    selected_option: PushbackOption
    auto_selected: Flag


class ApprovalRequested(EventData):
    """A question waits for a person."""

    type: Literal["approval_requested"] = "approval_requested"
    gate_id: SafeName
    options: Annotated[tuple[SafeName, ...], Field(min_length=2)]


class ApprovalAnswered(EventData):
    """A question was answered."""

    type: Literal["approval_answered"] = "approval_answered"
    gate_id: SafeName
    selected_option: SafeName
    auto_selected: Flag
    actor: Text


class GateEvaluated(EventData):
    """A gate was evaluated; the event lists what is missing."""

    type: Literal["gate_evaluated"] = "gate_evaluated"
    gate: SafeName
    open: Flag
    count: Count
    threshold: Count
    missing: Texts


class TaskReverted(EventData):
    """A task's files were put back to the baseline."""

    type: Literal["task_reverted"] = "task_reverted"
    task: TaskId
    files: tuple[RelPath, ...]


class ReplanStarted(EventData):
    """Failing tasks are done again: by the implementer as planned, or after the planner replaced them."""

    type: Literal["replan_started"] = "replan_started"
    by: Maybe[Literal["implementer"]] = None
    """Who does them again as planned; None if the planner replaces them first."""
    iteration: Positive
    failing: Annotated[tuple[TaskId, ...], Field(min_length=1)]


class ReviewSubmitted(EventData):
    """A reviewer's verdicts were recorded."""

    type: Literal["review_submitted"] = "review_submitted"
    scope: ReviewScope
    round: Positive
    perspective: Perspective
    verdicts: dict[Category, CategoryVerdict]


class DecisionTaken(EventData):
    """The run decided its next move; the ledger holds the facts under the same number."""

    type: Literal["decided"] = "decided"
    number: Positive
    kind: SafeName
    reason: Prose


class Degraded(EventData):
    """The run continues in a degraded state."""

    type: Literal["degraded"] = "degraded"
    kind: Degradation
    detail: Text


class BudgetExhausted(EventData):
    """A budget cap was reached; nothing more is started."""

    type: Literal["budget_exhausted"] = "budget_exhausted"
    what: Text
    cap: Count
    used: Count


class HeadRecorded(EventData):
    """The head of the ledger's hash chain was recorded, so that a truncation is detected."""

    type: Literal["head_recorded"] = "head_recorded"
    head: Sha256
    rows: Count


class Committed(EventData):
    """The run's work was committed."""

    type: Literal["committed"] = "committed"
    commit: Commit
    rollback_command: Text


FeatureEvent = Annotated[
    FeatureRunStarted
    | PathChanged
    | FeatureRunResumed
    | RunFinished
    | FeatureStepStarted
    | StepFinished
    | DispatchStarted
    | DispatchFinished
    | CallRefused
    | ArtifactWritten
    | PushbackRecorded
    | ApprovalRequested
    | ApprovalAnswered
    | GateEvaluated
    | DecisionTaken
    | graph.NodeChanged
    | graph.TaskStarted
    | graph.TaskStale
    | graph.NodeRetried
    | graph.TaskExhausted
    | graph.TaskVerified
    | graph.ConflictFound
    | graph.MergeStarted
    | graph.MergeFinished
    | graph.TargetBranchMoved
    | graph.BranchMerged
    | TaskReverted
    | ReplanStarted
    | ReviewSubmitted
    | Degraded
    | BudgetExhausted
    | HeadRecorded
    | Committed,
    Field(discriminator="type"),
]

FEATURE_EVENT_TYPES: tuple[str, ...] = tuple(
    event.model_fields["type"].default for event in get_args(get_args(FeatureEvent)[0])
)
