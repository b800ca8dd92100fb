"""A document held against its contract and its rules: every problem, but never more work than a document deserves.

A small hostile text can break a contract in a million places: where there are too many problems to list, the first are
listed and the rest are counted.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.catalog import Entry
from fairwitness.contracts.common.problems import Level, Problem
from fairwitness.rules.documents import document_problems
from fairwitness.rules.versions import version_place, version_warning
from fairwitness.rules.violations import problems_of

LISTED = 500
"""How many problems of one document are told."""

_SAMPLE = 20
"""How many entries of each list are looked at to find the first problems of a hopeless document."""


@cache
def adapter(entry: Entry) -> TypeAdapter[Any]:
    """The validator of a contract."""
    return TypeAdapter(entry.shape)


def problems_in(value: Any, entry: Entry, *, strict: bool) -> tuple[Problem, ...]:
    """Everything wrong with a plain value: what its schema refuses, or else what its rules say."""
    try:
        problems = document_problems(adapter(entry).validate_python(value))
        if not strict:
            problems = tuple(problem.model_copy(update={"level": Level.WARNING}) for problem in problems)
    except ValidationError as error:
        problems = _contract_problems(value, entry, error)
    return (*problems, *_version_warnings(value))


def _contract_problems(value: Any, entry: Entry, error: ValidationError) -> tuple[Problem, ...]:
    count = error.error_count()
    if count <= LISTED:
        return problems_of(value, error.errors(include_url=False))
    del error  # its list alone can be larger than all else
    sample = _sample(value)
    try:
        adapter(entry).validate_python(sample)
        first: tuple[Problem, ...] = ()
    except ValidationError as smaller:
        first = problems_of(sample, smaller.errors(include_url=False))
    return cut(first, count)


def cut(problems: tuple[Problem, ...] | list[Problem], count: int) -> tuple[Problem, ...]:
    """The problems, or the first of too many with the number of all."""
    if count <= LISTED:
        return tuple(problems)
    shown = tuple(problems[:LISTED])
    told = f"more than {LISTED} violations, the first {len(shown)} are listed"
    return (Problem(where=(), expected="a document that mostly fits", found=told), *shown)


def _sample(value: Any) -> Any:
    """The value with long lists and mappings cut short."""
    if isinstance(value, list):
        return [_sample(entry) for entry in value[:_SAMPLE]]
    if isinstance(value, dict):
        return {key: _sample(inner) for key, inner in list(value.items())[: _SAMPLE * 5]}
    return value


def _version_warnings(value: Any) -> tuple[Problem, ...]:
    place = version_place(value) if isinstance(value, dict) else None
    if place is None:
        return ()
    version = value
    for part in place:
        version = version[part]
    try:
        warning = version_warning(version, place)
    except ValueError:
        return ()  # not a version at all: the schema has said so already
    return (warning,) if warning is not None else ()
