"""Bringing a person's checkout from one commit to another without git running anything, and without losing anything.

Files are written under our own configuration, as everywhere. The person's index lock is held meanwhile, so that no
command of theirs comes in between; it says that it is ours, so that a repetition after a kill takes it over. A path may
stand as the old commit or as the new one has it: anything else would be lost, and nothing is written then.
"""

import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import AlreadyWritten
from fairwitness.git.call import GitDir, GitFailed, bytes_of, failed, text_of
from fairwitness.git.commits import move_ref
from fairwitness.git.indexes import copied_index
from fairwitness.git.merge import checked_out, target_lock
from fairwitness.git.objects import GITLINK, TreeEntry, path_problem, set_entries, write_tree
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.snapshots import unmerged
from fairwitness.kit import files
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible

_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "sequencer": "cherry-pick or revert",
    "BISECT_START": "bisect",
}
_CONFIG = "filemode|symlinks|ignorecase|autocrlf|eol|precomposeunicode"
"""What of a person's configuration decides how files are written, and runs nothing."""
_MARK = b"fairwitness switches this checkout"
_TIMEOUT_S = 600.0

Entries = Mapping[str, TreeEntry]


class CheckoutPosition(NamedTuple):
    """Where a checkout is: its commit (None before the first) and its branch (None if HEAD is detached)."""

    commit: str | None
    branch: str | None

    def __str__(self) -> str:
        return f"{visible(self.branch) if self.branch else 'no branch'} at {(self.commit or 'no commit')[:12]}"


@dataclass(frozen=True, slots=True)
class CheckoutMove:
    """From where to where; `apart` is a folder whose changes are ours and stay as they are."""

    old: CheckoutPosition
    new: CheckoutPosition
    apart: str


class _SwitchRefused(Exception):
    """Why a checkout stays where it is."""


def checkout_position(repository: Repository) -> CheckoutPosition:
    """Where the checkout is now, which may be elsewhere than when the repository was opened."""
    branch = text_of(repository.git.ask("symbolic-ref", "--quiet", "HEAD").out.strip()).removeprefix("refs/heads/")
    return CheckoutPosition(repository.ref("HEAD^{commit}"), branch or None)


def operation(repository: Repository) -> str | None:
    """What the person has begun in the checkout and not ended: a merge, a rebase, …"""
    return next((name for file, name in _OPERATIONS.items() if (repository.git_dir / file).exists()), None)


def release(repository: Repository, shadow: Shadow) -> None:
    """Takes away the lock that a switch left which was killed: nobody else knows that it is ours."""
    lock = repository.git_dir / "index.lock"
    if _is_ours(lock):
        with _turn(repository, shadow):
            if _is_ours(lock):
                lock.unlink()


def switch(repository: Repository, shadow: Shadow, move: CheckoutMove) -> str | None:
    """Brings the checkout there; what keeps it from that otherwise. Repeated after a kill, it goes on.

    If both sides name the same branch, the branch itself moves along.
    """
    lock = repository.git_dir / "index.lock"
    if checkout_position(repository) == move.new and not _is_ours(lock):
        return None
    if repository.top is None:
        return "the repository has no checkout"
    with _turn(repository, shadow):
        if _is_ours(lock):  # its process is dead, or we would still wait for our turn
            lock.unlink()
        try:
            files.create_file(repository.git_dir, lock.name, _MARK + b"\n")
        except AlreadyWritten:
            return f"another git command is at work in the checkout ({visible(str(lock))} is there)"
        killpoint("git.switch.locked")
        try:
            _go(repository, shadow, repository.top, move)
        except _SwitchRefused as refused:
            return str(refused)
        finally:
            lock.unlink(missing_ok=True)
    killpoint("git.switch.done")
    return None


def _turn(repository: Repository, shadow: Shadow) -> contextlib.AbstractContextManager[None]:
    return target_lock(shadow.git.path / "locks", str(repository.git_dir))


