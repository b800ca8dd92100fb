"""Reads and makes trees and blobs through a git directory of Fair Witness; changes no index, ref or file of the user.

Paths are strings in which bytes that are not UTF-8 survive (`surrogateescape`); spaces and newlines are not special.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from fairwitness.errors import UsageError
from fairwitness.git.call import GitDir, GitFailed, bytes_of, text_of
from fairwitness.kit.text import visible

FILE, EXECUTABLE, SYMLINK, GITLINK = "100644", "100755", "120000", "160000"
MODES = frozenset({FILE, EXECUTABLE, SYMLINK, GITLINK})
BLOB_LIMIT = 64 << 20
_BATCH = 64 << 20
"""The number of bytes of blobs that are read at a time."""
_ODD_GIT = frozenset({".git", "git~1"})
_IGNORED_BY_MAC = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


class TreeEntry(NamedTuple):
    """An entry of a tree: its mode (`100644`, `160000`, …) and the id of its content."""

    mode: str
    id: str


@dataclass(frozen=True, slots=True)
class Objects:
    """An object store behind a git directory of Fair Witness, and a folder for temporary files."""

    git: GitDir
    scratch: Path
    object_format: str = "sha1"

    @property
    def null(self) -> str:
        """Return the null id, which no object has."""
        return "0" * (64 if self.object_format == "sha256" else 40)

    def entries(self, tree: str) -> dict[str, TreeEntry]:
        """Return all entries of a tree by path; submodules have the mode 160000."""
        listed = self.git.run("ls-tree", "-r", "-z", "--full-tree", "--end-of-options", _id(tree))
        found = {}
        for row in listed.split(b"\0")[:-1]:
            about, _, path = row.partition(b"\t")
            mode, _, id_ = about.split(b" ")
            found[text_of(path)] = TreeEntry(mode.decode(), id_.decode())
        return found

    def tree_of(self, commit: str) -> str:
        """Return the tree of a commit, or the tree itself."""
        return self.git.run("rev-parse", "--verify", f"{_id(commit)}^{{tree}}").decode().strip()

    def sizes(self, names: Iterable[str]) -> dict[str, int | None]:
        """Return the sizes of blobs by id or `tree:path`; None if there is no such blob."""
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return {}
        given = b"".join(bytes_of(name) + b"\0" for name in wanted)
        answer = self.git.run("cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)", "-z", stdin=given)
        rows = _answers(answer, wanted)
        return {
            name: int(row.split(b" ")[2]) if row.split(b" ")[1:2] == [b"blob"] else None
            for name, row in zip(wanted, rows, strict=True)
        }

    def blobs(self, names: Iterable[str], *, limit: int = BLOB_LIMIT) -> Iterator[tuple[str, bytes]]:
        """Yield the content of blobs by id, in the given order; a missing or too large blob is an error."""
        sizes: dict[str, int] = {}
        for name, size in self.sizes(names).items():
            if size is None:
                raise GitFailed(
                    f"the repository lacks blob {visible(name)}",
                    next_step="if it is a partial clone, fetch what is missing: git fetch --refetch",
                )
            sizes[name] = size
        yield from self._batched(sizes, limit)

    def small_blobs(self, ids: Iterable[str], *, limit: int) -> Iterator[tuple[str, bytes]]:
        """Yield the content of those blobs that are there and not larger than the limit."""
        sizes = self.sizes(map(_id, ids)).items()
        yield from self._batched({id: size for id, size in sizes if size is not None and size <= limit}, limit)

    def blob(self, id: str, limit: int = BLOB_LIMIT) -> bytes:
        """Return the content of one blob."""
        ((_, content),) = self.blobs([_id(id)], limit=limit)
        return content

    def read(self, tree: str, path: str, limit: int = BLOB_LIMIT) -> bytes | None:
        """Return the content of a tree's file (for a symlink, its target), or None if there is none."""
        ((_, content),) = self.read_each(tree, [path], limit)
        return content

    def read_each(self, tree: str, paths: Iterable[str], limit: int = BLOB_LIMIT) -> Iterator[tuple[str, bytes | None]]:
        """Yield the content of many files of a tree, in the given order, with few git calls; None for missing files."""
        wanted = list(dict.fromkeys(paths))
        names = {path: f"{_id(tree)}:{path}" for path in wanted if path_problem(path) is None}
        there = {name: size for name, size in self.sizes(names.values()).items() if size is not None}
        contents = self._batched(there, limit)
        for path in wanted:
            yield path, next(contents)[1] if names.get(path) in there else None

    def add_blob(self, content: bytes) -> str:
        """Store content without conversion and return its id."""
        return self.git.run("hash-object", "-w", "--stdin", "--no-filters", stdin=content).decode().strip()

    def empty_tree(self) -> str:
        """Return the empty tree."""
        return self.git.run("mktree").decode().strip()

    def compose(self, tree: str, changes: Mapping[str, TreeEntry | None]) -> str:
        """Return a tree with some paths replaced, added or (None) removed."""
        for path, entry in changes.items():
            problem = path_problem(path)
            if problem is None and entry is not None and entry.mode not in MODES:
                problem = f"it has mode {entry.mode}"
            if problem is not None:
                raise UsageError(f"{visible(path)!r} cannot stand in a tree: {problem}", next_step="leave it out")
        with self.index(tree) as git:
            set_entries(git, changes, self.null)
            return write_tree(git)

    @contextlib.contextmanager
    def index(self, tree: str | None = None, work_tree: Path | None = None) -> Iterator[GitDir]:
        """Yield the git directory with a temporary index, filled with a tree."""
        with self.passing_folder() as folder:
            git = self.git.given(work_tree=work_tree, env={"GIT_INDEX_FILE": str(folder / "index")})
            if tree is not None:
                git.run("read-tree", _id(tree))
            yield git

    @contextlib.contextmanager
    def passing_folder(self) -> Iterator[Path]:
        """Yield a private folder that is removed afterwards."""
        self.scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.scratch) as folder:
            yield Path(folder)

    def checkout(self, tree: str, into: Path) -> None:
        """Write a tree into an empty folder; links are created, never followed; submodules stay empty."""
        into.mkdir(parents=True, exist_ok=True)
        if any(into.iterdir()):
            raise UsageError(f"{into} is not empty", next_step="check out into a new folder")
        self.refuse_odd_paths(tree)
        with self.index(tree, work_tree=into.absolute()) as git:
            fill(git)

    def refuse_odd_paths(self, tree: str) -> None:
        """Raise `UsageError` for a tree with a path that must not be written."""
        for path in self.entries(tree):
            problem = path_problem(path)
            if problem is not None:
                raise UsageError(f"the tree holds {visible(path)!r}: {problem}", next_step="take that path out of it")

    def _batched(self, sizes: Mapping[str, int], limit: int) -> Iterator[tuple[str, bytes]]:
        """Yield the content of blobs of known sizes, in batches that fit into memory."""
        batch: list[str] = []
        total = 0
        for name, size in sizes.items():
            _refuse_large(name, size, limit)
            if batch and total + size > _BATCH:
                yield from self._contents(batch)
                batch, total = [], 0
            batch.append(name)
            total += size
        if batch:
            yield from self._contents(batch)

    def _contents(self, names: list[str]) -> Iterator[tuple[str, bytes]]:
        given = b"".join(bytes_of(name) + b"\0" for name in names)
        answer = memoryview(self.git.run("cat-file", "--batch=%(objectsize)", "-z", stdin=given, limit=1 << 40))
        at = 0
        for name in names:
            line = bytes(answer[at : at + 32]).partition(b"\n")[0]
            start = at + len(line) + 1
            at = start + int(line) + 1
            yield name, bytes(answer[start : at - 1])


