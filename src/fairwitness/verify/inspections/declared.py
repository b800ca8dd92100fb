"""The scope of a change: which of its paths no declared file or pattern covers.

A declared entry is a path, a folder with a slash at its end, or a pattern in which `*` and `?` stay within a folder and
`**` stands for any number of folders. A test file is covered only if it is declared itself. Entries that point outside
of the repository cover nothing.
"""

from collections.abc import Sequence

from fairwitness.rules.globs import covers

SEGMENTS = 64
"""Folders of an entry or path; deeper entries cover nothing."""


def outside(changes: Sequence[str], declared: Sequence[str]) -> tuple[str, ...]:
    """Changed paths that nobody declared, in their order.

    >>> outside(["src/a.py", "src/deep/b.py", "tests/test_a.py"], ["src/**", "docs/"])
    ('tests/test_a.py',)
    """
    entries = [entry for entry in map(_segments, declared) if entry]
    return tuple(path for path in changes if not any(covers(entry, path.split("/")) for entry in entries))


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
