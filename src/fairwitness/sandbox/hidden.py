"""Paths of a worktree that a command does not see: something empty is mounted over each that is there.

A mount stays on the name it was put on, and the command can neither lift it nor move the name away: the folders on the
way are mounts of their own, so that they keep their names too. Nothing is changed on this machine. A link is never
followed: where it leads in the command's view is another matter than where it leads out here.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MOST = 200
"""So many paths can be hidden; each costs a mount or more."""
_HOPS = 40
_JSON = (".json", ".jsonc")


class Unhidable(Exception):
    """Why a path cannot be hidden."""


def path_problem(path: str) -> str | None:
    """Why a text is no path that can be hidden; None if it is one.

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
    """Those that are there, each once and none within another; `Unhidable` where a link is in the way."""
    wanted = sorted({str(PurePosixPath(path)) for path in paths}, key=lambda path: (path.count("/"), path))
    there: list[str] = []
    for path in wanted:
        if not any(path.startswith(f"{outer}/") for outer in there) and _is_there(worktree, path):
            there.append(path)
    if len(there) > MOST:
        raise Unhidable(f"more than {MOST} paths are to be hidden")
    return tuple(there)


def _is_there(worktree: str, path: str) -> bool:
    """Whether something stands at a path; what a link leads to cannot be hidden, and a link to nothing need not be."""
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
            raise Unhidable(f"nobody can tell whether there is {path}: {error.strerror}") from None
        if not is_link:
            at.append(part)
            continue
        hops += 1
        target = os.readlink(here)  # noqa: PTH115 -- beside lstat, one way of saying paths
        if target.startswith("/") or hops > _HOPS:
            raise Unhidable(f"a link on the way to {path} leads who knows where, so it cannot be hidden")
        left.extend(target.split("/")[::-1])
    if hops:
        raise Unhidable(f"{path} is, or lies behind, a link, so it cannot be hidden")
    return True


def spots(hidden: Iterable[str], worktree: str, places: Iterable[str]) -> dict[str, str]:
    """Where each hidden path is seen, given the places that are shown at their own paths; and where it really is."""
    sources = {place: os.path.realpath(place) for place in places}
    seen = {}
    for path in hidden:
        real = f"{worktree}/{path}"
        for place, source in sources.items():
            if real.startswith(f"{source}/"):
                seen[place + real[len(source) :]] = real
    return seen


def ancestors(seen: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, str]:
    """The folders on the way to each hidden path that the command could rename: how each is to be shown by itself."""
    found = {}
    for spot in seen:
        for folder in map(str, PurePosixPath(spot).parents):
            inner = max((place for place in kinds if folder.startswith(f"{place}/")), key=len, default=None)
            if folder not in kinds and inner is not None and kinds[inner] == "--bind":
                found[folder] = "--bind"
    return found


def stand_in(real: str) -> str:
    """What is shown instead: an empty folder, an empty file, or for whoever reads JSON the emptiest there is.

    Some programs do not start where a file of settings holds nothing at all.
    """
    if stat.S_ISDIR(os.lstat(real).st_mode):
        return "folder"
    return "file.json" if real.lower().endswith(_JSON) else "file"
