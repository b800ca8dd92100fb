"""The texts of requirements, from the specifications that describe them under their ids."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from fairwitness.rules.markdown_lines import MarkdownLine, heading_of, item_of, said_lines

LONGEST = 2_000
"""The maximum length of one requirement's text; the rest is cut."""
_ID = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[._-][A-Za-z0-9]+)*")
_BEFORE, _AFTER = "*_`~ \t", "*_`~ \t:.)-–—|"
_BOX = re.compile(r"\[[ xX]\]\s*")


def requirement_texts(specs: Iterable[str], ids: Collection[str]) -> dict[str, str]:
    """Return the text of each of the ids that a specification describes; the first description counts.

    A description is a list item, a heading, a table row or a line that starts with the id. Lines that follow belong to
    it up to an empty line or the next description; under a heading, the first paragraph does.

    >>> requirement_texts(["- **REQ-1**: It starts\\n  within a second.\\n- REQ-2 — It stops."], ["REQ-1", "REQ-2"])
    {'REQ-1': 'It starts within a second.', 'REQ-2': 'It stops.'}
    """
    found: dict[str, str] = {}
    for spec in specs:
        lines = said_lines(spec).said
        for at, line in enumerate(lines):
            name, rest = _described(line)
            if name in ids and name not in found:
                text = " ".join(
                    filter(None, (rest, *_continued(lines[at + 1 :], _shape(name), is_started=bool(rest))))
                ).strip()
                if text:
                    found[name] = text[:LONGEST]
    return found


def _described(line: MarkdownLine) -> tuple[str, str]:
    """Return the id that a line starts with, and the rest of it; two empty texts if it starts with none."""
    heading, text = heading_of(line), line.text
    text = heading.title if heading is not None else item_of(text) or text
    text = _BOX.sub("", text.lstrip("|> \t"), count=1).lstrip(_BEFORE).removeprefix("[")
    match = _ID.match(text)
    if match is None:
        return "", ""
    rest = text[match.end() :].removeprefix("]").lstrip(_AFTER)
    return match.group(), " ".join(rest.replace("|", " ").split()).rstrip("_ ").removesuffix("**")


def _continued(lines: Sequence[MarkdownLine], shape: str, *, is_started: bool) -> Iterator[str]:
    """Yield the lines that continue a description; empty lines before its first text are skipped.

    A line that starts with another id of the same shape begins the next description.
    """
    for line in lines:
        if not line.text and not is_started:
            continue
        if not line.text or heading_of(line) is not None or line.text.startswith("|"):
            return
        name, is_item = _described(line)[0], item_of(line.text) is not None
        if is_item and ((is_started and line.indent == 0) or _has_number(name)):
            return
        if _has_number(name) and _shape(name) == shape:
            return
        is_started = True
        yield " ".join(line.text.split())


def _shape(name: str) -> str:
    return re.sub(r"\d+", "0", name)


def _has_number(name: str) -> bool:
    return any(sign.isdigit() for sign in name)
