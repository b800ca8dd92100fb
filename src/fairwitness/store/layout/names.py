"""Check ids before they become part of a path; an id that does not match its pattern raises `UnsafePath`."""

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
    """Return a single part of a path, checked."""
    if not is_safe_name(value):
        raise _unsafe(what, value)
    return value


def base_folder(value: str) -> str:
    """Return the configured base folder of a layout, checked."""
    problem = relative_path_problem(value)
    if problem is not None or value.endswith("/"):
        raise _unsafe("folder", value)
    return value


def slug(value: str) -> str:
    """Return a name in kebab case, checked."""
    return _matching("slug", Slug, value)


def feature_task(value: str) -> str:
    """Return the id of a task in a feature plan, checked."""
    return _matching("task id", TaskId, value)


def phase(value: str) -> str:
    """Return the id of a phase in a roadmap, checked."""
    return _matching("phase id", PhaseId, value)


def autopilot_run(value: str) -> str:
    """Return the id of an autopilot run, checked; it contains no character that is forbidden in a path."""
    return _matching("autopilot run id", AutopilotRunId, value)


def run(value: str) -> str:
    """Return the id of any run, checked and spelled for use in a path."""
    return safe_name("run id", run_ref(_matching("run id", RunId, value)))


def attempt(number: int) -> str:
    """Return the folder name of an attempt, counted from 1."""
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
