"""The `##` sections of a Markdown body, and bodies that must have some of them in a given order."""

import re

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

_HEADING = re.compile(r"## +(.+?)(?: +#+)? *")
_FENCE = re.compile(r" {0,3}(```+|~~~+)")


def headings(body: str) -> tuple[str, ...]:
    """The second-level headings of a text, in order; what stands in a code block is no heading.

    >>> headings("## Summary\\ntext\\n```\\n## not one\\n```\\n## Testing\\n")
    ('Summary', 'Testing')
    """
    found = []
    fence = ""
    for line in body.split("\n"):
        mark = _FENCE.match(line)
        if mark is not None and not fence:
            fence = mark.group(1)
        elif mark is not None and mark.group(1).startswith(fence):
            fence = ""
        elif not fence and (heading := _HEADING.fullmatch(line)) is not None:
            found.append(heading.group(1))
    return tuple(found)


def first_missing(body: str, required: tuple[str, ...]) -> str | None:
    """The first required section that does not stand in its turn, or None; other sections may stand between."""
    present = iter(headings(body))
    for section in required:
        if section not in present:  # consumes `present`, so the order is checked as well
            return section
    return None


def body_with(*required: str) -> AfterValidator:
    """The validator of a body that has these sections in this order."""
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
