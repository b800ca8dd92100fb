"""A worktree and a branch for each attempt; nothing in one is lost when it goes.

An agent writes there, so nothing in the folder is believed: the git directory is always named outright, files are
written and read under a configuration of ours, and the branch, not the folder's HEAD, tells where the attempt stands.
"""

import errno
import hashlib
import itertools
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.common.ids import attempt_branch, attempt_name, is_git_ref, is_safe_name, run_ref, sub_branch
from fairwitness.errors import UsageError
from fairwitness.git import quarantine
from fairwitness.git.call import GitFailed, bytes_of
from fairwitness.git.commits import commit_tree, delete_ref, move_ref
from fairwitness.git.folders import open_up, remove
from fairwitness.git.identity import FALLBACK, Identity
from fairwitness.git.objects import fill
from fairwitness.git.quarantine import Quarantined
from fairwitness.git.reachability import in_quarantine
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.snapshots import FolderSnapshot, take
from fairwitness.git.worktree_pool import POOL_LIMIT, Pool
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible

POOL, ASIDE = "pool", "aside"
"""Folders beside the worktrees, whose names all have a `--`."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Worktree:
    """Where one attempt works."""

    run: str
    task: str
    attempt: int
    branch: str
    folder: Path
    sub: str | None = None
    """Who works beside the attempt, on a branch of its own; None for the attempt itself."""

    @property
    def ref(self) -> str:
        """The branch in full."""
        return f"refs/heads/{self.branch}"

    @property
    def name(self) -> str:
        """One word for it."""
        return _joined(self.task, attempt_name(self.attempt), self.sub)

    @property
    def mark(self) -> Path:
        """A file that names the branch, written once everything stands; before that no agent has seen the folder."""
        return self.folder.with_name(f"{self.folder.name}.ready")

    @property
    def aside(self) -> Path:
        """Where its folder comes from the pool or is made ready for it; what stands here belongs to nobody."""
        return self.folder.parent / ASIDE / self.run / self.folder.name


def worktree_of(root: Path, prefix: str, run_id: str, task: str, attempt: int, sub: str | None) -> Worktree:
    """The worktree of an attempt, or of who works beside it; `UsageError` for names that git would not take."""
    run = run_ref(run_id)
    branch = attempt_branch(task, attempt, prefix=f"{prefix}/{run}")
    if sub is not None:
        branch = sub_branch(branch, sub)
    names = (run, task, *([] if sub is None else [sub]))
    if not (all(is_safe_name(name) for name in names) and attempt > 0 and is_git_ref(branch)):
        raise UsageError(
            f"{visible(branch)!r} cannot name a branch", next_step="name run and task by letters, digits and '-'"
        )
    name = _joined(run, task, attempt_name(attempt), sub)
    if len(name) > _LONGEST_NAME or any("--" in part for part in names):  # run and task could be told apart elsewhere
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(branch.encode()).hexdigest()[:16]}"
    return Worktree(run, task, attempt, branch, Path(os.path.realpath(root)) / name, sub)


def _joined(*names: str | None) -> str:
    return "--".join(name for name in names if name is not None)


_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


def admin_of(common_dir: Path, folder: Path) -> Path | None:
    """What the repository keeps of the worktree in a folder; None if it knows of none."""
    wanted = os.fsencode(folder / ".git")
    for place in sorted((common_dir / "worktrees").glob("*")):
        try:
            if (place / "gitdir").read_bytes().rstrip(b"\n") == wanted:
                return place
        except (FileNotFoundError, NotADirectoryError):
            continue  # another process makes it or takes it away
    return None


def unfinished_of(common_dir: Path, folder: Path) -> Path:
    """Where it is written first; what stands there was left by a killed process."""
    return common_dir / f"fairwitness-{folder.name}.new"


def can_be_made(common_dir: Path) -> bool:
    """True if refs are kept in files: other stores want more beside a worktree than is written here."""
    return not (common_dir / "reftable").exists()


def make_admin(common_dir: Path, folder: Path, branch: str, index: Path) -> None:
    """Makes a folder that holds the files of a commit a worktree on a branch."""
    new = unfinished_of(common_dir, folder)
    remove(new)
    new.mkdir()
    (new / "commondir").write_bytes(b"../..\n")
    (new / "HEAD").write_bytes(bytes_of(f"ref: refs/heads/{branch}\n"))
    (new / "gitdir").write_bytes(os.fsencode(folder / ".git") + b"\n")
    shutil.copy2(index, new / "index")
    killpoint("git.admin.begun")
    for number in itertools.count():
        place = common_dir / "worktrees" / (f"{folder.name}{number}" if number else folder.name)
        place.parent.mkdir(exist_ok=True)  # git takes the last one's away
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(place) + b"\n")
        try:
            new.rename(place)
        except OSError as error:
            if error.errno not in {*_TAKEN, errno.ENOENT} or not new.exists():
                raise
        else:
            return


class AttemptCommit(NamedTuple):
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
    prefix: str = "fairwitness"
    pooled: int = POOL_LIMIT
    """How many folders are kept for the next attempts."""

    @property
    def pool(self) -> Pool:
        """The folders that wait for an attempt."""
        return Pool(self.shadow, Path(os.path.realpath(self.root)) / POOL, self.pooled)

    def named(self, run_id: str, task: str, attempt: int, *, sub: str | None = None) -> Worktree:
        """The worktree of an attempt, or of who works beside it (`sub`), whether or not it stands."""
        return worktree_of(self.root, self.prefix, run_id, task, attempt, sub)

    def create(self, run_id: str, task: str, attempt: int, commit: str, *, sub: str | None = None) -> Worktree:
        """A worktree with a branch that starts at a commit; one that stands already is taken as it is.

        A folder that waits in the pool is used if there is one, and only what differs is written.
        """
        worktree = self.named(run_id, task, attempt, sub=sub)
        if self.is_ready(worktree):
            return worktree
        self._forget(worktree)  # what a killed process left: no agent has seen it
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        tip, start, tree = self._beginning(worktree, commit)
        waiting = self.pool.take(tree, worktree.aside) if can_be_made(self.repository.common_dir) else None
        if tip is None:
            if waiting is None:
                self.shadow.refuse_odd_paths(tree)
            if not move_ref(self.repository, worktree.ref, start, None, why="attempt"):
                return self.create(run_id, task, attempt, commit, sub=sub)  # somebody made it: it begins there
        killpoint("git.worktree.branched")
        if waiting is None:
            self._make(worktree, tree)
        else:
            waiting.files.rename(worktree.folder)
            killpoint("git.worktree.added")
            make_admin(self.repository.common_dir, worktree.folder, worktree.branch, waiting.index)
            remove(worktree.aside)
        killpoint("git.worktree.filled")
        worktree.mark.write_text(worktree.branch)
        killpoint("git.worktree.ready")
        return worktree

    def _beginning(self, worktree: Worktree, commit: str) -> tuple[str | None, str, str]:
        """The tip of the branch if there is one, the commit that the attempt begins with, and its tree."""
        tip, start, tree = self.repository.ids(worktree.ref, f"{commit}^{{commit}}", f"{commit}^{{tree}}")
        if tip is not None:
            return tip, tip, self.repository.tree_of(tip)
        if start is None or tree is None:
            start = self.repository.commit(commit)  # says what is wrong
            tree = self.repository.tree_of(start)
        return None, start, tree

    def _make(self, worktree: Worktree, tree: str) -> None:
        """A worktree with all its files written."""
        common, folder = self.repository.common_dir, worktree.folder
        by_hand = can_be_made(common)
        if by_hand:
            folder.mkdir()
        else:
            self.repository.git.run("worktree", "add", "--no-checkout", "--", str(folder), worktree.branch)
        killpoint("git.worktree.added")
        with self.shadow.index(tree, work_tree=folder) as git:
            fill(git)
            index = Path(git.env["GIT_INDEX_FILE"])
            if by_hand:
                # git's own way is not for two at a time: one may read what the other has half written, and fails
                make_admin(common, folder, worktree.branch, index)
            else:
                self._bring_index(worktree, index)

    def is_ready(self, worktree: Worktree) -> bool:
        """True if the worktree stands whole."""
        return worktree.mark.is_file() and worktree.folder.is_dir()

    def tip(self, worktree: Worktree) -> str | None:
        """The last commit of the attempt; None if it has no branch."""
        return self.repository.ref(worktree.ref)

    def pointer_is_ours(self, worktree: Worktree) -> bool:
        """True if the folder's `.git` still says what git wrote; anything else was put there by the agent."""
        pointer, admin = worktree.folder / ".git", admin_of(self.repository.common_dir, worktree.folder)
        if admin is None or pointer.is_symlink() or not pointer.is_file():
            return False
        return pointer.read_bytes() == b"gitdir: " + os.fsencode(admin) + b"\n"

    def commit_all(
        self,
        worktree: Worktree,
        message: str,
        identity: Identity,
        *,
        only: frozenset[str] | None = None,
        sign: bool = False,
    ) -> AttemptCommit:
        """Commits the folder as it is: what git would add, but with no hook, filter or monitor of anybody's.

        With `only` other paths stay as the branch has them.
        """
        tip = self._standing_tip(worktree)
        old_tree = self.repository.tree_of(tip)
        taken = self._take(worktree, old_tree)
        objects = self.shadow.into_store(self.repository)
        tree = taken.tree
        if only is not None:
            found = objects.entries(tree)
            tree = objects.compose(old_tree, {path: found.get(path) for path in sorted(only)})
        if tree == old_tree:
            return AttemptCommit(tip, old_tree, is_new=False, embedded=taken.embedded)
        commit = commit_tree(objects, tree, [tip], message, identity, sign=sign)
        killpoint("git.commit.written")
        if not move_ref(self.repository, worktree.ref, commit, tip, why="attempt"):
            raise GitFailed(
                f"{worktree.branch} moved while its files were committed",
                next_step="see who else works in the worktree",
            )
        return AttemptCommit(commit, tree, is_new=True, embedded=taken.embedded)

    def remove(
        self, worktree: Worktree, target: str, identity: Identity = FALLBACK, *, keep_branch: bool = False
    ) -> Quarantined | None:
        """Takes a worktree and its branch away; what is not in the target commit goes to quarantine first.

        With `keep_branch` only the worktree goes, and quarantine gets what the branch does not hold.
        """
        return self._part(worktree, target, identity, keep_branch=keep_branch, to_pool=False)

    def release(
        self, worktree: Worktree, target: str, identity: Identity = FALLBACK, *, keep_branch: bool = False
    ) -> Quarantined | None:
        """The same, but the folder is cleaned, brought to the target's files and kept for the next attempt.

        The processes of the agent must have ended: whoever still has a file open could write into the next attempt.
        """
        return self._part(worktree, target, identity, keep_branch=keep_branch, to_pool=True)

    def _part(
        self, worktree: Worktree, target: str, identity: Identity, *, keep_branch: bool, to_pool: bool
    ) -> Quarantined | None:
        tip = self.tip(worktree)
        kept = None
        if tip is not None:
            last = self._with_leftovers(worktree, tip, identity)
            held = last == tip if keep_branch else self.repository.is_ancestor(last, target)
            if not held and not in_quarantine(self.repository, worktree.run, last):
                kept = quarantine.keep(self.repository, worktree.run, worktree.name, last)
        elif self.is_ready(worktree):
            raise GitFailed(
                f"{worktree.branch} is gone, so its worktree is not removed",
                next_step=f"look into {worktree.folder}, save what you need and delete it",
            )
        killpoint("git.worktree.quarantined")
        if to_pool and self.is_ready(worktree):
            tree = self.repository.tree_of(target)
            worktree.mark.unlink()  # from here on it is nobody's, whoever is killed
            killpoint("git.worktree.unmarked")
            self.pool.park(worktree.folder, worktree.aside, tree)
        self._forget(worktree)
        killpoint("git.worktree.forgotten")
        if tip is not None and not keep_branch and not delete_ref(self.repository, worktree.ref, tip):
            raise GitFailed(f"{worktree.branch} moved while it was removed", next_step="remove it again")
        return kept

    def _with_leftovers(self, worktree: Worktree, tip: str, identity: Identity) -> str:
        """The tip, or a commit after it with what lies uncommitted in the folder."""
        if not self.is_ready(worktree):
            return tip
        open_up(worktree.folder)
        old_tree = self.repository.tree_of(tip)
        taken = self._take(worktree, old_tree, enter_embedded=True)
        if taken.tree == old_tree:
            return tip
        for kept in quarantine.kept(self.repository, worktree.run):  # a try that was killed may have kept it already
            if self.repository.tree_of(kept.commit) == taken.tree and self.repository.ref(f"{kept.commit}^1") == tip:
                return kept.commit
        objects = self.shadow.into_store(self.repository)
        return commit_tree(objects, taken.tree, [tip], f"Left uncommitted in {worktree.name}", identity)

    def _take(self, worktree: Worktree, old_tree: str, *, enter_embedded: bool = False) -> FolderSnapshot:
        """The folder as a tree in the person's store, and the index of the worktree brought up to it."""
        objects = self.shadow.into_store(self.repository)
        with objects.index(old_tree) as git:
            taken = take(objects, git, worktree.folder, enter_embedded=enter_embedded)
            if not enter_embedded:
                self._bring_index(worktree, Path(git.env["GIT_INDEX_FILE"]))
        return taken

    def _bring_index(self, worktree: Worktree, index: Path) -> None:
        """Lets the agent's own git see which files are unchanged; ours does not need it."""
        admin = admin_of(self.repository.common_dir, worktree.folder)
        if admin is not None:
            shutil.copy2(index, admin / "index")

    def _standing_tip(self, worktree: Worktree) -> str:
        tip = self.tip(worktree)
        if tip is None:
            raise GitFailed(f"there is no branch {worktree.branch}", next_step="create the worktree first")
        return tip

    def _forget(self, worktree: Worktree) -> None:
        """Removes the folder and the worktree's git directory, in an order that a repetition understands."""
        worktree.mark.unlink(missing_ok=True)
        common, folder = self.repository.common_dir, worktree.folder
        for place in (admin_of(common, folder), unfinished_of(common, folder), folder, worktree.aside):
            if place is not None:
                remove(place)
                killpoint("git.worktree.forgetting")
