"""A snapshot of a worktree: everything in it except `.git`, ignored or not, by its bytes, as one tree.

Git hashes the files under a git directory of ours, without filters, so neither an attribute nor an ignore rule that an
agent wrote can hide a change. What a tree cannot hold (pipes, sockets, names that git refuses) is identified by its
file status. A killed dispatch's worktree is restored from its snapshot.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.errors import StoreError
from fairwitness.git.call import GitFailed, bytes_of, text_of
from fairwitness.git.objects import EXECUTABLE, FILE, SYMLINK, TreeEntry, path_problem, set_entries, write_tree
from fairwitness.git.shadow import Shadow
from fairwitness.kit.files import replace_file
from fairwitness.kit.safe_open import PLAIN, HeldFolder, OpenFolder
from fairwitness.kit.text import visible
from fairwitness.runs.dispatch.stored_blobs import StoredContents, read
from fairwitness.sandbox.dotgit import DotGit, look

ENTRIES = 1_000_000
"""The most entries of a worktree that is read; a larger one cannot be vouched for."""
FILE_LIMIT = 1 << 30
ODD = 1_000
_TIMEOUT_S = 600.0
_PLAIN = frozenset(range(32, 127)) - frozenset(b'"\\')


class WorktreeSnapshot(NamedTuple):
    """A worktree at one moment."""

    tree: str
    odd: dict[str, str]
    """What a tree cannot hold, by its printable path: type and file status."""
    dotgit: DotGit

    def plain(self) -> dict[str, Any]:
        """Return the snapshot as the ledger stores it."""
        marks = {"top": self.dotgit.top, "nested": self.dotgit.nested, "complete": self.dotgit.complete}
        return {"tree": self.tree, "odd": self.odd, "dotgit": marks}

    @classmethod
    def of(cls, kept: dict[str, Any]) -> "WorktreeSnapshot":
        """Return a snapshot that was read from the ledger."""
        marks = kept["dotgit"]
        nested = {path: tuple(mark) for path, mark in marks["nested"].items()}
        return cls(kept["tree"], dict(kept["odd"]), DotGit(tuple(marks["top"]), nested, marks["complete"]))


class _WalkedEntry(NamedTuple):
    path: str
    status: os.stat_result


def take_snapshot(
    shadow: Shadow, folder: Path, *, most: int = ENTRIES, stored_contents: StoredContents | None = None
) -> WorktreeSnapshot:
    """Read a worktree and store it as a tree; raise `GitFailed` if it cannot be read completely, and `UnsafePath` if
    its folder is replaced. Content that is in `stored_contents` is read, but not stored again."""
    with HeldFolder(folder.absolute()) as held:
        taken = _taken(shadow, held, most, stored_contents)
        held.check()  # its repositories are looked at by path
        return taken


def _taken(shadow: Shadow, held: HeldFolder, most: int, stored_contents: StoredContents | None) -> WorktreeSnapshot:
    top = str(held.through)
    files: dict[str, str] = {}
    links: list[str] = []
    odd: dict[str, str] = {}
    try:
        for path, status in _walk(top, most):
            if path_problem(path) is None and stat.S_ISREG(status.st_mode):
                files[path] = EXECUTABLE if status.st_mode & stat.S_IXUSR else FILE
                _refuse_large(path, status.st_size)
            elif path_problem(path) is None and stat.S_ISLNK(status.st_mode):
                links.append(path)
            else:
                odd[visible(path)] = _mark(status)
        targets = {path: os.fsencode(os.readlink(f"{top}/{path}")) for path in links}  # noqa: PTH115 - as above
        content = None if stored_contents is None else read(top, files, targets, shadow.object_format)
    except OSError as error:
        where = visible(str(error.filename).replace(top, str(held.path)))
        raise GitFailed(f"{where} cannot be looked at: {error.strerror}", next_step="see what shut it") from None
    if len(odd) > ODD:
        what = f"{visible(str(held.path))} holds {len(odd)} things that are no files"
        raise GitFailed(what, next_step="see what made them")
    tree = None if stored_contents is None or content is None else stored_contents.tree(content)
    if tree is None:
        entries = {path: TreeEntry(SYMLINK, shadow.add_blob(target)) for path, target in targets.items()}
        entries |= _hashed(shadow, held.path, files)
        with shadow.index() as git:
            set_entries(git, entries, shadow.null)
            tree = write_tree(git)
        if stored_contents is not None and content is not None:
            stored_contents.keep(content, entries, tree)
    return WorktreeSnapshot(tree, odd, look(str(held.path)))


def _mark(status: os.stat_result) -> str:
    return f"{stat.S_IFMT(status.st_mode):o} {status.st_ino} {status.st_size} {status.st_ctime_ns}"


def _walk(top: str, most: int) -> Iterator[_WalkedEntry]:
    """Yield everything below a folder except folders and `.git`; symbolic links are not followed."""
    front = [""]
    left = most
    while front:
        inner = front.pop()
        with os.scandir(f"{top}/{inner}" if inner else top) as found:
            for entry in found:
                left -= 1
                if left < 0:
                    raise GitFailed(f"the worktree holds more than {most} files", next_step="see what made so many")
                path = f"{inner}/{entry.name}" if inner else entry.name
                if entry.name == ".git":
                    continue
                if entry.is_dir(follow_symlinks=False):
                    front.append(path)
                else:
                    yield _WalkedEntry(path, entry.stat(follow_symlinks=False))


def _hashed(shadow: Shadow, folder: Path, files: dict[str, str]) -> dict[str, TreeEntry]:
    """Store each file by its bytes, without filters or conversion of line ends or encodings."""
    if not files:
        return {}
    given = b"".join(_quoted(path) + b"\n" for path in files)
    printed = (
        shadow.git.given(work_tree=folder)
        .run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=given, timeout_s=_TIMEOUT_S)
        .split()
    )
    return {path: TreeEntry(mode, id_.decode()) for (path, mode), id_ in zip(files.items(), printed, strict=True)}


def _quoted(path: str) -> bytes:
    """Return a path as git reads it from a line: C-quoted if a character could be misread."""
    raw = bytes_of(path)
    if all(sign in _PLAIN for sign in raw):
        return raw
    return b'"' + b"".join(bytes([sign]) if sign in _PLAIN else b"\\%03o" % sign for sign in raw) + b'"'


def _refuse_large(path: str, size: int) -> None:
    if size > FILE_LIMIT:
        raise GitFailed(
            f"{visible(path)} has {size} bytes, more than the {FILE_LIMIT} allowed",
            next_step="see what wrote it",
        )


def stat_mark(folder: Path) -> str:
    """Return a hash over names, sizes and times of a worktree's files: it tells whether a folder was left alone.

    It reads no content, so it proves nothing about what an agent did.
    """
    mark = hashlib.sha256()
    for path, status in sorted(_walk(str(folder.absolute()), ENTRIES), key=lambda entry: entry.path):
        seen = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ino)
        mark.update(bytes_of(path) + b"\0" + repr(seen).encode())
    return mark.hexdigest()


_NEXT = "take the worktree away and begin a new attempt"


def restore(shadow: Shadow, folder: Path, start: WorktreeSnapshot) -> str:
    """Restore the folder to the snapshot and return the tree of what was left in it. The process that wrote it must
    be dead."""
    left = take_snapshot(shadow, folder)
    before, after = shadow.entries(start.tree), shadow.entries(left.tree)
    differing = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    odd = [path for path, mark in left.odd.items() if start.odd.get(path) != mark]
    try:
        with HeldFolder(folder.absolute()) as held:
            for path in (*odd, *(path for path in differing if path in after)):
                _remove(held, path)
            for path in differing:
                if path in before:
                    _write(shadow, held, path, before[path])
    except (OSError, StoreError) as error:
        raise GitFailed(f"the worktree cannot be put back: {visible(str(error))}", next_step=_NEXT) from None
    if differing or odd:
        now = take_snapshot(shadow, folder)
        if (now.tree, now.odd) != (start.tree, start.odd):
            raise GitFailed(f"{visible(str(folder))} cannot be put back to its start", next_step=_NEXT)
    return left.tree


def _remove(held: HeldFolder, path: str) -> None:
    with OpenFolder("remove", held, path) as place:
        os.unlink(place.name, dir_fd=place.folder)
    above = path.rpartition("/")[0]
    while above and _remove_empty(held, above):  # a tree has no empty folders
        above = above.rpartition("/")[0]


def _remove_empty(held: HeldFolder, path: str) -> bool:
    """Remove a folder if it is empty; return whether it was."""
    with OpenFolder("remove", held, path) as place:
        try:
            os.rmdir(place.name, dir_fd=place.folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            return False
        return True


def _write(shadow: Shadow, held: HeldFolder, path: str, entry: TreeEntry) -> None:
    content = shadow.blob(entry.id, limit=FILE_LIMIT)
    if entry.mode != SYMLINK:
        replace_file(held, path, content)
    with OpenFolder("write", held, path, create=True) as place:
        if entry.mode == SYMLINK:
            os.symlink(text_of(content), place.name, dir_fd=place.folder)
            return
        handle = os.open(place.name, os.O_RDONLY | PLAIN, dir_fd=place.folder)
        try:
            place.refuse_unplain(os.fstat(handle))
            os.fchmod(handle, 0o755 if entry.mode == EXECUTABLE else 0o644)
        finally:
            os.close(handle)
