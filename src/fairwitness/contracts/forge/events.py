"""The union of all events of a forge run; each event is the `data` of an `Envelope`."""

from typing import Annotated, Literal, get_args

from pydantic import Field

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Count, Fraction, Maybe, Positive, Prose, Text, Texts, Timestamp
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.ids import Commit, GitRef, NodeId, RelPath, SafeName
from fairwitness.contracts.forge.dag import CrId, NodeState
from fairwitness.contracts.forge.documents import SubAgentType, SubtaskStatus, WalkthroughStatus


class RunCreated(EventData):
    """A run was requested."""

    type: Literal["run.created"] = "run.created"
    repoUrl: Text
    model: Text
    request: Text
    mode: Maybe[ApprovalMode] = None
    """Whether a person reviews the plan; None if the plan was approved before the run was created."""
    decider: Maybe[Literal["captain", "person"]] = None
    """Who answers change requests."""


class CaptainMessage(EventData):
    """A message of the interview."""

    type: Literal["captain.message"] = "captain.message"
    speaker: Literal["captain", "user"]
    text: Prose
    round: Maybe[Positive] = None
    """The round of the interview."""


class PlanProposed(EventData):
    """Specs, tasks and graph are written and wait for review."""

    type: Literal["plan.proposed"] = "plan.proposed"
    tasks: Count
    refineries: Count


class PlanApproved(EventData):
    """The plan was approved; its specs are sealed from now on."""

    type: Literal["plan.approved"] = "plan.approved"
    actor: Text


class PlanReturned(EventData):
    """The plan was returned to the captain with feedback."""

    type: Literal["plan.returned"] = "plan.returned"
    actor: Text
    feedback: Text


class ForgeRunStarted(EventData):
    """Execution started."""

    type: Literal["run.started"] = "run.started"


class RunPaused(EventData):
    """The run is paused: no node is started, running nodes may finish."""

    type: Literal["run.paused"] = "run.paused"
    reason: Text


class ForgeRunResumed(EventData):
    """A paused or stopped run continues."""

    type: Literal["run.resumed"] = "run.resumed"


class ForgeRunCompleted(EventData):
    """All nodes are merged."""

    type: Literal["run.completed"] = "run.completed"


class RunFailed(EventData):
    """No node can run any more, and not all nodes are merged."""

    type: Literal["run.failed"] = "run.failed"
    reason: Text


class NodeChanged(EventData):
    """The state of a node changed."""

    type: Literal["node.changed"] = "node.changed"
    nodeId: NodeId
    previousStatus: NodeState
    newStatus: NodeState
    timestamp: Timestamp
    attemptId: Maybe[Positive] = None
    reason: Maybe[Text] = None


class TaskStarted(EventData):
    """An attempt started on its own branch."""

    type: Literal["task.started"] = "task.started"
    nodeId: NodeId
    attemptId: Positive
    branch: GitRef
    agent: Text


class TaskStale(EventData):
    """The worker of an attempt was lost: its heartbeat stopped."""

    type: Literal["task.stale"] = "task.stale"
    nodeId: NodeId
    attemptId: Positive
    lastHeartbeat: Timestamp


class NodeRetried(EventData):
    """A node was queued for another attempt."""

    type: Literal["task.retried"] = "task.retried"
    nodeId: NodeId
    nextAttempt: Positive
    reason: Text


class TaskExhausted(EventData):
    """A node has no attempts left."""

    type: Literal["task.exhausted"] = "task.exhausted"
    nodeId: NodeId
    attempts: Positive
    lastError: Text


class TaskReopened(EventData):
    """A person allowed more attempts for a node that had none left."""

    type: Literal["task.reopened"] = "task.reopened"
    nodeId: NodeId
    maxAttempts: Positive
    actor: Text


class HelperStarted(EventData):
    """An agent that works on a node started a helper and waits for it."""

    type: Literal["helper.started"] = "helper.started"
    nodeId: NodeId
    attemptId: Positive
    agent: Text
    dispatch: SafeName
    task: Text
    """The helper's task in one line."""


class SubtaskWritten(EventData):
    """A sub-executor split off a subtask."""

    type: Literal["subtask.written"] = "subtask.written"
    nodeId: NodeId
    subtaskId: NodeId
    agentType: SubAgentType
    title: Text


