"""Markdown with YAML front matter: the fields and, as `body`, the text after them."""

import re
from collections.abc import Iterable
from typing import Any

from fairwitness.errors import BadDocument, Position
from fairwitness.kit import yaml_text
from fairwitness.kit.limits import DEFAULT_LIMITS, DocumentLimits
from fairwitness.kit.text import Marks, Way, position_at, refuse_control

BODY = "body"
_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


def _split(text: str) -> tuple[str, str]:
    opening = _FENCE.match(text)
    if opening is None:
        raise BadDocument("the document must begin with a line of three dashes (---)", Position(1, 1))
    closing = _FENCE.search(text, opening.end())
    if closing is None:
        raise BadDocument("the front matter is never closed by a second line of three dashes (---)", Position(1, 1))
    # The newline of the opening fence stays in the front matter, so that line numbers match the file.
    return text[opening.end() : closing.start()], text[closing.end() :].removeprefix("\n")


def parse(text: str, limits: DocumentLimits = DEFAULT_LIMITS) -> dict[str, Any]:
    """Return the fields of the front matter and `body`."""
    head, body = _split(text)
    value = yaml_text.parse(head, limits)
    if not isinstance(value, dict):
        raise BadDocument("the front matter must be a mapping of fields", Position(2, 1))
    if BODY in value:
        raise BadDocument(f"a front matter field may not be called {BODY!r}", yaml_text.marks(head, [(BODY,)])[BODY,])
    return {**value, BODY: body}


def marks(text: str, ways: Iterable[Way]) -> Marks:
    """Return the positions of some fields of an accepted document; `body` is the line after the front matter."""
    head, _ = _split(text)
    found = yaml_text.marks(head, ways)
    found[()] = Position(1, 1)
    found[BODY,] = Position(head.count("\n") + 2, 1)
    return found


def render(value: dict[str, Any]) -> str:
    """Return the document of some fields and `body`; raise `BadDocument` for a body that could not be read back."""
    body = value[BODY]
    refuse_control(body)
    if "\r" in body:
        raise BadDocument("a carriage return in the body is refused", position_at(body, body.index("\r")))
    head = {key: field for key, field in value.items() if key != BODY}
    return f"---\n{yaml_text.render(head)}---\n{body}"
