"""A pool of worktree folders that attempts used before: cleaned when parked, and checked again before reuse.

An entry is a numbered folder: the files, their index, the list of their paths, and a mark with the tree and the
fingerprint of the files. An entry is added and taken by one rename, so two processes never get the same entry and a
killed process leaves no partial entry. Git does not know the entries. An entry that differs from its mark is deleted.

A parked folder is rebuilt: only files that are exactly as in the tree are moved into new folders. Because the folders
are new, no mode, access control list, link or nested repository of the old ones survives. What the agent changed in any
way is written again from the tree, and all files get the same time. File contents are read rather than inferred from
sizes and times, because on a memory file system a write through a memory mapping changes neither. For the same reason
the agent's processes must have ended before.
"""

import array
import contextlib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import FairWitnessError
from fairwitness.git.call import GitDir, GitFailed, bytes_of, text_of
from fairwitness.git.folders import remove
from fairwitness.git.objects import EXECUTABLE, GITLINK, SYMLINK, Objects, TreeEntry, path_problem, set_entries
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.safe_open import HeldFolder
from fairwitness.kit.text import visible

_CHUNK = 1 << 20
_OLDER_NS = 10 * 10**9
"""How far back file times are set: git reads every file again that is not older than its index."""
_TIMEOUT_S = 600.0


class _Looks(NamedTuple):
    """The owner, rights and attributes of files that this process creates, learned from a folder that it created."""

    uid: int
    gid: int
    rights: int
    attributes: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> "_Looks":
        found = folder.lstat()
        return cls(found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode), _attributes(str(folder)))

    def has(self, place: str, entry: TreeEntry) -> bool:
        """Return whether Fair Witness could have written this file for the entry, apart from its content."""
        found = os.lstat(place)
        if (found.st_uid, found.st_gid, found.st_nlink) != (self.uid, self.gid, 1):
            return False
        if entry.mode == SYMLINK:
            return stat.S_ISLNK(found.st_mode) and _attributes(place) <= self.attributes
        rights = self.rights & (0o777 if entry.mode == EXECUTABLE else 0o666)
        return found.st_mode == stat.S_IFREG | rights and _attributes(place) <= self.attributes


def bring_unchanged(old: Path, new: Path, entries: Mapping[str, TreeEntry], object_format: str) -> None:
    """Move the files that are exactly as in the tree from an agent's folder into an empty new folder."""
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


def complete(git: GitDir, folder: Path, tree: str, entries: Mapping[str, TreeEntry]) -> list[str]:
    """Write the missing files, set the same time on all files, and update the index that `git` names.

    Return all paths of the folder, including itself; raise `GitFailed` if the folder is not exactly the tree.
    """
    git.run("read-tree", tree)
    git.ask("checkout-index", "--all", "--quiet", timeout_s=_TIMEOUT_S)  # complains about existing files
    paths = _paths(folder)
    folders = {parent for path in entries for parent in _parents(path)}
    gitlinks = {path for path, entry in entries.items() if entry.mode == GITLINK}
    odd = set(paths) ^ (entries.keys() | folders | gitlinks | {"."})
    if odd - gitlinks:  # the folder of a submodule may be missing
        raise GitFailed(f"{visible(min(odd))} does not stand as the tree has it", next_step="make the folder anew")
    moment = folder.lstat().st_mtime_ns - _OLDER_NS
    for path in paths:
        os.utime(f"{folder}/{path}", ns=(moment, moment), follow_symlinks=False)
    git.run("update-index", "--ignore-submodules", "--refresh", timeout_s=_TIMEOUT_S)
    return paths


def differences(objects: Objects, old: str, new: str) -> dict[str, tuple[TreeEntry | None, TreeEntry | None]]:
    """Return the old and new entry of each path at which two trees differ."""
    listed = objects.git.run("diff-tree", "-r", "-z", "--raw", "--no-abbrev", "--no-renames", old, new)
    fields = listed.split(b"\0")[:-1]
    found = {}
    for about, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, _ = about.decode().removeprefix(":").split(" ")
        before, after = TreeEntry(old_mode, old_id), TreeEntry(new_mode, new_id)
        found[text_of(path)] = (before if int(old_mode) else None, after if int(new_mode) else None)
    return found


