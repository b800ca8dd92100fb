"""Prepares texts for a model: no terminal codes, no invisible characters, no local path, and a limit of length."""

import os
import re
from pathlib import Path

from fairwitness.agents.toolset.model import TEXT_LIMIT
from fairwitness.kit.redaction import redact_forms

_CODES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)"  # titles and links
    r"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"
    r"|[\x1b]\[[0-?]{0,64}[ -/]{0,8}[@-~]"  # colours and cursor movements
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]"
    r"|\x1b[ -/]{0,8}[0-~]"
)
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters; tab and newline stay
    "\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"  # surrogates and invisible characters
)
LINE_LIMIT = 2_000
"""Characters of one line."""


def without_codes(text: str) -> str:
    """Return the output of a command as a screen shows it: without colours and overwritten lines."""
    plain = _CODES.sub("", text)
    if "\r" not in plain:
        return plain
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))


def spelled(text: str) -> str:
    """Return the text with control and invisible characters escaped; tabs and line ends stay."""
    return _UNSEEN.sub(lambda sign: sign.group().encode("unicode_escape").decode("ascii"), text)


def one_line(text: str, limit: int = 400) -> str:
    """Return a text from any source as part of one sentence."""
    line = spelled(text).replace("\n", "\\n").replace("\t", " ")
    return line if len(line) <= limit else f"{line[: limit // 2]}…{line[-(limit // 2) :]}"


def short_line(line: str) -> str:
    """Return a line, cut if it is very long."""
    more = len(line) - LINE_LIMIT
    return line if more <= 0 else f"{line[:LINE_LIMIT]}… [{more} more characters]"


def head_and_tail(text: str, limit: int) -> str:
    """Return the beginning and the end of a text, in whole lines if possible."""
    if len(text) <= limit:
        return text
    half = limit // 2
    head, tail = text[:half], text[-half:]
    head = head[: head.rfind("\n") + 1] or head
    tail = tail[tail.find("\n") + 1 :] or tail
    between = text[len(head) : len(text) - len(tail)]
    lines = between.count("\n")
    left_out = f"{lines} lines" if lines > 1 else f"{len(between)} characters"
    return f"{head.rstrip(chr(10))}\n[… {left_out} left out …]\n{tail}"


class PathVeil:
    """Replaces the worktree's absolute path, which differs between machines and runs."""

    def __init__(self, worktree: Path) -> None:
        spellings = {str(worktree), os.path.normpath(worktree), os.path.realpath(worktree)}
        self._spellings = tuple(sorted(spellings, key=len, reverse=True))
        either = "|".join(map(re.escape, self._spellings))
        self._root = re.compile(f"(?:{either})(?![\\w-]|\\.\\w)")  # not a longer name that begins the same

    def over(self, text: str, limit: int = TEXT_LIMIT) -> str:
        """Return a result for a model, without secrets."""
        return head_and_tail(spelled(self._root.sub(".", redact_forms(text))), limit)

    def relative(self, path: str) -> str:
        """Return a path relative to the worktree, without empty parts; a path elsewhere is not changed."""
        for root in self._spellings:
            if path == root or path.startswith(f"{root}/"):
                path = path[len(root) :].lstrip("/") or "."
                break
        if not path or path.startswith("/"):
            return path
        return "/".join(part for part in path.split("/") if part not in ("", ".")) or "."
