"""Text in terminal columns: wide characters count as two, and text that does not fit is cut."""

import shutil
import unicodedata

WIDTH, NARROWEST = 80, 60


def terminal_width() -> int:
    """Return the number of terminal columns: eighty if unknown, and never too few to print anything."""
    return max(NARROWEST, shutil.get_terminal_size((WIDTH, 24)).columns)


def cells(text: str) -> int:
    """Return the number of columns that a text takes.

    >>> [cells(text) for text in ("abc", "進捗", "e\\u0301")]
    [3, 4, 1]
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text
    )


def cut(text: str, width: int) -> str:
    """Return the text in at most `width` columns, with an ellipsis if it was cut.

    >>> [cut("進捗 ok", width) for width in (7, 4)]
    ['進捗 ok', '進…']
    """
    return text if cells(text) <= width else f"{_head(text, width - 1)}…"


def _head(text: str, width: int) -> str:
    """Return the beginning that fits; combining characters stay with their base."""
    taken = 0
    for place, sign in enumerate(text):
        taken += cells(sign)
        if taken > width:
            return text[:place]
    return text


def padded(text: str, width: int) -> str:
    """Return the text in exactly `width` columns.

    >>> padded("進", 4) + "|"
    '進  |'
    """
    fitted = cut(text, width)
    return fitted + " " * (width - cells(fitted))


def wrapped(text: str, width: int, *, first: str = "", rest: str = "") -> list[str]:
    """Return the text in lines of at most `width` columns, each with its margin.

    >>> wrapped("to be or not to be", 9, first="- ", rest="  ")
    ['- to be', '  or not', '  to be']
    """
    lines: list[str] = []
    line = first
    is_empty = True
    for word in text.split():
        joined = f"{line}{word}" if is_empty else f"{line} {word}"
        if not is_empty and cells(joined) > width:
            lines.append(line)
            joined = f"{rest}{word}"
        while cells(joined) > width:  # a word longer than a line
            head = _head(joined, width)
            lines.append(head)
            joined = f"{rest}{joined[len(head) :]}"
        line, is_empty = joined, False
    return [*lines, line]


def age(seconds: float) -> str:
    """Return how long ago something was, in words.

    >>> [age(value) for value in (0.4, 12.9, 75, 3700, 200_000)]
    ['just now', '12s ago', '1m ago', '1h ago', '2d ago']
    """
    if seconds < 1:
        return "just now"
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    raise AssertionError("a second is a second")
