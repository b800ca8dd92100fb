"""The examples of seed 003 and what our tests do with them."""

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from fairwitness.contracts.catalog import catalog
from fairwitness.kit.documents import SUFFIXES, read

FOLDER = Path(__file__).parents[2] / "fixtures" / "seeds" / "003"
MANIFEST = tomllib.loads((FOLDER / "manifest.toml").read_text(encoding="utf-8"))
AUTOPILOT = tuple(entry for entry in catalog().values() if entry.workflow == "autopilot")
ADAPTERS: dict[str, TypeAdapter[Any]] = {entry.name: TypeAdapter(entry.shape) for entry in AUTOPILOT}
DELETE = object()
"""In a row of violations: leave the field out."""

Rows = dict[str, list[tuple[str, object] | tuple[str, object, str]]]
"""For each document: the field to spoil, what to put there, and the place of the refusal if that is another one."""


def _documents() -> dict[str, str]:
    listed: dict[str, str] = {}
    for block in MANIFEST["block"]:
        if block["kind"] == "instance":
            listed |= dict.fromkeys(block.get("files") or [block["file"]], block["contract"])
    return listed | {filled["file"]: filled["contract"] for filled in MANIFEST["filled"]}


DOCUMENTS = _documents()
"""Every document of the folder with the name of its contract."""


_PROVES = {
    "state": "A1",
    "event": "A5",
    "rating-return": "A20",
    "questioning-return": "A12",
    "self-audit-return": "A10",
    "phase-plan": "A3",
    "triage": "A3",
    "trace-span": "A7",
    "post-mortem": "A7",
    "metrics": "A9",
    "trend": "A9",
    "cost-constants": "A9",
    "self-audit-summary": "A10",
    "completion-report": "A11",
    "context-map": "A12",
    "context-sufficiency": "A12",
    "discuss-context": "A14",
    "score-history": "A14",
    "gap-list": "A14",
    "execution-result": "A15",
    "repo-map": "A16",
    "debug-session": "A17",
    "visual-config": "A18",
    "screenshot-result": "A18",
    "visual-bug-report": "A18",
}


def marks(file: str) -> list[pytest.MarkDecorator]:
    """The requirement whose shape a document shows; the breaker's settings alone prove none."""
    name = DOCUMENTS[file].removeprefix("autopilot-")
    requirement = _PROVES.get(name, "A3" if name.endswith("-return") else None)
    return [pytest.mark.req(requirement)] if requirement is not None else []


def load(file: str) -> Any:
    """A fixture as plain values."""
    path = FOLDER / file
    return read(path.read_bytes(), SUFFIXES[path.suffix], source=file).value


def parse(file: str) -> Any:
    """A fixture as its contract reads it."""
    return ADAPTERS[DOCUMENTS[file]].validate_python(load(file))


def _way(document: Any, path: str) -> tuple[str | int, ...]:
    """The keys and indexes that a path such as `phases/6.1/status` names."""
    way: list[str | int] = []
    for part in path.split("/") if path else []:
        index = isinstance(document, list)
        way.append(int(part) if index else part)
        document = document[way[-1]] if index or part in document else {}
    return tuple(way)


def spoilt(file: str, path: str, value: object) -> tuple[Any, tuple[str | int, ...]]:
    """A fixture with one value replaced, added or left out, and the way to it."""
    document = copy.deepcopy(load(file))
    way = _way(document, path)
    parent = document
    for part in way[:-1]:
        parent = parent[part]
    if value is DELETE:
        del parent[way[-1]]
    else:
        parent[way[-1]] = value
    return document, way
