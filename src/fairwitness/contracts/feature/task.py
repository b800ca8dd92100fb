"""Schema 6, `task-schema`: one task, its criteria, and pointers to exactly the sections it needs."""

from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import AgentDocument, Maybe, Text
from fairwitness.contracts.common.completion import Agent
from fairwitness.contracts.common.ids import RelPath, TaskId
from fairwitness.contracts.common.words import Risk, Size

Pointer = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9._/-]+#[A-Za-z0-9_]+(\[[A-Za-z0-9_]+='[^']+'\])?(\.[A-Za-z0-9_]+(\[[A-Za-z0-9_]+='[^']+'\])?)*$"
    ),
]
"""`<file>#<dotted path>` with selectors: `design-output.yaml#payload.decisions[id='D-8']`."""


class FileToModify(AgentDocument):
    """A file the task will touch, and how dangerous that is."""

    path: RelPath
    risk: Risk


class RelevantContext(AgentDocument):
    """What the implementer is shown, and nothing more."""

    design_sections: Annotated[tuple[Pointer, ...], Field(min_length=1)]
    spec_requirements: Annotated[tuple[Pointer, ...], Field(min_length=1)]
    files_to_modify: Maybe[tuple[FileToModify, ...]] = None


class Task(AgentDocument):
    """The task itself."""

    id: TaskId
    title: Text
    description: Text
    agent: Agent
    size: Size
    risk: Risk
    depends_on: tuple[TaskId, ...] = ()
    acceptance_criteria: Annotated[tuple[Text, ...], Field(min_length=1)]
    relevant_context: RelevantContext


class TaskDocument(AgentDocument):
    """Schema 6: `tasks/<task-id>.yaml`."""

    task: Task
