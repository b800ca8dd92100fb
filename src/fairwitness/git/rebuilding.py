"""A folder built anew from one that an agent has left: only files that are exactly what a tree holds come over.

Folders are always new ones, so no mode, list of rights, link or nested repository of the old ones can survive. What the
agent changed in any way is written again from the tree, and all files show the same time afterwards.

Contents are read and not concluded from sizes and times: on a file system in memory a write through a mapping of the
file leaves both as they were. For the same reason the agent's processes must have ended before.
"""

import array
import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from fairwitness.git.call import GitDir, GitFailed, bytes_of, text_of
from fairwitness.git.objects import EXECUTABLE, GITLINK, SYMLINK, Entry, Objects, set_entries
from fairwitness.kit.text import visible

_CHUNK = 1 << 20
_OLDER_NS = 10 * 10**9
"""How much older than now files shall look: git reads again whatever is not older than its index."""
_TIMEOUT_S = 600.0


class _Looks(NamedTuple):
    """How files look that this process makes now, learned from a folder that it has made."""

    uid: int
    gid: int
    rights: int
    attributes: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> "_Looks":
        found = folder.lstat()
        return cls(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), _attributes(str(folder)))

    def has(self, place: str, entry: Entry) -> bool:
        """True if what stands there could have been written by us for this entry, but for its content."""
        found = os.lstat(place)
        if (found.st_uid, found.st_gid, found.st_nlink) != (self.uid, self.gid, 1):
            return False
        if entry.mode == SYMLINK:
            return stat.S_ISLNK(found.st_mode) and _attributes(place) <= self.attributes
        rights = self.rights & (0o777 if entry.mode == EXECUTABLE else 0o666)
        return found.st_mode == stat.S_IFREG | rights and _attributes(place) <= self.attributes


def bring_unchanged(old: Path, new: Path, entries: Mapping[str, Entry], object_format: str) -> None:
    """Moves what is exactly as the tree has it out of an agent's folder into an empty one of ours."""
    looks = _Looks.of(new)
    real: dict[str, bool] = {"": True}
    made = {""}
    for path, entry in entries.items():
        parent = path.rpartition("/")[0]
        if entry.mode == GITLINK or not _is_real(old, parent, real):
            continue
        place = f"{old}/{path}"
        with contextlib.suppress(OSError):  # gone, closed or not movable: it is written again
            if looks.has(place, entry) and _content_id(place, entry, object_format) == entry.id:
                if parent not in made:
                    (new / parent).mkdir(parents=True, exist_ok=True)
                    made.add(parent)
                os.rename(place, f"{new}/{path}")  # noqa: PTH104 - a Path for each file is slow


def complete(git: GitDir, folder: Path, tree: str, entries: Mapping[str, Entry]) -> list[str]:
    """Writes what is missing, gives all files one time, and lets the index that `git` names know them.

    Returns every path of the folder, itself included; `GitFailed` if it is not the tree and nothing else.
    """
    git.run("read-tree", tree)
    git.ask("checkout-index", "--all", "--quiet", timeout_s=_TIMEOUT_S)  # complains of what is there already
    paths = _paths(folder)
    folders = {parent for path in entries for parent in _parents(path)}
    gitlinks = {path for path, entry in entries.items() if entry.mode == GITLINK}
    odd = set(paths) ^ (entries.keys() | folders | gitlinks | {"."})
    if odd - gitlinks:  # a submodule's folder may be missing
        raise GitFailed(f"{visible(min(odd))} does not stand as the tree has it", next_step="make the folder anew")
    moment = folder.lstat().st_mtime_ns - _OLDER_NS
    for path in paths:
        os.utime(f"{folder}/{path}", ns=(moment, moment), follow_symlinks=False)
    git.run("update-index", "--ignore-submodules", "--refresh", timeout_s=_TIMEOUT_S)
    return paths


def differences(objects: Objects, old: str, new: str) -> dict[str, tuple[Entry | None, Entry | None]]:
    """What two trees hold at each path where they differ."""
    listed = objects.git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new)
    fields = listed.split(b"\0")[:-1]
    found = {}
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, _ = about.decode().removeprefix(":").split(" ")
        before, after = Entry(old_mode, old_id), Entry(new_mode, new_id)
        found[text_of(path)] = (before if int(old_mode) else None, after if int(new_mode) else None)
    return found


def apply(git: GitDir, folder: Path, changes: Mapping[str, tuple[Entry | None, Entry | None]], null: str) -> None:
    """Brings a folder and the index that `git` names from one tree to another; the folder is exactly the first."""
    for path, (before, _) in changes.items():
        place = folder / path
        if before is not None and before.mode != GITLINK:
            place.unlink()
        elif before is not None and place.is_dir():  # where a submodule would be, empty or not there at all
            place.rmdir()
        for parent in _parents(path) if before is not None else ():
            try:
                (folder / parent).rmdir()
            except OSError:
                break  # something is left in it, or it went with another path
    set_entries(git, {path: after for path, (_, after) in changes.items()}, null)
    wanted = b"".join(bytes_of(path) + b"\0" for path, (_, after) in changes.items() if after is not None)
    git.run("checkout-index", "--index", "--quiet", "-z", "--stdin", stdin=wanted, timeout_s=_TIMEOUT_S)


def fingerprint(folder: Path, paths: Iterable[str]) -> bytes:
    """What tells whether anything beneath was touched since.

    A change of any kind, in a file or in the names of a folder, sets the time of change, and nobody can set it back.
    """
    rows = array.array("Q")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        for path in paths:
            found = os.stat(path, dir_fd=handle, follow_symlinks=False)
            rows.append(found.st_ino)
            rows.append(found.st_ctime_ns)
    finally:
        os.close(handle)
    return hashlib.sha256(rows.tobytes()).digest()


def _is_real(root: Path, folder: str, known: dict[str, bool]) -> bool:
    """True if a folder stands there and no link leads to it."""
    if folder not in known:
        known[folder] = False
        if _is_real(root, folder.rpartition("/")[0], known):
            with contextlib.suppress(OSError):
                known[folder] = stat.S_ISDIR((root / folder).lstat().st_mode)
    return known[folder]


def _content_id(place: str, entry: Entry, object_format: str) -> str:
    """The id that git would give the bytes as they are."""
    if entry.mode == SYMLINK:
        target = os.readlink(os.fsencode(place))  # noqa: PTH115 - as above
        return hashlib.new(object_format, b"blob %d\0" % len(target) + target, usedforsecurity=False).hexdigest()
    handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        sum_ = hashlib.new(object_format, b"blob %d\0" % os.fstat(handle).st_size, usedforsecurity=False)
        while piece := os.read(handle, _CHUNK):
            sum_.update(piece)
        return sum_.hexdigest()
    finally:
        os.close(handle)


def _attributes(place: str) -> frozenset[str]:
    """The extended attributes of a file, lists of rights among them."""
    try:
        return frozenset(os.listxattr(place, follow_symlinks=False))
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return frozenset()
        raise


def _parents(path: str) -> Iterable[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _paths(folder: Path) -> list[str]:
    """Everything beneath a folder, and the folder."""
    found = ["."]
    ahead = [""]
    while ahead:
        inside = ahead.pop()
        with os.scandir(f"{folder}/{inside}") as listed:
            for each in listed:
                found.append(inside + each.name)
                if each.is_dir(follow_symlinks=False):
                    ahead.append(f"{inside}{each.name}/")
    return found
