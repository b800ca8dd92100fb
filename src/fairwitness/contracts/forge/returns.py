"""What forge's agents return: a plan or its extension, a walkthrough, the result of a merge.

`rules.captain_answer` says what must agree in a captain's answer.
"""

from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text, Texts
from fairwitness.contracts.common.ids import GitRef, NodeId, SafeName
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any, unique_ids
from fairwitness.contracts.forge.dag import Dag, DagNode, DagOverlay
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
    replaces: Maybe[SafeName] = None
    """The spec that this one replaces from now on, in an answer to a change request."""


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

    @property
    def nodes(self) -> tuple[DagNode, ...]:
        """The nodes that this answer brings, of a plan or of its extension."""
        if self.dag is not None:
            return self.dag.nodes
        return self.overlay.addedNodes if self.overlay is not None else ()


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
