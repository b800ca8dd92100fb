"""Ids on their way into a path: what does not match its pattern never gets there."""

import functools
from typing import Any

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.common.ids import (
    AutopilotRunId,
    PhaseId,
    RunId,
    Slug,
    TaskId,
    attempt_name,
    is_safe_name,
    relative_path_problem,
    run_ref,
)
from fairwitness.errors import UnsafePath


def safe_name(what: str, value: str) -> str:
    """One part of a path."""
    if not is_safe_name(value):
        raise _unsafe(what, value)
    return value


def base_folder(value: str) -> str:
    """The folder that a setting puts a layout under."""
    problem = relative_path_problem(value)
    if problem is not None or value.endswith("/"):
        raise _unsafe("folder", value)
    return value


def slug(value: str) -> str:
    """A name in kebab case."""
    return _matching("slug", Slug, value)


def feature_task(value: str) -> str:
    """A task of a feature plan."""
    return _matching("task id", TaskId, value)


def phase(value: str) -> str:
    """A phase of a roadmap."""
    return _matching("phase id", PhaseId, value)


def autopilot_run(value: str) -> str:
    """A run of a roadmap; its id has no sign that a path forbids."""
    return _matching("autopilot run id", AutopilotRunId, value)


def run(value: str) -> str:
    """Any run, spelled for a path."""
    return safe_name("run id", run_ref(_matching("run id", RunId, value)))


def attempt(number: int) -> str:
    """An attempt, counted from 1."""
    if type(number) is not int or number < 1:
        raise _unsafe("attempt number", number)
    return attempt_name(number)


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[str]:
    return TypeAdapter(kind)


def _matching(what: str, kind: Any, value: str) -> str:
    try:
        return _adapter(kind).validate_python(value, strict=True)
    except ValidationError:
        raise _unsafe(what, value) from None


def _unsafe(what: str, value: object) -> UnsafePath:
    return UnsafePath(
        f"{value!r} is not a {what} that can stand in a path", next_step=f"give the {what} as it was made"
    )
