"""The files of a forge run: `<base>/<run>/`, with a folder for each task and in it one for each attempt.

Each attempt has its own folder, so it overwrites nothing that an earlier attempt wrote.
"""

import re
from dataclasses import dataclass

from fairwitness.errors import UnsafePath
from fairwitness.store.layout import names

_RESERVED = frozenset(
    {
        "specs",
        "specs.lock.json",
        "tasks",
        "dag.json",
        "dag-status.json",
        "change-requests",
        "run-state.json",
        "assumptions.md",
    }
)


@dataclass(frozen=True, slots=True)
class ForgeLayout:
    """The paths of one run, relative to the repository."""

    run_id: str
    base: str = ".fairwitness/artifacts"

    def __post_init__(self) -> None:
        names.run(self.run_id)
        names.base_folder(self.base)

    @property
    def folder(self) -> str:
        return f"{self.base}/{names.run(self.run_id)}"

    @property
    def specs(self) -> str:
        return f"{self.folder}/specs"

    @property
    def specs_lock(self) -> str:
        """The lock file of the specs; exists from the moment the run executes."""
        return f"{self.folder}/specs.lock.json"

    def spec(self, name: str) -> str:
        return f"{self.specs}/{names.safe_name('spec name', name)}.md"

    def task(self, task_id: str) -> str:
        """Return the path of a task's document."""
        return f"{self.folder}/tasks/{names.safe_name('task id', task_id)}.md"

    @property
    def dag(self) -> str:
        return f"{self.folder}/dag.json"

    @property
    def assumptions(self) -> str:
        """What the captain decided without asking, and what it asks; for the person who reviews the plan."""
        return f"{self.folder}/assumptions.md"

    @property
    def dag_status(self) -> str:
        return f"{self.folder}/dag-status.json"

    @property
    def run_state(self) -> str:
        return f"{self.folder}/run-state.json"

    @property
    def change_requests(self) -> str:
        return f"{self.folder}/change-requests"

    def change_request(self, cr_id: str) -> str:
        return f"{self.change_requests}/{_numbered('cr', cr_id)}/change-request.md"

    def dag_overlay(self, cr_id: str) -> str:
        return f"{self.change_requests}/{_numbered('cr', cr_id)}/dag-overlay.json"

    def task_folder(self, task_id: str) -> str:
        """Return the folder for the output of a task's attempts."""
        name = names.safe_name("task id", task_id)
        if name.lower() in _RESERVED:  # lower: some file systems ignore case
            raise UnsafePath(
                f"{task_id!r} is a task id that would take the place of the run's own files",
                next_step="give the task another id",
            )
        return f"{self.folder}/{name}"

    def attempt_folder(self, task_id: str, attempt: int) -> str:
        return f"{self.task_folder(task_id)}/{names.attempt(attempt)}"

    def walkthrough(self, task_id: str, attempt: int) -> str:
        return f"{self.attempt_folder(task_id, attempt)}/walkthrough.md"

    def helper_walkthrough(self, task_id: str, attempt: int, dispatch_id: str) -> str:
        """Return the path of what a helper of an attempt says about its work."""
        return f"{self.attempt_folder(task_id, attempt)}/helpers/{names.safe_name('dispatch id', dispatch_id)}.md"

    def subtask(self, task_id: str, subtask_id: str) -> str:
        """Return the path of a subtask, a part that the task's own agent split off."""
        return f"{self.task_folder(task_id)}/subtasks/{_numbered('subtask', subtask_id)}.md"


def _numbered(prefix: str, value: str) -> str:
    if re.fullmatch(rf"{prefix}-[0-9]{{3,6}}", value, re.ASCII) is None:
        raise UnsafePath(
            f"{value!r} is not an id like '{prefix}-001'", next_step="give the id as it stands in the document"
        )
    return value
