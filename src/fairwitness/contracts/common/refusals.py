"""How a contract refuses a value for reasons that concern several fields: all of them at once, each at its place."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError


class Refusal(NamedTuple):
    """One field that does not fit: its place, what was expected there, what stood there."""

    where: tuple[str | int, ...]
    expected: str
    found: object


def refuse_if_any(title: str, refusals: Iterable[Refusal]) -> None:
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
                repeated.append(Refusal((index, "id"), f"an id that no other {what} has", item.id))
            seen.add(item.id)
        refuse_if_any(what, repeated)
        return items

    return check
