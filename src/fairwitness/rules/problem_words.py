"""Problems of a document in sentences: what the validator of a contract complains about, place by place.

Apart from `validation`, which knows the contracts of every document: settings are read before any document is.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from fairwitness.contracts.common.problems import Path, Problem

LISTED = 500
"""How many problems of one document are told."""

_SHORT = 60

_EXPECTED = {
    "missing": "this field",
    "extra_forbidden": "no such field",
    "string_type": "text (quote it if it looks like a number)",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
    "dict_type": "a mapping of fields",
    "tuple_type": "a list",
    "list_type": "a list",
    "none_required": "null",
}


def problems_of(value: Any, errors: Iterable[ErrorDetails]) -> tuple[Problem, ...]:
    """One problem for each complaint about a plain value, in the order of the document."""
    return tuple(
        Problem(where=_place(value, error), expected=_expected(error), found=_found(error))
        for error in errors
        if not _is_echo(error)
    )


def _is_echo(error: ErrorDetails) -> bool:
    """True when a list is only called too short because the validator does not count its bad entries."""
    return error["type"] == "too_short" and len(error["input"]) >= error["ctx"]["min_length"]


def _place(value: Any, error: ErrorDetails) -> Path:
    """The complaint's way through the real document: names of union members on the way are passed over."""
    path: list[str | int] = []
    *parents, last = error["loc"] or ("",)
    for part in parents:
        inside = _inside(value, part)
        if inside is not None:
            path.append(part)
            value = inside[0]
    if error["type"] in ("missing", "refused") or _inside(value, last) is not None:
        path.append(last)
    discriminator = error.get("ctx", {}).get("discriminator")
    if error["type"].startswith("union_tag") and discriminator is not None:
        path.append(str(discriminator).strip("'"))
    return tuple(path)


def _inside(value: Any, part: str | int) -> tuple[Any] | None:
    if isinstance(value, Mapping) and part in value:
        return (value[part],)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return (value[part],)
    return None


def _expected(error: ErrorDetails) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    match kind:
        case "enum" | "literal_error":
            return f"{context['expected']}"
        case "union_tag_invalid":
            return f"one of {context['expected_tags']}"
        case "union_tag_not_found":
            return "this field"
        case "string_too_long":
            return f"at most {context['max_length']} characters"
        case "string_pattern_mismatch":
            return "text that is not blank" if context["pattern"] == r"\S" else f"text like {context['pattern']}"
        case "too_short":
            return f"at least {context['min_length']} {'entry' if context['min_length'] == 1 else 'entries'}"
        case "too_long":
            return f"at most {context['max_length']} entries"
        case "greater_than_equal":
            return f"at least {context['ge']}"
        case "greater_than":
            return f"more than {context['gt']}"
        case "less_than_equal":
            return f"at most {context['le']}"
        case "less_than":
            return f"less than {context['lt']}"
        case _:
            return error["msg"]


def _found(error: ErrorDetails) -> str:
    kind = error["type"]
    if kind in ("missing", "union_tag_not_found"):
        return "nothing"
    value = error["input"]
    if kind == "union_tag_invalid":
        return _spell(error.get("ctx", {}).get("tag"))
    if kind == "string_too_long":
        return f"{len(value)} characters"
    return _spell(value)


def _spell(value: Any) -> str:
    """A found value in a few words, harmless to a terminal."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value if value.isprintable() else repr(value)[1:-1]
        return f"'{text}'" if len(text) <= _SHORT else f"'{text[:_SHORT]}…'"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list | tuple):
        return "an empty list" if not value else f"a list of {len(value)}"
    return "a mapping"


def cut(problems: tuple[Problem, ...] | list[Problem], count: int) -> tuple[Problem, ...]:
    """The problems, or the first of too many with the number of all."""
    if count <= LISTED:
        return tuple(problems)
    shown = tuple(problems[:LISTED])
    told = f"more than {LISTED} violations, the first {len(shown)} are listed"
    return (Problem(where=(), expected="a document that mostly fits", found=told), *shown)
