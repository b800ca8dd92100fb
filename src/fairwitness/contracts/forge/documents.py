"""Forge's Markdown documents: task, subtask, walkthrough and change request, each with front matter and a body."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import (
    AgentDocument,
    Count,
    Fraction,
    Maybe,
    Positive,
    Text,
    Texts,
    Timestamp,
    WholeLiteral,
)
from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.common.ids import GitRef, NodeId, RelPath
from fairwitness.contracts.common.markdown import body_with
from fairwitness.contracts.forge.dag import CrId, NodeState

SubAgentType = Annotated[Literal[1, 2, 3], WholeLiteral]


class TaskComplexity(StrEnum):
    """The captain's estimate of a task's size."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class ForgeTask(AgentDocument):
    """`tasks/task-<NNN>.md`: branch and attempt are null until the task starts."""

    id: NodeId
    title: Text
    type: Annotated[Literal[1, 2, 3, "task", "refinery"], WholeLiteral]
    dependencies: tuple[NodeId, ...]
    acceptance_criteria: Annotated[tuple[Text, ...], Field(min_length=1)]
    evidence: Maybe[tuple[CriterionJudgement, ...]] = None
    """The commands or tests that must pass for single criteria; the worker names those of the others."""
    test_waiver: Maybe[Text] = None
    """Why the task needs no new test; it counts only if a person approves the plan."""
    writes: Maybe[tuple[RelPath, ...]] = None
    """Globs of the files that the task may write (`src/*.py`, `docs/**`), its tests included; without it, any file."""
    estimated_complexity: TaskComplexity
    status: NodeState
    branch: GitRef | None
    attemptId: Positive | None
    body: Annotated[str, body_with("Description", "Context", "Instructions")]


class SubtaskStatus(StrEnum):
    """The status of a subtask."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class Subtask(AgentDocument):
    """`<taskId>/subtasks/subtask-<NNN>.md`: a part of a type 3 agent's task."""

    id: NodeId
    parent_task: NodeId
    title: Text
    type: SubAgentType
    status: SubtaskStatus
    assigned_agent: Text | None
    order: Maybe[Positive] = None
    depends_on: Maybe[tuple[NodeId, ...]] = None
    body: Annotated[str, body_with("Description")]


class WalkthroughStatus(StrEnum):
    """The status that a worker reports for its own work."""

    COMPLETED = "completed"
    FAILED = "failed"
    PARTIAL = "partial"


class WalkthroughFile(AgentDocument):
    """A file and the reason it was changed."""

    path: RelPath
    reason: Text


class TestResult(StrEnum):
    """The test result that a worker reports."""

    __test__ = False  # the name begins with Test, but it is no test class

    PASS = "pass"
    FAIL = "fail"
    SKIP = "skip"
    ERROR = "error"


class NamedTest(AgentDocument):
    """A test and its reported result."""

    name: Text
    result: TestResult


class Walkthrough(AgentDocument):
    """`<taskId>/<attempt>/walkthrough.md`: one per attempt, never overwritten; a claim, not evidence."""

    task_id: NodeId
    branch: GitRef
    base_ref: GitRef
    status: WalkthroughStatus
    confidence: Fraction
    time_spent_minutes: Count
    files_changed: tuple[WalkthroughFile, ...]
    evidence: Maybe[tuple[CriterionJudgement, ...]] = None
    """For each criterion the command or tests that the harness runs to judge it."""
    tests: Maybe[tuple[NamedTest, ...]] = None
    risks: Maybe[Texts] = None
    followups: Maybe[Texts] = None
    body: Annotated[str, body_with("Summary", "Approach", "Issues Encountered", "Testing")]


class ChangeRequestStatus(StrEnum):
    """`pending` moves to `approved` or `rejected`, `approved` to `applied`."""

    PENDING = "pending"
    APPROVED = "approved"
    REJECTED = "rejected"
    APPLIED = "applied"


class ChangeRequest(AgentDocument):
    """`change-requests/cr-<NNN>/change-request.md`: why the plan should grow, and how."""

    id: CrId
    title: Text
    emitted_by: Text
    emitted_at: Timestamp
    status: ChangeRequestStatus
    reason: Text
    affected_tasks: tuple[NodeId, ...]
    suggested_changes: Text
    decided_by: Maybe[Text] = None
    decided_at: Maybe[Timestamp] = None
    body: Annotated[str, body_with("Description", "Impact Assessment", "Proposed Resolution")]
