"""Text of others, safe for a terminal."""

from collections.abc import Iterator

from fairwitness.kit.text import visible, visible_lines

LONGEST = 160


def safe_lines(text: str) -> Iterator[str]:
    """Each line with everything a terminal would act on spelled out."""
    yield from visible_lines(text).split("\n")


def safe_line(text: str, most: int = LONGEST) -> str:
    """Text of others for one line of a terminal: nothing in it is acted upon, and it has an end.

    >>> safe_line("a\\x1b[2J\\nb" + "c" * 9, 12)
    'a\\\\x1b[2J bc…'
    """
    line = visible(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
