"""Check that the code under test came from the worktree, by the records that the bootstrap wrote.

A run that loaded none of the project's packages is no problem by itself: tests may drive a program by its command
line, or look at files.
"""

from pathlib import Path
from typing import Any

from fairwitness.contracts.verify.checks import Project
from fairwitness.errors import BadDocument, StoreError
from fairwitness.kit.files import read_plain
from fairwitness.kit.json_text import parse_lines
from fairwitness.kit.limits import DocumentLimits
from fairwitness.kit.text import visible
from fairwitness.verify.environment.model import ResolvedCommand
from fairwitness.verify.environment.node_modules import node_origin_problem
from fairwitness.verify.environment.programs.bootstrap import RECORD

_LIMITS = DocumentLimits(bytes=8 << 20, nodes=1_000_000)


def origin_problem(project: Project, resolved: ResolvedCommand, checkout: Path) -> str | None:
    """Return why a command's output is no evidence about this tree; None if it is evidence."""
    if resolved.own:
        elsewhere = node_origin_problem(resolved.own, checkout, resolved.install_root)
        if elsewhere is not None:
            return elsewhere
    if resolved.origin is None:
        return None
    return judge_origin(project, read_origin(resolved), checkout, loads=resolved.loads)


def read_origin(resolved: ResolvedCommand) -> bytes | None:
    """Return what the bootstrap wrote; None if there is nothing that can be read."""
    if resolved.origin is None:
        return None
    try:
        return read_plain(resolved.origin.parent, resolved.origin.name, limit=_LIMITS.bytes)
    except StoreError:
        return None


def judge_origin(project: Project, content: bytes | None, checkout: Path, *, loads: bool) -> str | None:
    """Return the problem with an origin record: every loaded package of the project must come from the checkout."""
    if content is None:
        return "the run left no record of what it loaded"
    records = _records(content)
    if records is None:
        return "the record of what was loaded is damaged or was not written by Fair Witness"
    refused = next((record["refused"] for record in records if isinstance(record.get("refused"), str)), None)
    if refused is not None:
        return visible(refused)
    roles = [record.get("role") for record in records]
    if "start" not in roles or (loads and "tool" not in roles):
        return "the run ended before it recorded what it loaded"
    tree = checkout.resolve()
    for record in records:
        tool = record.get("tool")
        file = tool.get("file") if isinstance(tool, dict) else None
        if isinstance(file, str) and Path(file).is_relative_to(tree):
            return f"the tool itself came from this tree ({visible(file)})"
        elsewhere = _elsewhere(project, record.get("packages", {}), tree)
        if elsewhere is not None:
            return elsewhere
    return None


def _records(content: bytes) -> list[dict[str, Any]] | None:
    if not content.endswith(b"\n"):
        return None
    try:
        records = parse_lines(content.decode(), _LIMITS)
    except (BadDocument, UnicodeDecodeError):
        return None
    whole = all(isinstance(record, dict) and record.get("record") == RECORD for record in records)
    return records if records and whole else None


def _elsewhere(project: Project, packages: object, tree: Path) -> str | None:
    """Return the first package of the project that did not come from the tree."""
    if not isinstance(packages, dict):
        return "the record of what was loaded is damaged or was not written by Fair Witness"
    for name in sorted(set(packages) & set(project.packages)):
        told = packages[name]
        outside = told.get("outside") if isinstance(told, dict) else None
        if not isinstance(outside, list):
            return "the record of what was loaded is damaged or was not written by Fair Witness"
        file = told.get("file")
        paths = [*outside, *([file] if isinstance(file, str) else [])]
        wrong = next((path for path in map(str, paths) if not Path(path).is_relative_to(tree)), None)
        if wrong is not None:
            return f"`{visible(name)}` was loaded from {visible(_package_folder(wrong, name))}, not from this tree"
    return None


def _package_folder(file: str, name: str) -> str:
    """Return the folder a package was found in: `/…/site-packages` for a file below it."""
    for parent in Path(file).parents:
        if parent.name == name:
            return str(parent.parent)
    return str(Path(file).parent)
