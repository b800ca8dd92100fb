"""What a merge into a target branch needs: trees merged without a checkout, the lock of the target, and a refusal to
move a branch that a person has checked out. `Candidates` uses it to stack merges and to land them.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.common.ids import is_git_ref
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.call import failed, text_of
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.kit.text import visible

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Clean:
    """A merge without conflicts."""

    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """A merge with conflicts: both sides changed these paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TargetMoved:
    """The target was moved by someone else; what was verified against its old commit must be verified again."""

    expected: str
    found: str | None


def merge_test(shadow: Objects, target: str, branch: str) -> Clean | Conflict:
    """Return the result of merging one commit into another; new trees are written to `shadow`."""
    tree, paths = merged_tree(shadow, target, branch)
    return Conflict(paths) if paths is not None else Clean(tree)


def merged_tree(objects: Objects, target: str, branch: str) -> tuple[str, tuple[str, ...] | None]:
    """Return the tree of a merge, and the paths whose files have conflict markers (None if there is no conflict)."""
    arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
    answer = objects.git.ask(*arguments, target, branch)
    tree, *paths = answer.out.split(b"\0")
    if answer.code == 0:
        return tree.decode(), None
    if answer.code == 1:
        return tree.decode(), tuple(text_of(path) for path in dict.fromkeys(paths) if path)
    if "unrelated histories" in answer.err:
        raise UsageError(
            f"{visible(target)} and {visible(branch)} have no common ancestor here",
            next_step="fetch more history (git fetch --unshallow), or merge by hand",
        )
    raise failed("merge-tree", objects.git.path, answer)


@contextlib.contextmanager
def target_lock(locks: Path, ref: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Wait for the lock of one target; the lock is released when the process ends."""
    import fcntl  # imported here because not every system has it

    locks.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = hashlib.sha256(ref.encode()).hexdigest()[:32]
    handle = os.open(locks / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        give_up = time.monotonic() + patience_s
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise NotReady(
                        f"another process merges into {visible(ref.removeprefix('refs/heads/'))}",
                        next_step="wait for it, or end it, then resume",
                    ) from None
                time.sleep(0.01)
        yield
    finally:
        os.close(handle)


def target_ref(target: str) -> str:
    """Return the full ref of a target branch; raise `UsageError` for an invalid name."""
    if not is_git_ref(target):
        raise UsageError(f"{visible(target)!r} is not the name of a branch", next_step="name the target branch")
    return f"refs/heads/{target}"


def refuse_checked_out(repository: Repository, ref: str, *, ours: Path | None = None) -> None:
    """Raise `UsageError` if the branch is checked out, except in a worktree of an attempt, below `ours`."""
    where = checked_out_by_people(repository, ours=ours).get(ref)
    if where is not None:
        raise UsageError(
            f"{visible(ref.removeprefix('refs/heads/'))} is checked out in {visible(where)}, so it is not moved",
            next_step="check out another branch there, or merge by hand",
        )


def checked_out_by_people(repository: Repository, *, ours: Path | None) -> dict[str, str]:
    """Return all branches that are checked out outside the folder of Fair Witness's worktrees, and where."""
    attempts = None if ours is None else Path(os.path.realpath(ours))
    return {
        branch: where
        for branch, where in checked_out(repository)
        if attempts is None or not Path(os.path.realpath(where)).is_relative_to(attempts)
    }


def checked_out(repository: Repository) -> list[tuple[str, str]]:
    """Return all branches that a worktree has checked out, rebases or bisects, and where."""
    found = []
    for record in repository.git.run("worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        said = dict(_pair(field) for field in record.split(b"\0") if field)
        if "branch" in said:
            found.append((said["branch"], said["worktree"]))
    for place in (repository.common_dir, *sorted((repository.common_dir / "worktrees").glob("*"))):
        said_folder = _said(place / "gitdir")
        where = str(place) if said_folder is None else said_folder.removesuffix("/.git")
        for name in ("rebase-merge/head-name", "rebase-apply/head-name"):
            if (branch := _said(place / name)) is not None:
                found.append((branch, where))
        if (branch := _said(place / "BISECT_START")) is not None:
            found.append((f"refs/heads/{branch}", where))
    return found


def _said(file: Path) -> str | None:
    """Return the content of one of git's files, or None if it does not exist (any more)."""
    try:
        return text_of(file.read_bytes().strip())
    except (FileNotFoundError, NotADirectoryError):
        return None


def _pair(field: bytes) -> tuple[str, str]:
    name, _, value = text_of(field).partition(" ")
    return name, value
