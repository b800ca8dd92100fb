"""Moves the user's checkout from one commit to another, without git running any program and without losing any change.

Files are written under Fair Witness's own configuration, as everywhere. During the switch Fair Witness holds the user's
index lock, so that no git command of the user interferes; the lock is marked, so that a repetition after a crash can
take it over. Each path must be as in the old commit or as in the new one: any other content would be lost, so nothing
is written then.
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
from fairwitness.kit.folder_trees import walk
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
"""The user's settings that decide how files are written and that run no program."""
_MARK = b"fairwitness switches this checkout"
_TIMEOUT_S = 600.0

Entries = Mapping[str, TreeEntry]


class CheckoutPosition(NamedTuple):
    """The position of a checkout: its commit (None before the first) and its branch (None if HEAD is detached)."""

    commit: str | None
    branch: str | None

    def __str__(self) -> str:
        return f"{visible(self.branch) if self.branch else 'no branch'} at {(self.commit or 'no commit')[:12]}"


@dataclass(frozen=True, slots=True)
class CheckoutMove:
    """The old and the new position; `apart` is a folder of Fair Witness whose changes are left alone."""

    old: CheckoutPosition
    new: CheckoutPosition
    apart: str


class _SwitchRefused(Exception):
    """The reason why a checkout is not switched."""


def checkout_position(repository: Repository) -> CheckoutPosition:
    """Return the current position of the checkout, which may have changed since the repository was opened."""
    branch = text_of(repository.git.ask("symbolic-ref", "--quiet", "HEAD").out.strip()).removeprefix("refs/heads/")
    return CheckoutPosition(repository.ref("HEAD^{commit}"), branch or None)


def operation(repository: Repository) -> str | None:
    """Return the unfinished operation in the checkout (a merge, a rebase, …), or None."""
    return next((name for file, name in _OPERATIONS.items() if (repository.git_dir / file).exists()), None)


def release(repository: Repository, shadow: Shadow) -> None:
    """Remove the lock that a killed switch left; git and the user cannot know that it may be removed."""
    lock = repository.git_dir / "index.lock"
    if _is_ours(lock):
        with _turn(repository, shadow):
            if _is_ours(lock):
                lock.unlink()


def switch(repository: Repository, shadow: Shadow, move: CheckoutMove) -> str | None:
    """Switch the checkout and return None, or return the reason why it cannot be switched.

    Repeated after a crash, it continues. If both positions name the same branch, the branch itself moves too.
    """
    lock = repository.git_dir / "index.lock"
    if checkout_position(repository) == move.new and not _is_ours(lock):
        return None
    if repository.top is None:
        return "the repository has no checkout"
    with _turn(repository, shadow):
        if _is_ours(lock):  # its process is dead, otherwise we would still wait for the target lock
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
        shutil.copy2(git.env["GIT_INDEX_FILE"], new)  # keeps the time, by which git detects racy changes
        new.replace(repository.git_dir / "index")
    killpoint("git.switch.indexed")
    _set_head(repository, move)


class _Trees(NamedTuple):
    before: Entries
    after: Entries
    apart: str


def _refuse_unusual(repository: Repository, top: Path, move: CheckoutMove) -> None:
    """Refuse situations that are rare enough to leave them to the user."""
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
    """Update our copy of the index from the files and return its entries; refuse if something would be lost."""
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
    """Refuse ignored files at paths of the new commit, unless they have the same content."""
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
            inside = (os.path.relpath(f"{at}/{name}", top) for at, _, names in walk(place) for name in names)
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
    """Refuse files that a filter of the user writes, such as LFS: filters are not run here."""
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
