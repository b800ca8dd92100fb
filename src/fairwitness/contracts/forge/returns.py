"""What forge's agents return: a plan or its extension, a walkthrough, the result of a merge."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text, Texts
from fairwitness.contracts.common.ids import GitRef, NodeId, SafeName
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any, unique_ids
from fairwitness.contracts.forge.dag import Dag, DagNode, DagOverlay, NodeState, NodeType
from fairwitness.contracts.forge.documents import (
    ChangeRequest,
    ChangeRequestStatus,
    ForgeTask,
    Walkthrough,
    WalkthroughFile,
    WalkthroughStatus,
)


class SpecFile(AgentDocument):
    """One reference document of the plan: `specs/<name>.md`."""

    name: SafeName
    body: Text
    """Markdown of any shape."""


class CaptainReturn(AgentDocument):
    """A whole plan, what an approved change request adds to one, or word that a change request is not taken up."""

    specs: tuple[SpecFile, ...]
    tasks: Annotated[tuple[ForgeTask, ...], AfterValidator(unique_ids("task"))]
    dag: Maybe[Dag] = None
    """The graph of a new plan."""
    overlay: Maybe[DagOverlay] = None
    """What a change request adds to the graph of a plan that is being carried out."""
    rejected: Maybe[Text] = None
    """Why a change request is not taken up."""
    assumptions: Texts
    """Decisions made without asking, for the reviewer of the plan."""
    open_questions: Texts

    @model_validator(mode="after")
    def _one_kind_of_answer(self) -> Self:
        refusals = []
        said = [name for name in ("dag", "overlay", "rejected") if getattr(self, name) is not None]
        if len(said) != 1:
            refusals.append(
                FieldRefusal(("dag",), "exactly one of dag, overlay and rejected", ", ".join(said) or "none of them")
            )
        if self.rejected is not None and (self.specs or self.tasks):
            refusals.append(FieldRefusal(("rejected",), "no specs and no tasks beside it", self.rejected))
        refuse_if_any("CaptainReturn", refusals)
        return self

    @model_validator(mode="after")
    def _tasks_are_the_nodes(self) -> Self:
        refuse_if_any("CaptainReturn", [*self._task_refusals(), *self._node_refusals()])
        return self

    @property
    def nodes(self) -> tuple[DagNode, ...]:
        """The nodes that this answer brings, of a plan or of its extension."""
        if self.dag is not None:
            return self.dag.nodes
        return self.overlay.addedNodes if self.overlay is not None else ()

    def _awaited(self, node: DagNode) -> set[str]:
        edges = self.overlay.addedEdges if self.overlay is not None else ()
        return {*node.dependencies, *(edge.from_ for edge in edges if edge.to == node.id)}

    def _task_refusals(self) -> Iterator[FieldRefusal]:
        nodes = {node.id: node for node in self.nodes}
        for index, task in enumerate(self.tasks):
            node = nodes.get(task.id)
            if node is None:
                yield FieldRefusal(("tasks", index, "id"), "the id of a node of the graph", task.id)
            elif set(task.dependencies) != self._awaited(node):
                yield FieldRefusal(("tasks", index, "dependencies"), "those of its node", list(task.dependencies))
            elif task.type not in (node.agentType, node.type.value):
                yield FieldRefusal(("tasks", index, "type"), f"{node.agentType}, as its node says", task.type)
            if task.status is not NodeState.PENDING:
                yield FieldRefusal(("tasks", index, "status"), "PENDING of a task that is planned", task.status.value)
            if task.branch is not None or task.attemptId is not None:
                yield FieldRefusal(("tasks", index), "neither branch nor attemptId before it starts", task.branch)

    def _node_refusals(self) -> Iterator[FieldRefusal]:
        graph = ("dag", "nodes") if self.dag is not None else ("overlay", "addedNodes")
        described = {task.id for task in self.tasks}
        for index, node in enumerate(self.nodes):
            if node.type is NodeType.TASK and node.id not in described:
                yield FieldRefusal((*graph, index, "id"), "a task document for this node", node.id)
            if node.status is not NodeState.PENDING:
                yield FieldRefusal((*graph, index, "status"), "PENDING of a node that is planned", node.status.value)


class WorkerReturn(AgentDocument):
    """What a worker of any type returns: without a walkthrough an attempt has failed."""

    walkthrough: Walkthrough


class FailingTest(AgentDocument):
    """A test that fails on the merged branches, and which of them it points at."""

    name: Text
    branches: tuple[GitRef, ...]
    """Empty if unknown."""
    detail: Text


def _pending(requests: tuple[ChangeRequest, ...]) -> tuple[ChangeRequest, ...]:
    refuse_if_any(
        "change requests",
        [
            FieldRefusal((index, "status"), "pending: whoever asks does not decide", request.status.value)
            for index, request in enumerate(requests)
            if request.status is not ChangeRequestStatus.PENDING
        ],
    )
    return requests


class RefineryReturn(AgentDocument):
    """What a merge of several branches came to; the harness runs the tests again before anything counts as merged."""

    merged_branches: tuple[GitRef, ...]
    """The merged branches, in order."""
    unmerged: tuple[NodeId, ...]
    """Tasks whose branches could not be merged."""
    failing_tests: tuple[FailingTest, ...]
    fixes: tuple[WalkthroughFile, ...]
    """What was changed beyond the merges themselves, and why."""
    change_requests: Annotated[
        tuple[ChangeRequest, ...], AfterValidator(unique_ids("change request")), AfterValidator(_pending)
    ]
    """What the plan is missing; fixes larger than the merge belong here."""
    walkthrough: Walkthrough

    @model_validator(mode="after")
    def _completed_means_whole(self) -> Self:
        whole = not self.failing_tests and not self.unmerged
        if self.walkthrough.status is WalkthroughStatus.COMPLETED and not whole:
            refuse_if_any(
                "RefineryReturn",
                [FieldRefusal(("walkthrough", "status"), "partial or failed, since something is left", "completed")],
            )
        return self
