"""Conflicts as text for the agent that resolves them: each place with both sides and the tasks that made them.

The files in the worktree contain the same marks; their labels are commits there and names of tasks here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart
from fairwitness.git.repository import Repository
from fairwitness.rules.retry_material import FailureCause, Material
from fairwitness.runs.shared.retry_sections import retry_sections

_WHOLE: Final = 12_000
"""How many characters the text of all conflicts has."""
_AROUND: Final = 3
"""How many lines are shown before and after a conflict."""
_OPEN: Final = re.compile(r"<{7} .+")
_CLOSE: Final = re.compile(r">{7} .+")


def conflict_section(text: str) -> tuple[PromptSection, ...]:
    """Return the conflicts as an input of an attempt that follows no failed one."""
    return retry_sections((FailureCause.CONFLICT,), {Material.CONFLICT: lambda: text})


def conflict_text(repository: Repository, order: AttemptOrder, prepared: AttemptStart) -> str:
    """Return each file in conflict with its marked places; empty if nothing conflicts."""
    sides = {member.commit: member.node for member in order.includes}
    if order.conflict is not None:
        sides = {order.conflict.commit: order.node}
    shown: list[str] = []
    left = _WHOLE
    for number, path in enumerate(prepared.conflicts):
        text = "\n".join(_file(repository, path, prepared, sides))
        if len(text) > left:
            rest = prepared.conflicts[number:]
            shown.append(f"(not shown, open them: {', '.join(rest)})")
            break
        shown.append(text)
        left -= len(text)
    return "\n\n".join(shown)


def _file(repository: Repository, path: str, prepared: AttemptStart, sides: Mapping[str, str]) -> Iterator[str]:
    tasks = _tasks(repository, path, prepared, sides)
    yield f"{path}: changed by {' and '.join(tasks)}" if tasks else path
    answer = repository.git.ask("cat-file", "blob", f"{prepared.start}:{path}")
    lines = answer.out.decode(errors="replace").splitlines() if answer.code == 0 else []
    marked = _marked(lines)
    if not marked:
        yield "(no marked place: one side removed or replaced the whole file)"
    for first, last in marked:
        yield f"lines {first + 1} to {last + 1}:"
        labels = _labels(lines[last], tasks, tuple(sides.values()), sides)
        shown = {first: f"{lines[first][:7]} {labels[0]}", last: f"{lines[last][:7]} {labels[1]}"}
        for number in range(max(0, first - _AROUND), min(len(lines), last + 1 + _AROUND)):
            yield f"    {shown.get(number, lines[number])}"


def _marked(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the first and the last line of each marked place."""
    found: list[tuple[int, int]] = []
    first: int | None = None
    for number, line in enumerate(lines):
        if _OPEN.fullmatch(line):
            first = number
        elif first is not None and _CLOSE.fullmatch(line):
            found.append((first, number))
            first = None
    return found


def _labels(closing: str, tasks: Sequence[str], order: Sequence[str], sides: Mapping[str, str]) -> tuple[str, str]:
    """Return the names of the two sides of a place: the tasks that were merged before, and the task merged there."""
    own = sides.get(closing[8:].partition(":")[0], "")
    later = order[order.index(own) :] if own in order else ()
    before = [task for task in tasks if task not in later and task != own]
    return " and ".join(before) or "the target branch", own or "the other side"


def _tasks(repository: Repository, path: str, prepared: AttemptStart, sides: Mapping[str, str]) -> tuple[str, ...]:
    """Return the tasks whose commits changed a file on either side of the conflict."""
    bases = [repository.merge_base(prepared.base, commit) for commit in sides]
    asked = ("rev-list", "--full-history", "--no-commit-header", "--format=%(trailers:key=Task,valueonly=true)")
    answer = repository.git.ask(*asked, prepared.start, *(f"^{base}" for base in bases if base), "--", path)
    names = answer.out.decode(errors="replace").split() if answer.code == 0 else []
    order = list(sides.values())
    return tuple(sorted(dict.fromkeys(reversed(names)), key=lambda name: order.index(name) if name in order else -1))
