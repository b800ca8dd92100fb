"""The `##` sections of a Markdown text, and a validator for texts with required sections."""

import re

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_HEADING = re.compile(r" {0,3}##[ \t]+(.*)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)", re.DOTALL)


def split_sections(text: str) -> tuple[tuple[str, str], ...]:
    """Return the sections of a text in order: each second-level heading with the text up to the next one.

    Lines in a fenced code block are no headings.

    >>> split_sections("## Summary\\ntext\\n```\\n## not one\\n```\\n## Testing")
    (('Summary', 'text\\n```\\n## not one\\n```'), ('Testing', ''))
    """
    found: list[tuple[str, list[str]]] = []
    fence: str | None = None
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line) if fence is None else None
        if heading is not None:
            found.append((_heading_name(heading.group(1)), []))
        elif found:
            found[-1][1].append(line)
        fence = _fence_after(line, fence)
    return tuple((name, "\n".join(body)) for name, body in found)


def _heading_name(text: str) -> str:
    """Return a heading without white space and `#` at its end; one pattern for both takes quadratic time."""
    name = text.removesuffix("\r").rstrip(" \t")
    bare = name.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) else name


def _fence_after(line: str, fence: str | None) -> str | None:
    """Return the fence that is open after a line; it closes with at least as many of the same character and nothing
    else.
    """
    match = _FENCE.fullmatch(line)
    if match is None:
        return fence
    signs, rest = match.groups()
    if fence is None:
        return None if signs[0] == "`" and "`" in rest else signs
    closes = signs[0] == fence[0] and len(signs) >= len(fence) and not rest.strip()
    return None if closes else fence


def headings(body: str) -> tuple[str, ...]:
    """Return the second-level headings of a text, in order."""
    return tuple(name for name, _ in split_sections(body))


def first_missing(body: str, required: tuple[str, ...]) -> str | None:
    """Return the first required section that is missing or out of order, or None; other sections may come between."""
    present = iter(headings(body))
    for section in required:
        if section not in present:  # consumes `present`, so the order is checked as well
            return section
    return None


def body_with(*required: str) -> AfterValidator:
    """Return a validator for a text that has these sections in this order."""
    listed = ", ".join(required)

    def check(body: str) -> str:
        missing = first_missing(body, required)
        if missing is not None:
            raise PydanticCustomError(
                "sections",
                "the sections {listed} in this order (missing or out of turn: {missing})",
                {"listed": listed, "missing": missing},
            )
        return body

    return AfterValidator(check)
