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
