"""Hide paths of a worktree from a command by mounting something empty over each one that exists.

A mount belongs to its path, and the command can neither unmount it nor rename the path: the folders above it are mounts
of their own, so they cannot be renamed either. Nothing changes on the host. Links are never followed, because a link
may lead to different places inside and outside the sandbox.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MOST = 200
"""The most paths that can be hidden; each needs at least one mount."""
_HOPS = 40
_JSON = (".json", ".jsonc")


class Unhidable(Exception):
    """Raised when a path cannot be hidden; the text says why."""


def path_problem(path: str) -> str | None:
    """Return why a text is not a path that can be hidden, or None if it is one.

    >>> [path_problem(path) for path in (".qwen", "a/../b", "/etc", "sub/.git/config", ".")]
    [None, "it has a '..' segment", 'it is absolute', 'it is in .git, which is read-only anyway', 'it names nothing']
    """
    parts = PurePosixPath(path).parts
    if path.startswith("/"):
        return "it is absolute"
    if "\0" in path or not parts:
        return "it names nothing"
    if ".." in parts:
        return "it has a '..' segment"
    if any(part.casefold() == ".git" for part in parts):
        return "it is in .git, which is read-only anyway"
    return None


def existing(worktree: str, paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths that exist, each once and none inside another; raise `Unhidable` if one involves a link."""
    wanted = sorted({str(PurePosixPath(path)) for path in paths}, key=lambda path: (path.count("/"), path))
    there: list[str] = []
    for path in wanted:
        if not any(path.startswith(f"{outer}/") for outer in there) and _is_there(worktree, path):
            there.append(path)
    if len(there) > MOST:
        raise Unhidable(f"more than {MOST} paths are to be hidden")
    return tuple(there)


def _is_there(worktree: str, path: str) -> bool:
    """Return whether a path exists; raise `Unhidable` if it exists behind a link, since it could not be hidden."""
    left = path.split("/")[::-1]
    at: list[str] = []
    hops = 0
    while left:
        part = left.pop()
        if part in ("", "."):
            continue
        if part == "..":
            if not at:
                raise Unhidable(f"a link on the way to {path} leads out of the worktree, so it cannot be hidden")
            at.pop()
            continue
        here = "/".join((worktree, *at, part))
        try:
            is_link = stat.S_ISLNK(os.lstat(here).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise Unhidable(f"{path} cannot be examined: {error.strerror}") from None
        if not is_link:
            at.append(part)
            continue
        hops += 1
        target = os.readlink(here)  # noqa: PTH115 -- os functions throughout, as with lstat
        if target.startswith("/") or hops > _HOPS:
            raise Unhidable(f"a link on the way to {path} leads who knows where, so it cannot be hidden")
        left.extend(target.split("/")[::-1])
    if hops:
        raise Unhidable(f"{path} is, or lies behind, a link, so it cannot be hidden")
    return True


def spots(hidden: Iterable[str], worktree: str, places: Iterable[str]) -> dict[str, str]:
    """Return every path at which a hidden path is visible, given the mounted places, with its real path."""
    sources = {place: os.path.realpath(place) for place in places}
    seen = {}
    for path in hidden:
        real = f"{worktree}/{path}"
        for place, source in sources.items():
            if real.startswith(f"{source}/"):
                seen[place + real[len(source) :]] = real
    return seen


def ancestors(seen: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """Return the folders above hidden paths that the command could rename, and how each must be mounted."""
    found = {}
    for spot in seen:
        for folder in map(str, PurePosixPath(spot).parents):
            inner = max((place for place in kinds if folder.startswith(f"{place}/")), key=len, default=None)
            if folder not in kinds and inner is not None and kinds[inner] == "--bind":
                found[folder] = "--bind"
    return found


def stand_in(real: str) -> str:
    """Return what replaces a hidden path: an empty folder, an empty file, or an empty JSON object.

    Some programs do not start if their JSON settings file is empty.
    """
    if stat.S_ISDIR(os.lstat(real).st_mode):
        return "folder"
    return "file.json" if real.lower().endswith(_JSON) else "file"
