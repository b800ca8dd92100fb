"""Everything that can happen in a forge run, as one closed union; each event is the `data` of an `Envelope`."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Count, Fraction, Maybe, Positive, Prose, Text, Texts, Timestamp
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.ids import Commit, GitRef, NodeId, RelPath, SafeName
from fairwitness.contracts.forge.dag import CrId, NodeState
from fairwitness.contracts.forge.documents import SubAgentType, SubtaskStatus, WalkthroughStatus


class RunCreated(EventData):
    """A run was asked for."""

    type: Literal["run.created"] = "run.created"
    repoUrl: Text
    model: Text
    request: Text
    mode: Maybe[ApprovalMode] = None
    """Whether a person reviews the plan; None if it was approved before there was a run."""
    decider: Maybe[Literal["captain", "person"]] = None
    """Who answers change requests."""


class CaptainMessage(EventData):
    """A line of the interview."""

    type: Literal["captain.message"] = "captain.message"
    speaker: Literal["captain", "user"]
    text: Prose
    round: Maybe[Positive] = None
    """Of the interview."""


class PlanProposed(EventData):
    """Specs, tasks and graph are written and wait for review."""

    type: Literal["plan.proposed"] = "plan.proposed"
    tasks: Count
    refineries: Count


class PlanApproved(EventData):
    """The plan may run; from here on specs are sealed."""

    type: Literal["plan.approved"] = "plan.approved"
    actor: Text


class PlanReturned(EventData):
    """The plan goes back to the captain."""

    type: Literal["plan.returned"] = "plan.returned"
    actor: Text
    feedback: Text


class ForgeRunStarted(EventData):
    """Execution began."""

    type: Literal["run.started"] = "run.started"


class RunPaused(EventData):
    """Nothing new is started; what runs may finish."""

    type: Literal["run.paused"] = "run.paused"
    reason: Text


class ForgeRunResumed(EventData):
    """A paused or stopped run went on."""

    type: Literal["run.resumed"] = "run.resumed"


class ForgeRunCompleted(EventData):
    """Every node is merged."""

    type: Literal["run.completed"] = "run.completed"


class RunFailed(EventData):
    """Nothing can run any more and not everything is merged."""

    type: Literal["run.failed"] = "run.failed"
    reason: Text


class NodeChanged(EventData):
    """A node moved from one state to another."""

    type: Literal["node.changed"] = "node.changed"
    nodeId: NodeId
    previousStatus: NodeState
    newStatus: NodeState
    timestamp: Timestamp
    attemptId: Maybe[Positive] = None
    reason: Maybe[Text] = None


class TaskStarted(EventData):
    """An attempt began on its own branch."""

    type: Literal["task.started"] = "task.started"
    nodeId: NodeId
    attemptId: Positive
    branch: GitRef
    agent: Text


class TaskStale(EventData):
    """A worker was lost."""

    type: Literal["task.stale"] = "task.stale"
    nodeId: NodeId
    attemptId: Positive
    lastHeartbeat: Timestamp


class NodeRetried(EventData):
    """A node goes back to the queue for another attempt."""

    type: Literal["task.retried"] = "task.retried"
    nodeId: NodeId
    nextAttempt: Positive
    reason: Text


class TaskExhausted(EventData):
    """A node has no attempt left."""

    type: Literal["task.exhausted"] = "task.exhausted"
    nodeId: NodeId
    attempts: Positive
    lastError: Text


class TaskReopened(EventData):
    """A person gave a node that had none left more attempts."""

    type: Literal["task.reopened"] = "task.reopened"
    nodeId: NodeId
    maxAttempts: Positive
    actor: Text


class HelperStarted(EventData):
    """An agent at work on a node started a helper, and waits for it."""

    type: Literal["helper.started"] = "helper.started"
    nodeId: NodeId
    attemptId: Positive
    agent: Text
    dispatch: SafeName
    task: Text
    """In one line."""


class SubtaskWritten(EventData):
    """A sub-executor split off a part of its task."""

    type: Literal["subtask.written"] = "subtask.written"
    nodeId: NodeId
    subtaskId: NodeId
    agentType: SubAgentType
    title: Text


class SubtaskChanged(EventData):
    """A part of a task moved on."""

    type: Literal["subtask.changed"] = "subtask.changed"
    nodeId: NodeId
    subtaskId: NodeId
    status: SubtaskStatus
    agent: Maybe[Text] = None


class TaskVerified(EventData):
    """The harness proved an attempt's commit; it waits to be merged."""

    type: Literal["task.verified"] = "task.verified"
    nodeId: NodeId
    attemptId: Positive
    commit: Commit
    tree: Commit


class ConflictFound(EventData):
    """An attempt does not fit what was merged meanwhile; a helper is asked once, and then a new attempt is made."""

    type: Literal["conflict.found"] = "conflict.found"
    nodeId: NodeId
    attemptId: Positive
    onto: Commit
    paths: Annotated[tuple[Prose, ...], Field(min_length=1)]


