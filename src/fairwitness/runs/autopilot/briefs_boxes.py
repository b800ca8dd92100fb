"""What agents of autopilot are shown, piece by piece: the phase, its plan, a task, criteria, commands run, a change.

Everything in a box was written by a person, a repository or an agent; titles are ours.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask
from fairwitness.contracts.autopilot.roadmap import Criterion, DetailedPhase
from fairwitness.contracts.common.base import Contract
from fairwitness.git.shadow import Shadow
from fairwitness.kit import yaml_text

CHANGE: Final = 40_000
"""Letters of a change that are shown."""
_UNSHOWN: Final = 40
"""Files that are named where a change is cut."""
_NOTHING: Final = "(nothing was changed)"
_PLAINLY: Final = ("--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-r", "-M")


def phase_box(phase: DetailedPhase) -> PromptSection:
    """A phase as the roadmap has it."""
    return PromptSection(title="The phase", text="\n".join(_phase(phase)))


def _phase(phase: DetailedPhase) -> Iterator[str]:
    yield f"Phase {phase.id}: {phase.name}"
    yield f"Kind: {phase.type.value}"
    yield f"Goal: {phase.goal}"
    yield "Requirements:" if phase.requirements else "Requirements: none are named"
    yield from (f"- {each.id}: {each.text or '(see the specification)'}" for each in phase.requirements)
    yield "Success criteria:" if phase.criteria else "Success criteria: none are named"
    yield from _criteria(phase.criteria)


def criteria_box(criteria: Sequence[Criterion]) -> PromptSection:
    """What must hold, each in its own words, with the command that would show it where there is one."""
    return PromptSection(title="The acceptance criteria", text="\n".join(_criteria(criteria)))


def _criteria(criteria: Iterable[Criterion]) -> Iterator[str]:
    for number, each in enumerate(criteria, start=1):
        yield f"{number}. {each.text}"
        if each.command is not None:
            yield f"   command: {each.command}"


def plan_box(plan: PhasePlan, only: Sequence[str] = (), title: str = "The plan") -> PromptSection:
    """A plan with its tasks, or with only those of a part."""
    plain = plan.plain()
    if only:
        plain["tasks"] = [task for task in plain["tasks"] if task["id"] in only]
        plain["total_tasks"] = len(plain["tasks"])
    return PromptSection(title=title, text=yaml_text.render(plain))


def task_box(task: PlanTask) -> PromptSection:
    """A task with all that its plan says of it."""
    return document_box("The task", task)


def items_box(items: Sequence[PathItem]) -> PromptSection:
    """What a rating left to be mended."""
    return PromptSection(title="What is to be mended", text=yaml_text.render([item.plain() for item in items]))


def document_box(title: str, document: Contract) -> PromptSection:
    """A document as it was returned."""
    return PromptSection(title=title, text=yaml_text.render(document.plain()))


def executed_box(executed: Sequence[ExecutionResult]) -> PromptSection:
    """What the harness ran, as it saw it."""
    text = yaml_text.render([run.plain() for run in executed]) if executed else "(nothing)"
    return PromptSection(title="What the program ran, and how it ended", text=text)


def change_box(diff: str) -> PromptSection:
    """A change as people read one."""
    return PromptSection(title="The change", text=diff)


def listed(title: str, texts: Iterable[str]) -> tuple[PromptSection, ...]:
    """Texts in one box; none if there are none."""
    lines = [f"- {text}" for text in texts]
    return (PromptSection(title=title, text="\n".join(lines)),) if lines else ()


def prose(title: str, text: str) -> tuple[PromptSection, ...]:
    """A text that may be empty, and then is not shown."""
    return (PromptSection(title=title, text=text),) if text.strip() else ()


def change_text(shadow: Shadow, base: str, head: str) -> str:
    """What differs between two trees; cut where it is too long, and then it is said what is missing.

    It is printed in a repository of ours: attributes that a change brings along hide nothing of it.
    """
    text = shadow.git.run("diff-tree", "-p", *_PLAINLY, base, head).decode(errors="replace")
    if len(text) <= CHANGE:
        return text or _NOTHING
    rest = text[CHANGE:]
    names = shadow.git.run("diff-tree", "--name-only", "-z", *_PLAINLY, base, head).split(b"\0")[:-1]
    shown = text[:CHANGE].count("\ndiff --git ") + text.startswith("diff --git ")
    missing = [name.decode(errors="replace") for name in names[shown:]]
    told = [f"(cut here: {len(rest)} more letters are not shown; what you have not seen you cannot vouch for)"]
    if missing:
        more = f" and {len(missing) - _UNSHOWN} more" if len(missing) > _UNSHOWN else ""
        told.append(f"(files of which nothing is shown: {', '.join(missing[:_UNSHOWN])}{more})")
    return "\n".join((text[:CHANGE], *told))
