"""A worktree and a branch for each attempt; nothing in one is lost when it goes.

An agent writes there, so nothing in the folder is believed: the git directory is always named outright, files are
written and read under a configuration of ours, and the branch, not the folder's HEAD, tells where the attempt stands.
"""

import hashlib
import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from assay.contracts.common.ids import attempt_branch, attempt_name, is_git_ref, is_safe_name, run_ref
from assay.errors import UsageError
from assay.git import quarantine
from assay.git.call import GitDir, GitFailed
from assay.git.commits import commit_tree, delete_ref, move_ref
from assay.git.identity import FALLBACK, Identity
from assay.git.objects import Objects, fill
from assay.git.quarantine import Quarantined
from assay.git.repository import Repository
from assay.git.shadow import Shadow
from assay.git.snapshots import Taken, take
from assay.kit.killpoints import reach
from assay.kit.text import visible

_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Worktree:
    """Where one attempt works."""

    run: str
    task: str
    attempt: int
    branch: str
    folder: Path

    @property
    def ref(self) -> str:
        """The branch in full."""
        return f"refs/heads/{self.branch}"

    @property
    def name(self) -> str:
        """One word for it."""
        return f"{self.task}--{attempt_name(self.attempt)}"

    @property
    def mark(self) -> Path:
        """A file beside the folder, written once everything stands; before that no agent has seen the folder."""
        return self.folder.with_name(f"{self.folder.name}.ready")


class Committed(NamedTuple):
    """Where an attempt stands after its files were committed."""

    commit: str
    tree: str
    is_new: bool
    """False if nothing had changed."""
    embedded: tuple[str, ...]
    """Nested repositories in the folder; their files are not in the commit."""


