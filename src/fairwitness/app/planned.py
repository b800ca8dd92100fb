"""The files a plan declares: a task document, a plan with its tasks beside it, or a plain list of files."""

from pathlib import Path
from typing import Any

from fairwitness.errors import BadDocument, NotStored, UsageError
from fairwitness.kit import files
from fairwitness.kit.documents import SUFFIXES, Format, read
from fairwitness.kit.limits import DEFAULT_LIMITS

SHAPES = "`files: [...]`, a task document, or a plan-output.yaml with its tasks/ beside it"


def declared_files(plan: Path) -> tuple[str, ...]:
    """Paths and patterns that the plan allows to change."""
    value = _value(plan)
    declared = _of_task(value)
    if declared is None and _is_plan(value):
        listed = sorted((plan.parent / "tasks").glob("*.yaml"))
        found = [_of_task(_value(path)) for path in listed]
        declared = [path for each in found for path in each or []]
    if not declared:
        raise UsageError(f"{plan} declares no files", next_step=f"give {SHAPES}")
    return tuple(dict.fromkeys(declared))


def _is_plan(value: dict[str, Any]) -> bool:
    output = value.get("agent_output")
    return isinstance(output, dict) and "payload" in output


def _value(path: Path) -> dict[str, Any]:
    try:
        content = files.read_given(path, limit=DEFAULT_LIMITS.bytes)
    except NotStored:
        raise UsageError(f"there is no plan at {path}", next_step="check the path") from None
    try:
        value = read(content, SUFFIXES.get(path.suffix, Format.YAML), source=str(path)).value
    except BadDocument as error:
        raise UsageError(error.what, next_step=f"give {SHAPES}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{path} is not a plan", next_step=f"give {SHAPES}")
    return value


def _of_task(value: dict[str, Any]) -> list[str] | None:
    """The files of a task document, or of a plain list; None if it is neither."""
    task = value.get("task")
    context = task.get("relevant_context") if isinstance(task, dict) else None
    listed = context.get("files_to_modify") if isinstance(context, dict) else value.get("files")
    if not isinstance(listed, list):
        return None
    paths = [one.get("path") if isinstance(one, dict) else one for one in listed]
    return [path for path in paths if isinstance(path, str) and path]
