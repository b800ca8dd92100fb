"""Foreign text made safe for a terminal."""

from collections.abc import Iterator

# Durations are for the screens, which may not import kit.
from fairwitness.kit.durations import seconds_between as seconds_between
from fairwitness.kit.durations import took as took
from fairwitness.kit.text import visible, visible_lines

LONGEST = 160


def safe_lines(text: str) -> Iterator[str]:
    """Yield each line with control characters made visible."""
    yield from visible_lines(text).split("\n")


def safe_line(text: str, most: int = LONGEST) -> str:
    """Return text as one line without control characters, cut to `most` characters.

    >>> safe_line("a\\x1b[2J\\nb" + "c" * 9, 12)
    'a\\\\x1b[2J bc…'
    """
    line = visible(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
