"""Merges without a checkout: tested first, then done under a lock for each target branch; the target moves atomically.

The new commit is written before the ref moves, and the ref moves only from the commit that was merged with. A process
that dies in between loses nothing: the branch still holds its commits, and the next attempt finds what was done.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairwitness.contracts.common.ids import is_git_ref
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.call import failed, text_of
from fairwitness.git.commits import commit_tree, move_ref
from fairwitness.git.identity import Identity
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.killpoints import killpoint
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
class Merged:
    """The target now contains the branch."""

    commit: str
    tree: str
    how: Literal["fast-forward", "merge", "already"]


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


@dataclass(frozen=True, slots=True)
class MergeQueue:
    """The only way to merge into a target branch; the locks in the folder `locks` serialize the merges."""

    repository: Repository
    shadow: Shadow
    locks: Path

    def merge(
        self,
        branch: str,
        target: str,
        *,
        message: str,
        identity: Identity,
        expected: str | None = None,
        fast_forward: bool = True,
        sign: bool = False,
        patience_s: float = PATIENCE_S,
    ) -> Merged | Conflict | TargetMoved:
        """Merge a commit into a branch that is not checked out.

        `expected` is the commit of the target that was verified: if the target has moved, nothing is merged.
        """
        ref = target_ref(target)
        commit = self.repository.commit(branch)
        with target_lock(self.locks, ref, patience_s):
            killpoint("git.merge.locked")
            tip = self.repository.ref(ref)
            if tip is None:
                raise UsageError(f"there is no branch {visible(target)!r}", next_step="create the target branch first")
            if self.repository.is_ancestor(commit, tip):
                return Merged(tip, self.repository.tree_of(tip), "already")
            if expected is not None and tip != expected:
                return TargetMoved(expected, tip)
            refuse_checked_out(self.repository, ref)
            return self._merge(ref, tip, commit, message, identity, fast_forward=fast_forward, sign=sign)

    def _merge(
        self, ref: str, tip: str, commit: str, message: str, identity: Identity, *, fast_forward: bool, sign: bool
    ) -> Merged | Conflict | TargetMoved:
        how: Literal["fast-forward", "merge"] = "fast-forward"
        if not (fast_forward and self.repository.is_ancestor(tip, commit)):
            test = merge_test(self.shadow, tip, commit)
            if isinstance(test, Conflict):
                return test
            store = self.shadow.into_store(self.repository)
            merge_test(store, tip, commit)  # again, to write the trees into the store of the commit
            commit = commit_tree(store, test.tree, [tip, commit], message, identity, sign=sign)
            how = "merge"
        killpoint("git.merge.committed")
        if not move_ref(self.repository, ref, commit, tip, why=how):
            return TargetMoved(tip, self.repository.ref(ref))
        killpoint("git.merge.moved")
        return Merged(commit, self.repository.tree_of(commit), how)


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
