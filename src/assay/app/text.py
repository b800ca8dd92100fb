"""Text of others, safe for a terminal."""

from collections.abc import Iterator

from assay.kit.text import visible_lines


def safe_lines(text: str) -> Iterator[str]:
    """Each line with everything a terminal would act on spelled out."""
    yield from visible_lines(text).split("\n")