@dataclass(frozen=True, slots=True)
class Worktrees:
    """The worktrees of one repository, all under one folder of ours."""

    repository: Repository
    shadow: Shadow
    root: Path
    prefix: str = "assay"

    def named(self, run_id: str, task: str, attempt: int) -> Worktree:
        """The worktree of an attempt, whether or not it stands."""
        run = run_ref(run_id)
        branch = attempt_branch(task, attempt, prefix=f"{self.prefix}/{run}")
        if not (is_safe_name(run) and is_safe_name(task) and attempt > 0 and is_git_ref(branch)):
            raise UsageError(
                f"{visible(branch)!r} cannot name a branch", next_step="name run and task by letters, digits and '-'"
            )
        name = f"{run}--{task}--{attempt_name(attempt)}"
        if len(name) > _LONGEST_NAME:
            name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        return Worktree(run, task, attempt, branch, Path(os.path.realpath(self.root)) / name)

    def create(self, run_id: str, task: str, attempt: int, commit: str) -> Worktree:
        """A worktree with a branch that starts at a commit; one that stands already is taken as it is."""
        worktree = self.named(run_id, task, attempt)
        if self.is_ready(worktree):
            return worktree
        tip = self.tip(worktree)
        if tip is None:
            tip = self.repository.commit(commit)
            self.shadow.refuse_odd_paths(self.repository.tree_of(tip))
            if not move_ref(self.repository, worktree.ref, tip, None, why="attempt"):
                tip = self._standing_tip(worktree)
        reach("git.worktree.branched")
        self._forget(worktree)  # what a killed process left: no agent has seen it
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.repository.git.run("worktree", "add", "--no-checkout", "--", str(worktree.folder), worktree.branch)
        reach("git.worktree.added")
        with self.shadow.index(self.repository.tree_of(tip), work_tree=worktree.folder) as git:
            fill(git)
            self._bring_index(worktree, git)
        reach("git.worktree.filled")
        worktree.mark.touch()
        return worktree

    def is_ready(self, worktree: Worktree) -> bool:
        """True if the worktree stands whole."""
        return worktree.mark.is_file() and worktree.folder.is_dir()

    def tip(self, worktree: Worktree) -> str | None:
        """The last commit of the attempt; None if it has no branch."""
        return self.repository.ref(worktree.ref)

    def pointer_is_ours(self, worktree: Worktree) -> bool:
        """True if the folder's `.git` still says what git wrote; anything else was put there by the agent."""
        pointer, admin = worktree.folder / ".git", self._admin(worktree)
        if admin is None or pointer.is_symlink() or not pointer.is_file():
            return False
        return pointer.read_bytes() == b"gitdir: " + os.fsencode(admin) + b"\n"

    def commit_all(self, worktree: Worktree, message: str, identity: Identity, *, sign: bool = False) -> Committed:
        """Commits the folder as it is: what git would add, but with no hook, filter or monitor of anybody's."""
        tip = self._standing_tip(worktree)
        old_tree = self.repository.tree_of(tip)
        taken = self._take(worktree, old_tree)
        if taken.tree == old_tree:
            return Committed(tip, old_tree, is_new=False, embedded=taken.embedded)
        objects = self.shadow.into_store(self.repository)
        commit = commit_tree(objects, taken.tree, [tip], message, identity, sign=sign)
        reach("git.commit.written")
        if not move_ref(self.repository, worktree.ref, commit, tip, why="attempt"):
            raise GitFailed(
                f"{worktree.branch} moved while its files were committed",
                next_step="see who else works in the worktree",
            )
        return Committed(commit, taken.tree, is_new=True, embedded=taken.embedded)

    def remove(self, worktree: Worktree, target: str, identity: Identity = FALLBACK) -> Quarantined | None:
        """Takes a worktree and its branch away; what is not in the target commit goes to quarantine first."""
        tip = self.tip(worktree)
        kept = None
        if tip is not None:
            last = self._with_leftovers(worktree, tip, identity)
            safe = self.repository.is_ancestor(last, target) or quarantine.is_kept(self.repository, last)
            if not safe:
                kept = quarantine.keep(self.repository, worktree.run, worktree.name, last)
        elif self.is_ready(worktree):
            raise GitFailed(
                f"{worktree.branch} is gone, so its worktree is not removed",
                next_step=f"look into {worktree.folder}, save what you need and delete it",
            )
        reach("git.worktree.quarantined")
        self._forget(worktree)
        reach("git.worktree.forgotten")
        if tip is not None and not delete_ref(self.repository, worktree.ref, tip):
            raise GitFailed(f"{worktree.branch} moved while it was removed", next_step="remove it again")
        return kept

    def _with_leftovers(self, worktree: Worktree, tip: str, identity: Identity) -> str:
        """The tip, or a commit after it with what lies uncommitted in the folder."""
        if not self.is_ready(worktree):
            return tip
        old_tree = self.repository.tree_of(tip)
        taken = self._take(worktree, old_tree, enter_embedded=True)
        if taken.tree == old_tree:
            return tip
        for kept in quarantine.kept(self.repository, worktree.run):  # a try that was killed may have kept it already
            if self.repository.tree_of(kept.commit) == taken.tree and self.repository.ref(f"{kept.commit}^1") == tip:
                return kept.commit
        objects = self.shadow.into_store(self.repository)
        return commit_tree(objects, taken.tree, [tip], f"Left uncommitted in {worktree.name}", identity)

    def _take(self, worktree: Worktree, old_tree: str, *, enter_embedded: bool = False) -> Taken:
        """The folder as a tree in the person's store, and the index of the worktree brought up to it."""
        objects: Objects = self.shadow.into_store(self.repository)
        with objects.index(old_tree) as git:
            taken = take(objects, git, worktree.folder, enter_embedded=enter_embedded)
            if not enter_embedded:
                self._bring_index(worktree, git)
        return taken

    def _bring_index(self, worktree: Worktree, git: GitDir) -> None:
        """Lets the agent's own git see which files are unchanged; ours does not need it."""
        admin = self._admin(worktree)
        if admin is not None:
            shutil.copy2(git.env["GIT_INDEX_FILE"], admin / "index")

    def _admin(self, worktree: Worktree) -> Path | None:
        """The worktree's git directory, as the repository knows it."""
        wanted = os.fsencode(worktree.folder / ".git")
        for folder in sorted((self.repository.common_dir / "worktrees").glob("*")):
            named = folder / "gitdir"
            if named.is_file() and named.read_bytes().rstrip(b"\n") == wanted:
                return folder
        return None

    def _standing_tip(self, worktree: Worktree) -> str:
        tip = self.tip(worktree)
        if tip is None:
            raise GitFailed(f"there is no branch {worktree.branch}", next_step="create the worktree first")
        return tip

    def _forget(self, worktree: Worktree) -> None:
        """Removes the folder and the worktree's git directory, in an order that a repetition understands."""
        worktree.mark.unlink(missing_ok=True)
        for folder in (self._admin(worktree), worktree.folder):
            if folder is not None and (folder.is_symlink() or folder.exists()):
                _remove(folder)


def _remove(folder: Path) -> None:
    """Removes a folder that may hold anything; links are removed, not followed."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink()
        return
    for place, folders, _ in os.walk(folder):  # a folder that its owner may not write is opened before it is entered
        for inner in (Path(place) / name for name in folders):
            if not inner.is_symlink():
                inner.chmod(stat.S_IRWXU)
    shutil.rmtree(folder)
