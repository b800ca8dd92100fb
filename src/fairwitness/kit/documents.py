"""Read and write documents of every format as plain values, and find the position of a value in the text."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from fairwitness.errors import BadDocument, Position
from fairwitness.kit import front_matter, json_text, yaml_text
from fairwitness.kit.limits import DEFAULT_LIMITS, DocumentLimits
from fairwitness.kit.text import Marks, Way, decode


class Format(StrEnum):
    """The four document formats."""

    YAML = "yaml"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"


SUFFIXES = {
    ".yaml": Format.YAML,
    ".yml": Format.YAML,
    ".json": Format.JSON,
    ".jsonl": Format.JSONL,
    ".md": Format.MARKDOWN,
}

_PARSERS: dict[Format, Callable[[str, DocumentLimits], Any]] = {
    Format.YAML: yaml_text.parse,
    Format.JSON: json_text.parse,
    Format.JSONL: json_text.parse_lines,
    Format.MARKDOWN: front_matter.parse,
}
_MARKERS: dict[Format, Callable[[str, Iterable[Way]], Marks]] = {
    Format.YAML: yaml_text.marks,
    Format.JSON: json_text.marks,
    Format.JSONL: json_text.marks_of_lines,
    Format.MARKDOWN: front_matter.marks,
}


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed document: its value, and its text for finding positions."""

    value: Any
    format: Format
    text: str

    def positions(self, paths: list[Way]) -> list[Position]:
        """Return the positions of some values; a value that does not exist gets the position of its nearest parent."""
        marks = _MARKERS[self.format](self.text, paths)
        return [_nearest(marks, path) for path in paths]


def _nearest(marks: Marks, path: Way) -> Position:
    while path and path not in marks:
        path = path[:-1]
    return marks.get(path, Position(1, 1))


def read(data: bytes, form: Format, *, source: str = "", limits: DocumentLimits = DEFAULT_LIMITS) -> Document:
    """Return the parsed document; raise only `BadDocument` if it is not acceptable."""
    try:
        text = decode(data, limits)
        return Document(_PARSERS[form](text, limits), form, text)
    except BadDocument as error:
        raise BadDocument(error.reason, error.position, source=source) from None


def render(value: Any, form: Format) -> str:
    """Return plain values as readable text in a format."""
    match form:
        case Format.YAML:
            return yaml_text.render(value)
        case Format.JSON:
            return json_text.render(value)
        case Format.JSONL:
            return "".join(json_text.render_line(item) + "\n" for item in value)
        case Format.MARKDOWN:
            return front_matter.render(value)
