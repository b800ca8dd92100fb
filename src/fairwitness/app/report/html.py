"""HTML from values: text that is not `Html` is escaped, made visible, and limited in length."""

import html
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from fairwitness.kit.text import visible_lines

LONGEST = 2000
"""The maximum number of characters of one text."""
ROWS = 400
"""The maximum number of rows of one table; the others are counted."""
_VOID = frozenset({"meta", "br", "hr"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Html | str | int | None


def text(value: object, most: int = LONGEST) -> Html:
    """Return foreign text as escaped HTML.

    >>> text("<script>\\u202e\\x1b[2J")
    '&lt;script&gt;\\\\u202e\\\\x1b[2J'
    """
    said = str(value)
    shown = visible_lines(said[:most])
    left = len(said) - most
    return Html(html.escape(f"{shown}… ({left:,} more characters)" if left > 0 else shown))


def el(tag: str, *children: Child, **attributes: str | None) -> Html:
    """Return an element; `class_` is its class, and attributes that are None are omitted.

    >>> el("p", "a < b", el("br"), class_="x")
    '<p class="x">a &lt; b<br></p>'
    """
    listed = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if tag in _VOID:
        return Html(f"<{tag}{listed}>")
    inside = "".join(child if isinstance(child, Html) else text(child) for child in children if child is not None)
    return Html(f"<{tag}{listed}>{inside}</{tag}>")


def joined(parts: Iterable[Html]) -> Html:
    """Return several pieces joined."""
    return Html("".join(parts))


def code(value: object, most: int = LONGEST) -> Html:
    """Return a command, a hash or a path as code."""
    return el("code", text(value, most))


def word(state: str) -> Html:
    """Return a state as a word with a colour."""
    return el("b", state, class_=f"state {_KINDS.get(state.lower(), 'plain')}")


_KINDS = {
    **dict.fromkeys(("open", "passed", "pass", "done", "merged", "approve", "committed", "completed", "high"), "good"),
    **dict.fromkeys(("verified", "sound"), "good"),
    **dict.fromkeys(("shut", "failed", "fail", "blocker", "critical", "error", "low", "lost", "halted"), "bad"),
    **dict.fromkeys(("not to be trusted", "timeout", "violation", "abandoned", "out of budget"), "bad"),
    **dict.fromkeys(("revised", "needs_revision", "medium", "major", "low confidence", "waiting for you"), "warn"),
    **dict.fromkeys(("reverted", "stopped", "paused", "skipped", "claimed", "no source"), "warn"),
}


def moment(timestamp: str | None) -> Html | None:
    """Return a time in UTC to the second; other text is returned unchanged.

    >>> moment("2026-02-26T15:30:36.000000+01:00")
    '2026-02-26 14:30:36Z'
    """
    if timestamp is None:
        return None
    try:
        return Html(datetime.fromisoformat(timestamp).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ"))
    except ValueError:
        return text(timestamp, 60)


def folded(title: str, *children: Child) -> Html:
    """Return a section that the reader can unfold; it needs no script."""
    return el("details", el("summary", title), *children)


def agents_words(who: str, said: object) -> Html:
    """Return text of an agent in a box that is labelled as such."""
    label = el("span", f"written by {who}; a claim, not evidence", class_="label")
    return el("blockquote", label, el("pre", text(said)))


def table(head: Sequence[str], rows: Iterable[Sequence[Child]], *, nothing: str, more: str = "") -> Html:
    """Return a table, or `nothing` if it has no rows; `more` says where the omitted rows are."""
    shown: list[Html] = []
    left = 0
    for row in rows:
        if len(shown) < ROWS:
            shown.append(el("tr", *(el("td", cell if isinstance(cell, Html) else _cell(cell)) for cell in row)))
        else:
            left += 1
    if not shown:
        return el("p", nothing, class_="empty")
    titles = el("tr", *(el("th", title, scope="col") for title in head))
    drawn = el("div", el("table", el("thead", titles), el("tbody", *shown)), class_="wide")
    return joined((drawn, el("p", f"and {left:,} more rows: {more}", class_="empty"))) if left else drawn


def _cell(value: Child) -> Html:
    return el("span", "–", class_="none") if value in (None, "") else text(value)


def fields(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Return names with their values; names without a value are omitted."""
    return el("dl", *_fields(pairs))


def _fields(pairs: Iterable[tuple[str, Child]]) -> Iterator[Html]:
    for name, value in pairs:
        if value is not None and value != "":
            yield el("div", el("dt", name), el("dd", value))