def apply(
    git: GitDir, folder: Path, changes: Mapping[str, tuple[TreeEntry | None, TreeEntry | None]], null: str
) -> None:
    """Change a folder and the index that `git` names from one tree to another; the folder must be exactly the first."""
    for path, (before, _) in changes.items():
        place = folder / path
        if before is not None and before.mode != GITLINK:
            place.unlink()
        elif before is not None and place.is_dir():  # the place of a submodule, empty or missing
            place.rmdir()
        for parent in _parents(path) if before is not None else ():
            try:
                (folder / parent).rmdir()
            except OSError:
                break  # it is not empty, or was removed with another path
    set_entries(git, {path: after for path, (_, after) in changes.items()}, null)
    wanted = b"".join(bytes_of(path) + b"\0" for path, (_, after) in changes.items() if after is not None)
    git.run("checkout-index", "--index", "--quiet", "-z", "--stdin", stdin=wanted, timeout_s=_TIMEOUT_S)


def fingerprint(folder: Path, paths: Iterable[str]) -> bytes:
    """Return a hash that changes if anything in the folder is changed.

    Any change of a file or of the names in a folder sets the inode change time, which cannot be set back.
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
    """Return whether the folder exists and no parent of it is a link."""
    if folder not in known:
        known[folder] = False
        if _is_real(root, folder.rpartition("/")[0], known):
            with contextlib.suppress(OSError):
                known[folder] = stat.S_ISDIR((root / folder).lstat().st_mode)
    return known[folder]


def _content_id(place: str, entry: TreeEntry, object_format: str) -> str:
    """Return the id that git gives the bytes without conversion."""
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
    """Return the extended attributes of a file, including access control lists."""
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
    """Return everything below a folder, and the folder itself."""
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


POOL_LIMIT = 4
"""The default maximum number of folders in the pool."""
_FULL = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Parked:
    """An entry of the pool, also while it is outside the pool's folder."""

    place: Path

    @property
    def files(self) -> Path:
        """The folder with the files of the tree."""
        return self.place / "files"

    @property
    def index(self) -> Path:
        """Return the git index of the files."""
        return self.place / "index"

    @property
    def paths(self) -> Path:
        """Return the file that lists all paths in the folder, including folders."""
        return self.place / "paths"

    @property
    def mark(self) -> Path:
        """Return the file with the tree and the fingerprint; it is written last."""
        return self.place / "mark"


class _Mark(NamedTuple):
    tree: str
    boot: str
    stood: str


