"""Foreign text made safe for a terminal, and numbers in few characters."""

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


def short_count(count: int) -> str:
    """Return a number of tokens in a few characters.

    >>> [short_count(count) for count in (0, 950, 12_345, 500_000, 5_000_000)]
    ['0', '950', '12k', '500k', '5.0M']
    """
    if count < 1000:
        return str(count)
    return f"{count // 1000}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "call"), counted(2000, "token")
    ('1 call', '2,000 tokens')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
