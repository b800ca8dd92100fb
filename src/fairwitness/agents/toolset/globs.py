"""Patterns of paths: globs, and the lines of a `.gitignore`.

A pattern comes from a model or a repository, so the time to match is proportional to the path, whatever the pattern.
"""

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairwitness.rules.globs import ANY, covers

_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ALTERNATIVES = 64


def matches(pattern: str, path: str) -> bool:
    """Return whether a path matches a glob: `*` and `?` match within a folder, `**` across folders, `{a,b}` either.

    A pattern without a slash matches the name in any folder.
    """
    return any(_fits(_segments(each), path.split("/")) for each in alternatives(pattern))


def alternatives(pattern: str) -> tuple[str, ...]:
    """Return the alternatives of a pattern with braces, up to a limit."""
    found = [pattern]
    while len(found) <= _ALTERNATIVES:
        index = next((index for index, each in enumerate(found) if _BRACES.search(each)), None)
        if index is None:
            break
        braces = _BRACES.search(found[index])
        assert braces is not None
        before, after = found[index][: braces.start()], found[index][braces.end() :]
        found[index : index + 1] = [f"{before}{choice}{after}" for choice in braces[1].split(",")]
    return tuple(found[:_ALTERNATIVES])


def _segments(pattern: str) -> list[str]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return parts if "/" in pattern.strip("/") or pattern.startswith("/") else [ANY, *parts]


def _fits(pattern: Sequence[str], path: Sequence[str]) -> bool:
    return covers(list(pattern), path, fits=_names)


def _names(pattern: str, name: str) -> bool:
    return fnmatch.fnmatchcase(name, pattern)


@dataclass(frozen=True, slots=True)
class _IgnoreLine:
    segments: tuple[str, ...]
    folders_only: bool
    ignores: bool


class Ignored:
    """The `.gitignore` at the root; nested ones and git's own lists are not read."""

    def __init__(self, text: str) -> None:
        self._lines = tuple(line for each in text.splitlines()[:2000] if (line := _read(each)) is not None)

    def names(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a path is ignored; the last matching line decides."""
        parts = path.split("/")
        for line in reversed(self._lines):
            if (is_folder or not line.folders_only) and _fits(line.segments, parts):
                return line.ignores
        return False


def _read(line: str) -> _IgnoreLine | None:
    pattern = line.rstrip()
    ignores = not pattern.startswith("!")
    pattern = pattern.removeprefix("!").replace("\\", "")
    if not pattern.strip("/") or pattern.startswith("#") or len(pattern) > 500:
        return None
    return _IgnoreLine(tuple(_segments(pattern.removesuffix("/"))), pattern.endswith("/"), ignores)
