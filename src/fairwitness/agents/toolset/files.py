"""The tools that read, list, write and edit files.

Lines are shown with their numbers, since findings name lines; an edit with a copied number gets a hint. Several
replacements are made all or not at all.
"""

import contextlib
import re

from fairwitness.agents.toolset.arguments import CreateFile, ListDir, ReadFile, ReplaceString
from fairwitness.agents.toolset.model import TEXT_LIMIT, ToolFailed
from fairwitness.agents.toolset.plain import one_line, short_line, spelled
from fairwitness.agents.toolset.tree import WorktreeFiles, name_problem
from fairwitness.errors import StoreError
from fairwitness.kit.redaction import MARK, redact_forms

LINES_LIMIT = 1_000
"""Lines of one result."""
ENTRIES_LIMIT = 500
"""Names of one listing."""
_ROOM = TEXT_LIMIT - 1_000
"""Characters for lines; the rest is for the heading."""


def read_file(tree: WorktreeFiles, asked: ReadFile) -> str:
    """Return lines of a file with their numbers."""
    text = redact_forms(tree.read_text(asked.path))  # before lines are chosen: a secret may have several
    if not text:
        return f"{asked.path} is empty"
    lines = split_lines(text)
    shown, first, last = window(lines, asked.start_line, asked.end_line, asked.path)
    notes = []
    if "\r\n" in text:
        notes.append("line ends are CRLF")
    if last == len(lines) and not text.endswith("\n"):
        notes.append("the last line has no line end")
    if last < min(asked.end_line or len(lines), len(lines)):
        notes.append(f"go on with start_line {last + 1}")
    head = f"{asked.path}, lines {first} to {last} of {len(lines)}{''.join(f'; {note}' for note in notes)}"
    return "\n".join([head, *(f"{first + index}\t{line}" for index, line in enumerate(shown))])


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without line ends; only a newline ends a line."""
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def window(lines: list[str], start: int, end: int | None, what: str) -> tuple[list[str], int, int]:
    """Return as many of the wanted lines as fit, and the numbers of the first and the last."""
    if start > len(lines):
        raise ToolFailed(f"{what} has only {len(lines)} lines")
    if end is not None and end < start:
        raise ToolFailed(f"end_line {end} is before start_line {start}")
    shown: list[str] = []
    space = _ROOM
    for line in lines[start - 1 : min(end or len(lines), start - 1 + LINES_LIMIT)]:
        plain = spelled(short_line(line))
        space -= len(plain) + 8
        if space < 0 and shown:
            break
        shown.append(plain)
    return shown, start, start + len(shown) - 1


def list_dir(tree: WorktreeFiles, asked: ListDir) -> str:
    """Return the names in a folder; folders end with a slash."""
    tree.require(asked.path, "folder")
    lines = []
    for entry in tree.entries(asked.path):
        problem = name_problem(entry.name)
        note = f" (closed: {problem})" if problem is not None else ""
        if entry.kind == "other" and not note:
            note = " (a link or no plain file: closed)"
        lines.append(f"{one_line(entry.name)}{'/' if entry.kind == 'folder' else ''}{note}")
    more = len(lines) - ENTRIES_LIMIT
    if more > 0:
        lines[ENTRIES_LIMIT:] = [f"[{more} more]"]
    return "\n".join(lines) or f"{asked.path} is empty"


def create_file(tree: WorktreeFiles, asked: CreateFile) -> str:
    """Create or replace a file; a role that may write a file may also replace it."""
    before = tree.kind(asked.path)
    if before == "folder":
        raise ToolFailed(f"{asked.path} is a folder")
    if MARK.search(asked.content):
        old = tree.read(asked.path).decode("utf-8", "replace") if before == "file" else ""
        _refuse_marks(asked.content, old, asked.path)
    data = to_bytes(asked.content)
    tree.write(asked.path, data)
    lines = len(split_lines(asked.content)) if asked.content else 0
    return f"{'replaced' if before == 'file' else 'created'} {asked.path} ({lines} {'line' if lines == 1 else 'lines'})"


def _refuse_marks(new: str, old: str, path: str) -> None:
    """Refuse to write the mark of a secret that an agent was not shown: the secret would be lost."""
    for mark in MARK.findall(new):
        if mark not in old:
            raise ToolFailed(
                f"{path}: {mark} stands for a secret that is not shown; change the lines around it with replace_string"
            )


def to_bytes(text: str) -> bytes:
    """Return the bytes of a text; `ToolFailed` if no file can hold it."""
    if "\0" in text:
        raise ToolFailed("the text has a NUL character")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise ToolFailed("the text has half of a surrogate pair, which no file can hold") from None


_NUMBERED = re.compile(r"\d+\t")
_COUNTED = 1_000


def replace_string(tree: WorktreeFiles, asked: ReplaceString) -> str:
    """Make one replacement."""
    text, line = _replaced(tree.read_text(asked.path), asked)
    tree.write(asked.path, to_bytes(text))
    return f"replaced in {asked.path} at line {line}"


def multi_replace(tree: WorktreeFiles, asked: tuple[ReplaceString, ...]) -> str:
    """Make several replacements, each after those before it; the files are written only if all of them fit."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    said = []
    for number, each in enumerate(asked, start=1):
        try:
            if each.path not in before:
                before[each.path] = after[each.path] = tree.read_text(each.path)
            after[each.path], line = _replaced(after[each.path], each)
        except ToolFailed as why:
            raise ToolFailed(f"nothing was replaced: number {number}: {why}") from None
        said.append(f"replaced in {each.path} at line {line}")
    _write_all(tree, before, {path: to_bytes(text) for path, text in after.items()})
    return "\n".join(said)


def _write_all(tree: WorktreeFiles, before: dict[str, str], after: dict[str, bytes]) -> None:
    written: list[str] = []
    try:
        for path, data in after.items():
            tree.write(path, data)
            written.append(path)
    except ToolFailed as why:
        for path in written:
            with contextlib.suppress(ToolFailed, StoreError):
                tree.write(path, before[path].encode("utf-8"))
        raise ToolFailed(f"nothing was replaced: {why}") from None


def _replaced(text: str, asked: ReplaceString) -> tuple[str, int]:
    """Return the text with the replacement, and its line."""
    old, new = asked.old_string, asked.new_string
    if old == new:
        raise ToolFailed(f"{asked.path}: old_string and new_string are the same")
    if old not in text and "\r\n" in text and "\r" not in old:
        # the model was shown lines without their ends
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = _count(text, old)
    if count != 1:
        raise ToolFailed(_not_once(asked, count))
    _refuse_marks(new, text, asked.path)
    place = text.index(old)
    return f"{text[:place]}{new}{text[place + len(old) :]}", text.count("\n", 0, place) + 1


def _count(text: str, part: str) -> int:
    """Return how often a part occurs in a text, with overlaps: each could be meant."""
    count, place = 0, text.find(part)
    while place >= 0 and count < _COUNTED:
        count, place = count + 1, text.find(part, place + 1)
    return count


def _not_once(asked: ReplaceString, count: int) -> str:
    if count:
        often = f"{count} times" if count < _COUNTED else f"{_COUNTED} times or more"
        return f"{asked.path}: old_string occurs {often}; give more of what is around it"
    lines = asked.old_string.split("\n")
    if MARK.search(asked.old_string):
        return f"{asked.path}: old_string holds the mark of a secret that is not shown; give the lines around it"
    if all(_NUMBERED.match(line) for line in lines if line):
        return f"{asked.path}: old_string does not stand there; leave out the line numbers"
    return f"{asked.path}: old_string does not stand there (0 times)"