@dataclass(frozen=True, slots=True)
class Pool:
    """The parked folders, at most `limit`; none on a system that has no boot id.

    After a crash of the machine a file's times say nothing about its content, so entries of an earlier boot are not
    used.
    """

    objects: Objects
    folder: Path
    limit: int = POOL_LIMIT

    def park(self, left: Path, aside: Path, tree: str) -> bool:
        """Turn an agent's folder into a parked one with the files of a tree; return False if that fails or is disabled.

        `aside` is where the entry is built. The caller removes whatever is left of both folders.
        """
        boot = _boot()
        if boot is None or self.limit < 1:
            return False
        parked = Parked(aside)
        try:
            self._rebuild(left, parked, tree, boot)
            killpoint("git.pool.marked")
            return self._put(parked, tree)
        except (FairWitnessError, OSError):
            return False

    def take(self, tree: str, into: Path) -> Parked | None:
        """Move a parked folder to a path and change it to a tree; return None if there is no intact one."""
        boot = _boot()
        for slot in self._nearest(tree):
            parked = Parked(into)
            into.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                slot.rename(into)
            except OSError:
                continue  # another process was first
            killpoint("git.pool.taken")
            try:
                if boot is not None and self._is_as_marked(parked, boot) and self._bring(parked, tree):
                    return parked
            except (FairWitnessError, OSError):
                pass  # it is not what was parked
            remove(into)
        return None

    def drain(self) -> None:
        """Delete all parked folders."""
        for place in sorted(self.folder.glob("*")):
            self._throw_away(place)

    def _rebuild(self, left: Path, parked: Parked, tree: str, boot: str) -> None:
        entries = self.objects.entries(tree)
        if any(path_problem(path) for path in entries):
            raise GitFailed("the tree holds a path that must not be written", next_step="make the folder anew")
        remove(parked.place)
        parked.place.mkdir(mode=0o700, parents=True)
        parked.files.mkdir()
        with HeldFolder(left) as held:  # an agent could have put a link to other files in its place
            bring_unchanged(held.through, parked.files, entries, self.objects.object_format)
        killpoint("git.pool.brought")
        paths = complete(self._git(parked), parked.files, tree, entries)
        parked.paths.write_bytes(bytes_of("\0".join(paths)))
        mark = _Mark(tree, boot, _stood(parked, paths))
        parked.mark.write_text(json.dumps(mark._asdict()))

    def _put(self, parked: Parked, tree: str) -> bool:
        """Move an entry to a free number; if there is none, replace an entry of another tree."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for _ in range(2):
            for slot in self._slots():
                try:
                    parked.place.rename(slot)
                except OSError as error:
                    if error.errno not in _FULL:
                        raise
                else:
                    killpoint("git.pool.parked")
                    return True
            others = [slot for slot in self._slots() if (mark := _mark(Parked(slot))) is None or mark.tree != tree]
            if not others:
                return False
            self._throw_away(others[0])
        return False

    def _throw_away(self, place: Path) -> None:
        gone = place if place.suffix == ".gone" else place.with_suffix(".gone")
        if gone != place:
            remove(gone)
            with contextlib.suppress(FileNotFoundError):
                place.rename(gone)  # in one step, so that no process takes a partial entry
                killpoint("git.pool.displaced")
        remove(gone)

    def _slots(self) -> Iterator[Path]:
        return (self.folder / str(number) for number in range(self.limit))

    def _nearest(self, tree: str) -> list[Path]:
        """Return the parked folders, those of the same tree first."""
        marks = [(slot, _mark(Parked(slot))) for slot in self._slots() if slot.is_dir()]
        return [slot for slot, _ in sorted(marks, key=lambda found: found[1] is None or found[1].tree != tree)]

    def _is_as_marked(self, parked: Parked, boot: str) -> bool:
        mark = _mark(parked)
        if mark is None or mark.boot != boot:
            return False
        return _stood(parked, text_of(parked.paths.read_bytes()).split("\0")) == mark.stood

    def _bring(self, parked: Parked, tree: str) -> bool:
        """Write what differs between the entry's tree and another tree."""
        mark = _mark(parked)
        if mark is None or mark.tree == tree:
            return mark is not None
        changes = differences(self.objects, mark.tree, tree)
        if any(path_problem(path) or path.endswith(".gitattributes") for path in changes):
            return False  # attributes also affect how unchanged files are written
        apply(self._git(parked), parked.files, changes, self.objects.null)
        return True

    def _git(self, parked: Parked) -> GitDir:
        return self.objects.git.given(work_tree=parked.files, env={"GIT_INDEX_FILE": str(parked.index)})


def _stood(parked: Parked, paths: list[str]) -> str:
    listed = hashlib.sha256(parked.paths.read_bytes()).digest()
    return hashlib.sha256(listed + fingerprint(parked.files, paths) + fingerprint(parked.place, ["index"])).hexdigest()


def _mark(parked: Parked) -> _Mark | None:
    """Return the mark of an entry, or None if it is missing or invalid."""
    try:
        said = json.loads(parked.mark.read_bytes())
        return _Mark(str(said["tree"]), str(said["boot"]), str(said["stood"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _boot() -> str | None:
    """Return the id of this boot of the machine, or None if the system has none."""
    try:
        return _BOOT.read_text().strip() or None
    except OSError:
        return None
