"""What tests share: the fixtures, editing one field of a copy of one, and which programs run here."""

import copy
import re
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from fairwitness.app.schemas import DocumentViolation, check_document
from fairwitness.contracts.catalog import entry_of
from fairwitness.kit.documents import SUFFIXES, Document, Format, read, render

ROOT = Path(__file__).parents[2]
SEEDS = ROOT / "tests" / "fixtures" / "seeds"

DELETE: Any = object()
"""Stands for: take the field away."""


def fixture(relative: str) -> Document:
    """A fixture of the seeds, read."""
    path = SEEDS / relative
    return read(path.read_bytes(), SUFFIXES[path.suffix], source=relative)


def value_of(relative: str) -> Any:
    """A fixture's value, free to be changed."""
    return copy.deepcopy(fixture(relative).value)


def parts(path: str) -> tuple[str | int, ...]:
    """`a.b[0].c` as steps."""
    return tuple(int(step[1:-1]) if step.startswith("[") else step for step in re.findall(r"[^.\[\]]+|\[\d+\]", path))


def edited(value: Any, path: str, new: Any) -> Any:
    """The value with one field set to something else, or taken away."""
    *parents, last = parts(path)
    inner = value
    for step in parents:
        inner = inner[step]
    if new is DELETE:
        del inner[last]
    else:
        inner[last] = new
    return value


def check_value(value: Any, form: Format, contract: str, *, strict: bool = False) -> tuple[DocumentViolation, ...]:
    """What `fairwitness schema check` says of a value written in a format."""
    document = read(render(value, form).encode(), form)
    return check_document(document, entry_of(contract), strict=strict)


def manifest(seed: str) -> dict[str, Any]:
    """The list of a seed's example blocks."""
    return tomllib.loads((SEEDS / seed / "manifest.toml").read_text())


def instances() -> list[tuple[str, str]]:
    """Every fixture file with its contract, of all manifests."""
    found = []
    for seed in ("000", "003", "004"):
        listed = manifest(seed)
        for block in (*listed["block"], *listed.get("filled", ())):
            names = [*block.get("files", ()), *([block["file"]] if "file" in block else [])]
            found += [(f"{seed}/{name}", block["contract"]) for name in names]
    return found


@cache
def works(program: str) -> bool:
    """Whether a program is on the PATH and answers; a manager's shim may be there without what it manages."""
    path = shutil.which(program)
    return path is not None and not subprocess.run([path, "--version"], capture_output=True, check=False).returncode
