"""The autopilot demo as values that tests compare with: its sessions by name, and the tasks of its plans."""

import json
from typing import Any, NamedTuple

from fairwitness.demo.bundle import AutopilotPlan, load

DEMO = load("autopilot")
TEAM = DEMO.team()
COMMANDS: dict[str, str | None] = json.loads(DEMO.files[".planning/config.json"])["project"]["commands"]
CHECKS = tuple(tuple(line.split()) for line in COMMANDS.values() if line is not None)
"""The checks of the repository as a person runs them."""


def _plan() -> AutopilotPlan:
    assert DEMO.autopilot is not None
    return DEMO.autopilot


PLAN = _plan()


class Task(NamedTuple):
    """A task that an executor carries out."""

    phase: int
    id: str
    writes: tuple[str, ...]
    criteria: tuple[dict[str, Any], ...]


def _tasks(phase: int) -> tuple[Task, ...]:
    planned = DEMO.document(f"plan-{phase}-1-1")["tasks"]
    return tuple(
        Task(phase, each["id"], tuple(each["files"]), tuple(each["criteria"]))
        for each in planned
        if each["kind"] == "auto"
    )


PLANNED = (1, 2, 3, 5)
"""The phases that get a plan; phase 4 is skipped."""
TASKS = tuple(task for phase in PLANNED for task in _tasks(phase))
(WEAK,) = next(task.criteria for task in TASKS if task.phase == 3)
"""What the plan made of the criterion about recipes."""
GAP = str(DEMO.document("rate-2-1-1")["scorecard"][1]["justification"])
"""What the rater misses in the shopping list, and where."""
