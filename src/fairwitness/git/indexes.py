"""Reads the user's index and checkout as trees, without changing either and without taking a lock."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from fairwitness.errors import StoreError, UsageError
from fairwitness.git.call import GitDir, GitFailed, text_of
from fairwitness.git.objects import Objects, write_tree
from fairwitness.git.snapshots import refuse_unmerged, take
from fairwitness.kit.files import read_given
from fairwitness.kit.text import visible

_HARMLESS = ("filemode", "symlinks", "ignorecase", "autocrlf", "eol", "precomposeunicode")
"""The user's settings that decide how files are read and that run no program."""
_IGNORE_LIMIT = 1 << 20
_OWN_FOLDER = b"/.fairwitness/\n"


class Checkout(Protocol):
    """The attributes of a repository that this module uses."""

    @property
    def git(self) -> GitDir: ...
    @property
    def git_dir(self) -> Path: ...
    @property
    def common_dir(self) -> Path: ...
    @property
    def index_file(self) -> Path: ...
    def checkout(self, wish: str) -> Path: ...


def staged_tree(objects: Objects, repository: Checkout) -> str:
    """Return the index as a tree; raise `UsageError` if it holds conflicts, which the user must resolve first."""
    repository.checkout("index")
    with copied_index(objects, repository) as git:
        refuse_unmerged(git)
        return write_tree(git)


def worktree_tree(objects: Objects, repository: Checkout) -> str:
    """Return the checkout as a tree: tracked files with their current content, and untracked, not ignored files."""
    top = repository.checkout("work tree")
    with copied_index(objects, repository) as git, objects.passing_folder() as folder:
        said = _effective(repository)
        ignored = folder / "ignored"
        ignored.write_bytes(_ignored(repository, said.pop("core.excludesfile", None)) + _OWN_FOLDER)
        git = git.given(settings={**said, "core.excludesFile": str(ignored)})
        return take(objects, git, top, large_files=True).tree


@contextlib.contextmanager
def copied_index(objects: Objects, repository: Checkout) -> Iterator[GitDir]:
    """Yield a git directory of Fair Witness with a copy of the user's index.

    The copy keeps its modification time, by which git detects files that changed at the moment the index was written.
    """
    with objects.passing_folder() as folder:
        copy = folder / "index"
        _bring_shared_parts(objects, repository)
        try:
            shutil.copy2(repository.index_file, copy)
        except FileNotFoundError:
            pass  # nothing is staged yet
        except OSError as error:
            raise GitFailed(
                f"the index {visible(str(repository.index_file))} cannot be read: {error.strerror}",
                next_step="check who owns it",
            ) from None
        git = objects.git.given(env={"GIT_INDEX_FILE": str(copy)})
        if git.ask("ls-files", "--stage", "-z").code:
            raise UsageError(
                f"the index {visible(str(repository.index_file))} is damaged", next_step="git reset, or clone again"
            )
        yield git


def _bring_shared_parts(objects: Objects, repository: Checkout) -> None:
    """Copy the shared file of a split index, which git expects in its git directory."""
    theirs = {part.name: part for part in repository.git_dir.glob("sharedindex.*")}
    ours = {part.name: part for part in objects.git.path.glob("sharedindex.*")}
    for name in theirs.keys() - ours.keys():
        with objects.passing_folder() as folder:
            shutil.copy2(theirs[name], folder / name)
            (folder / name).replace(objects.git.path / name)
    for name in ours.keys() - theirs.keys():
        ours[name].unlink(missing_ok=True)


def _effective(repository: Checkout) -> dict[str, str]:
    names = "|".join((*_HARMLESS, "excludesfile"))
    listed = repository.git.ask(
        "config", "-z", "--type=path", "--get-regexp", rf"^core\.({names})$", as_person=True
    ).out.split(b"\0")[:-1]
    pairs = (row.partition(b"\n") for row in listed)
    return {name.decode(): text_of(value) for name, _, value in pairs}


def _ignored(repository: Checkout, named: str | None) -> bytes:
    """Return the user's ignore patterns besides the repository's own .gitignore files."""
    usual = Path(os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/")) / ".config") / "git" / "ignore"
    lines = b""
    for file in (usual if named is None else Path(named), repository.common_dir / "info" / "exclude"):
        with contextlib.suppress(StoreError):
            lines += read_given(file, limit=_IGNORE_LIMIT) + b"\n"
    return lines
