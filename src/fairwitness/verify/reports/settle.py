"""From what a report named to items: ids unique and relative to the project, texts bounded, problems in sentences."""

from collections.abc import Iterable, Sequence

from fairwitness.contracts.verify.results import Item
from fairwitness.verify.reports.found import Found, Relative, message, spelled

PROBLEMS = 20
_PROBLEM_LENGTH = 400
_MOST_LINES = 2**31


def settled(found: Sequence[Found], relative: Relative) -> tuple[Item, ...]:
    """The items of a report; equal names are numbered in the order of the report."""
    taken: set[str] = set()
    turns: dict[str, int] = {}
    return tuple(_item(each, relative, taken, turns) for each in found)


def _item(found: Found, relative: Relative, taken: set[str], turns: dict[str, int]) -> Item:
    name = spelled(relative(found.id)) or "(without a name)"
    path = spelled(relative.path(found.path)) if found.path else ""
    line = found.line
    return Item(
        id=_unique(name, taken, turns),
        outcome=found.outcome,
        path=path or None,
        line=line if line is not None and 0 < line < _MOST_LINES else None,
        message=message(relative(found.message)),
    )


def _unique(name: str, taken: set[str], turns: dict[str, int]) -> str:
    unique, turn = name, turns.get(name, 1)
    while unique in taken:
        turn += 1
        unique = f"{name}#{turn}"
    turns[name] = turn
    taken.add(unique)
    return unique


def sentences(problems: Iterable[str], relative: Relative) -> tuple[str, ...]:
    """Problems fit to be shown, each once, the first ones first."""
    told = dict.fromkeys(message(relative(problem))[:_PROBLEM_LENGTH] for problem in problems)
    return tuple(problem for problem in told if problem)[:PROBLEMS]
