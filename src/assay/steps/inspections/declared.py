"""The scope of a change: which of its paths no declared file or pattern covers.

A declared entry is a path, a folder with a slash at its end, or a pattern in which `*` and `?` stay within a folder and
`**` stands for any number of folders. A test file is covered only if it is declared itself. Entries that point outside
of the repository cover nothing.
"""

from collections.abc import Sequence

SEGMENTS = 64
"""Folders of an entry or path; deeper entries cover nothing."""


def outside(changes: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Changed paths that nobody declared, in their order.

    >>> outside(["src/a.py", "src/deep/b.py", "tests/test_a.py"], ["src/**", "docs/"])
    ('tests/test_a.py',)
    """
    entries = [entry for entry in map(_segments, declared) if entry]
    return tuple(path for path in changes if not any(_covers(entry, path.split("/")) for entry in entries))


def _segments(entry: str) -> list[str]:
    """The parts of an entry; none if it cannot be meant."""
    text = entry.strip()
    while text.startswith("./"):
        text = text[2:]
    if text.endswith("/"):
        text += "**"
    segments = text.split("/")
    if "" in segments or ".." in segments or "." in segments or "\\" in text or len(segments) > SEGMENTS:
        return []
    return segments


def _covers(entry: list[str], path: list[str]) -> bool:
    """Whether an entry stands for a path: a table over both, so that no pattern takes long."""
    reached = {0}
    for segment in entry:
        if segment == "**":
            reached = set(range(min(reached), len(path) + 1)) if reached else set()
        else:
            reached = {at + 1 for at in reached if at < len(path) and _matches(segment, path[at])}
    # `src/**` means what is in src, not a file of that name
    return len(path) in reached and not (entry[-1] == "**" and len(path) < len(entry))


def _matches(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern with `*` and `?`, in time that grows with their lengths only."""
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
