"""The current content of a folder as a tree: git lists and hashes the files, and nothing in the folder is run.

This happens under a git directory and an index of Fair Witness, so there is no filter, hook or monitor to run. Nested
repositories are reported but not entered; submodules stay at the commit that the index has for them. Git LFS pointers
are recognized and compared with the file they refer to, without running git-lfs.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import UsageError
from fairwitness.git.call import GitDir, GitFailed, bytes_of, text_of
from fairwitness.git.objects import GITLINK, Objects, TreeEntry, set_entries, write_tree
from fairwitness.kit.folder_trees import walk
from fairwitness.kit.text import visible

POINTER_LIMIT = 1024
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]+\n)*oid sha256:([0-9a-f]{64})\nsize ([0-9]{1,18})\n"
)
_CHUNK = 1 << 20


class Pointer(NamedTuple):
    """A Git LFS pointer: the hash and size of the file it refers to."""

    sha256: str
    size: int


def pointer(content: bytes) -> Pointer | None:
    """Return the LFS pointer that a blob contains, or None.

    >>> pointer(b"version https://git-lfs.github.com/spec/v1\\noid sha256:" + b"a" * 64 + b"\\nsize 12\\n").size
    12
    >>> pointer(b"version 1") is None
    True
    """
    found = _POINTER.fullmatch(content) if len(content) <= POINTER_LIMIT else None
    return Pointer(found[1].decode(), int(found[2])) if found else None


def is_content_of(file: Path, wanted: Pointer) -> bool:
    """Return whether a plain file has exactly the content that the pointer refers to."""
    handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if os.fstat(handle).st_size != wanted.size:
            return False
        sum_ = hashlib.sha256()
        while piece := os.read(handle, _CHUNK):
            sum_.update(piece)
        return sum_.hexdigest() == wanted.sha256
    finally:
        os.close(handle)


FILE_LIMIT = 1 << 30
"""Size in bytes of the largest file that is read into a tree."""
_TIMEOUT_S = 600.0


class FolderSnapshot(NamedTuple):
    """A folder as a tree, and its nested repositories, whose files are not in the tree."""

    tree: str
    embedded: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FolderChanges:
    """The differences between a folder and an index."""

    changed: tuple[str, ...]
    removed: tuple[str, ...]
    untracked: tuple[str, ...]
    embedded: tuple[str, ...]


def take(
    objects: Objects, git: GitDir, folder: Path, *, enter_embedded: bool = False, large_files: bool = False
) -> FolderSnapshot:
    """Update the index that `git` names from the folder, and write it as a tree.

    With `enter_embedded` the files of nested repositories are taken as plain files, to keep what would be lost. With
    `large_files` a file that an LFS pointer of the index refers to counts as unchanged.
    """
    git = git.given(work_tree=folder)
    found = look(git, folder)
    same = _same_large_files(objects, git, folder, found.changed) if large_files else frozenset()
    nested = (
        [path for embedded in found.embedded for path in _files_beneath(folder, embedded)] if enter_embedded else []
    )
    set_entries(git, dict.fromkeys(found.removed), objects.null)
    _add(git, folder, [*(path for path in found.changed if path not in same), *found.untracked, *nested])
    return FolderSnapshot(write_tree(git), found.embedded)


def look(git: GitDir, folder: Path) -> FolderChanges:
    """Return how a folder differs from an index; it may report unchanged files, but never misses a changed one."""
    _distrust(git)
    changed: list[str] = []
    removed: list[str] = []
    listed = git.run(
        *("diff-files", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules=all"),
        timeout_s=_TIMEOUT_S,
    )
    for path in dict.fromkeys(_split(listed)):
        (changed if _is_storable(folder, path) else removed).append(path)
    others = _split(git.run("ls-files", "--others", "-z", "--exclude-standard", timeout_s=_TIMEOUT_S))
    embedded = tuple(path.rstrip("/") for path in others if path.endswith("/"))
    untracked = tuple(path for path in others if not path.endswith("/"))
    return FolderChanges(tuple(changed), tuple(removed), untracked, embedded)


def _add(git: GitDir, folder: Path, paths: Iterable[str]) -> None:
    wanted = list(paths)
    for path in wanted:
        size = os.lstat(os.path.join(folder, path)).st_size  # noqa: PTH118 - a Path would fold "a//b" and "."
        if size > FILE_LIMIT:
            raise GitFailed(
                f"{visible(path)} has {size} bytes, more than the {FILE_LIMIT} allowed",
                next_step="remove it or add it to .gitignore",
            )
    if wanted:
        names = b"".join(bytes_of(path) + b"\0" for path in wanted)
        git.run("update-index", "--add", "--replace", "-z", "--stdin", stdin=names, timeout_s=_TIMEOUT_S)


def _distrust(git: GitDir) -> None:
    """Clear the marks by which git would skip entries as unchanged."""
    tagged = git.run("ls-files", "-v", "-z").split(b"\0")[:-1]
    marked = b"".join(row[2:] + b"\0" for row in tagged if row[:1].islower() and row[:1] != b"s")
    if marked:
        git.run("update-index", "--no-assume-unchanged", "-z", "--stdin", stdin=marked)


def _entries(git: GitDir) -> dict[str, TreeEntry]:
    found = {}
    for row in git.run("ls-files", "--stage", "-z").split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, id_, stage = about.decode().split(" ")
        if stage == "0":
            found[text_of(path)] = TreeEntry(mode, id_)
    return found


def unmerged(git: GitDir) -> tuple[str, ...]:
    """Return the paths of an index that have unresolved conflicts."""
    rows = git.run("ls-files", "--unmerged", "-z").split(b"\0")[:-1]
    return tuple(dict.fromkeys(text_of(row.partition(b"\t")[2]) for row in rows))


def refuse_unmerged(git: GitDir) -> None:
    """Raise `UsageError` for an index with unresolved conflicts."""
    paths = unmerged(git)
    if paths:
        raise UsageError(
            f"the index has {len(paths)} unresolved conflict{'s' * (len(paths) > 1)}: {visible(', '.join(paths[:3]))}",
            next_step="resolve them and `git add` the files, or `git merge --abort`",
        )


def _is_storable(folder: Path, path: str) -> bool:
    """Return whether the path is a plain file or a symlink and no parent folder is a link."""
    place = str(folder)
    *parents, last = path.split("/")
    try:
        for part in parents:
            place = f"{place}/{part}"
            if not stat.S_ISDIR(os.lstat(place).st_mode):
                return False
        mode = os.lstat(f"{place}/{last}").st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def _same_large_files(objects: Objects, git: GitDir, folder: Path, paths: Iterable[str]) -> frozenset[str]:
    """Return the files that match the LFS pointer in the index: they are unchanged although their bytes differ."""
    before = _entries(git)
    ids = {path: before[path].id for path in paths if path in before and before[path].mode != GITLINK}
    small = {id_ for id_, size in objects.sizes(ids.values()).items() if size is not None and size <= POINTER_LIMIT}
    pointers = {id_: pointer(content) for id_, content in objects.blobs(small)}
    same = set()
    for path, id_ in ids.items():
        stands_for = pointers.get(id_)
        place = Path(f"{folder}/{path}")
        if stands_for is not None and not place.is_symlink() and is_content_of(place, stands_for):
            same.add(path)
    return frozenset(same)


def _files_beneath(folder: Path, relative: str) -> list[str]:
    """Return all plain files and links of a nested repository, without any `.git`."""
    found = []
    for place, folders, files in walk(folder / relative):
        folders[:] = [name for name in folders if name.lower() != ".git"]
        links = [name for name in folders if os.path.islink(f"{place}/{name}")]  # noqa: PTH114 - a Path is slower
        found += [os.path.relpath(f"{place}/{name}", folder) for name in [*files, *links] if name.lower() != ".git"]
    return [path for path in found if _is_storable(folder, path)]


def _split(listed: bytes) -> list[str]:
    return [text_of(row) for row in listed.split(b"\0")[:-1]]
