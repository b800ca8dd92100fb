"""The plan of a feature (schema 5, `plan-output`) and its task documents (schema 6, `task-schema`).

Waves are hints; `depends_on` is binding. A task document holds its criteria and pointers to the sections it needs.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from fairwitness.contracts.common.base import AgentDocument, Integer, Maybe, Positive, Text, Texts
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.ids import RelPath, TaskId
from fairwitness.contracts.common.problems import unique_ids
from fairwitness.contracts.common.vocabulary import Risk, Size
from fairwitness.contracts.feature.document import SignedDocument


class Wave(AgentDocument):
    """Tasks that the planner expects to run in parallel."""

    id: Text
    tasks: Annotated[tuple[TaskId, ...], Field(min_length=1)]
    max_concurrent: Annotated[Integer, Field(ge=1, le=4)]


class PlannedTask(AgentDocument):
    """A task in the plan's overview; its own document holds the details."""

    id: TaskId
    title: Text
    size: Size
    risk: Risk
    depends_on: tuple[TaskId, ...] = ()
    agent: FeatureAgent


class Likelihood(StrEnum):
    """The likelihood of a failure."""

    HIGH = "H"
    MEDIUM = "M"
    LOW = "L"


class PreMortemEntry(AgentDocument):
    """A way in which a task could fail, anticipated by the planner."""

    task: TaskId
    scenario: Text
    likelihood: Likelihood
    impact: Likelihood
    mitigation: Text


class PlanPayload(AgentDocument):
    """The content of a plan."""

    overall_risk_summary: Risk
    total_tasks: Positive
    waves: Annotated[tuple[Wave, ...], Field(min_length=1), AfterValidator(unique_ids("wave"))]
    tasks: Annotated[tuple[PlannedTask, ...], Field(min_length=1), AfterValidator(unique_ids("task"))]
    dependency_graph: Maybe[dict[TaskId, tuple[TaskId, ...]]] = None
    pre_mortem: Maybe[tuple[PreMortemEntry, ...]] = None
    key_assumptions: Maybe[Texts] = None


class PlanOutput(SignedDocument[PlanPayload]):
    """Schema 5: `plan-output.yaml`."""

    signer = FeatureAgent.PLANNER


Pointer = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._/-]+#[A-Za-z0-9_]+(\[[A-Za-z0-9_]+='[^']+'\])?(\.[A-Za-z0-9_]+(\[[A-Za-z0-9_]+='[^']+'\])?)*$"
    ),
]
"""`<file>#<dotted path>` with selectors: `design-output.yaml#payload.decisions[id='D-8']`."""


class FileToModify(AgentDocument):
    """A file that the task will change, with its risk."""

    path: RelPath
    risk: Risk


class RelevantContext(AgentDocument):
    """The only context that the implementer gets."""

    design_sections: Annotated[tuple[Pointer, ...], Field(min_length=1)]
    spec_requirements: Annotated[tuple[Pointer, ...], Field(min_length=1)]
    files_to_modify: Maybe[tuple[FileToModify, ...]] = None


class Task(AgentDocument):
    """The content of a task document."""

    id: TaskId
    title: Text
    description: Text
    agent: FeatureAgent
    size: Size
    risk: Risk
    depends_on: tuple[TaskId, ...] = ()
    acceptance_criteria: Annotated[tuple[Text, ...], Field(min_length=1)]
    relevant_context: RelevantContext


class TaskDocument(AgentDocument):
    """Schema 6: `tasks/<task-id>.yaml`."""

    task: Task
