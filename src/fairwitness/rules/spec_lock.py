"""The specifications a run rests on: which are locked when it begins, and what has become of them since.

Nobody but a person changes them, and none while a run rests on them: a file that changed, went away or came in between
stops the next phase before it starts.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from fairwitness.contracts.autopilot.roadmap import DEFAULT_SPEC_PATHS, ROADMAP_PATH, ProjectConfig
from fairwitness.contracts.autopilot.state import SpecLock
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.ids import RelPath, Sha256


class SpecTurn(StrEnum):
    """What became of a specification since it was locked."""

    CHANGED = "changed"
    MISSING = "missing"
    NEW = "new"


class SpecChange(Contract):
    """One specification that is not as it was: the hash it was locked with, and the one it has."""

    path: RelPath
    turn: SpecTurn
    locked: Sha256 | None
    found: Sha256 | None


def spec_paths(config: ProjectConfig | None, roadmap_path: str = ROADMAP_PATH) -> tuple[str, ...]:
    """The files to lock, as far as they exist; the roadmap is one of them whatever the settings say.

    >>> spec_paths(None)
    ('.planning/REQUIREMENTS.md', '.planning/PROJECT.md', '.planning/ROADMAP.md')
    """
    named = None if config is None else config.project.spec_paths
    return tuple(dict.fromkeys((*(named or DEFAULT_SPEC_PATHS), roadmap_path)))


def spec_locks(paths: Sequence[str], hashes: Mapping[str, str], locked_at: str) -> tuple[SpecLock, ...]:
    """A lock for each of the paths that exists, in their order; the first is the run's own specification."""
    return tuple(
        SpecLock(path=path, hash=hashes[path], locked_at=locked_at) for path in dict.fromkeys(paths) if path in hashes
    )


def spec_changes(locks: Sequence[SpecLock], paths: Sequence[str], hashes: Mapping[str, str]) -> tuple[SpecChange, ...]:
    """Everything that differs from the locks; `hashes` holds each file of `paths` and of the locks that exists now."""
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
