"""The live state of a forge run, `dag-status.json` and `run-state.json`, written only from its events."""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from fairwitness.contracts.common.base import Contract, Count, Maybe, Positive, Text, Timestamp
from fairwitness.contracts.common.ids import NodeId, RunId
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.forge.dag import CrId, NodeState


class NodeStatus(Contract):
    """The status of one node."""

    taskId: NodeId
    status: NodeState
    currentAttempt: Positive
    maxAttempts: Positive
    assignedAgent: Maybe[Text] = None
    startedAt: Maybe[Timestamp] = None
    completedAt: Maybe[Timestamp] = None
    lastError: Maybe[Text] = None

    @model_validator(mode="after")
    def _within_its_attempts(self) -> Self:
        if self.currentAttempt > self.maxAttempts:
            refuse_if_any(
                "NodeStatus",
                [FieldRefusal(("currentAttempt",), f"at most maxAttempts, {self.maxAttempts}", self.currentAttempt)],
            )
        return self


class DagStatus(Contract):
    """The status of all nodes (`dag-status.json`)."""

    runId: RunId
    updatedAt: Timestamp
    nodes: dict[NodeId, NodeStatus]

    @model_validator(mode="after")
    def _keys_are_the_nodes_own_ids(self) -> Self:
        refuse_if_any(
            "DagStatus",
            [
                FieldRefusal(("nodes", key, "taskId"), f"the id of its own entry, '{key}'", node.taskId)
                for key, node in self.nodes.items()
                if node.taskId != key
            ],
        )
        return self


class ForgeRunStatus(StrEnum):
    """The status of a forge run."""

    PLANNING = "planning"
    PLAN_REVIEW = "plan_review"
    EXECUTING = "executing"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class RunPhase(StrEnum):
    """The phase of a forge run; a failed run keeps its last phase."""

    CAPTAIN_INTERVIEW = "captain_interview"
    PLAN_REVIEW = "plan_review"
    EXECUTION = "execution"
    PAUSED = "paused"
    COMPLETED = "completed"


_ENDED = frozenset({ForgeRunStatus.COMPLETED, ForgeRunStatus.FAILED})
_BEGAN = frozenset({ForgeRunStatus.EXECUTING, ForgeRunStatus.PAUSED, ForgeRunStatus.COMPLETED})


class RunState(Contract):
    """The state of the whole run (`run-state.json`)."""

    runId: RunId
    repoUrl: Text
    status: ForgeRunStatus
    createdAt: Timestamp
    startedAt: Maybe[Timestamp] = None
    completedAt: Maybe[Timestamp] = None
    currentPhase: RunPhase
    model: Text
    totalTasks: Count
    completedTasks: Count
    failedTasks: Count
    runningTasks: Count
    activeCRs: tuple[CrId, ...]
    lastEventId: Text
    lastEventSeq: Count

    @model_validator(mode="after")
    def _times_follow_the_status(self) -> Self:
        refusals = []
        if self.status in _BEGAN and self.startedAt is None:
            refusals.append(FieldRefusal(("startedAt",), f"a time, since the run is {self.status.value}", None))
        if self.status in _ENDED and self.completedAt is None:
            refusals.append(FieldRefusal(("completedAt",), f"a time, since the run is {self.status.value}", None))
        if self.status not in _ENDED and self.completedAt is not None:
            refusals.append(
                FieldRefusal(("completedAt",), f"nothing, since the run is {self.status.value}", self.completedAt)
            )
        refuse_if_any("RunState", refusals)
        return self
