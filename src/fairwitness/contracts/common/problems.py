"""Problems of a document, each with its place and what was expected, and how contracts raise several at once."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from fairwitness.contracts.common.base import Contract, Text

Path: TypeAlias = tuple[str | int, ...]
"""The path to a value in a document: `("payload", "tasks", 0, "risk")`."""


class ProblemLevel(StrEnum):
    """Whether a problem rejects the document or is only a warning."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Contract):
    """One problem of a document: its place, what was expected, and what was found."""

    where: Path
    expected: Text
    found: Text
    level: ProblemLevel = ProblemLevel.ERROR


def spell_path(path: Path) -> str:
    """Return a path in readable form.

    >>> spell_path(("payload", "tasks", 0, "risk"))
    'payload.tasks[0].risk'
    >>> spell_path(())
    '(document)'
    """
    spelled = ""
    for part in path:
        if isinstance(part, int):
            spelled += f"[{part}]"
        else:
            spelled += f".{part}" if spelled else part
    return spelled or "(document)"


class FieldRefusal(NamedTuple):
    """One invalid field: its place, what was expected, and what was found."""

    where: tuple[str | int, ...]
    expected: str
    found: object


def refuse_if_any(title: str, refusals: Iterable[FieldRefusal]) -> None:
    """Raise one error with all refusals, if there are any."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError("refused", "{expected}", {"expected": refusal.expected}),
            loc=refusal.where,
            input=refusal.found,
        )
        for refusal in refusals
    ]
    if details:
        raise ValidationError.from_exception_data(title, details)


class _HasId(Protocol):
    @property
    def id(self) -> str: ...


ItemT = TypeVar("ItemT", bound=_HasId)


def unique_ids(what: str) -> Callable[[tuple[ItemT, ...]], tuple[ItemT, ...]]:
    """Return a validator for a list whose entries must have different ids."""

    def check(items: tuple[ItemT, ...]) -> tuple[ItemT, ...]:
        seen: set[str] = set()
        repeated = []
        for index, item in enumerate(items):
            if item.id in seen:
                repeated.append(FieldRefusal((index, "id"), f"an id that no other {what} has", item.id))
            seen.add(item.id)
        refuse_if_any(what, repeated)
        return items

    return check


ROUNDING = 0.005
"""The tolerance for a written ratio, which is often rounded to two decimals."""


def expect(document: Contract, holds: bool, expected: str, *where: str) -> None:
    """Refuse the document unless the rule holds; `expected` is read after the word "expected", `where` is the field."""
    if holds:
        return
    found: Any = document.plain()
    for part in where:
        found = found.get(part)
    refuse_if_any(type(document).__name__, [FieldRefusal(where, expected, found)])


def is_ratio(value: float, part: int, whole: int) -> bool:
    """Return True if the value is part / whole, or 0 if whole is 0.

    >>> [is_ratio(0.8, 4, 5), is_ratio(0.67, 2, 3), is_ratio(1.0, 0, 0)]
    [True, True, False]
    """
    return abs(value - (part / whole if whole else 0.0)) <= ROUNDING
