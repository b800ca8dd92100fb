"""Checks that a plan, or an addition to it, can be written to files: valid text and free names."""

from collections.abc import Collection, Iterator, Sequence

from fairwitness.contracts.common.problems import Path, Problem
from fairwitness.contracts.forge.dag import DagNode
from fairwitness.contracts.forge.documents import ForgeTask
from fairwitness.contracts.forge.returns import SpecFile
from fairwitness.errors import BadDocument, UnsafePath
from fairwitness.runs.forge.log import document_of
from fairwitness.store.layout.forge import ForgeLayout

_CAPTAIN = "captain"
_NOTHING: frozenset[str] = frozenset()


def storage_problems(
    layout: ForgeLayout,
    specs: Sequence[SpecFile],
    tasks: Sequence[ForgeTask],
    nodes: Sequence[DagNode],
    graph: Path,
    *,
    specs_taken: Collection[str] = _NOTHING,
    nodes_taken: Collection[str] = _NOTHING,
) -> Iterator[Problem]:
    """Yield everything that prevents storing these; `graph` is the path to the nodes in their document."""
    yield from _double(("specs",), "name", [spec.name for spec in specs], specs_taken)
    yield from _double(graph, "id", [node.id for node in nodes], nodes_taken)
    for index, spec in enumerate(specs):
        yield from _unwritable(("specs", index, "body"), spec.body)
    for index, task in enumerate(tasks):
        yield from _unwritable(("tasks", index, "body"), task.body)
    for index, node in enumerate(nodes):
        if not _is_free(layout, node.id):
            yield Problem(where=(*graph, index, "id"), expected="an id that the run does not use itself", found=node.id)


def _is_free(layout: ForgeLayout, node: str) -> bool:
    """Return False for a node that would collide with the run's own files or the captain's dispatches."""
    try:
        layout.task_folder(node)
    except UnsafePath:
        return False
    return node.partition("-")[0].lower() != _CAPTAIN


def _double(way: Path, field: str, names: Sequence[str], taken: Collection[str]) -> Iterator[Problem]:
    """Yield names that differ only in case, because some file systems treat them as one; equal names are checked
    elsewhere.
    """
    seen = {name.lower(): name for name in taken}
    for index, name in enumerate(names):
        if seen.setdefault(name.lower(), name) != name or name in names[:index]:
            yield Problem(where=(*way, index, field), expected="a name that no other has, in any case", found=name)


def _unwritable(where: Path, body: str) -> Iterator[Problem]:
    try:
        document_of({"body": body})
    except BadDocument as error:
        yield Problem(where=where, expected="text that a file can hold", found=error.reason)