class MergeStarted(EventData):
    """Attempts were taken from the queue to be merged together; the target has not moved."""

    type: Literal["merge.started"] = "merge.started"
    batch: Positive
    nodes: Annotated[tuple[NodeId, ...], Field(min_length=1)]


class MergeFinished(EventData):
    """A batch is through: what landed was green on the merged tree, the rest was backed out before the target moved."""

    type: Literal["merge.finished"] = "merge.finished"
    batch: Positive
    tip: Commit
    """Of the target, afterwards."""
    landed: tuple[NodeId, ...]
    culprit: Maybe[NodeId] = None
    """Whose merge turned the checks red."""
    conflicting: tuple[NodeId, ...]
    left: tuple[NodeId, ...]
    """Neither landed nor at fault: they stand at the head of the queue again."""
    checks: Count
    """How many merged trees were checked: one, or more when a culprit was looked for."""


class TargetBranchMoved(EventData):
    """Somebody else moved the branch that is merged into; what was checked against its old tip is checked again."""

    type: Literal["target.moved"] = "target.moved"
    target: GitRef
    expected: Commit
    found: Maybe[Commit] = None
    """None if the branch is gone."""


class WalkthroughWritten(EventData):
    """A worker told what it did."""

    type: Literal["walkthrough.written"] = "walkthrough.written"
    nodeId: NodeId
    attemptId: Positive
    status: WalkthroughStatus
    confidence: Fraction
    path: RelPath


class WalkthroughDisputed(EventData):
    """What a worker told is not what the harness saw."""

    type: Literal["walkthrough.disputed"] = "walkthrough.disputed"
    nodeId: NodeId
    attemptId: Positive
    differences: Annotated[Texts, Field(min_length=1)]


class LowConfidence(EventData):
    """A worker is unsure of its own work; worth a look, not a failure."""

    type: Literal["review.low_confidence"] = "review.low_confidence"
    nodeId: NodeId
    confidence: Fraction


class PotentialConflict(EventData):
    """Two running tasks touch the same files."""

    type: Literal["conflict.potential"] = "conflict.potential"
    nodeId: NodeId
    otherNodeId: NodeId
    files: Annotated[tuple[RelPath, ...], Field(min_length=1)]


class FollowupSpawned(EventData):
    """A throwaway agent was sent after a follow-up."""

    type: Literal["followup.spawned"] = "followup.spawned"
    nodeId: NodeId
    followup: Text


class BranchMerged(EventData):
    """A branch was taken in, by a refinery or by the engine's own queue."""

    type: Literal["branch.merged"] = "branch.merged"
    refineryId: Maybe[NodeId] = None
    """The node that was built upon it and took it in, a refinery as a rule; None if it was merged by itself."""
    nodeId: NodeId
    commit: Commit


class ChangeRequestEmitted(EventData):
    """The plan should grow."""

    type: Literal["cr.emitted"] = "cr.emitted"
    crId: CrId
    emittedBy: Text
    affectedTasks: tuple[NodeId, ...]
    title: Maybe[Text] = None


class ChangeRequestApproved(EventData):
    """A change request left pending."""

    type: Literal["cr.approved"] = "cr.approved"
    crId: CrId
    actor: Text


class ChangeRequestRejected(EventData):
    """A change request was turned down."""

    type: Literal["cr.rejected"] = "cr.rejected"
    crId: CrId
    actor: Text
    reason: Text


class OverlayApplied(EventData):
    """The graph grew."""

    type: Literal["overlay.applied"] = "overlay.applied"
    crId: CrId
    addedNodes: tuple[NodeId, ...]
    addedEdges: Count


class OverlayRefused(EventData):
    """An overlay did not fit the graph; nothing of it was applied."""

    type: Literal["overlay.refused"] = "overlay.refused"
    crId: CrId
    problems: Texts


ForgeEvent = Annotated[
    RunCreated
    | CaptainMessage
    | PlanProposed
    | PlanApproved
    | PlanReturned
    | ForgeRunStarted
    | RunPaused
    | ForgeRunResumed
    | ForgeRunCompleted
    | RunFailed
    | NodeChanged
    | TaskStarted
    | TaskStale
    | NodeRetried
    | TaskExhausted
    | TaskReopened
    | HelperStarted
    | SubtaskWritten
    | SubtaskChanged
    | TaskVerified
    | ConflictFound
    | MergeStarted
    | MergeFinished
    | TargetBranchMoved
    | WalkthroughWritten
    | WalkthroughDisputed
    | LowConfidence
    | PotentialConflict
    | FollowupSpawned
    | BranchMerged
    | ChangeRequestEmitted
    | ChangeRequestApproved
    | ChangeRequestRejected
    | OverlayApplied
    | OverlayRefused,
    Field(discriminator="type"),
]

FORGE_EVENT_TYPES: tuple[str, ...] = tuple(
    event.model_fields["type"].default for event in get_args(get_args(ForgeEvent)[0])
)
