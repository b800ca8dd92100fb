"""Files that say what a CI server runs: jobs and steps that are gone, new conditions, changed commands."""

from collections.abc import Iterator

from fairwitness.verify.inspections.config_judging import (
    Changed,
    Judged,
    changes_between,
    judge,
    keeps_command,
    loosens_text,
)
from fairwitness.verify.inspections.config_values import Settings, Way, items_of
from fairwitness.verify.inspections.config_words import CHECKING
from fairwitness.verify.inspections.model import quoted

_RUNS = frozenset({"run", "script", "before_script", "after_script", "command", "commands", "args", "entry"})
_TRIGGERS = frozenset({"on", "true", "rules", "only", "except", "workflow", "stages", "branches", "types", "paths"})
_CONDITIONS = frozenset({"if", "when", "condition", "only", "except", "rules", "changes"})


def ci_changes(before: Settings, after: Settings) -> Iterator[Judged]:
    """What became of jobs, steps and their commands."""
    old, new = _things(before), _things(after)
    gone = [way for way in sorted(old - new) if way[:-2] in new or len(way) <= 2]
    for way in gone:
        inner = [(key, value) for key, value in before.items() if key[: len(way)] == way]
        checks = (
            len(way) <= 2
            or way[-2] == "hooks"
            or any(CHECKING.search(str(value)) for key, value in inner if key[-1] in {*_RUNS, "uses", "name"})
        )
        yield Judged(f"{quoted(way[-1])} of {way[-2]} is gone or changed", blocks=checks)
    for change in changes_between(before, after):
        lost = any(change.way[: len(way)] == way for way in gone)
        if not lost:
            yield from _setting(change, is_new=not change.there[0] and _thing_of(change.way) not in old)


def _things(settings: Settings) -> set[Way]:
    """Jobs and steps: the first two levels, and whatever stands in a list."""
    ways = {way[:2] for way in settings if len(way) > 2}
    return ways | {
        way[: at + 1] for way in settings for at in range(2, len(way) - 1) if way[at - 1] in {"steps", "hooks"}
    }


def _thing_of(way: Way) -> Way:
    for at in range(len(way) - 2, 1, -1):
        if way[at - 1] in {"steps", "hooks"}:
            return way[: at + 1]
    return way[:2]


def _setting(change: Changed, *, is_new: bool) -> Iterator[Judged]:
    name = change.name
    if loosens_text(change.before, change.after):
        yield Judged(str(change), blocks=True)
    elif name in {"continue-on-error", "allow_failure", "continueOnError"}:
        yield judge(change, unsure=True)
    elif is_new:
        yield Judged(str(change), blocks=False)
    elif name in _CONDITIONS or _TRIGGERS & set(change.way[:2]):
        narrowed = change.there[0] or name in _CONDITIONS
        yield Judged(str(change), blocks=narrowed)
    elif name in _RUNS:
        checks = CHECKING.search(f"{change.before} {change.after}") is not None
        yield Judged(str(change), blocks=checks and not keeps_command(change.before, change.after))
    elif "matrix" in change.way:
        less = set(items_of(change.before)) - set(items_of(change.after))
        yield Judged(str(change), blocks=bool(less))
    else:
        yield judge(change, unsure=False)