class SubtaskChanged(EventData):
    """The status of a subtask changed."""

    type: Literal["subtask.changed"] = "subtask.changed"
    nodeId: NodeId
    subtaskId: NodeId
    status: SubtaskStatus
    agent: Maybe[Text] = None


class TaskVerified(EventData):
    """Fair Witness verified an attempt's commit; the commit waits to be merged."""

    type: Literal["task.verified"] = "task.verified"
    nodeId: NodeId
    attemptId: Positive
    commit: Commit
    tree: Commit


class ConflictFound(EventData):
    """An attempt conflicts with what was merged in the meantime.

    A helper may resolve the conflict once; after that a new attempt is made.
    """

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
    """The merge of a batch ended.

    The nodes that landed passed the checks on the merged tree; the others were removed before the target moved.
    """

    type: Literal["merge.finished"] = "merge.finished"
    batch: Positive
    tip: Commit
    """The tip of the target after the merge."""
    landed: tuple[NodeId, ...]
    culprit: Maybe[NodeId] = None
    """The node whose merge made the checks fail."""
    conflicting: tuple[NodeId, ...]
    left: tuple[NodeId, ...]
    """Nodes that neither landed nor were at fault; they are at the head of the queue again."""
    checks: Count
    """How many merged trees were checked: one, or more if a culprit had to be found."""


class TargetBranchMoved(EventData):
    """The target branch was moved by someone else; what was checked against its old tip is checked again."""

    type: Literal["target.moved"] = "target.moved"
    target: GitRef
    expected: Commit
    found: Maybe[Commit] = None
    """None if the branch no longer exists."""


class WalkthroughWritten(EventData):
    """A worker wrote the walkthrough of its work."""

    type: Literal["walkthrough.written"] = "walkthrough.written"
    nodeId: NodeId
    attemptId: Positive
    status: WalkthroughStatus
    confidence: Fraction
    path: RelPath


class WalkthroughDisputed(EventData):
    """The walkthrough of a worker differs from what Fair Witness observed."""

    type: Literal["walkthrough.disputed"] = "walkthrough.disputed"
    nodeId: NodeId
    attemptId: Positive
    differences: Annotated[Texts, Field(min_length=1)]


class LowConfidence(EventData):
    """A worker has low confidence in its own work; this is a hint for review, not a failure."""

    type: Literal["review.low_confidence"] = "review.low_confidence"
    nodeId: NodeId
    confidence: Fraction


class PotentialConflict(EventData):
    """Two running tasks change the same files."""

    type: Literal["conflict.potential"] = "conflict.potential"
    nodeId: NodeId
    otherNodeId: NodeId
    files: Annotated[tuple[RelPath, ...], Field(min_length=1)]


class FollowupSpawned(EventData):
    """An agent was started for a follow-up."""

    type: Literal["followup.spawned"] = "followup.spawned"
    nodeId: NodeId
    followup: Text


class BranchMerged(EventData):
    """A branch was merged, by a refinery or by the merge queue."""

    type: Literal["branch.merged"] = "branch.merged"
    refineryId: Maybe[NodeId] = None
    """The node that merged the branch, usually a refinery; None if it was merged on its own."""
    nodeId: NodeId
    commit: Commit


class ChangeRequestEmitted(EventData):
    """A change to the plan was requested."""

    type: Literal["cr.emitted"] = "cr.emitted"
    crId: CrId
    emittedBy: Text
    affectedTasks: tuple[NodeId, ...]
    title: Maybe[Text] = None


class ChangeRequestApproved(EventData):
    """A change request was approved."""

    type: Literal["cr.approved"] = "cr.approved"
    crId: CrId
    actor: Text


class ChangeRequestRejected(EventData):
    """A change request was rejected."""

    type: Literal["cr.rejected"] = "cr.rejected"
    crId: CrId
    actor: Text
    reason: Text


class OverlayApplied(EventData):
    """An overlay was applied: the graph has new nodes or edges."""

    type: Literal["overlay.applied"] = "overlay.applied"
    crId: CrId
    addedNodes: tuple[NodeId, ...]
    addedEdges: Count


class OverlayRefused(EventData):
    """An overlay did not fit the graph and was not applied."""

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
