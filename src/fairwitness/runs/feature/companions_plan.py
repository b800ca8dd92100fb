"""`plan.md`: the tasks, what they wait for and how dangerous they are; the order follows from dependencies alone."""

from collections.abc import Iterator, Mapping, Sequence

from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.feature.plan import PlannedTask, PlanOutput, PlanPayload
from fairwitness.contracts.feature.task import Task, TaskDocument
from fairwitness.kit.markdown import (
    Markdown,
    code,
    counted,
    item,
    items,
    line,
    listed,
    page,
    prose,
    table,
    texts,
)
from fairwitness.rules.plan import plan_against_tasks, plan_problems, task_problems
from fairwitness.runs.feature.companions import beyond, rendered_from

PLAN_FILE = "plan-output.yaml"


def plan_page(plan: PlanOutput, tasks: Mapping[str, TaskDocument]) -> str:
    """`plan.md`; `tasks` are the task documents by their ids."""
    return page(_plan(plan, tasks), whole=f"`{PLAN_FILE}` and `tasks/`")


def _plan(plan: PlanOutput, documents: Mapping[str, TaskDocument]) -> Iterator[Markdown]:
    payload = plan.agent_output.payload
    yield Markdown("# Plan")
    yield rendered_from(f"{PLAN_FILE}` and `tasks/", "planner")
    yield line(plan.completion.summary)
    yield Markdown(f"{counted(payload.total_tasks, 'task')}, highest risk {payload.overall_risk_summary.value}.")
    yield Markdown("## Tasks")
    yield table(
        ("Task", "Title", "Risk", "Size", "Waits for", "Role"),
        [
            (code(each.id), each.title, each.risk.value, each.size.value, listed(each.depends_on), each.agent.value)
            for each in payload.tasks
        ],
        "None.",
    )
    yield Markdown("## Order")
    yield from _order(payload.tasks)
    yield Markdown("## Waves")
    yield Markdown("Hints of the planner: what binds is what a task waits for.")
    yield table(
        ("Wave", "Tasks", "At a time"),
        [(code(each.id), listed(each.tasks), str(each.max_concurrent)) for each in payload.waves],
        "None.",
    )
    yield Markdown("## Problems")
    yield _problems(plan, documents)
    yield from _premortem(payload)
    yield Markdown("## Task by task")
    named = [each.id for each in payload.tasks]
    for task_id in (*named, *(each for each in sorted(documents) if each not in named)):
        yield from _task(task_id, documents.get(task_id))
    yield from beyond(payload)


def steps_of(tasks: Sequence[PlannedTask]) -> tuple[tuple[tuple[str, ...], ...], tuple[str, ...]]:
    """Which tasks can begin together, step by step, and which never can: in a ring, or waiting for no task of ours."""
    steps: list[tuple[str, ...]] = []
    waiting = {each.id: set(each.depends_on) for each in tasks}
    done: set[str] = set()
    while ready := tuple(task_id for task_id, others in waiting.items() if others <= done):
        steps.append(ready)
        done.update(ready)
        waiting = {task_id: others for task_id, others in waiting.items() if task_id not in done}
    return tuple(steps), tuple(waiting)


def _order(tasks: Sequence[PlannedTask]) -> Iterator[Markdown]:
    steps, never = steps_of(tasks)
    yield items(
        [Markdown(f"{number}. {listed(step)}") for number, step in enumerate(steps, start=1)], "None can begin."
    )
    if never:
        yield Markdown(f"Can never begin: {listed(never)}.")


def _problems(plan: PlanOutput, documents: Mapping[str, TaskDocument]) -> Markdown:
    found: list[tuple[str, Problem]] = [(PLAN_FILE, each) for each in plan_problems(plan)]
    found += [(PLAN_FILE, each) for each in plan_against_tasks(plan, documents)]
    for task_id in sorted(documents):
        found += [(f"tasks/{task_id}.yaml", each) for each in task_problems(documents[task_id])]
    return table(
        ("Where", "Level", "Expected", "Found"),
        [
            (code(f"{file}: {spell_path(each.where)}"), each.level.value, each.expected, each.found)
            for file, each in found
        ],
        "The rules find nothing wrong.",
    )


def _premortem(payload: PlanPayload) -> Iterator[Markdown]:
    yield Markdown("## Pre-mortem")
    yield table(
        ("Task", "Scenario", "Likelihood", "Impact", "Mitigation"),
        [
            (code(each.task), each.scenario, each.likelihood.value, each.impact.value, each.mitigation)
            for each in payload.pre_mortem or ()
        ],
        "The planner named no way in which this could fail.",
    )
    yield Markdown("## Assumptions")
    yield texts(payload.key_assumptions or (), "None were named.")


def _task(task_id: str, document: TaskDocument | None) -> Iterator[Markdown]:
    if document is None:
        yield Markdown(f"### Task {line(task_id)}")
        yield Markdown("There is no document for this task.")
        return
    task = document.task
    yield Markdown(f"### Task {line(task_id)}: {line(task.title)}")
    yield Markdown(f"Risk {task.risk.value}, size {task.size.value}, waits for {listed(task.depends_on, 'nothing')}.")
    yield prose(task.description)
    yield Markdown("Accepted when:")
    yield items(
        [item(Markdown(f"**ac-{number}**"), each) for number, each in enumerate(task.acceptance_criteria, start=1)],
        "nothing was named",
    )
    yield from _context(task)


def _context(task: Task) -> Iterator[Markdown]:
    context = task.relevant_context
    yield table(
        ("File", "Risk"),
        [(code(each.path), each.risk.value) for each in context.files_to_modify or ()],
        "It names no file.",
    )
    yield Markdown(f"Reads {listed((*context.design_sections, *context.spec_requirements))}.")
