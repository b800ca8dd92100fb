"""The plan of a phase: its numbers are those of its tasks, and no two tasks are in each other's way."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fairwitness.contracts.autopilot.plan import ID_LIMIT, PhasePlan, PlanTask, TaskKind
from fairwitness.contracts.autopilot.returns import PlannerReturn


def task(id_: str = "a", wave: int = 1, files: tuple[str, ...] = (), **differs: Any) -> dict[str, Any]:
    return {
        "id": id_,
        "kind": "auto",
        "complexity": "simple",
        "wave": wave,
        "files": list(files),
        "action": "Add it.",
        "criteria": [{"criterion": "it adds", "command": "pytest -q"}],
        "done": "It adds.",
        "requirements": ["REQ-01"],
    } | differs


def plan(*tasks: dict[str, Any], **differs: Any) -> dict[str, Any]:
    """A plan whose numbers are those of its tasks, but for what differs."""
    numbers = {"waves": max((one["wave"] for one in tasks), default=1), "total_tasks": len(tasks) or 1}
    about = {"plans_created": 1, "complexity": "simple", "dependencies": [], "concerns": []}
    return {**about, **numbers, "tasks": list(tasks), **differs}


def refused(document: dict[str, Any]) -> list[tuple[tuple[str | int, ...], str]]:
    """Where and with which words."""
    with pytest.raises(ValidationError) as error:
        PhasePlan.model_validate(document)
    return [(found["loc"], found["msg"]) for found in error.value.errors()]


@pytest.mark.req("A3")
def test_a_plan_is_the_same_when_it_is_read_again() -> None:
    script = "echo PASS\n"
    document = plan(task("a"), task("b", kind="checkpoint:human-verify", script=script), task("c", 2), note="mine")
    read = PhasePlan.model_validate(document)
    assert PhasePlan.model_validate(json.loads(json.dumps(read.plain()))) == read
    assert isinstance(read, PlannerReturn)
    assert [one.kind for one in read.tasks] == [TaskKind.AUTO, TaskKind.HUMAN_VERIFY, TaskKind.AUTO]
    assert [one.script for one in read.tasks] == [None, script, None]
    assert "script" not in read.plain()["tasks"][0], "what is not said is left out"
    assert read.plain()["note"] == "mine", "what an agent says beyond is kept"


@pytest.mark.req("A3")
@pytest.mark.parametrize("field", ["plans_created", "waves", "total_tasks", "complexity", "concerns", "tasks"])
def test_what_a_plan_cannot_do_without_has_no_default(field: str) -> None:
    document = plan(task())
    del document[field]
    assert refused(document)[0][0] == (field,)


@pytest.mark.req("A3")
@pytest.mark.parametrize("field", [*task()])
def test_what_a_task_cannot_do_without_has_no_default(field: str) -> None:
    alone = {key: value for key, value in task().items() if key != field}
    with pytest.raises(ValidationError) as error:
        PlanTask.model_validate(alone)
    assert [found["loc"] for found in error.value.errors()] == [(field,)]


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("field", "bad"),
    [
        ("id", "../up"),
        ("id", ""),
        ("kind", "checkpoint"),
        ("complexity", "huge"),
        ("wave", 0),
        ("wave", "1"),
        ("files", ["/etc/passwd"]),
        ("files", ["../up.py"]),
        ("action", " "),
        ("criteria", []),
        ("criteria", [{"criterion": "it adds", "command": " "}]),
        ("criteria", [{"criterion": "it adds"}]),
        ("criteria", [{"command": "true"}]),
        ("done", ""),
        ("requirements", [""]),
    ],
)
def test_a_task_that_says_nothing_or_nonsense_is_refused(field: str, bad: object) -> None:
    with pytest.raises(ValidationError) as error:
        PlanTask.model_validate(task() | {field: bad})
    assert error.value.errors()[0]["loc"][0] == field


def test_a_plan_without_a_task_is_none() -> None:
    assert refused(plan(tasks=[]))[0][0] == ("tasks",)


TOTAL = (("total_tasks",), "a total_tasks equal to the tasks listed")
WAVES = (("waves",), "waves counted from 1 without a gap")
OWN = (("tasks",), "an id of its own for each task")
SHORT = (("tasks",), f"ids of at most {ID_LIMIT} letters")
CONTINUED = (("tasks",), "ids of which none is another one with something behind it, nor cycle or debug")
ONE_WRITER = (("tasks",), "no file in two tasks of one wave")

BAD = [
    (plan(task("a"), task("b"), total_tasks=1), TOTAL),
    (plan(task("a"), task("b"), total_tasks=3), TOTAL),
    (plan(task("a"), task("b", 3)), WAVES),
    (plan(task("a", 2)), WAVES),
    (plan(task("a"), waves=2), WAVES),
    (plan(task("a"), task("b", 2), waves=1), WAVES),
    (plan(task("a"), task("a", 2)), OWN),
    (plan(task("a"), task("A")), OWN),
    (plan(task("a" * (ID_LIMIT + 1))), SHORT),
    (plan(task("a"), task("a-check-1")), CONTINUED),
    (plan(task("a-1"), task("A")), CONTINUED),
    (plan(task("cycle")), CONTINUED),
    (plan(task("Debug")), CONTINUED),
    (plan(task("debug-2")), CONTINUED),
    (plan(task("a", files=("x.py", "y.py")), task("b", files=("y.py",))), ONE_WRITER),
    (plan(task("a"), task("b", 2, ("x.py",)), task("c", 2, ("x.py",))), ONE_WRITER),
]
GOOD = [
    plan(task("a"), task("b"), task("c", 2)),
    plan(task("b", 2), task("a", 1)),
    plan(task("a" * ID_LIMIT)),
    plan(task("a-1"), task("a-2"), task("ab"), task("a_check")),
    plan(task("cycles"), task("the-cycle"), task("debugging")),
    plan(task("a", files=("x.py", "x.py"))),
    plan(task("a", files=("x.py",)), task("b", 2, ("x.py",))),
    plan(task("a", files=("x.py",)), task("b", files=("X/x.py",))),
]


@pytest.mark.req("A3")
@pytest.mark.parametrize(("document", "told"), BAD, ids=range(len(BAD)))
def test_a_plan_that_contradicts_itself_is_told_where(document: dict[str, Any], told: tuple[Any, str]) -> None:
    assert told in refused(document)


@pytest.mark.req("A3")
@pytest.mark.parametrize("document", GOOD, ids=range(len(GOOD)))
def test_a_plan_that_does_not_is_taken(document: dict[str, Any]) -> None:
    assert len(PhasePlan.model_validate(document).tasks) == document["total_tasks"]


NAMES = st.sampled_from(["a", "A", "b", "a-1", "b_c", "cycle", "debug-x"])
TASKS = st.lists(
    st.builds(task, NAMES, st.integers(1, 3), st.lists(st.sampled_from(["x.py", "y.py"]), max_size=2).map(tuple)),
    min_size=1,
    max_size=4,
)


@pytest.mark.req("A3")
@given(TASKS, st.integers(1, 4), st.integers(1, 4))
@settings(deadline=None)
def test_whatever_is_taken_has_waves_without_a_gap_and_one_writer_for_each_file(
    tasks: list[dict[str, Any]], waves: int, total: int
) -> None:
    document = plan(*tasks, waves=waves, total_tasks=total)
    try:
        read = PhasePlan.model_validate(document)
    except ValidationError:
        return
    assert {one.wave for one in read.tasks} == set(range(1, read.waves + 1))
    assert read.total_tasks == len({one.id.lower() for one in read.tasks}) == len(read.tasks)
    for wave in range(1, read.waves + 1):
        written = [path for one in read.tasks if one.wave == wave for path in set(one.files)]
        assert len(written) == len(set(written))
