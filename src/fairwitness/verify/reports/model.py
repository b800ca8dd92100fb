"""What the readers of reports share: reported items, and functions that make texts safe as ids and messages."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from fairwitness.contracts.verify.results import ItemOutcome
from fairwitness.kit.redaction import LONGEST, redact
from fairwitness.verify.reports.exits import ReportingTool

ID_LENGTH = 1000
MESSAGE_LENGTH = 2000
_CONTAINERS = 4_000_000
"""Maximum of lists and objects in one JSON report, to bound memory."""
_READ_OF_A_MESSAGE = 4 * MESSAGE_LENGTH

_ANSI = re.compile(r"\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\^_]")
_LINE_NUMBER = re.compile(r"\b(lines?) \d+")
T = TypeVar("T")

TORN = "the report is truncated: its last line has no end"


@dataclass(slots=True)
class ParsedItem:
    """One test or diagnostic as the tool named it, before equal names are numbered."""

    id: str
    outcome: ItemOutcome
    path: str | None = None
    line: int | None = None
    message: str = ""
    tolerated: bool = False
    """A warning: it does not make the tool fail, unless the tool is configured to fail on warnings."""


@dataclass(slots=True)
class ParsedReport:
    """The content of a report: its tool, items and problems."""

    tool: ReportingTool
    items: list[ParsedItem] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class JsonReportPart(BaseModel):
    """A part of a JSON report: only the fields that are read, each of exactly the type the tool documents."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Relative:
    """Removes the project's folder from texts, so that they are the same in every checkout."""

    def __init__(self, root: str) -> None:
        folder = root.rstrip("/")
        # a relative folder could match in the middle of unrelated words
        self._root = folder + "/" if folder.startswith("/") else None
        if self._root is not None:
            before = r"(?<![\w./-])(?:file://)?"
            self._below = re.compile(before + re.escape(self._root))
            self._itself = re.compile(before + re.escape(folder) + r"(?![\w./-])")

    def __call__(self, text: str) -> str:
        """Return the text with every path below the root made relative to it."""
        if self._root is None or self._root[:-1] not in text:
            return text
        return self._itself.sub(".", self._below.sub("", text))

    def path(self, path: str) -> str:
        """Return a path relative to the root, if it lies below it."""
        relative = self(path)
        while relative.startswith("./"):
            relative = relative[2:].lstrip("/")
        return relative


def lines(text: str) -> Iterator[str]:
    """Yield the lines of a text one by one, without their ends; only a line feed ends a line."""
    for line in io.StringIO(text, newline="\n"):
        yield line.removesuffix("\n")


def without_colours(text: str) -> str:
    """Return the text without terminal codes."""
    return _ANSI.sub("", text) if "\x1b" in text else text


def spelled(text: str, limit: int = ID_LENGTH) -> str:
    """Return a text as a name: one line, nothing that a terminal would act on or hide, of bounded length.

    What is cut off still counts: a hash of the whole keeps two long names apart.
    """
    text = without_colours(text)
    if not text.isprintable():
        text = "".join(sign if sign.isprintable() else " " if sign.isspace() else "" for sign in text)
    text = text.strip()
    if len(text) <= limit:
        return text
    return f"{text[: limit - 13]}~{sha256(text.encode()).hexdigest()[:12]}"


def message(text: str) -> str:
    """Return a text as a message: its beginning, on one line, without secrets."""
    beginning = redact(without_colours(text[: _READ_OF_A_MESSAGE + LONGEST]))[:_READ_OF_A_MESSAGE]
    return " ".join(spelled(beginning, _READ_OF_A_MESSAGE).split())[:MESSAGE_LENGTH]


def first_line(text: str) -> str:
    """Return the first line that is not blank."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def diagnostic(
    path: str | None, line: int | None, code: str, text: str, *, relative: Relative, tolerated: bool = False
) -> ParsedItem:
    """Return a diagnostic with an id that does not change when lines move."""
    place = None if path is None else relative.path(path)
    said = relative(text)
    steady = _LINE_NUMBER.sub(r"\1 N", " ".join(said.split()))
    return ParsedItem(
        id=":".join(part for part in (place, code, steady) if part),
        outcome=ItemOutcome.SKIPPED if tolerated else ItemOutcome.FAILED,
        path=place,
        line=line,
        message=said,
        tolerated=tolerated,
    )


def whole_number(digits: str | None) -> int | None:
    """Return the number of some digits; None if they are not a number or it is too large."""
    if digits is None or not digits.isascii() or not digits.isdigit() or len(digits) > 12:
        return None
    return int(digits)


class InvalidJsonReport(Exception):
    """A text is not the JSON document that the tool documents."""


def read_json(text: str, shape: TypeAdapter[T]) -> T:
    """Return the value of a JSON report in its documented shape; `InvalidJsonReport` with the reason otherwise."""
    if text.count("{") + text.count("[") > _CONTAINERS:
        raise InvalidJsonReport(f"more than {_CONTAINERS} lists and objects")
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
        return shape.validate_python(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step) for step in first["loc"]) or "the document"
        raise InvalidJsonReport(f"{place}: {first['msg'].lower()}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidJsonReport(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key occurs twice in one object")
    return value


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def listed(names: Iterable[str], most: int = 3) -> str:
    """Return the first few names and the number of the rest, for a message."""
    all_ = list(names)
    return ", ".join(all_[:most]) + (f" and {len(all_) - most} more" if len(all_) > most else "")
