"""The forge demo as values that tests compare with: its sessions by name, its tasks and its refineries."""

from typing import Any, NamedTuple

from fairwitness.demo.bundle import load

DEMO = load("forge")
CHECKS = (("python3", "-m", "unittest"), ("python3", "tools/check_types.py", "measure"))
"""The checks of the repository as a person runs them. `fairwitness.toml` declares the last one; the first is found."""

MASS, DURATION, NAMES, PARSE, SHOW = (f"task-{number:03d}" for number in range(1, 6))
SUMS, MIXED, ASK, README, PACKAGE = (f"task-{number:03d}" for number in range(6, 11))
CLASHES, CONTRIBUTING = "task-011", "task-012"
FIRST_REFINERY, SECOND_REFINERY = "refinery-01", "refinery-02"
CHANGE_REQUEST = "cr-001"
COLLECTED: dict[str, tuple[str, ...]] = {
    FIRST_REFINERY: (MASS, DURATION, NAMES, PARSE),
    SECOND_REFINERY: (SHOW, SUMS, MIXED),
}
"""What each refinery joins."""
CONFLICTING = (MASS, DURATION)
"""Both add a line at the same place; the first refinery joins both."""
SETTLED = "measure/kinds.py"
"""The file in which they conflict."""
TWICE = PARSE
"""Its first attempt fails its tests and reports that they pass."""

TEAM = DEMO.team()
CAPTAIN = (DEMO.session("captain-1"), DEMO.session("captain-cr-001"))
PLAN, EXTENSION = (session.answer for session in CAPTAIN)
PARSE_FIRST = DEMO.session("task-004-1")
SHOWN, SUMMED = DEMO.session("task-005-1"), DEMO.session("task-006-1")
FIRST_JOIN, SECOND_JOIN = DEMO.session("refinery-01-1"), DEMO.session("refinery-02-1")


class Task(NamedTuple):
    """A task of the captain's plan."""

    id: str
    agent: int
    writes: tuple[str, ...]


def _tasks(answer: dict[str, Any], nodes: list[dict[str, Any]]) -> tuple[Task, ...]:
    writes = {node["id"]: tuple(node["metadata"]["writes"]) for node in nodes if node["type"] == "task"}
    return tuple(Task(each["id"], each["type"], writes[each["id"]]) for each in answer["tasks"])


TASKS = _tasks(PLAN, PLAN["dag"]["nodes"])
ADDED = _tasks(EXTENSION, EXTENSION["overlay"]["addedNodes"])
"""What the change request brings."""
