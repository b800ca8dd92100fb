"""`dag.json`: the plan's static graph of tasks and refineries, and overlays that may only add to it."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import Contract, Count, Maybe, Timestamp, WholeLiteral
from fairwitness.contracts.common.ids import NodeId, RunId
from fairwitness.contracts.common.problems import unique_ids


class NodeType(StrEnum):
    """Work, or a place where work is merged."""

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
    """One node; every dependency blocks it."""

    id: NodeId
    type: NodeType
    agentType: AgentType
    dependencies: tuple[NodeId, ...]
    status: NodeState
    metadata: Maybe[dict[str, Any]] = None

    @property
    def worker(self) -> str:
        """Who works on it, as people are told."""
        return "refinery" if self.type is NodeType.REFINERY else f"type {self.agentType}"


class DagMetadata(Contract):
    """Who drew the graph, when, and how large it is."""

    createdAt: Timestamp
    createdBy: Literal["captain"]
    totalTasks: Count
    totalRefineries: Count


class Dag(Contract):
    """`dag.json`; live state stands in `dag-status.json`."""

    version: Annotated[Literal[1], WholeLiteral]
    runId: RunId
    nodes: Annotated[tuple[DagNode, ...], AfterValidator(unique_ids("node"))]
    metadata: DagMetadata


CrId = Annotated[str, Field(pattern=r"^cr-[0-9]{3,6}$")]


class AddedEdge(Contract):
    """`to` will wait for `from`."""

    from_: NodeId = Field(alias="from")
    to: NodeId


class DagOverlay(Contract):
    """`dag-overlay.json`: what a change request adds; nothing is ever removed."""

    crId: CrId
    appliedAt: Timestamp
    addedNodes: tuple[DagNode, ...]
    addedEdges: tuple[AddedEdge, ...]
