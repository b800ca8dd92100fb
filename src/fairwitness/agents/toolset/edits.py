"""Replacing what stands in a file exactly once; several replacements are made all or not at all."""

import contextlib
import re

from fairwitness.agents.toolset.arguments import ReplaceString
from fairwitness.agents.toolset.files import to_bytes
from fairwitness.agents.toolset.model import Unable
from fairwitness.agents.toolset.tree import Tree
from fairwitness.errors import StoreError

_NUMBERED = re.compile(r"\d+\t")
_COUNTED = 1_000


def replace_string(tree: Tree, asked: ReplaceString) -> str:
    """One replacement."""
    text, line = _replaced(tree.read_text(asked.path), asked)
    tree.write(asked.path, to_bytes(text))
    return f"replaced in {asked.path} at line {line}"


def multi_replace(tree: Tree, asked: tuple[ReplaceString, ...]) -> str:
    """Several replacements; each sees what those before it did. The files are written when all of them fit."""
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    said = []
    for number, each in enumerate(asked, start=1):
        try:
            if each.path not in before:
                before[each.path] = after[each.path] = tree.read_text(each.path)
            after[each.path], line = _replaced(after[each.path], each)
        except Unable as why:
            raise Unable(f"nothing was replaced: number {number}: {why}") from None
        said.append(f"replaced in {each.path} at line {line}")
    _write_all(tree, before, {path: to_bytes(text) for path, text in after.items()})
    return "\n".join(said)


def _write_all(tree: Tree, before: dict[str, str], after: dict[str, bytes]) -> None:
    written: list[str] = []
    try:
        for path, data in after.items():
            tree.write(path, data)
            written.append(path)
    except Unable as why:
        for path in written:
            with contextlib.suppress(Unable, StoreError):
                tree.write(path, before[path].encode("utf-8"))
        raise Unable(f"nothing was replaced: {why}") from None


def _replaced(text: str, asked: ReplaceString) -> tuple[str, int]:
    """The text with its one place replaced, and the line of that place."""
    old, new = asked.old_string, asked.new_string
    if old == new:
        raise Unable(f"{asked.path}: old_string and new_string are the same")
    if old not in text and "\r\n" in text and "\r" not in old:
        # the reader was shown lines, not how they end
        old, new = old.replace("\n", "\r\n"), new.replace("\r\n", "\n").replace("\n", "\r\n")
    count = _count(text, old)
    if count != 1:
        raise Unable(_not_once(asked, count))
    place = text.index(old)
    return f"{text[:place]}{new}{text[place + len(old) :]}", text.count("\n", 0, place) + 1


def _count(text: str, part: str) -> int:
    """How often a part stands in a text, overlaps counted: each is a place that could be meant."""
    count, place = 0, text.find(part)
    while place >= 0 and count < _COUNTED:
        count, place = count + 1, text.find(part, place + 1)
    return count


def _not_once(asked: ReplaceString, count: int) -> str:
    if count:
        often = f"{count} times" if count < _COUNTED else f"{_COUNTED} times or more"
        return f"{asked.path}: old_string stands there {often}; give more of what is around it"
    lines = asked.old_string.split("\n")
    if all(_NUMBERED.match(line) for line in lines if line):
        return f"{asked.path}: old_string does not stand there; leave out the line numbers"
    return f"{asked.path}: old_string does not stand there (0 times)"
