"""The two base classes of documents, and the scalar types of their fields.

Scalars are strict: `"3"` is no number, `1` is no boolean, `8` is no decimal score. Containers are tuples, so a contract
is immutable. A field typed `X | None` is required, even if it is null; a field typed `Maybe[X] = None` may be omitted,
and is omitted when written.
"""

import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, WithJsonSchema
from pydantic_core import PydanticCustomError

T = TypeVar("T")


class Contract(BaseModel):
    """An immutable document that only Fair Witness writes, or a part of one; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", serialize_by_alias=True, defer_build=True)

    def plain(self) -> dict[str, Any]:
        """Return the document as plain JSON values, in the order of its fields."""
        return self.model_dump(mode="json")


class AgentDocument(Contract):
    """A document that an agent writes; unknown fields are kept and ignored."""

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
"""Text with at least one character that is not white space."""
Prose = str
"""Text that may be empty."""
Texts = tuple[Text, ...]


def _one_line(value: str) -> str:
    line = value.strip()
    if (
        len(line.splitlines()) != 1
    ):  # also rejects none: some characters are white space to strip(), but not to a pattern
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
"""Kept as written, so that reading and writing a document does not change it."""


def instant(timestamp: str) -> datetime:
    """Return the moment of a timestamp.

    >>> instant("2026-02-26T14:30:00Z") == instant("2026-02-26T15:30:00+01:00")
    True
    """
    return datetime.fromisoformat(timestamp)


def _not_a_truth_value(value: object) -> object:
    if isinstance(value, bool | float):
        raise PydanticCustomError("whole_number", "a whole number or a word")
    return value


WholeLiteral = BeforeValidator(_not_a_truth_value)
"""For literals with numbers: Python's `True` and 1.0 equal 1."""


def _only_a_truth_value(value: object) -> object:
    if not isinstance(value, bool):
        raise PydanticCustomError("truth_value", "true or false")
    return value


TruthLiteral = BeforeValidator(_only_a_truth_value)
"""For literals with a boolean."""


def _decimal(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        raise PydanticCustomError("decimal", "a decimal number such as 8.2 (an integer is refused)")
    return value


Score = Annotated[float, Strict(), Field(ge=0, le=10, allow_inf_nan=False), BeforeValidator(_decimal)]
"""A score of 0.0 to 10.0, written with a decimal point: 8.0 is valid, 8 is not."""


def _one_decimal(value: float) -> float:
    if round(value, 1) != value:
        raise PydanticCustomError("one_decimal", "a score with exactly one decimal, such as 7.3")
    return value


AlignmentScore = Annotated[Score, AfterValidator(_one_decimal)]

_VERSION = r"^[0-9]{1,4}\.[0-9]{1,4}$"
SchemaVersion = Annotated[str, Field(pattern=_VERSION)]
"""Any version is accepted; `rules.validation` warns about an unknown major version."""
