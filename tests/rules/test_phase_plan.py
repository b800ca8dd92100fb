"""A plan is refused for what can be seen without an opinion, and split where it is too large."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask
from fairwitness.contracts.autopilot.roadmap import DetailedPhase, Requirement
from fairwitness.contracts.autopilot.vocabulary import PhaseType
from fairwitness.rules.phase_plan import (
    COMPLEX_TASKS,
    FILES,
    LONGEST,
    carried,
    is_too_large,
    parts_of,
    plan_problems,
    scope_problems,
)

PHASE = DetailedPhase(
    id="3",
    name="Export",
    type=PhaseType.DATA,
    depends_on=(),
    goal="Export everything.",
    requirements=(Requirement(id="REQ-01"), Requirement(id="REQ-02")),
    criteria=(),
    done=False,
)


def task(name: str = "03-01", **more: Any) -> dict[str, Any]:
    plain = {
        "id": name,
        "kind": "auto",
        "complexity": "simple",
        "wave": 1,
        "files": [f"src/{name}.py"],
        "action": "Write it.",
        "criteria": [{"criterion": "export() returns 3 rows", "command": "python -m pytest -q tests/test_export.py"}],
        "done": "The command passes.",
        "requirements": ["REQ-01", "REQ-02"],
    }
    return plain | more


def plan(*tasks: dict[str, Any]) -> PhasePlan:
    waves = max(each["wave"] for each in tasks)
    return PhasePlan.model_validate(
        {
            "plans_created": 1,
            "waves": waves,
            "total_tasks": len(tasks),
            "complexity": "simple",
            "dependencies": [],
            "concerns": [],
            "tasks": list(tasks),
        }
    )


def said(*tasks: dict[str, Any]) -> list[str]:
    return [issue.description for issue in plan_problems(PHASE, plan(*tasks))]


@pytest.mark.req("A3")
def test_a_plan_that_covers_everything_with_commands_has_no_problem() -> None:
    assert said(task()) == []


@pytest.mark.req("A3")
def test_a_requirement_that_no_task_serves_blocks() -> None:
    assert said(task(requirements=["REQ-02"])) == ["no task serves the requirement REQ-01"]


@pytest.mark.req("A3")
def test_a_plan_of_nothing_but_waiting_for_people_blocks() -> None:
    assert said(task(kind="checkpoint:human-verify")) == [
        "every task waits for a person, so there is nothing to carry out"
    ]


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("criterion", "word"),
    [
        ("the export works", "works"),
        ("everything looks good", "looks good"),
        ("it behaves as expected", "as expected"),
        ("rows are handled properly", "properly"),
    ],
)
def test_a_criterion_that_no_command_can_hold_blocks(criterion: str, word: str) -> None:
    found = said(task(criteria=[{"criterion": criterion, "command": "python -m pytest -q"}]))
    assert found == [f"03-01: “{criterion}” says “{word}” and not what holds"]


@pytest.mark.req("A3")
def test_a_vague_word_beside_something_concrete_is_fine() -> None:
    assert said(task(criteria=[{"criterion": "`export()` works on 0 rows", "command": "python -m pytest -q"}])) == []


@pytest.mark.req("A3")
@pytest.mark.parametrize("command", ["grep -q def src/a.py", "! test -e src/b.py", "ls src && rg -q x src"])
def test_a_task_that_only_looks_at_files_needs_a_script(command: str) -> None:
    criteria = [{"criterion": "export() returns 3 rows", "command": command}]
    needs = "03-01: its commands only look at files, and it has no script that runs anything"
    assert said(task(criteria=criteria)) == [needs]
    assert said(task(criteria=criteria, script="  ")) == [needs]
    assert said(task(criteria=criteria, script="python -m pytest -q")) == []
    assert said(task(), task("03-02", kind="checkpoint:human-verify", criteria=criteria)) == []


@pytest.mark.req("A3")
def test_a_task_without_a_file_blocks() -> None:
    assert said(task(files=[])) == ["03-01: it names no file"]
    assert said(task(), task("03-02", kind="checkpoint:human-verify", files=[])) == []


@pytest.mark.req("A3")
def test_a_script_that_no_command_line_could_hold_blocks() -> None:
    assert said(task(script="#" * LONGEST)) == []
    (problem,) = said(task(script="#" * (LONGEST + 1)))
    assert problem.startswith("03-01: ")


@pytest.mark.req("A2")
@pytest.mark.parametrize(
    ("path", "is_refused"),
    [
        (".planning/REQUIREMENTS.md", True),
        (".Planning/roadmap.md", True),
        ("docs/spec.md", True),
        ("docs/spec.md.bak", False),
        ("src/planning.py", False),
        ("src/**", True),
        ("src/a?.py", True),
    ],
)
def test_no_task_may_write_what_the_run_is_held_to_or_a_pattern(path: str, is_refused: bool) -> None:
    problems = scope_problems(plan(task(files=[path])), (".planning", "docs/spec.md"))
    assert bool(problems) == is_refused


def many(complexities: list[str], files: int = 1) -> PhasePlan:
    return plan(
        *(
            task(f"03-{at:02}", complexity=word, wave=at, files=[f"src/{at}-{each}.py" for each in range(files)])
            for at, word in enumerate(complexities, start=1)
        )
    )


@pytest.mark.req("A3")
def test_a_plan_is_too_large_by_complex_tasks_or_by_files() -> None:
    table = {
        f"{count} complex": is_too_large(many(["complex"] * count)) for count in (COMPLEX_TASKS, COMPLEX_TASKS + 1)
    }
    table |= {f"{files} files each in 2": is_too_large(many(["simple"] * 2, files)) for files in (5, 6)}
    table |= {"one task of many files": is_too_large(many(["simple"], FILES + 1))}
    assert table == {
        "5 complex": False,
        "6 complex": True,
        "5 files each in 2": False,
        "6 files each in 2": True,
        "one task of many files": False,
    }


@pytest.mark.req("A3")
@given(st.lists(st.sampled_from(["simple", "medium", "complex"]), min_size=2, max_size=16), st.integers(1, 6))
def test_parts_hold_every_task_once_in_order_and_there_are_at_least_two(words: list[str], files: int) -> None:
    whole = many(words, files)
    parts = parts_of(whole)
    assert len(parts) >= 2
    assert [each.id for part in parts for each in part] == [each.id for each in carried(whole)]
    assert all(parts)
    for part in parts:
        assert len(part) == 1 or not is_too_large(_of(part))


def _of(tasks: tuple[PlanTask, ...]) -> PhasePlan:
    return plan(*(each.plain() | {"wave": at} for at, each in enumerate(tasks, start=1)))