def _is_ours(lock: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return lock.read_bytes()[: len(_MARK)] == _MARK
    return False


def _go(repository: Repository, shadow: Shadow, top: Path, move: CheckoutMove) -> None:
    now = checkout_position(repository)
    if now == move.new:
        return
    if now != move.old or now.commit is None or move.new.commit is None:
        raise _SwitchRefused(f"the checkout is on {now}, not on {move.old}")
    _refuse_unusual(repository, top, move)
    before, after = (shadow.entries(repository.tree_of(commit)) for commit in (now.commit, move.new.commit))
    with copied_index(shadow, repository) as copy:
        git = copy.given(work_tree=top, settings={**_writing(repository), "core.splitIndex": "false"})
        stands = _bring_index(shadow, repository, git, _Trees(before, after, move.apart))
        _refuse_in_the_way(shadow, git, top, stands, after)
        here, there = write_tree(git), repository.tree_of(move.new.commit)
        changed = [path for path in {*stands, *after} if stands.get(path) != after.get(path)]
        _refuse_converted(repository, shadow, changed, (here, there))
        git.ask("update-index", "-q", "--refresh", timeout_s=_TIMEOUT_S)
        answer = git.ask("read-tree", "-m", "-u", here, there, timeout_s=_TIMEOUT_S)
        if answer.code:
            raise _SwitchRefused(f"git does not write the files: {answer.words}")
        killpoint("git.switch.written")
        new = repository.git_dir / "index.fairwitness"
        shutil.copy2(git.env["GIT_INDEX_FILE"], new)  # with its time, by which git tells files changed just then
        new.replace(repository.git_dir / "index")
    killpoint("git.switch.indexed")
    _set_head(repository, move)


class _Trees(NamedTuple):
    before: Entries
    after: Entries
    apart: str


def _refuse_unusual(repository: Repository, top: Path, move: CheckoutMove) -> None:
    """What is rare enough to be left to the person."""
    under_way = operation(repository)
    if under_way is not None:
        raise _SwitchRefused(f"a {under_way} is under way in the checkout")
    if repository.index_file != repository.git_dir / "index":
        raise _SwitchRefused("a git hook is at work in the checkout")
    if move.new.branch is not None:
        for ref, where in checked_out(repository):
            if ref == f"refs/heads/{move.new.branch}" and os.path.realpath(where) != os.path.realpath(top):
                raise _SwitchRefused(f"{visible(move.new.branch)} is checked out in {visible(where)}")


def _bring_index(shadow: Shadow, repository: Repository, git: GitDir, trees: _Trees) -> dict[str, TreeEntry]:
    """Brings our copy of the index up to the files, and tells what it holds then; refuses what would be lost."""
    conflicts = unmerged(git)
    if conflicts:
        raise _SwitchRefused(f"the index holds an unresolved conflict: {visible(conflicts[0])}")
    if any(row[:1] in b"Ss" for row in git.run("ls-files", "-t", "-z").split(b"\0")[:-1]):
        raise _SwitchRefused("it is a sparse checkout")
    staged = shadow.entries(write_tree(git))
    present = shadow.entries(shadow.worktree_tree(repository))
    stands = dict(present)
    for path in sorted({*staged, *present, *trees.before}):
        known = (trees.before.get(path), trees.after.get(path))
        if staged.get(path) not in known:
            raise _SwitchRefused(f"something is staged in the checkout: {visible(path)}")
        if present.get(path) in known:
            continue
        if not path.startswith(f"{trees.apart}/") or known[0] != known[1]:
            raise _SwitchRefused(f"the checkout has uncommitted changes: {visible(path)}")
        if known[0] is None:
            stands.pop(path)
        else:
            stands[path] = known[0]
    changes = {path: stands.get(path) for path in {*staged, *stands} if staged.get(path) != stands.get(path)}
    set_entries(git, changes, shadow.null)
    return stands


def _refuse_in_the_way(shadow: Shadow, git: GitDir, top: Path, stands: dict[str, TreeEntry], after: Entries) -> None:
    """Ignored files where the new commit has some: only those with the same content may be replaced."""
    found = []
    for path, entry in after.items():
        problem = path_problem(path)
        if problem is not None:
            raise _SwitchRefused(f"the new commit holds {visible(path)!r}: {problem}")
        if entry.mode == GITLINK and stands.get(path) != entry:
            raise _SwitchRefused(f"the new commit changes the submodule {visible(path)}")
        if path in stands:
            continue
        for parent in Path(path).parents[:-1]:
            place = top / parent
            if str(parent) not in stands and (place.is_symlink() or (place.exists() and not place.is_dir())):
                raise _SwitchRefused(f"{visible(str(parent))} is in the way")
        place = top / path
        if place.is_dir() and not place.is_symlink():
            inside = (os.path.relpath(f"{at}/{name}", top) for at, _, names in os.walk(place) for name in names)
            if any(name not in stands for name in inside):
                raise _SwitchRefused(f"files in {visible(path)} are in the way")
        elif os.path.lexists(place) and not any(str(parent) in stands for parent in Path(path).parents):
            found.append(path)
    if any(entry.mode == GITLINK and path not in after for path, entry in stands.items()):
        raise _SwitchRefused("the new commit removes a submodule")
    if found:
        git.run("update-index", "--add", "-z", "--stdin", stdin=b"".join(bytes_of(path) + b"\0" for path in found))
        now = shadow.entries(write_tree(git))
        for path in found:
            if now.get(path) != after[path]:
                raise _SwitchRefused(f"{visible(path)} is not committed and would be overwritten")


def _refuse_converted(repository: Repository, shadow: Shadow, changed: list[str], trees: tuple[str, str]) -> None:
    """Files that a filter of the person's makes (LFS is one): it is not run here, so they cannot be written."""
    info = repository.common_dir / "info" / "attributes"
    lines = info.read_bytes().split(b"\n") if info.is_file() else []
    if changed and any(line.strip()[:1] not in (b"", b"#") for line in lines):
        raise _SwitchRefused(f"{visible(str(info))} says how files are written")
    for tree in trees:
        with shadow.index(tree) as index:
            answer = index.run(
                *("check-attr", "--cached", "-z", "--stdin", "filter"),
                stdin=b"".join(bytes_of(path) + b"\0" for path in changed),
            )
        said = answer.split(b"\0")[:-1]
        for path, value in zip(said[::3], said[2::3], strict=True):
            if value not in (b"unspecified", b"unset"):
                raise _SwitchRefused(f"{visible(text_of(path))} is written by the filter {visible(text_of(value))}")


def _set_head(repository: Repository, move: CheckoutMove) -> None:
    commit, branch = move.new
    assert commit is not None
    message = ("-m", f"fairwitness: switch to {branch or commit}")
    if branch is None:
        arguments: tuple[str, ...] = ("update-ref", *message, "--no-deref", "HEAD", commit)
    elif branch != move.old.branch:
        arguments = ("symbolic-ref", *message, "HEAD", f"refs/heads/{branch}")
    else:
        if not move_ref(repository, f"refs/heads/{branch}", commit, move.old.commit, why="switch"):
            raise GitFailed(f"{visible(branch)} moved while its files were written", next_step="git status")
        return
    answer = repository.git.ask(*arguments)
    if answer.code:
        raise failed(arguments[0], repository.git_dir, answer)
    killpoint("git.switch.headed")


def _writing(repository: Repository) -> dict[str, str]:
    listed = repository.git.ask("config", "-z", "--get-regexp", rf"^core\.({_CONFIG})$", as_person=True).out
    pairs = (row.partition(b"\n") for row in listed.split(b"\0")[:-1])
    return {name.decode(): text_of(value) if sep else "true" for name, sep, value in pairs}
