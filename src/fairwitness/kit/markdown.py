"""Render Markdown that contains foreign text, such as an agent's, so that the text has no effect as Markdown.

It cannot start a heading, a table, a list item, a link or a tag, and no control character in it reaches a terminal.
Text of one line is escaped; text of several lines becomes a quotation, verbatim if its layout seems to matter.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from fairwitness.kit.redaction import LONGEST, redact_forms
from fairwitness.kit.text import visible

LINE = 600
"""The most characters of a text in one line or cell."""
PROSE = 8_000
"""The most characters of a text of several lines."""
ROWS = 300
"""The most rows of a table and entries of a list."""
PAGE = 400_000
"""The most characters of a page; further blocks are left out."""

_CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ACTS = re.compile(r"[\\`*\[\]<|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BEGINS = re.compile(r"([#>+=:-])|(\d{1,9})([.)])")
_ENTRY = re.compile(r"[ \t]*([-*+•]|\d{1,9}[.)])[ \t]+(\S.*)")
_LAID_OUT = re.compile(r"^(?:[ \t]{0,3}(?:```|~~~)|[ \t]{2,}\S)", re.MULTILINE)
_TICKS = re.compile(r"`+")


class Markdown(str):
    """Markdown produced by this program, which is not escaped again."""

    __slots__ = ()


def line(text: str, limit: int = LINE) -> Markdown:
    """Return a text as one escaped line, safe at any position in a page."""
    plain = _escaped(_one_line(text, limit), in_cell=False)
    begins = _BEGINS.match(plain)
    if begins is None:
        return Markdown(plain)
    sign = begins.start(1) if begins[1] else begins.start(3)
    return Markdown(f"{plain[:sign]}\\{plain[sign:]}")


def cell(value: str, limit: int = LINE) -> Markdown:
    """Return a text as a table cell; `Markdown` is used unchanged."""
    if isinstance(value, Markdown):
        return value
    return Markdown(_escaped(_one_line(value, limit), in_cell=True))


def code(text: str) -> Markdown:
    """Return a name or a command as inline code; a text that cannot be inline code is escaped instead."""
    plain = _one_line(text, LINE)
    if re.search(r"[`|\\]", plain):
        return cell(text)
    return Markdown(f"`{plain}`")


def listed(names: Iterable[str], otherwise: str = "–") -> Markdown:
    """Return names as inline code, separated by commas."""
    return Markdown(", ".join(code(name) for name in names) or otherwise)


def counted(count: int, noun: str) -> Markdown:
    """Return a count with its noun.

    >>> counted(1, "call"), counted(2, "call")
    ('1 call', '2 calls')
    """
    return Markdown(f"{count} {noun}{'' if count == 1 else 's'}")


def _one_line(text: str, limit: int) -> str:
    words = " ".join(text.split()) or "–"
    shown = visible(redact_forms(words[: limit + LONGEST])[:limit])
    if len(words) <= limit and len(shown) <= 2 * limit:
        return shown
    return f"{shown[: 2 * limit]} … ({len(text)} characters in all)"


def _escaped(text: str, *, in_cell: bool) -> str:
    parts = []
    end = 0
    for span in _CODE.finditer(text):
        parts.append(_ACTS.sub(r"\\\g<0>", text[end : span.start()]))
        # Markdown renderers disagree on where a cell ends that has one of these characters in code
        is_unclear = in_cell and re.search(r"[|\\]", span[1])
        parts.append(_ACTS.sub(r"\\\g<0>", span[0]) if is_unclear else span[0])
        end = span.end()
    parts.append(_ACTS.sub(r"\\\g<0>", text[end:]))
    return "".join(parts)


def prose(text: str, limit: int = PROSE) -> Markdown:
    """Return a text of any length as a block: a paragraph if it has one line, otherwise a quotation."""
    whole = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if "\n" not in whole:
        return line(whole, limit)
    shown = re.sub(r"\n[ \t]*\n\s*\n", "\n\n", whole[:limit])
    lines = list(_verbatim(shown) if _LAID_OUT.search(shown) else _quoted(shown))
    if len(whole) > limit:
        lines += ["", f"… ({len(text)} characters in all)"]
    return Markdown("\n".join(f"> {each}".rstrip() for each in lines))


def _verbatim(text: str) -> Iterator[str]:
    fence = "`" * max([3, *(len(ticks) + 1 for ticks in _TICKS.findall(text))])
    yield f"{fence}text"
    yield from (visible(each.expandtabs()) for each in redact_forms(text).split("\n"))
    yield fence


def _quoted(text: str) -> Iterator[str]:
    was_entry: bool | None = None
    for each in text.split("\n"):
        if not each.strip():
            was_entry = None
            yield ""
            continue
        entry = _ENTRY.fullmatch(each)
        if was_entry is not None and was_entry is not (entry is not None):
            yield ""  # otherwise the line would continue the previous paragraph or list item
        was_entry = entry is not None
        if entry is None:
            yield line(each, PROSE)
        else:
            mark = entry[1] if entry[1][0].isdigit() else "-"
            yield f"{mark} {line(entry[2], PROSE)}"


def item(label: Markdown, text: str, limit: int = PROSE) -> Markdown:
    """Return a list item: a label and a text that may have several lines."""
    block = prose(text, limit)
    if not block.startswith("> "):
        return Markdown(f"- {label} {block}" if label else f"- {block}")
    inside = "\n".join(f"  {each}" for each in block.split("\n"))
    return Markdown(f"- {label}\n\n{inside}" if label else f"- {inside.lstrip()}")


def items(entries: Sequence[Markdown], otherwise: str) -> Markdown:
    """Return a list, or `otherwise` if it is empty."""
    if not entries:
        return Markdown(otherwise)
    return Markdown("\n".join((*entries[:ROWS], *_more(len(entries), "- "))))


def texts(values: Sequence[str], otherwise: str) -> Markdown:
    """Return foreign texts as a list."""
    return items([item(Markdown(""), value) for value in values], otherwise)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], otherwise: str) -> Markdown:
    """Return a table, or `otherwise` if it has no rows; cells that are not `Markdown` are escaped."""
    if not rows:
        return Markdown(otherwise)
    cells: list[list[str]] = [
        list(head),
        ["---"] * len(head),
        *([str(cell(each)) for each in row] for row in rows[:ROWS]),
    ]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    more = [f"\n{each}" for each in _more(len(rows), "")]
    return Markdown("\n".join((*lines, *more)))


def _more(count: int, mark: str) -> Iterator[str]:
    if count > ROWS:
        yield f"{mark}… and {count - ROWS} more"


def fenced(text: str) -> Markdown:
    """Return a text verbatim, as a code block inside a quotation."""
    return Markdown("\n".join(f"> {each}".rstrip() for each in _verbatim(text.strip("\n")[:PROSE])))


def page(blocks: Iterable[Markdown], *, whole: str, limit: int = PAGE) -> str:
    """Join blocks to a page; blocks beyond the limit are left out, with a note at the end.

    `whole` says where the complete content is.
    """
    kept: list[str] = []
    size = left = 0
    for block in blocks:
        size += len(block) + 2
        if size > limit or left:
            left += 1
        else:
            kept.append(block)
    if left:
        kept.append(f"This page is cut: {left} more parts stand in {whole}.")
    return "\n\n".join(kept) + "\n"
