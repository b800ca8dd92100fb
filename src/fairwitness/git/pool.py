"""Folders that have served an attempt and wait for the next: cleaned, and looked at again before anybody gets one.

An entry is a folder with a number: the files, their index, the list of their paths, and a mark that says which tree
they are and how they stood. It comes and goes by one rename, so two processes never have the same one and a killed one
leaves none that is half made. Git knows nothing of it meanwhile. What is not exactly as its mark says is thrown away.
"""

import contextlib
import errno
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import FairWitnessError
from fairwitness.git.call import GitDir, GitFailed, bytes_of, text_of
from fairwitness.git.folders import remove
from fairwitness.git.objects import Objects, path_problem
from fairwitness.git.rebuilding import apply, bring_unchanged, complete, differences, fingerprint
from fairwitness.kit.killpoints import killpoint

LIMIT = 4
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
    limit: int = LIMIT

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
