"""HTML from values: text that is not `Html` is escaped, made visible, and limited in length."""

import html
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from fairwitness.kit.redaction import LONGEST as SECRET
from fairwitness.kit.redaction import redact
from fairwitness.kit.text import visible_lines

LONGEST = 2000
"""The maximum number of characters of one text."""
ROWS = 400
LARGEST_TABLE = 40_000
"""The maximum number of rows and of characters of one table; the other rows are counted."""
_VOID = frozenset({"meta", "br", "hr"})


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Child = Html | str | int | None
NONE = Html("")


def text(value: object, most: int = LONGEST) -> Html:
    """Return foreign text as escaped HTML.

    >>> text("<script>\\u202e\\x1b[2J")
    '&lt;script&gt;\\\\u202e\\\\x1b[2J'
    """
    said = str(value)
    shown = visible_lines(redact(said[: most + SECRET])[:most])
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
    **dict.fromkeys(("verified", "intact", "met", "proceed"), "good"),
    **dict.fromkeys(("blocked", "failed", "fail", "blocker", "critical", "error", "low", "lost", "halted"), "bad"),
    **dict.fromkeys(("not to be trusted", "timeout", "violation", "out of budget", "unmet", "checks failed"), "bad"),
    **dict.fromkeys(("revised", "needs_revision", "medium", "major", "low confidence", "waiting for you"), "warn"),
    **dict.fromkeys(("reverted", "stopped", "paused", "skipped", "claimed", "no source", "abandoned"), "warn"),
    **dict.fromkeys(("not run", "not judged", "not begun"), "warn"),
}


def moment(timestamp: str | None) -> Html | None:
    """Return a time in UTC to the second; other text is returned unchanged.

    >>> moment("2026-02-26T15:30:36.000000+01:00")
    '<span class="state">2026-02-26 14:30:36Z</span>'
    """
    if timestamp is None:
        return None
    try:
        shown = datetime.fromisoformat(timestamp).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    except ValueError:
        return text(timestamp, 60)
    return el("span", shown, class_="state")


def folded(title: Child, *children: Child, is_raw: bool = False, is_open: bool = False) -> Html:
    """Return a part that the reader can unfold without a script; raw evidence stays folded in print."""
    return el(
        "details", el("summary", title), *children, class_="raw" if is_raw else None, open="" if is_open else None
    )


def table(
    head: Sequence[str],
    rows: Iterable[Sequence[Child]],
    *,
    nothing: str,
    more: str = "",
    most: int = LARGEST_TABLE,
    is_wide: bool = False,
) -> Html:
    """Return a table, or `nothing` if it has no rows; `more` says where the omitted rows are.

    On a phone each row becomes a block, where every value has its title. A wide table scrolls instead.
    """
    shown: list[Html] = []
    size = left = 0
    for row in rows:
        if size >= most or len(shown) >= ROWS:
            left += 1
            continue
        titles = (None,) * len(row) if is_wide else head
        shown.append(el("tr", *(el("td", _cell(cell), data_of=of) for cell, of in zip(row, titles, strict=True))))
        size += len(shown[-1])
    if not shown and not left:
        return el("p", nothing, class_="soft")
    titled = el("thead", el("tr", *(el("th", title, scope="col") for title in head)))
    drawn = el("div", el("table", titled, el("tbody", *shown)), class_="wide" if is_wide else "cards")
    return joined((drawn, el("p", f"and {left:,} more rows: {more}", class_="soft"))) if left else drawn


def _cell(value: Child) -> Html:
    if isinstance(value, Html):
        return value
    return el("span", "–", class_="soft") if value in (None, "") else text(value)


def fields(pairs: Iterable[tuple[str, Child]]) -> Html:
    """Return names with their values; names without a value are omitted."""
    named = (el("div", el("dt", name), el("dd", value)) for name, value in pairs if value is not None and value != "")
    return el("dl", *named)


def soft(*children: Child) -> Html:
    """Return a paragraph of minor importance."""
    return el("p", *children, class_="soft")
