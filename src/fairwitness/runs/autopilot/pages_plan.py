"""PLAN.md: the tasks of a phase as elements that are read again, and the way from requirement to task."""

import re
from collections.abc import Iterator, Sequence

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.plan import PlanCriterion, PlanTask
from fairwitness.contracts.autopilot.returns import PlannerReturn
from fairwitness.kit.markdown import PROSE, Markdown, code, counted, listed, page, table, texts
from fairwitness.kit.text import visible, visible_lines
from fairwitness.runs.autopilot.wording import title
from fairwitness.store.layout.autopilot import PhaseLayout

_ENTITY = re.compile(r"&(?=#?\w+;)")
_OURS = re.compile(r"<(?=/?(?:task|files|action|verify|done)\b)", re.IGNORECASE)
_TICKS = re.compile(r"`+")


def plan_page(
    phase: RoadmapPhase, requirements: Sequence[str], tasks: Sequence[PlanTask], planner: PlannerReturn
) -> str:
    """`PLAN.md`: the numbers are counted here; where the planner counted otherwise, both are said."""
    return page(_plan(phase, requirements, tasks, planner), whole="the planner's return")


def _plan(
    phase: RoadmapPhase, requirements: Sequence[str], tasks: Sequence[PlanTask], planner: PlannerReturn
) -> Iterator[Markdown]:
    waves = sorted({task.wave for task in tasks})
    yield title("Plan", phase)
    yield Markdown("Rendered by Fair Witness from what the planner wrote.")
    yield Markdown("A task is done when the command of every criterion passes, not when an agent says so.")
    yield Markdown(
        f"{counted(len(tasks), 'task')} in {counted(len(waves), 'wave')}; the planner calls the phase "
        f"{planner.complexity.value}."
    )
    if (planner.total_tasks, planner.waves) != (len(tasks), len(waves)):
        yield Markdown(
            f"**The planner counted otherwise:** {counted(planner.total_tasks, 'task')} in "
            f"{counted(planner.waves, 'wave')}."
        )
    for wave in waves:
        yield Markdown(f"## Wave {wave}")
        for task in tasks:
            if task.wave == wave:
                yield Markdown(f"### Task {task.id}")
                if task.script is not None:
                    yield Markdown(f"Test script: {code(PhaseLayout(phase.id).test_script(task.id))}")
                yield task_element(task)
    yield Markdown("## Traceability")
    yield _traceability(requirements, tasks)
    yield Markdown("## Dependencies between plans")
    yield texts(planner.dependencies, "None.")
    yield Markdown("## Concerns of the planner")
    yield texts(planner.concerns, "None were named.")


def task_element(task: PlanTask) -> Markdown:
    """A task as an element in a block of code: no text in it can end the element, the block or the page."""
    lines = [
        f'<task id="{task.id}" type="{task.kind.value}" complexity="{task.complexity.value}">',
        *_part("files", [_inert(visible(file)) for file in task.files]),
        *_part("action", _inert(_limited(task.action)).split("\n")),
        *_part("verify", [_criterion(each) for each in task.criteria]),
        *_part("done", _inert(_limited(task.done)).split("\n")),
        "</task>",
    ]
    text = "\n".join(lines)
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    return Markdown(f"{fence}xml\n{text}\n{fence}")


def _part(name: str, lines: Sequence[str]) -> Iterator[str]:
    yield f"  <{name}>"
    yield from (f"    {each}".rstrip() for each in lines)
    yield f"  </{name}>"


def _criterion(each: PlanCriterion) -> str:
    words = _inert(_limited(" ".join(each.criterion.split())))
    # a command is never laid out anew: a line end in it is spelled
    command = _inert(visible(each.command.strip()))
    ticks = "`" * max([1, *(len(found) + 1 for found in _TICKS.findall(command))])
    padding = " " if len(ticks) > 1 else ""
    return f"- {words} -- verified by: {ticks}{padding}{command}{padding}{ticks}"


def _limited(text: str) -> str:
    whole = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    shown = visible_lines(whole[:PROSE])
    return shown if len(whole) <= PROSE else f"{shown} … ({len(text)} characters in all)"


def _inert(text: str) -> str:
    """A text that holds none of our own tags; `&lt;` and `&amp;` are all that has to be undone, so commands stay."""
    return _OURS.sub("&lt;", _ENTITY.sub("&amp;", text))


def _traceability(requirements: Sequence[str], tasks: Sequence[PlanTask]) -> Markdown:
    named = [requirement for task in tasks for requirement in task.requirements]
    strangers = [each for each in dict.fromkeys(named) if each not in requirements]
    rows = [
        (
            requirement,
            listed((task.id for task in tasks if requirement in task.requirements), "**no task**"),
            "yes" if requirement in requirements else "no, only the plan names it",
        )
        for requirement in (*dict.fromkeys(requirements), *strangers)
    ]
    return table(
        ("Requirement", "Tasks", "Of the phase"), rows, "The phase has no requirements, and the plan names none."
    )
