"""What the join of branches may change, and whether the work of every task is still in a tree.

A join is compared with what git makes of the branches: only files in conflict and declared fixes may differ. The work
of a task in a file is lost if the file could have been made without the task: it is as before the task and no other
task made it so, or it has only lines of other tasks.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_SHOWN = 5


class FileStep(NamedTuple):
    """What a task made of one file: ids of its content before and after, None if there is no file."""

    task: str
    path: str
    before: str | None
    after: str | None


def stray_changes(changed: Iterable[str], conflicts: Collection[str], declared: Collection[str]) -> tuple[str, ...]:
    """Return the problem that a join changed files that were neither in conflict nor declared, or nothing.

    >>> stray_changes(["a", "b"], ["a"], [])
    ('files were changed that were neither in conflict nor named in `fixes`: b',)
    """
    stray = sorted(set(changed) - set(conflicts) - set(declared))
    return (
        (f"files were changed that were neither in conflict nor named in `fixes`: {_listed(stray)}",) if stray else ()
    )


def lost_work(
    steps: Sequence[FileStep], final: Mapping[str, str], lines: Mapping[str, frozenset[str]] = MappingProxyType({})
) -> tuple[str, ...]:
    """Return a sentence for each task whose work in a file is gone.

    `steps` are in the order in which they were verified. `final` holds the content of the files by path, `lines` the
    lines of contents that are text.
    """
    lost: dict[str, list[str]] = {}
    for number, step in enumerate(steps):
        others = [each for each in steps if each.path == step.path and each.task != step.task]
        later = [each for each in steps[number:] if each in others]
        if _is_lost(step, others, later, final.get(step.path), lines):
            lost.setdefault(step.task, []).append(step.path)
    return tuple(f"the work of {task} is gone from {_listed(sorted(paths))}" for task, paths in lost.items())


def _is_lost(
    step: FileStep,
    others: Sequence[FileStep],
    later: Sequence[FileStep],
    now: str | None,
    lines: Mapping[str, frozenset[str]],
) -> bool:
    if now == step.after:
        return False
    if now is None or now == step.before:  # a later task may take it back; of a change and a deletion one can be kept
        return not any(each.after == now for each in later) and not (
            now is None and any(each.after is None and each.before == step.before for each in others)
        )
    if step.after is None:
        return False  # another task changed what this one deleted
    if not all(each in lines for each in (step.before, step.after, now) if each is not None):
        return now in {each.after for each in others} - _built_on(step.after, others)
    return _has_no_line(_Lines.of(step, lines), [_Lines.of(each, lines) for each in others], lines[now])


def _built_on(content: str, others: Sequence[FileStep]) -> set[str | None]:
    """Return what others made of a content, one after the other."""
    found: set[str | None] = {content}
    while more := {each.after for each in others if each.before in found} - found:
        found |= more
    return found


class _Lines(NamedTuple):
    """The lines of a file before and after a task."""

    before: frozenset[str]
    after: frozenset[str]

    @staticmethod
    def of(step: FileStep, lines: Mapping[str, frozenset[str]]) -> "_Lines":
        before, after = (lines.get(each or "", frozenset()) for each in (step.before, step.after))
        return _Lines(before, after)

    @property
    def added(self) -> frozenset[str]:
        return self.after - self.before

    @property
    def removed(self) -> frozenset[str]:
        return self.before - self.after


def _has_no_line(own: _Lines, others: Sequence[_Lines], now: frozenset[str]) -> bool:
    """Return whether a file could have been made without a task: it has only lines of others, and none of the task's.

    A line that nobody wrote before settles a conflict: it may say what the lines of two tasks said. A line that another
    task wrote, too, or took away later, does not show whose work is left.
    """
    if not now <= own.before.union(*(each.before | each.after for each in others)):
        return False
    touched = frozenset[str]().union(*(each.added | each.removed for each in others))
    added, removed = own.added - touched, own.removed - touched
    return not added & now if added else bool(removed) and removed <= now


def _listed(paths: list[str]) -> str:
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
