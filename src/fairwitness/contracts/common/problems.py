"""What a semantic check answers: every problem, each with its place and what was expected."""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from fairwitness.contracts.common.base import Contract, Text

Path: TypeAlias = tuple[str | int, ...]
"""The way to a value in a document: `("payload", "tasks", 0, "risk")`."""


class ProblemLevel(StrEnum):
    """Whether a problem refuses the document or is only worth saying."""

    ERROR = "error"
    WARNING = "warning"


class Problem(Contract):
    """One thing that is wrong, where it stands, and what should stand there."""

    where: Path
    expected: Text
    found: Text
    level: ProblemLevel = ProblemLevel.ERROR


def spell_path(path: Path) -> str:
    """A path as people write it.

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
    """One field that does not fit: its place, what was expected there, what stood there."""

    where: tuple[str | int, ...]
    expected: str
    found: object


def refuse_if_any(title: str, refusals: Iterable[FieldRefusal]) -> None:
    """Raises one error that holds every refusal; nothing if there is none."""
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
    """A validator for a list whose entries must have different ids."""

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
"""How far a written ratio may lie from the exact one: it is often kept with two decimals."""


def expect(document: Contract, holds: bool, expected: str, *where: str) -> None:
    """Refuse the document unless the rule holds; `expected` is read after the word "expected", `where` is the field."""
    if holds:
        return
    found: Any = document.plain()
    for part in where:
        found = found.get(part)
    refuse_if_any(type(document).__name__, [FieldRefusal(where, expected, found)])


def is_ratio(value: float, part: int, whole: int) -> bool:
    """True if the value is part / whole, or 0 of nothing.

    >>> [is_ratio(0.8, 4, 5), is_ratio(0.67, 2, 3), is_ratio(1.0, 0, 0)]
    [True, True, False]
    """
    return abs(value - (part / whole if whole else 0.0)) <= ROUNDING
