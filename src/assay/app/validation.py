"""A document held against its contract and its rules: every problem, but never more work than a document deserves.

A small hostile text can break a contract in a million places. Documents to be checked have a tighter limit of values,
and where there are too many problems to list, the first are listed and the rest are counted.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError

from assay.app.violations import problems_of
from assay.contracts.catalog import Entry
from assay.contracts.common.problems import Level, Problem
from assay.kit.documents import Document, Format
from assay.kit.limits import Limits
from assay.rules.documents import document_problems
from assay.rules.versions import version_place, version_warning

CHECKED = Limits(nodes=10_000)
"""Agents' documents have some hundred values; this is where checking one stops being worth it."""

_LISTED = 500
"""How many problems of one document are told."""

_SAMPLE = 20
"""How many entries of each list are looked at to find the first problems of a hopeless document."""


@cache
def adapter(entry: Entry) -> TypeAdapter[Any]:
    """The validator of a contract."""
    return TypeAdapter(entry.shape)


def problems_in(document: Document, entry: Entry, *, strict: bool) -> tuple[Problem, ...]:
    """Everything wrong with a document; of JSON lines, with each line."""
    if document.format is not Format.JSONL:
        return _problems(document.value, entry, strict=strict)
    found: list[Problem] = []
    for index, value in enumerate(document.value):
        found += (
            problem.model_copy(update={"where": (index, *problem.where)})
            for problem in _problems(value, entry, strict=strict)
        )
        if len(found) > _LISTED:
            break
    return _cut(found, len(found))


def _problems(value: Any, entry: Entry, *, strict: bool) -> tuple[Problem, ...]:
    try:
        problems = document_problems(adapter(entry).validate_python(value))
        if not strict:
            problems = tuple(problem.model_copy(update={"level": Level.WARNING}) for problem in problems)
    except ValidationError as error:
        problems = _contract_problems(value, entry, error)
    return (*problems, *_version_warnings(value))


def _contract_problems(value: Any, entry: Entry, error: ValidationError) -> tuple[Problem, ...]:
    count = error.error_count()
    if count <= _LISTED:
        return problems_of(value, error.errors(include_url=False))
    del error  # its list alone can be larger than all else
    sample = _sample(value)
    try:
        adapter(entry).validate_python(sample)
        first: tuple[Problem, ...] = ()
    except ValidationError as smaller:
        first = problems_of(sample, smaller.errors(include_url=False))
    return _cut(first, count)


def _cut(problems: tuple[Problem, ...] | list[Problem], count: int) -> tuple[Problem, ...]:
    if count <= _LISTED:
        return tuple(problems)
    shown = tuple(problems[:_LISTED])
    told = f"more than {_LISTED} violations, the first {len(shown)} are listed"
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
