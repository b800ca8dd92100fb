"""Finding the repository that a person stands in, by looking at folders; git itself is asked only about what was found.

A folder that an agent could write is never searched: what it calls its repository is the agent's word.
"""

import os
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import NotReady, StoreError, UsageError
from fairwitness.git.call import GitDir, GitFailed, text_of
from fairwitness.git.process import LOOK
from fairwitness.kit.files import read_given
from fairwitness.kit.text import visible

WORKTREES = (".fairwitness", "worktrees")
_POINTER_LIMIT = 8192


class Place(NamedTuple):
    """Where a repository was found."""

    top: Path | None
    """The checkout's folder; None for a bare repository."""
    git_dir: Path


def find(path: Path) -> Place:
    """The repository around a path."""
    try:
        return _search(path)
    except PermissionError as error:
        raise NotReady(
            f"{visible(str(error.filename))} may not be read", next_step="give this user the right to read it"
        ) from None


def _search(path: Path) -> Place:
    start = Path(os.path.realpath(path))
    if not start.exists():
        raise UsageError(f"there is no {visible(str(path))}", next_step="check the path")
    if start.is_file():
        start = start.parent
    _refuse_worktree(start)
    for folder in (start, *start.parents):
        pointer = folder / ".git"
        if pointer.is_symlink() or pointer.exists():
            return Place(folder, _git_dir(pointer))
        if looks_like_git_dir(folder):
            return Place(None, folder)
    raise UsageError(
        f"{visible(str(path))} is not in a git repository", next_step="go to a repository, or make one: git init"
    )


def looks_like_git_dir(folder: Path) -> bool:
    """True if git would take a folder for a repository of its own."""
    return (
        (folder / "HEAD").is_file()
        and (folder / "objects").is_dir()
        and ((folder / "refs").is_dir() or (folder / "reftable").is_dir())
    )


def refuse_foreign(place: Place) -> None:
    """`NotReady` if somebody else owns the repository and the person has not said that this is fine.

    Git itself asks that before it reads a repository's configuration, but not when the directory is named outright.
    """
    owners = {found.stat().st_uid for found in (place.top, place.git_dir) if found is not None}
    us = {os.geteuid()} | (
        {int(sudo)} if os.geteuid() == 0 and (sudo := os.environ.get("SUDO_UID", "")).isdigit() else set()
    )
    if owners <= us:
        return
    where = place.top or place.git_dir
    accepted = GitDir(place.git_dir).ask(
        "config", "--global", "--includes", "-z", "--get-all", "safe.directory", as_person=True
    )
    system = GitDir(place.git_dir).ask("config", "--system", "-z", "--get-all", "safe.directory", as_person=True)
    safe: set[str] = set()
    for value in [*system.out.split(b"\0")[:-1], *accepted.out.split(b"\0")[:-1]]:
        safe = safe | {text_of(value).rstrip("/")} if value else set()  # an empty one forgets those before it
    if not safe & {"*", str(where), str(place.git_dir)}:
        raise NotReady(
            f"{visible(str(where))} belongs to another user (dubious ownership)",
            next_step=f"if you trust it: git config --global --add safe.directory {visible(str(where))}",
        )


def _git_dir(pointer: Path) -> Path:
    """The git directory that a checkout's `.git` is or names."""
    if pointer.is_dir():
        named = pointer.resolve()
    else:
        try:
            said = read_given(pointer, limit=_POINTER_LIMIT)
        except StoreError as error:
            raise GitFailed(f"{visible(str(pointer))} cannot be read: {error.what}", next_step=LOOK) from None
        if not said.startswith(b"gitdir: "):
            raise GitFailed(f"{visible(str(pointer))} names no repository", next_step=LOOK)
        named = (pointer.parent / text_of(said.removeprefix(b"gitdir: ").rstrip(b"\r\n"))).resolve()
    has_objects = (named / "objects").is_dir() or (named / "commondir").is_file()
    if not has_objects or not (named / "HEAD").is_file():
        raise GitFailed(
            f"{visible(str(pointer.parent))} has a damaged repository: {visible(str(named))} is not a git repository",
            next_step="restore it, or clone it again",
        )
    return named


def _refuse_worktree(folder: Path) -> None:
    for parent in (folder, *folder.parents):
        if parent.parts[-2:] == WORKTREES:
            raise UsageError(
                f"{visible(str(folder))} is inside an attempt's worktree, which an agent may have written",
                next_step=f"go to {visible(str(parent.parent.parent))}",
            )
