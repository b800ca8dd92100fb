"""Merging without a checkout: tried first, then done one at a time per target branch; the target moves in one step.

The new commit is written before the ref moves, and the ref moves only from the commit that was merged with. A process
that dies in between has lost nothing: the branch still names its commits, and the next try finds what is done.
"""

import contextlib
import hashlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from assay.contracts.common.ids import is_git_ref
from assay.errors import NotReady, UsageError
from assay.git.call import failed, text_of
from assay.git.commits import commit_tree, move_ref
from assay.git.identity import Identity
from assay.git.objects import Objects
from assay.git.repository import Repository
from assay.git.shadow import Shadow
from assay.kit.killpoints import reach
from assay.kit.text import visible

PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Clean:
    """The two fit together."""

    tree: str


@dataclass(frozen=True, slots=True)
class Conflict:
    """They do not: both changed these paths."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Merged:
    """The target now holds the branch."""

    commit: str
    tree: str
    how: Literal["fast-forward", "merge", "already"]


@dataclass(frozen=True, slots=True)
class Moved:
    """Somebody else moved the target; what was verified against its old commit has to be verified again."""

    expected: str
    found: str | None


def merge_test(shadow: Objects, target: str, branch: str) -> Clean | Conflict:
    """What merging one commit into another would give; new trees go where `shadow` writes."""
    arguments = ("merge-tree", "--write-tree", "-z", "--name-only", "--no-messages")
    answer = shadow.git.ask(*arguments, target, branch)
    tree, *paths = answer.out.split(b"\0")
    if answer.code == 0:
        return Clean(tree.decode())
    if answer.code == 1:
        return Conflict(tuple(text_of(path) for path in dict.fromkeys(paths) if path))
    if "unrelated histories" in answer.err:
        raise UsageError(
            f"{visible(target)} and {visible(branch)} have no common ancestor here",
            next_step="fetch more history (git fetch --unshallow), or merge by hand",
        )
    raise failed("merge-tree", shadow.git.path, answer)


@dataclass(frozen=True, slots=True)
class MergeQueue:
    """The one way into a target branch; whoever waits does so in the folder of locks."""

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
    ) -> Merged | Conflict | Moved:
        """Brings a commit into a branch that nobody has checked out.

        `expected` is the target's commit that the evidence was made with: if it has moved, nothing is merged.
        """
        if not is_git_ref(target):
            raise UsageError(f"{visible(target)!r} is not the name of a branch", next_step="name the target branch")
        ref = f"refs/heads/{target}"
        commit = self.repository.commit(branch)
        with self._turn(ref, patience_s):
            reach("git.merge.locked")
            tip = self.repository.ref(ref)
            if tip is None:
                raise UsageError(f"there is no branch {visible(target)!r}", next_step="create the target branch first")
            if self.repository.is_ancestor(commit, tip):
                return Merged(tip, self.repository.tree_of(tip), "already")
            if expected is not None and tip != expected:
                return Moved(expected, tip)
            self._refuse_checked_out(ref)
            return self._merge(ref, tip, commit, message, identity, fast_forward=fast_forward, sign=sign)

    def _merge(
        self, ref: str, tip: str, commit: str, message: str, identity: Identity, *, fast_forward: bool, sign: bool
    ) -> Merged | Conflict | Moved:
        how: Literal["fast-forward", "merge"] = "fast-forward"
        if not (fast_forward and self.repository.is_ancestor(tip, commit)):
            test = merge_test(self.shadow, tip, commit)
            if isinstance(test, Conflict):
                return test
            store = self.shadow.into_store(self.repository)
            merge_test(store, tip, commit)  # once more, so that the trees stand where the commit will
            commit = commit_tree(store, test.tree, [tip, commit], message, identity, sign=sign)
            how = "merge"
        reach("git.merge.committed")
        if not move_ref(self.repository, ref, commit, tip, why=how):
            return Moved(tip, self.repository.ref(ref))
        reach("git.merge.moved")
        return Merged(commit, self.repository.tree_of(commit), how)

    def _refuse_checked_out(self, ref: str) -> None:
        for branch, where in checked_out(self.repository):
            if branch == ref:
                name = visible(ref.removeprefix("refs/heads/"))
                raise UsageError(
                    f"{name} is checked out in {visible(where)}, so it is not moved",
                    next_step="check out another branch there, or merge by hand",
                )

    @contextlib.contextmanager
    def _turn(self, ref: str, patience_s: float) -> Iterator[None]:
        """Waits for this target's lock; it goes when the process does."""
        import fcntl  # here and not above: not every system has it

        self.locks.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = hashlib.sha256(ref.encode()).hexdigest()[:32]
        handle = os.open(self.locks / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
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


def checked_out(repository: Repository) -> list[tuple[str, str]]:
    """Every branch that some worktree has checked out, rebases or bisects, and where."""
    found = []
    for record in repository.git.run("worktree", "list", "--porcelain", "-z").split(b"\0\0"):
        said = dict(_pair(field) for field in record.split(b"\0") if field)
        if "branch" in said:
            found.append((said["branch"], said["worktree"]))
    places = [repository.common_dir, *sorted((repository.common_dir / "worktrees").glob("*"))]
    for place in places:
        for name in ("rebase-merge/head-name", "rebase-apply/head-name"):
            if (place / name).is_file():
                found.append((text_of((place / name).read_bytes().strip()), str(place)))
        if (place / "BISECT_START").is_file():
            found.append(("refs/heads/" + text_of((place / "BISECT_START").read_bytes().strip()), str(place)))
    return found


def _pair(field: bytes) -> tuple[str, str]:
    name, _, value = text_of(field).partition(" ")
    return name, value
