"""The plan of a phase as returned by its planner: tasks with criteria, commands and a script."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.returns import PlannerReturn
from fairwitness.contracts.autopilot.vocabulary import Complexity
from fairwitness.contracts.common.base import AgentDocument, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.ids import RelPath, SafeName
from fairwitness.contracts.common.problems import expect


class TaskKind(StrEnum):
    """Who can decide whether a task is done: commands, or only a person."""

    AUTO = "auto"
    HUMAN_VERIFY = "checkpoint:human-verify"


class PlanCriterion(AgentDocument):
    """A criterion, and a command that fails until the criterion holds."""

    criterion: Text
    command: Text


ID_LIMIT = 64
RESERVED = frozenset({"cycle", "debug"})
"""Names for work of a phase that is not in the plan; no task may use them."""


class PlanTask(AgentDocument):
    """One task of the plan, with everything that its executor sees."""

    id: SafeName
    kind: TaskKind
    complexity: Complexity
    wave: Positive
    files: tuple[RelPath, ...]
    action: Text
    criteria: Annotated[tuple[PlanCriterion, ...], Field(min_length=1)]
    done: Text
    requirements: Texts
    """The requirements and success criteria of the phase that the task serves."""
    script: Maybe[Prose] = None
    """A shell script that prints PASS or FAIL for each criterion and exits with an error if one failed."""


class PhasePlan(PlannerReturn):
    """The plan with its tasks; its counts must match the tasks."""

    tasks: Annotated[tuple[PlanTask, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _numbers_are_those_of_the_tasks(self) -> Self:
        expect(self, self.total_tasks == len(self.tasks), "a total_tasks equal to the tasks listed", "total_tasks")
        waves = {task.wave for task in self.tasks}
        expect(self, len(waves) == max(waves) == self.waves, "waves counted from 1 without a gap", "waves")
        names = {task.id.lower() for task in self.tasks}
        expect(self, len(names) == len(self.tasks), "an id of its own for each task", "tasks")
        expect(self, all(len(name) <= ID_LIMIT for name in names), f"ids of at most {ID_LIMIT} letters", "tasks")
        return self

    @model_validator(mode="after")
    def _no_id_continues_another(self) -> Self:
        """Refuse an id that reads as the check of another task: attempts and checks are named after their task."""
        names = {task.id.lower() for task in self.tasks}
        continued = any(name.startswith(f"{other}-") for name in names for other in (*names, *RESERVED))
        expected = "ids of which none is another one with something behind it, nor cycle or debug"
        expect(self, not (continued or names & RESERVED), expected, "tasks")
        return self

    @model_validator(mode="after")
    def _one_writer_per_file_and_wave(self) -> Self:
        pairs = [(task.wave, path) for task in self.tasks for path in set(task.files)]
        expect(self, len(set(pairs)) == len(pairs), "no file in two tasks of one wave", "tasks")
        return self
