"""A worktree and a branch for each attempt; removing one loses none of its content.

An agent writes in the folder, so nothing in it is trusted: the git directory is always given explicitly, files are
written and read under Fair Witness's own configuration, and the branch, not the folder's HEAD, is the state of the
attempt.

Git creates the administrative folder of a worktree only together with an empty worktree. For a folder that already has
files Fair Witness creates it itself, in the layout that git documents. It is written elsewhere and moved into place as
a whole, so that a process that lists or prunes worktrees never sees a partial one.
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
"""Folders beside the worktrees; unlike theirs, these names contain no `--`."""
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Worktree:
    """The branch and the folder of one attempt."""

    run: str
    task: str
    attempt: int
    branch: str
    folder: Path
    sub: str | None = None
    """The sub-agent that works beside the attempt on its own branch; None for the attempt itself."""

    @property
    def ref(self) -> str:
        """Return the full ref of the branch."""
        return f"refs/heads/{self.branch}"

    @property
    def name(self) -> str:
        """Return the name of the attempt within its run."""
        return _joined(self.task, attempt_name(self.attempt), self.sub)

    @property
    def mark(self) -> Path:
        """Return the file that marks the worktree as complete; no agent sees the folder before it exists."""
        return self.folder.with_name(f"{self.folder.name}.ready")

    @property
    def aside(self) -> Path:
        """Return the folder in which the worktree is prepared or parked; its content may be deleted at any time."""
        return self.folder.parent / ASIDE / self.run / self.folder.name


def worktree_of(root: Path, prefix: str, run_id: str, task: str, attempt: int, sub: str | None) -> Worktree:
    """Return the worktree of an attempt or of its sub-agent; raise `UsageError` for names that git would refuse."""
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
    if len(name) > _LONGEST_NAME or any("--" in part for part in names):  # the joined name could be ambiguous
        name = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(branch.encode()).hexdigest()[:16]}"
    return Worktree(run, task, attempt, branch, Path(os.path.realpath(root)) / name, sub)


def _joined(*names: str | None) -> str:
    return "--".join(name for name in names if name is not None)


_TRIES = 5
"""How often a branch is asked for that another process creates or deletes at the same moment."""
_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


def admin_of(common_dir: Path, folder: Path) -> Path | None:
    """Return the administrative folder of the worktree in a folder, or None if the repository has none."""
    wanted = os.fsencode(folder / ".git")
    for place in sorted((common_dir / "worktrees").glob("*")):
        try:
            if (place / "gitdir").read_bytes().rstrip(b"\n") == wanted:
                return place
        except (FileNotFoundError, NotADirectoryError):
            continue  # another process creates or removes it
    return None


def unfinished_of(common_dir: Path, folder: Path) -> Path:
    """Return where the administrative folder is written first; existing content was left by a killed process."""
    return common_dir / f"fairwitness-{folder.name}.new"


def can_be_made(common_dir: Path) -> bool:
    """Return whether refs are stored in files: other ref stores need more files than `make_admin` writes."""
    return not (common_dir / "reftable").exists()


def make_admin(common_dir: Path, folder: Path, branch: str, index: Path) -> None:
    """Make a folder with the files of a commit a worktree of a branch."""
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
        place.parent.mkdir(exist_ok=True)  # git removes it together with the last worktree
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(place) + b"\n")
        try:
            new.rename(place)
        except OSError as error:
            if error.errno not in {*_TAKEN, errno.ENOENT} or not new.exists():
                raise
        else:
            return


class AttemptCommit(NamedTuple):
    """The state of an attempt after its files were committed."""

    commit: str
    tree: str
    is_new: bool
    """False if nothing had changed."""
    embedded: tuple[str, ...]
    """Nested repositories in the folder; their files are not in the commit."""


@dataclass(frozen=True, slots=True)
class Worktrees:
    """The worktrees of one repository, all in one folder of Fair Witness."""

    repository: Repository
    shadow: Shadow
    root: Path
    prefix: str = "fairwitness"
    pooled: int = POOL_LIMIT
    """How many folders are kept for later attempts."""

    @property
    def pool(self) -> Pool:
        """Return the pool of folders for later attempts."""
        return Pool(self.shadow, Path(os.path.realpath(self.root)) / POOL, self.pooled)

    def named(self, run_id: str, task: str, attempt: int, *, sub: str | None = None) -> Worktree:
        """Return the worktree of an attempt or of its sub-agent (`sub`), whether or not it exists."""
        return worktree_of(self.root, self.prefix, run_id, task, attempt, sub)

    def create(self, run_id: str, task: str, attempt: int, commit: str, *, sub: str | None = None) -> Worktree:
        """Create a worktree with a branch that starts at a commit; an existing one is returned unchanged.

        A folder of the pool is used if there is one, and only what differs is written.
        """
        worktree = self.named(run_id, task, attempt, sub=sub)
        for _ in range(_TRIES):
            if self.is_ready(worktree):
                return worktree
            self._forget(worktree)  # left by a killed process: no agent has seen it
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            tip, start, tree = self._beginning(worktree, commit)
            waiting = self.pool.take(tree, worktree.aside) if can_be_made(self.repository.common_dir) else None
            if tip is None and waiting is None:
                self.shadow.refuse_odd_paths(tree)
            if tip is not None or move_ref(self.repository, worktree.ref, start, None, why="attempt"):
                break  # else another process created the branch
        else:
            raise GitFailed(
                f"{worktree.branch} exists, but git finds no commit at it", next_step="git fsck, then delete the branch"
            )
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
        """Return the tip of the branch if it exists, the commit that the attempt starts from, and its tree."""
        tip, start, tree = self.repository.ids(worktree.ref, f"{commit}^{{commit}}", f"{commit}^{{tree}}")
        if tip is not None:
            return tip, tip, self.repository.tree_of(tip)
        if start is None or tree is None:
            start = self.repository.commit(commit)  # raises the specific error
            tree = self.repository.tree_of(start)
        return None, start, tree

    def _make(self, worktree: Worktree, tree: str) -> None:
        """Create the worktree and write all its files."""
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
                # `git worktree add` is not safe to run concurrently: one process may read what another has half
                # written, and fail.
                make_admin(common, folder, worktree.branch, index)
            else:
                self._bring_index(worktree, index)

    def is_ready(self, worktree: Worktree) -> bool:
        """Return whether the worktree is complete."""
        return worktree.mark.is_file() and worktree.folder.is_dir() and not worktree.folder.is_symlink()

    def tip(self, worktree: Worktree) -> str | None:
        """Return the last commit of the attempt, or None if it has no branch."""
        return self.repository.ref(worktree.ref)

    def commit_all(
        self,
        worktree: Worktree,
        message: str,
        identity: Identity,
        *,
        only: frozenset[str] | None = None,
        sign: bool = False,
    ) -> AttemptCommit:
        """Commit the folder's current content: what git would add, but without any hook, filter or monitor.

        With `only`, other paths stay as in the branch.
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
        """Remove a worktree and its branch; what is not in the target commit goes to quarantine first.

        With `keep_branch` only the worktree is removed, and what the branch does not hold goes to quarantine.
        """
        return self._part(worktree, target, identity, keep_branch=keep_branch, to_pool=False)

    def release(
        self, worktree: Worktree, target: str, identity: Identity = FALLBACK, *, keep_branch: bool = False
    ) -> Quarantined | None:
        """Remove a worktree like `remove`, but park its folder in the pool, cleaned and with the target's files.

        The agent's processes must have ended: one with an open file could write into the next attempt.
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
            worktree.mark.unlink()  # from here on the folder may be deleted after a crash
            killpoint("git.worktree.unmarked")
            self.pool.park(worktree.folder, worktree.aside, tree)
        self._forget(worktree)
        killpoint("git.worktree.forgotten")
        if tip is not None and not keep_branch and not delete_ref(self.repository, worktree.ref, tip):
            raise GitFailed(f"{worktree.branch} moved while it was removed", next_step="remove it again")
        return kept

    def _with_leftovers(self, worktree: Worktree, tip: str, identity: Identity) -> str:
        """Return the tip, or a commit after it with the folder's uncommitted content."""
        if not self.is_ready(worktree):
            return tip
        open_up(worktree.folder)
        old_tree = self.repository.tree_of(tip)
        taken = self._take(worktree, old_tree, enter_embedded=True)
        if taken.tree == old_tree:
            return tip
        for kept in quarantine.kept(self.repository, worktree.run):  # a killed attempt to remove it may have kept it
            if self.repository.tree_of(kept.commit) == taken.tree and self.repository.ref(f"{kept.commit}^1") == tip:
                return kept.commit
        objects = self.shadow.into_store(self.repository)
        return commit_tree(objects, taken.tree, [tip], f"Left uncommitted in {worktree.name}", identity)

    def _take(self, worktree: Worktree, old_tree: str, *, enter_embedded: bool = False) -> FolderSnapshot:
        """Return the folder as a tree in the user's store, and update the worktree's index."""
        objects = self.shadow.into_store(self.repository)
        with objects.index(old_tree) as git:
            taken = take(objects, git, worktree.folder, enter_embedded=enter_embedded)
            if not enter_embedded:
                self._bring_index(worktree, Path(git.env["GIT_INDEX_FILE"]))
        return taken

    def _bring_index(self, worktree: Worktree, index: Path) -> None:
        """Update the index for the agent's own git, so that it sees which files are unchanged."""
        admin = admin_of(self.repository.common_dir, worktree.folder)
        if admin is not None:
            shutil.copy2(index, admin / "index")

    def _standing_tip(self, worktree: Worktree) -> str:
        tip = self.tip(worktree)
        if tip is None:
            raise GitFailed(f"there is no branch {worktree.branch}", next_step="create the worktree first")
        return tip

    def _forget(self, worktree: Worktree) -> None:
        """Remove the folder and its administrative folder, in an order that allows a repetition after a crash."""
        worktree.mark.unlink(missing_ok=True)
        common, folder = self.repository.common_dir, worktree.folder
        for place in (admin_of(common, folder), unfinished_of(common, folder), folder, worktree.aside):
            if place is not None:
                remove(place)
                killpoint("git.worktree.forgetting")
