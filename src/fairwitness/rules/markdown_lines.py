"""The visible lines of a Markdown text, without code fences and comments.

This is not a Markdown parser. It knows enough to distinguish headings and list items from examples of them, and reports
a problem where it cannot tell how the rest of a text is meant.
"""

import re
from typing import NamedTuple

from fairwitness.contracts.autopilot.roadmap import LineProblem, at_line

MOST_SIGNS = 1_000_000
"""The maximum length of a text; a roadmap with a thousand phases needs half of it."""

_ENDS = re.compile(r"\r\n|\r|\n")
_ODD = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffd]")
"""Characters that editors do not show: control characters, lone surrogates, bidirectional marks, decoding errors."""
_FENCE = re.compile(r"(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]+)?(?P<fence>`{3,}|~{3,})(?P<rest>.*)")
_RULES = ({"-"}, {"*"}, {"_"}, {"="})
_ITEM = re.compile(r"(?:[-*+]|[0-9]{1,9}[.)])(?:[ \t]+|$)")


class MarkdownLine(NamedTuple):
    """One line: its number, its indentation and its stripped text."""

    number: int
    indent: int
    text: str


class Heading(NamedTuple):
    """The level and the text of a heading."""

    level: int
    title: str


class MarkdownLines(NamedTuple):
    """The visible lines of a text and the problems that prevent reading the rest; a hidden line is empty."""

    said: tuple[MarkdownLine, ...]
    problems: tuple[LineProblem, ...]


def said_lines(text: str) -> MarkdownLines:
    """Return the lines outside of code fences and comments.

    >>> [line.text for line in said_lines("# a\\n```\\n# b\\n```\\n<!-- c -->\\nd").said]
    ['# a', '', '', '', '', 'd']
    """
    if len(text) > MOST_SIGNS:
        return MarkdownLines((), (at_line(1, f"at most {MOST_SIGNS} characters", f"{len(text)} characters"),))
    rows = _ENDS.split(text.removeprefix("\ufeff"))
    for number, row in enumerate(rows, start=1):
        odd = _ODD.search(row)
        if odd is not None:
            return MarkdownLines((), (at_line(number, "plain text", f"the character U+{ord(odd.group()):04X}"),))
    return _outside(rows)


def _outside(rows: list[str]) -> MarkdownLines:
    said: list[MarkdownLine] = []
    fence, opened = "", 0
    for number, row in enumerate(rows, start=1):
        text = row.strip()
        if fence:
            fence = "" if _closes(fence, text) else fence
            text = ""
        elif text.startswith("<!--"):
            opened, fence, text = number, "" if "-->" in text[4:] else "-->", ""
        elif (match := _FENCE.match(text)) is not None and not ("`" in match["fence"] and "`" in match["rest"]):
            opened, fence, text = number, match["fence"], ""
        elif _is_rule(text):
            text = ""
        said.append(MarkdownLine(number, _indent(row), text))
    if not fence:
        return MarkdownLines(tuple(said), ())
    what = "a comment that is closed by -->" if fence == "-->" else f"a code block that is closed by {fence}"
    return MarkdownLines(tuple(said), (at_line(opened, what, "the end of the text"),))


def _closes(fence: str, text: str) -> bool:
    if fence == "-->":
        return fence in text
    return len(text) >= len(fence) and set(text) == {fence[0]}


def _is_rule(text: str) -> bool:
    """Return True for a horizontal rule or a heading underline."""
    return len(text) >= 3 and set(text) - {" ", "\t"} in _RULES


def _indent(row: str) -> int:
    spaces = row[: len(row) - len(row.lstrip(" \t"))]
    return len(spaces.expandtabs(4))


def heading_of(line: MarkdownLine) -> Heading | None:
    """Return the heading on a line, or None.

    >>> lines = MarkdownLine(1, 0, "## In C# ##"), MarkdownLine(1, 4, "# an example"), MarkdownLine(1, 0, "#1")
    >>> tuple(map(heading_of, lines))
    (Heading(level=2, title='In C#'), None, None)
    """
    level = len(line.text) - len(line.text.lstrip("#"))
    title = line.text[level:]
    if not 1 <= level <= 6 or line.indent > 3 or title[:1] not in ("", " ", "\t"):
        return None
    title = title.strip()
    open_end = title.rstrip("#")
    closed = open_end != title and open_end[-1:] in ("", " ", "\t")
    return Heading(level, (open_end if closed else title).strip())


def item_of(text: str) -> str | None:
    """Return the text of a list item, or None if the line is none.

    >>> [item_of(text) for text in ("- a", "2.\\tb", "*", "-a", "**a**")]
    ['a', 'b', '', None, None]
    """
    match = _ITEM.match(text)
    return None if match is None else text[match.end() :]
