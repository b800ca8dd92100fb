"""Removes the worktrees, branches and candidates of a finished run, and only its own; no content of theirs is lost."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.common.ids import run_ref
from fairwitness.errors import UsageError
from fairwitness.git.call import text_of
from fairwitness.git.candidates import Candidates
from fairwitness.git.commits import move_ref
from fairwitness.git.folders import remove
from fairwitness.git.identity import FALLBACK, Identity
from fairwitness.git.merge import checked_out_by_people
from fairwitness.git.quarantine import Quarantined
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import ASIDE, Worktree, Worktrees
from fairwitness.kit.folder_trees import walk

_ATTEMPT = re.compile(r"(?P<task>[^/]+)/attempt-(?P<attempt>[1-9][0-9]*)(?:--(?P<sub>[^/]+))?")


@dataclass(frozen=True, slots=True)
class RunCleanup:
    """The result of a cleanup: what became of the run's branches."""

    removed: tuple[str, ...]
    quarantined: tuple[Quarantined, ...]
    left: tuple[str, ...]
    """Branches that the user has checked out; they are left for the user to delete."""


def sweep(worktrees: Worktrees, run_id: str, target: str, identity: Identity = FALLBACK) -> RunCleanup:
    """Remove all attempts and candidates of a run; what is not in the target commit goes to quarantine first.

    The target itself is never changed. A worktree without a branch is quarantined as a change of the target.
    """
    repository = worktrees.repository
    candidates = Candidates(repository, worktrees.shadow)
    commit = repository.commit(target)
    kept = [candidates.drop(run_id, held.batch) for held in candidates.held(run_id)]
    removed: list[str] = []
    left: list[str] = []
    in_use = checked_out_by_people(repository, ours=worktrees.root)
    for worktree in _attempts(worktrees, run_id):
        if worktree.branch == target or worktree.ref in in_use:
            left.append(worktree.branch)
            continue
        if worktrees.tip(worktree) is None:
            move_ref(repository, worktree.ref, commit, None, why="sweep")  # so that its files are quarantined
        kept.append(worktrees.remove(worktree, commit, identity))
        removed.append(worktree.branch)
    remove(Path(os.path.realpath(worktrees.root)) / ASIDE / run_ref(run_id))
    return RunCleanup(tuple(removed), tuple(each for each in kept if each is not None), tuple(left))


def sweep_temporaries(own: Path, repository: Repository, *, now_s: float) -> tuple[Path, ...]:
    """Remove the temporary objects and locks that killed git processes left, and return them.

    `own` is the git directory of Fair Witness; in the user's only temporary objects and the locks of refs of Fair
    Witness are removed. Nothing is removed while a git process works on either, nor what is younger
    than `now_s`.
    """
    theirs = repository.common_dir
    if _is_git_at_work(own, theirs):
        return ()
    found = [*_locks(own), *_temporary_objects(own / "objects"), *_temporary_objects(theirs / "objects")]
    for prefix in ("refs/heads/fairwitness", "refs/fairwitness"):
        found += _locks(theirs / prefix)
    removed = []
    for path in found:
        with contextlib.suppress(FileNotFoundError):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_mtime < now_s:
                path.unlink()
                removed.append(path)
    return tuple(removed)


def _locks(top: Path) -> Iterator[Path]:
    for folder, _, names in walk(top):
        yield from (Path(folder) / name for name in names if name.endswith(".lock"))


def _temporary_objects(objects: Path) -> Iterator[Path]:
    for pattern in ("tmp_obj_*", "??/tmp_obj_*", "pack/tmp_*"):
        yield from objects.glob(pattern)


def _is_git_at_work(*folders: Path) -> bool:
    """Return whether a git process names one of the folders, works in one, or cannot be looked at."""
    names = [os.fsencode(os.path.realpath(folder)) for folder in folders]
    names += [name.removesuffix(b"/.git") for name in names]
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal():
            continue
        try:
            if not (process / "comm").read_bytes().startswith(b"git"):
                continue
            words = (process / "cmdline").read_bytes() + b"\0" + os.fsencode((process / "cwd").readlink())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended
        except OSError:
            return True
        if any(name in words for name in names):
            return True
    return False


def _attempts(worktrees: Worktrees, run_id: str) -> list[Worktree]:
    """Return all attempts of a run that have a branch, or a folder that was used."""
    under = f"{worktrees.prefix}/{run_ref(run_id)}/"
    listed = worktrees.repository.git.run("for-each-ref", "--format=%(refname:lstrip=2)", f"refs/heads/{under}")
    branches = text_of(listed).splitlines()
    branches += [text_of(mark.read_bytes()) for mark in sorted(worktrees.root.glob("*.ready"))]
    found = {}
    for branch in branches:
        parts = _ATTEMPT.fullmatch(branch.removeprefix(under)) if branch.startswith(under) else None
        if parts is None:
            continue
        try:
            worktree = worktrees.named(run_id, parts["task"], int(parts["attempt"]), sub=parts["sub"])
        except UsageError:
            continue  # not a name of Fair Witness
        if worktree.branch == branch:
            found[branch] = worktree
    return list(found.values())