def fill(git: GitDir) -> None:
    """Write the content of the index into the work tree, and the files' times into the index."""
    git.run("checkout-index", "--all", "--force", "--index", "--quiet", timeout_s=600)


def set_entries(git: GitDir, changes: Mapping[str, TreeEntry | None], null: str) -> None:
    """Set or remove entries of an index; removals go first, so that a folder can replace a file."""
    gone = [f"0 {null}\t".encode() + bytes_of(path) + b"\0" for path, entry in changes.items() if entry is None]
    there = [
        f"{entry.mode} {entry.id}\t".encode() + bytes_of(path) + b"\0"
        for path, entry in changes.items()
        if entry is not None
    ]
    if gone or there:
        git.run("update-index", "-z", "--index-info", stdin=b"".join(gone + there))


def write_tree(git: GitDir) -> str:
    """Return the index as a tree."""
    return git.run("write-tree").decode().strip()


def path_problem(path: str) -> str | None:
    """Return the reason why a path must not be written into a folder, or None.

    >>> path_problem("src/a b.py") is None
    True
    >>> path_problem("a/../b")
    "it has a '..' part"
    >>> path_problem("sub/.GIT/config")
    "it has a '.git' part"
    """
    for part in path.split("/"):
        if part in ("", ".", "..") or "\0" in part:
            return f"it has a {part!r} part"
        plain = part.translate(_IGNORED_BY_MAC).lower().rstrip(". ")
        if plain in _ODD_GIT or plain.split(":")[0].rstrip(". ") == ".git":
            return "it has a '.git' part"
    return None


def _refuse_large(name: str, size: int, limit: int) -> None:
    if size > limit:
        raise GitFailed(
            f"blob {visible(name)} has {size} bytes, more than the {limit} allowed",
            next_step="keep files of that size out of the change",
        )


def _id(name: str) -> str:
    """Return an object's id if it is safe in a command: nothing that git could take for an option or a path."""
    if not 4 <= len(name) <= 64 or name.strip("0123456789abcdef"):
        raise UsageError(f"{visible(name)!r} is not the id of a git object", next_step="resolve the ref first")
    return name


def _answers(answer: bytes, names: list[str]) -> list[bytes]:
    """Return one row for each name; the row for a missing object repeats the name, including its newlines."""
    rows, at = [], 0
    for name in names:
        missing = bytes_of(name) + b" missing\n"
        end = at + len(missing) if answer.startswith(missing, at) else answer.index(b"\n", at) + 1
        rows.append(b"missing" if end == at + len(missing) and answer.startswith(missing, at) else answer[at : end - 1])
        at = end
    return rows
