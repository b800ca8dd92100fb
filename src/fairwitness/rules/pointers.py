"""Pointers such as `design-output.yaml#payload.decisions[id='D-8']`: found in plain documents, or said to be dead."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.common.problems import Level, Problem
from fairwitness.contracts.feature.task import TaskDocument

_STEP = re.compile(r"(?P<name>[A-Za-z0-9_]+)(?:\[(?P<key>[A-Za-z0-9_]+)='(?P<value>[^']+)'\])?(?:\.|$)")


class Found(NamedTuple):
    """The section a pointer names."""

    value: object


class Dead(NamedTuple):
    """Why a pointer leads nowhere."""

    reason: str


def resolve_pointer(pointer: str, documents: Mapping[str, object]) -> Found | Dead:
    """The section that a pointer names in documents given by file name.

    >>> design = {"agent_output": {"payload": {"decisions": [{"id": "D-8", "title": "Risk"}]}}}
    >>> resolve_pointer("design-output.yaml#payload.decisions[id='D-8'].title", {"design-output.yaml": design})
    Found(value='Risk')
    """
    file, _, path = pointer.partition("#")
    if file not in documents:
        return Dead(f"there is no document {file}")
    value = documents[file]
    # Pointers begin at the payload; in signed documents that stands under the header.
    if isinstance(value, Mapping) and "payload" not in value and "agent_output" in value:
        value = value["agent_output"]
    offset = 0
    while offset < len(path):
        step = _STEP.match(path, offset)
        if step is None:
            return Dead(f"'{path[offset:]}' is not a path")
        offset = step.end()
        name, key, wanted = step.group("name", "key", "value")
        if not isinstance(value, Mapping) or name not in value:
            return Dead(f"there is no field '{name}'")
        value = value[name]
        if key is not None:
            entry = _entry(value, key, wanted)
            if entry is None:
                return Dead(f"no entry of '{name}' has {key}='{wanted}'")
            value = entry
    return Found(value)


def _entry(value: object, key: str, wanted: str) -> object | None:
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    for entry in value:
        if isinstance(entry, Mapping) and entry.get(key) == wanted:
            return entry
    return None


def pointer_problems(document: TaskDocument, documents: Mapping[str, object]) -> tuple[Problem, ...]:
    """Every pointer of a task that leads nowhere; a warning, for a dead pointer is no licence to read more."""
    context = document.task.relevant_context
    problems = []
    for field, pointers in (
        ("design_sections", context.design_sections),
        ("spec_requirements", context.spec_requirements),
    ):
        for index, pointer in enumerate(pointers):
            answer = resolve_pointer(pointer, documents)
            if isinstance(answer, Dead):
                problems.append(
                    Problem(
                        where=("task", "relevant_context", field, index),
                        expected=f"a pointer that leads somewhere ({answer.reason})",
                        found=pointer,
                        level=Level.WARNING,
                    )
                )
    return tuple(problems)
