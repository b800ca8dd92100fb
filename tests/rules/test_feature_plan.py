"""Plans and tasks: every semantic problem is found, all of them at once, and each at its place."""

from typing import Any

import pytest

from fairwitness.contracts.common.problems import Problem, ProblemLevel, spell_path
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.rules.feature_plan import binds, plan_against_tasks, plan_problems, task_problems
from support.fixtures import edited, value_of

PAYLOAD = "agent_output.payload"
WAVES = (["task-01", "task-02"], ["task-03", "task-04", "task-05"], ["task-06"])


def _plan(**changes: Any) -> PlanOutput:
    value = value_of("000/plan-output.yaml")
    value["agent_output"]["payload"]["overall_risk_summary"] = "🔴"
    value["agent_output"]["payload"]["waves"] = [
        {"id": f"wave-{number}", "tasks": tasks, "max_concurrent": 2} for number, tasks in enumerate(WAVES, start=1)
    ]
    for path, new in changes.items():
        edited(value, path, new)
    return PlanOutput.model_validate(value)


def _said(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{problem.level.value} {spell_path(problem.where).removeprefix(PAYLOAD + '.')}" for problem in problems]


@pytest.mark.req("P8")
def test_a_sound_plan_has_no_problem() -> None:
    assert plan_problems(_plan()) == ()


@pytest.mark.req("P8")
def test_the_seeds_own_plan_breaks_its_rules_and_the_rules_won() -> None:
    """Overall 🟡 with a 🔴 task: the maximum wins. Dependencies inside a wave: depends_on binds, waves only hint."""
    problems = plan_problems(PlanOutput.model_validate(value_of("000/plan-output.yaml")))
    assert _said(problems) == [
        "error overall_risk_summary",
        "warning tasks[2].depends_on",
        "warning tasks[5].depends_on",
    ]
    assert problems[0].expected == "the highest risk of any task, 🔴"


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("path", "new", "said"),
    [
        ("total_tasks", 7, ["error total_tasks"]),
        ("tasks[0].risk", "🔴", ["error tasks[0].size"]),
        ("tasks[0].depends_on", ["task-99"], ["error tasks[0].depends_on[0]", "error dependency_graph.task-01"]),
        (
            "tasks[0].depends_on",
            ["task-04"],
            ["error tasks", "error dependency_graph.task-01", "warning tasks[0].depends_on"],
        ),
        (
            "tasks[5].depends_on",
            ["task-03", "task-04", "task-05"],
            ["warning tasks[5].depends_on", "error dependency_graph.task-06"],
        ),
        ("dependency_graph.task-03", [], ["error dependency_graph.task-03"]),
        ("dependency_graph.task-77", [], ["error dependency_graph.task-77"]),
        ("dependency_graph", None, []),
        ("waves[2].tasks", ["task-06", "task-01"], ["error waves[2].tasks[1]"]),
        ("waves[2].tasks", ["task-06", "task-99"], ["error waves[2].tasks[1]"]),
        ("waves[2].tasks", ["task-01"], ["error waves[2].tasks[0]", "error tasks[5].id"]),
    ],
)
def test_each_broken_rule_is_named_at_its_place(path: str, new: Any, said: list[str]) -> None:
    assert _said(plan_problems(_plan(**{f"{PAYLOAD}.{path}": new}))) == said


@pytest.mark.req("P8")
def test_all_problems_are_returned_not_the_first() -> None:
    wrong = {"total_tasks": 1, "tasks[1].risk": "🔴", "overall_risk_summary": "🟢"}
    plan = _plan(**{f"{PAYLOAD}.{field}": new for field, new in wrong.items()})
    assert _said(plan_problems(plan)) == ["error total_tasks", "error overall_risk_summary", "error tasks[1].size"]


def _task(**changes: Any) -> TaskDocument:
    value = value_of("000/task-schema.yaml")
    for path, new in changes.items():
        edited(value, path, new)
    return TaskDocument.model_validate(value)


def _files(*risks: str) -> list[dict[str, str]]:
    return [{"path": f"src/{number}.py", "risk": risk} for number, risk in enumerate(risks)]


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"task.size": "Standard"}, ["error task.size"]),
        ({"task.risk": "🟡"}, ["error task.risk"]),
        ({"task.risk": "🟢", "task.size": "Standard"}, ["error task.risk", "error task.size"]),
        ({"task.depends_on": ["task-03"]}, ["error task.depends_on"]),
        (
            {"task.relevant_context.files_to_modify": _files("🟢", "🟢", "🟢", "🟢")},
            ["warning task.relevant_context.files_to_modify"],
        ),
        ({"task.relevant_context.files_to_modify": None}, []),
    ],
)
def test_a_red_file_makes_its_task_red_and_large(changes: dict[str, Any], said: list[str]) -> None:
    assert _said(task_problems(_task(**changes))) == said


@pytest.mark.req("P8")
def test_plan_and_task_documents_must_agree() -> None:
    plan = _plan()
    tasks = {
        summary.id: _task(
            **{
                "task.id": summary.id,
                "task.size": summary.size.value,
                "task.risk": summary.risk.value,
                "task.depends_on": list(summary.depends_on),
                "task.relevant_context.files_to_modify": None,
            }
        )
        for summary in plan.agent_output.payload.tasks
    }
    assert plan_against_tasks(plan, tasks) == ()
    tasks["task-77"] = tasks.pop("task-02")
    tasks["task-03"] = _task(**{"task.size": "Standard", "task.risk": "🟡", "task.depends_on": []})
    problems = plan_against_tasks(plan, tasks)
    assert _said(problems) == [
        "error tasks[1].id",
        "error tasks[2].size",
        "error tasks[2].risk",
        "error tasks[2].depends_on",
        "error tasks",
    ]
    assert all(problem.level is ProblemLevel.ERROR for problem in problems)


@pytest.mark.req("P8")
@pytest.mark.parametrize(
    ("path", "new", "bound"),
    [
        ("total_tasks", 7, ["total_tasks"]),
        (
            "tasks[5].depends_on",
            ["task-03", "task-04", "task-05"],
            ["tasks[5].depends_on", "dependency_graph.task-06"],
        ),
        ("waves[2].tasks", ["task-06", "task-99"], ["waves[2].tasks[1]"]),
    ],
)
def test_a_plan_beyond_the_planners_limits_is_sent_back(path: str, new: Any, bound: list[str]) -> None:
    problems = plan_problems(_plan(**{f"{PAYLOAD}.{path}": new}))
    assert _said(tuple(each for each in problems if binds(each))) == [
        f"{each.level.value} {place}" for each, place in zip(problems, bound, strict=True)
    ]


@pytest.mark.req("P8")
def test_a_task_with_too_many_files_is_sent_back() -> None:
    (problem,) = task_problems(_task(**{"task.relevant_context.files_to_modify": _files("🟢", "🟢", "🟢", "🟢")}))
    assert (problem.level, binds(problem)) == (ProblemLevel.WARNING, True)


@pytest.mark.req("P8")
def test_a_dependency_inside_a_wave_sends_no_plan_back() -> None:
    late = plan_problems(_plan(**{f"{PAYLOAD}.waves[0].tasks": ["task-01", "task-02", "task-03"]}))
    late = tuple(each for each in late if each.level is ProblemLevel.WARNING)
    assert late
    assert [binds(each) for each in late] == [False] * len(late)
