"""The differences between two trees: files, and for text files the added and removed lines with their numbers.

Only the two trees decide: attributes that a change contains cannot declare a text file binary and so hide it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from fairwitness.git.call import GitFailed, text_of
from fairwitness.git.objects import GITLINK, Objects, TreeEntry

Status = Literal["A", "M", "D", "T"]
TEXT_LIMIT = 16 << 20
"""Size in bytes of the largest file that is compared line by line; a larger one counts as binary."""
_LOOKED_AT = 8000
_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-r", "-z")


class DiffLine(NamedTuple):
    """One line of a text, counted from 1, without its newline."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Adjacent removed lines, and the lines added in their place."""

    removed: tuple[DiffLine, ...]
    added: tuple[DiffLine, ...]


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that differs; a renamed file is a removed file and an added file that names its origin."""

    status: Status
    path: str
    old_entry: TreeEntry | None
    new_entry: TreeEntry | None
    is_binary: bool
    hunks: tuple[Hunk, ...] = ()
    renamed_from: str | None = None

    @property
    def added(self) -> tuple[DiffLine, ...]:
        """Return all added lines."""
        return tuple(line for hunk in self.hunks for line in hunk.added)

    @property
    def removed(self) -> tuple[DiffLine, ...]:
        """Return all removed lines."""
        return tuple(line for hunk in self.hunks for line in hunk.removed)


def diff(objects: Objects, base: str, head: str) -> tuple[FileChange, ...]:
    """Return all files that differ, sorted by path."""
    changes = list(_raw(objects, base, head))
    came_from = _renames(objects, base, head) if {"A", "D"} <= {change.status for change in changes} else {}
    contents = _contents(objects, changes)
    modified = iter(_patches(objects, base, head))
    return tuple(
        replace(_with_lines(change, contents, modified), renamed_from=came_from.get(change.path))
        for change in sorted(changes, key=lambda change: change.path.encode("utf-8", "surrogateescape"))
    )


def _raw(objects: Objects, base: str, head: str) -> Iterator[FileChange]:
    fields = objects.git.run("diff-tree", *_PLAIN, "--raw", "--no-renames", "--no-abbrev", base, head).split(b"\0")[:-1]
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old, new, letter = about.decode().removeprefix(":").split(" ")
        status: dict[str, Status] = {"A": "A", "M": "M", "D": "D", "T": "T"}
        yield FileChange(
            status=status[letter],
            path=text_of(path),
            old_entry=TreeEntry(old_mode, old) if old_mode != "000000" else None,
            new_entry=TreeEntry(new_mode, new) if new_mode != "000000" else None,
            is_binary=False,
        )


def _renames(objects: Objects, base: str, head: str) -> dict[str, str]:
    """Return the origin of each added file whose content existed elsewhere before."""
    fields = objects.git.run(
        "diff-tree", *_PLAIN, "--name-status", "--find-renames=50%", "-l1000", "--diff-filter=R", base, head
    ).split(b"\0")[:-1]
    return {text_of(new): text_of(old) for _, old, new in zip(*[iter(fields)] * 3, strict=True)}


def _contents(objects: Objects, changes: list[FileChange]) -> dict[str, bytes]:
    """Return the content of all relevant blobs by id; those too large to compare are left out."""
    wanted = {
        entry.id
        for change in changes
        for entry in (change.old_entry, change.new_entry)
        if entry and entry.mode != GITLINK
    }
    small = [id_ for id_, size in objects.sizes(wanted).items() if size is None or size <= TEXT_LIMIT]
    return dict(objects.blobs(small, limit=TEXT_LIMIT))


def _with_lines(change: FileChange, contents: dict[str, bytes], modified: Iterator[bytes]) -> FileChange:
    patch = next(modified) if change.status == "M" else b""
    sides = [entry for entry in (change.old_entry, change.new_entry) if entry is not None and entry.mode != GITLINK]
    if any(entry.id not in contents or b"\0" in contents[entry.id][:_LOOKED_AT] for entry in sides):
        return replace(change, is_binary=True)
    if change.status == "M":
        return replace(change, hunks=tuple(_hunks(patch)) if sides else ())
    old, new = (
        _lines(contents[entry.id]) if entry is not None and entry.mode != GITLINK else ()
        for entry in (change.old_entry, change.new_entry)
    )
    return replace(change, hunks=(Hunk(old, new),) if old or new else ())


def _lines(content: bytes) -> tuple[DiffLine, ...]:
    rows = content.split(b"\n")
    if not rows[-1]:
        rows.pop()
    return tuple(DiffLine(number, _text(row)) for number, row in enumerate(rows, start=1))


def _text(row: bytes) -> str:
    return row.decode("utf-8", "replace")


def _patches(objects: Objects, base: str, head: str) -> list[bytes]:
    """Return the patch of each modified file, in the order of their paths."""
    printed = objects.git.given(settings={"core.bigFileThreshold": str(TEXT_LIMIT + 1)}).run(
        *("diff-tree", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", "-r", "--no-color"),
        *("-p", "-U0", "--no-renames", "--no-indent-heuristic", "--diff-filter=M", "--no-prefix", base, head),
    )
    return _sections(printed)


def _sections(printed: bytes) -> list[bytes]:
    """Split a patch by file; no line of content starts with `d`."""
    starts = [0] if printed.startswith(b"diff --git ") else []
    starts += [found.start() + 1 for found in re.finditer(rb"\ndiff --git ", printed)]
    return [printed[start:end] for start, end in zip(starts, [*starts, len(printed)][1:], strict=True)]


def _hunks(patch: bytes) -> Iterator[Hunk]:
    """Return the hunks of one file's patch without context lines."""
    rows = patch.split(b"\n")
    at = next((number for number, row in enumerate(rows) if row.startswith(b"@@ ")), len(rows))
    while at < len(rows) and rows[at]:
        header = _HUNK.match(rows[at])
        if header is None:
            raise GitFailed("git printed a patch that cannot be read", next_step="report it with your version of git")
        at += 1
        sides: dict[bytes, list[DiffLine]] = {b"-": [], b"+": []}
        number = {b"-": int(header[1]), b"+": int(header[3])}
        left = {b"-": int(header[2] or 1), b"+": int(header[4] or 1)}
        while at < len(rows) and (rows[at][:1] == b"\\" or left.get(rows[at][:1], 0)):
            sign = rows[at][:1]
            if sign != b"\\":  # "\ No newline at end of file" is not a line of either side
                sides[sign].append(DiffLine(number[sign], _text(rows[at][1:])))
                number[sign] += 1
                left[sign] -= 1
            at += 1
        yield Hunk(tuple(sides[b"-"]), tuple(sides[b"+"]))
