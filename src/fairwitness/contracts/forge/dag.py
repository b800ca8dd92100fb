"""The task graph of a plan (`dag.json`) with tasks and refineries, and overlays that only add to it."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import Contract, Count, Maybe, Timestamp, WholeLiteral
from fairwitness.contracts.common.ids import NodeId, RunId
from fairwitness.contracts.common.problems import unique_ids


class NodeType(StrEnum):
    """The type of a node: a task, or a refinery that merges tasks."""

    TASK = "task"
    REFINERY = "refinery"


class NodeState(StrEnum):
    """The seven states of a node."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    MERGE_READY = "MERGE_READY"
    MERGED = "MERGED"
    FAILED = "FAILED"
    STALE = "STALE"


AgentType = Annotated[Literal[1, 2, 3, "refinery"], WholeLiteral]
"""1 throwaway, 2 worker, 3 sub-executor, or a refinery."""


class DagNode(Contract):
    """One node of a graph; it waits for all its dependencies."""

    id: NodeId
    type: NodeType
    agentType: AgentType
    dependencies: tuple[NodeId, ...]
    status: NodeState
    metadata: Maybe[dict[str, Any]] = None

    @property
    def worker(self) -> str:
        """Return the agent of the node in readable form."""
        return "refinery" if self.type is NodeType.REFINERY else f"type {self.agentType}"


class DagMetadata(Contract):
    """The author, the creation time and the size of a graph."""

    createdAt: Timestamp
    createdBy: Literal["captain"]
    totalTasks: Count
    totalRefineries: Count


class Dag(Contract):
    """The graph of a plan (`dag.json`); its live state is in `dag-status.json`."""

    version: Annotated[Literal[1], WholeLiteral]
    runId: RunId
    nodes: Annotated[tuple[DagNode, ...], AfterValidator(unique_ids("node"))]
    metadata: DagMetadata


CrId = Annotated[str, Field(pattern=r"^cr-[0-9]{3,6}$")]


class AddedEdge(Contract):
    """A new dependency: `to` waits for `from`."""

    from_: NodeId = Field(alias="from")
    to: NodeId


class DagOverlay(Contract):
    """The additions of a change request to a graph (`dag-overlay.json`); nothing is ever removed."""

    crId: CrId
    appliedAt: Timestamp
    addedNodes: tuple[DagNode, ...]
    addedEdges: tuple[AddedEdge, ...]
