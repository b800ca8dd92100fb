"""The two kinds of document and the scalars they are made of.

Scalars are strict: `"3"` is no number, `1` is no truth value, `8` is no decimal score. Containers are tuples, so a
contract is a value through and through. A field typed `X | None` must be said, even if it says null; a field typed
`Maybe[X] = None` may be left out, and is left out again when written.
"""

import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

T = TypeVar("T")


class Contract(BaseModel):
    """A closed, frozen value: a file that only Fair Witness writes, or a part of one."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True)

    def plain(self) -> dict[str, Any]:
        """The document as plain values, in the order of its fields."""
        return self.model_dump(mode="json")


class AgentDocument(Contract):
    """A document an agent writes: fields we do not know are kept and ignored."""

    model_config = ConfigDict(extra="allow")


def _is_none(value: object) -> bool:
    return value is None


Maybe = Annotated[T | None, Field(exclude_if=_is_none)]

Count = Annotated[int, Strict(), Field(ge=0)]
Positive = Annotated[int, Strict(), Field(ge=1)]
Integer = Annotated[int, Strict()]
Flag = Annotated[bool, Strict()]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]
Amount = Annotated[float, Strict(), Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(pattern=r"\S")]
"""Text that says something: at least one character that is not white space."""
Prose = str
"""Text that may be empty."""
Texts = tuple[Text, ...]


def _one_line(value: str) -> str:
    line = value.strip()
    if len(line.splitlines()) != 1:  # also none: some signs are no white space to a pattern, but are to strip()
        raise PydanticCustomError("one_line", "one line of text")
    return line


OneLine = Annotated[Text, AfterValidator(_one_line)]
Summary = Annotated[str, Field(pattern=r"\S", max_length=200), AfterValidator(_one_line)]

_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _timestamp(value: str) -> str:
    try:
        if _TIMESTAMP.fullmatch(value) is None:
            raise ValueError
        datetime.fromisoformat(value)
    except ValueError:
        raise PydanticCustomError(
            "timestamp", "an ISO 8601 time with seconds and zone, such as 2026-02-26T14:30:00Z"
        ) from None
    return value


Timestamp = Annotated[
    str,
    AfterValidator(_timestamp),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""Kept as it was written, so that what is read is what is written again."""


def instant(timestamp: str) -> datetime:
    """The moment a timestamp names.

    >>> instant("2026-02-26T14:30:00Z") == instant("2026-02-26T15:30:00+01:00")
    True
    """
    return datetime.fromisoformat(timestamp)


def _not_a_truth_value(value: object) -> object:
    if isinstance(value, bool | float):
        raise PydanticCustomError("whole_number", "a whole number or a word")
    return value


WholeLiteral = BeforeValidator(_not_a_truth_value)
"""For literals that hold numbers: to Python `True` equals 1 and so does 1.0."""


def _only_a_truth_value(value: object) -> object:
    if not isinstance(value, bool):
        raise PydanticCustomError("truth_value", "true or false")
    return value


TruthLiteral = BeforeValidator(_only_a_truth_value)
"""For literals that hold a truth value."""


def _decimal(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        raise PydanticCustomError("decimal", "a decimal number such as 8.2 (an integer is refused)")
    return value


Score = Annotated[float, Strict(), Field(ge=0, le=10, allow_inf_nan=False), BeforeValidator(_decimal)]
"""A score of 0.0 to 10.0 that was written with its decimal: 8.0 is one, 8 is not."""


def _one_decimal(value: float) -> float:
    if round(value, 1) != value:
        raise PydanticCustomError("one_decimal", "a score with exactly one decimal, such as 7.3")
    return value


AlignmentScore = Annotated[Score, AfterValidator(_one_decimal)]

_VERSION = r"^[0-9]{1,4}\.[0-9]{1,4}$"
SchemaVersion = Annotated[str, Field(pattern=_VERSION)]
"""Any version parses; `rules.versions` warns about a major version nobody here knows."""
