"""Locks on the specifications of a run: which files are locked when it starts, and what changed since.

Only a person changes specifications, and not during a run: a changed, missing or new file stops the next phase before
it starts.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from fairwitness.contracts.autopilot.roadmap import DEFAULT_SPEC_PATHS, ROADMAP_PATH, ProjectConfig
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.ids import RelPath, Sha256


class SpecTurn(StrEnum):
    """How a specification changed since it was locked."""

    CHANGED = "changed"
    MISSING = "missing"
    NEW = "new"


class SpecChange(Contract):
    """One changed specification: the locked hash and the current one."""

    path: RelPath
    turn: SpecTurn
    locked: Sha256 | None
    found: Sha256 | None


def spec_paths(config: ProjectConfig | None, roadmap_path: str = ROADMAP_PATH) -> tuple[str, ...]:
    """Return the files to lock if they exist; the roadmap is always one of them.

    >>> spec_paths(None)
    ('.planning/REQUIREMENTS.md', '.planning/PROJECT.md', '.planning/ROADMAP.md')
    """
    named = None if config is None else config.project.spec_paths
    return tuple(dict.fromkeys((*(named or DEFAULT_SPEC_PATHS), roadmap_path)))


def spec_locks(paths: Sequence[str], hashes: Mapping[str, str], locked_at: str) -> tuple[SpecLock, ...]:
    """Return a lock for each existing path, in order; the first is the run's own specification."""
    return tuple(
        SpecLock(path=path, hash=hashes[path], locked_at=locked_at) for path in dict.fromkeys(paths) if path in hashes
    )


def spec_changes(locks: Sequence[SpecLock], paths: Sequence[str], hashes: Mapping[str, str]) -> tuple[SpecChange, ...]:
    """Return every difference from the locks; `hashes` holds each existing file of `paths` and of the locks."""
    changes = []
    for lock in locks:
        found = hashes.get(lock.path)
        if found != lock.hash:
            turn = SpecTurn.MISSING if found is None else SpecTurn.CHANGED
            changes.append(SpecChange(path=lock.path, turn=turn, locked=lock.hash, found=found))
    locked = {lock.path for lock in locks}
    for path in dict.fromkeys(paths):
        if path in hashes and path not in locked:
            changes.append(SpecChange(path=path, turn=SpecTurn.NEW, locked=None, found=hashes[path]))
    return tuple(changes)
