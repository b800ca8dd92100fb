"""Folders that have served an attempt and wait for the next: cleaned, and looked at again before anybody gets one.

An entry is a folder with a number: the files, their index, the list of their paths, and a mark that says which tree
they are and how they stood. It comes and goes by one rename, so two processes never have the same one and a killed one
leaves none that is half made. Git knows nothing of it meanwhile. What is not exactly as its mark says is thrown away.
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

    def has(self, place: str, entry: TreeEntry) -> bool:
        """True if what stands there could have been written by us for this entry, but for its content."""
        found = os.lstat(place)
        if (found.st_uid, found.st_gid, found.st_nlink) != (self.uid, self.gid, 1):
            return False
        if entry.mode == SYMLINK:
            return stat.S_ISLNK(found.st_mode) and _attributes(place) <= self.attributes
        rights = self.rights & (0o777 if entry.mode == EXECUTABLE else 0o666)
        return found.st_mode == stat.S_IFREG | rights and _attributes(place) <= self.attributes


def bring_unchanged(old: Path, new: Path, entries: Mapping[str, TreeEntry], object_format: str) -> None:
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


def complete(git: GitDir, folder: Path, tree: str, entries: Mapping[str, TreeEntry]) -> list[str]:
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


def differences(objects: Objects, old: str, new: str) -> dict[str, tuple[TreeEntry | None, TreeEntry | None]]:
    """What two trees hold at each path where they differ."""
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


def _content_id(place: str, entry: TreeEntry, object_format: str) -> str:
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


POOL_LIMIT = 4
"""How many folders wait at most, unless somebody says otherwise."""
_FULL = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Parked:
    """An entry, wherever it stands."""

    place: Path

    @property
    def files(self) -> Path:
        """The folder with the files of the tree."""
        return self.place / "files"

    @property
    def index(self) -> Path:
        """What git knows of them."""
        return self.place / "index"

    @property
    def paths(self) -> Path:
        """Every path in the folder, folders too."""
        return self.place / "paths"

    @property
    def mark(self) -> Path:
        """The tree and how it stood; written last."""
        return self.place / "mark"


class _Mark(NamedTuple):
    tree: str
    boot: str
    stood: str


@dataclass(frozen=True, slots=True)
class Pool:
    """The folders that wait, at most `limit`; none where the system does not tell one start of it from another.

    After a crash of the whole machine a file's times say nothing about its content, so nothing outlives that.
    """

    objects: Objects
    folder: Path
    limit: int = POOL_LIMIT

    def park(self, left: Path, aside: Path, tree: str) -> bool:
        """Makes an agent's folder one of ours that holds a tree; False if it could not be made or none is wanted.

        `aside` is where that happens. The caller takes both away, whatever is left of them.
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
        """Moves a waiting folder to a place and brings it to a tree; None if there is none that is as it should be."""
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
                pass  # whatever it is, it is not what was parked
            remove(into)
        return None

    def drain(self) -> None:
        """Throws away everything that waits."""
        for place in sorted(self.folder.glob("*")):
            self._throw_away(place)

    def _rebuild(self, left: Path, parked: Parked, tree: str, boot: str) -> None:
        entries = self.objects.entries(tree)
        if any(path_problem(path) for path in entries):
            raise GitFailed("the tree holds a path that must not be written", next_step="make the folder anew")
        remove(parked.place)
        parked.place.mkdir(mode=0o700, parents=True)
        parked.files.mkdir()
        bring_unchanged(left, parked.files, entries, self.objects.object_format)
        killpoint("git.pool.brought")
        paths = complete(self._git(parked), parked.files, tree, entries)
        parked.paths.write_bytes(bytes_of("\0".join(paths)))
        mark = _Mark(tree, boot, _stood(parked, paths))
        parked.mark.write_text(json.dumps(mark._asdict()))

    def _put(self, parked: Parked, tree: str) -> bool:
        """Gives an entry a number that is free; if there is none, in place of one that is of another tree."""
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
                place.rename(gone)  # in one step, so that nobody takes half of it
                killpoint("git.pool.displaced")
        remove(gone)

    def _slots(self) -> Iterator[Path]:
        return (self.folder / str(number) for number in range(self.limit))

    def _nearest(self, tree: str) -> list[Path]:
        """The entries that wait, those of the same tree first."""
        marks = [(slot, _mark(Parked(slot))) for slot in self._slots() if slot.is_dir()]
        return [slot for slot, _ in sorted(marks, key=lambda found: found[1] is None or found[1].tree != tree)]

    def _is_as_marked(self, parked: Parked, boot: str) -> bool:
        mark = _mark(parked)
        if mark is None or mark.boot != boot:
            return False
        return _stood(parked, text_of(parked.paths.read_bytes()).split("\0")) == mark.stood

    def _bring(self, parked: Parked, tree: str) -> bool:
        """Writes what differs between the tree that stands there and another."""
        mark = _mark(parked)
        if mark is None or mark.tree == tree:
            return mark is not None
        changes = differences(self.objects, mark.tree, tree)
        if any(path_problem(path) or path.endswith(".gitattributes") for path in changes):
            return False  # attributes decide how files are written that do not differ themselves
        apply(self._git(parked), parked.files, changes, self.objects.null)
        return True

    def _git(self, parked: Parked) -> GitDir:
        return self.objects.git.given(work_tree=parked.files, env={"GIT_INDEX_FILE": str(parked.index)})


def _stood(parked: Parked, paths: list[str]) -> str:
    listed = hashlib.sha256(parked.paths.read_bytes()).digest()
    return hashlib.sha256(listed + fingerprint(parked.files, paths) + fingerprint(parked.place, ["index"])).hexdigest()


def _mark(parked: Parked) -> _Mark | None:
    """What an entry says of itself; None if it says nothing that can be understood."""
    try:
        said = json.loads(parked.mark.read_bytes())
        return _Mark(str(said["tree"]), str(said["boot"]), str(said["stood"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _boot() -> str | None:
    """What names this start of the machine; None where nothing does."""
    try:
        return _BOOT.read_text().strip() or None
    except OSError:
        return None
