"""Patterns of paths: `*` and `?` stay within a folder, `**` stands for any number of folders.

Patterns come from plans and paths from models: matching takes time in proportion to their lengths, whatever they say.
"""

from collections.abc import Callable, Sequence

ANY = "**"


def fits(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern with `*` and `?`.

    >>> fits("test_*.py", "test_a.py"), fits("a?c", "ac")
    (True, False)
    """
    at, star, mark = 0, -1, 0
    place = 0
    while place < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, mark = at, place
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[place]):
            at += 1
            place += 1
        elif star >= 0:
            mark += 1
            at, place = star + 1, mark
        else:
            return False
    return all(sign == "*" for sign in pattern[at:])


def covers(pattern: Sequence[str], path: Sequence[str], *, fits: Callable[[str, str], bool] = fits) -> bool:
    """Whether a pattern stands for a path, both in segments: a table over both. `src/**` is what is in src, not src.

    >>> covers(["src", "**"], ["src", "deep", "a.py"]), covers(["src", "**"], ["src"])
    (True, False)
    """
    reached = {0}
    for segment in pattern:
        if segment == ANY:
            reached = set(range(min(reached), len(path) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(path) and fits(segment, path[at])}
    named = sum(segment != ANY for segment in pattern)
    return len(path) in reached and not (pattern[-1] == ANY and len(path) <= named)


def overlap(one: str, other: str) -> bool:
    """Whether some path fits both patterns.

    >>> overlap("src/*.py", "src/a.*"), overlap("src/**", "src"), overlap("docs/**", "**/a.md"), overlap("a.py", "b.py")
    (True, False, True, False)
    """
    left, right = _fixed(one), _fixed(other)
    if not (left.startswith(right) or right.startswith(left)):
        return False  # most pairs of a plan differ here already

    def agree(left: str, right: str) -> bool:
        return _meet(left, right, "*", _same)

    return any(_meet(left, right, ANY, agree) for left in _spelled(one) for right in _spelled(other))


def _fixed(pattern: str) -> str:
    """The beginning of a pattern, up to its first wildcard."""
    return pattern.partition("*")[0].partition("?")[0]


def _spelled(pattern: str) -> list[list[str]]:
    """The segments of a pattern; one that ends with `**` stands for at least one folder or file at one of its `**`."""
    segments = pattern.split("/")
    if segments[-1] != ANY:
        return [segments]
    return [[*segments[: at + 1], "*", *segments[at + 1 :]] for at, each in enumerate(segments) if each == ANY]


def _same(left: str, right: str) -> bool:
    return left == right or "?" in (left, right)


def _meet(one: Sequence[str], other: Sequence[str], many: str, agree: Callable[[str, str], bool]) -> bool:
    """Whether two sequences stand for a common one; `many` in either stands for any number of entries."""
    reached = _passing({0}, other, many)
    for left in one:
        if left == many:
            reached = set(range(min(reached, default=len(other) + 1), len(other) + 1))
            continue
        before = {at for at in reached if at < len(other)}
        stays = {at for at in before if other[at] == many}
        steps = {at + 1 for at in before - stays if agree(left, other[at])}
        reached = _passing(stays | steps, other, many)
    return len(other) in reached


def _passing(reached: set[int], other: Sequence[str], many: str) -> set[int]:
    """The places that are reached, and those after each `many` that stands for nothing."""
    for at, right in enumerate(other):
        if at in reached and right == many:
            reached = {*reached, at + 1}
    return reached
