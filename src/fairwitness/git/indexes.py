"""A person's index and checkout as trees: both are read, neither is touched, and no lock is taken."""

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
"""What of a person's configuration decides how files are read, and runs nothing."""
_IGNORE_LIMIT = 1 << 20
_OWN_FOLDER = b"/.fairwitness/\n"


class Checkout(Protocol):
    """What this module needs to know of a repository."""

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
    """The index as a tree; a conflict in it is the person's to resolve first."""
    repository.checkout("index")
    with copied_index(objects, repository) as git:
        refuse_unmerged(git)
        return write_tree(git)


def worktree_tree(objects: Objects, repository: Checkout) -> str:
    """The checkout as a tree: what is tracked, as it is now, and what is neither tracked nor ignored."""
    top = repository.checkout("work tree")
    with copied_index(objects, repository) as git, objects.passing_folder() as folder:
        said = _effective(repository)
        ignored = folder / "ignored"
        ignored.write_bytes(_ignored(repository, said.pop("core.excludesfile", None)) + _OWN_FOLDER)
        git = git.given(settings={**said, "core.excludesFile": str(ignored)})
        return take(objects, git, top, large_files=True).tree


@contextlib.contextmanager
def copied_index(objects: Objects, repository: Checkout) -> Iterator[GitDir]:
    """A copy of the person's index under our git directory.

    The copy keeps its time: a file that was changed in the same moment the index was written is told by it.
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
    """A split index has its larger part in a file of its own, which git looks for in its directory."""
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
    """What the person ignores beside the repository's own .gitignore files."""
    usual = Path(os.environ.get("XDG_CONFIG_HOME") or Path(os.environ.get("HOME", "/")) / ".config") / "git" / "ignore"
    lines = b""
    for file in (usual if named is None else Path(named), repository.common_dir / "info" / "exclude"):
        with contextlib.suppress(StoreError):
            lines += read_given(file, limit=_IGNORE_LIMIT) + b"\n"
    return lines
