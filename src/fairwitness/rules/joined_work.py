"""What the join of branches may change, and whether the work of every task is still in a tree.

A join is compared with what git makes of the branches: only files in conflict and declared fixes may differ. The work
of a task in a file is lost if the file is as it was before the task, and no other task made it so.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
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


def lost_work(steps: Sequence[FileStep], final: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each task whose work in a file is gone; `final` holds the content of the files by path."""
    made = {(step.path, step.task): step.after for step in steps}
    lost: dict[str, list[str]] = {}
    for step in steps:
        now = final.get(step.path)
        others = (after for (path, task), after in made.items() if path == step.path and task != step.task)
        if now == step.before and now != step.after and now not in tuple(others):
            lost.setdefault(step.task, []).append(step.path)
    return tuple(f"the work of {task} is gone from {_listed(sorted(paths))}" for task, paths in lost.items())


def _listed(paths: list[str]) -> str:
    more = len(paths) - _SHOWN
    return ", ".join(paths[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
