"""The artifact store: the files of a run below one root, written atomically and identified by their hashes.

Every write returns the hash of what it wrote; a reader that kept the hash can ask for exactly that content.

Sealing: a folder whose name is in `sealable` is sealed as soon as its lock file exists beside it (see
`fairwitness.store.seal`). Each write below such a folder checks for the lock on disk, so a store that was opened before
another process sealed the folder refuses too. Other paths cost no check. A write that has passed the check when the
lock appears is not stopped, but `broken_seals` reports the file.

Sections: some Markdown files have a rule for each section: it may change, may only grow, or must not change. A section
is a `## ` heading with everything up to the next one. The text before the first section (front matter) has no rule. A
heading inside a code fence or the front matter does not count.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from fairwitness.contracts.common.ids import relative_path_problem
from fairwitness.contracts.common.markdown import split_sections
from fairwitness.errors import HashMismatch, Immutable, UnsafePath
from fairwitness.kit import files


class SectionRule(StrEnum):
    """How a new version of a section may differ from the old one."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    IMMUTABLE = "immutable"


Policy = Mapping[str, SectionRule]
"""The sections that a file may have, each with its rule."""

_DEBUG: Policy = MappingProxyType(
    {
        "Current Focus": SectionRule.OVERWRITE,
        "Symptoms": SectionRule.IMMUTABLE,
        "Eliminated": SectionRule.APPEND,
        "Evidence": SectionRule.APPEND,
        "Resolution": SectionRule.OVERWRITE,
    }
)


def debug_policy(*, gathering: bool) -> Policy:
    """Return the rules of a debug session; `gathering` means that the file on disk still has that status."""
    return _DEBUG if not gathering else MappingProxyType({**_DEBUG, "Symptoms": SectionRule.OVERWRITE})


@dataclass(frozen=True, slots=True)
class Broken:
    """A section that breaks its rule, and how."""

    section: str
    reason: str

    def __str__(self) -> str:
        return f"section '{self.section}' {self.reason}"


def check_sections(old: str, new: str, policy: Policy) -> list[Broken]:
    """Return every section of the new text that breaks a rule, compared with the old text."""
    sections = _sections(new)
    before, after = dict(_sections(old)), dict(sections)
    names = [name for name, _ in sections]
    broken = [Broken(name, "appears twice") for name in after if names.count(name) > 1]
    broken += [Broken(name, "is not one of this file's") for name in after if name not in policy and name not in before]
    broken += [Broken(name, "is gone") for name in before if name not in after]
    kept, now = [name for name in before if name in after], [name for name in after if name in before]
    broken += [Broken(name, "changed its place") for name, other in zip(kept, now, strict=True) if name != other]
    for name in kept:
        # a section without a rule was not written by this store, so it must not change
        reason = _broken_rule(policy.get(name, SectionRule.IMMUTABLE), before[name], after[name])
        if reason is not None:
            broken.append(Broken(name, reason))
    return broken


def _broken_rule(rule: SectionRule, old: str, new: str) -> str | None:
    """Return how a rule is broken, or None.

    White space at the end of a section is ignored. Text appended to the last line also breaks the rule APPEND.
    """
    old, new = old.rstrip(), new.rstrip()
    if rule is SectionRule.IMMUTABLE and new != old:
        return "must stay as it is"
    if rule is SectionRule.APPEND and old and not f"{new}\n".startswith(f"{old}\n"):
        return "may only grow at its end"
    return None


def _sections(text: str) -> tuple[tuple[str, str], ...]:
    """Return the sections after the front matter in order, each with its body."""
    lines = text.split("\n")
    return split_sections("\n".join(lines[_front_matter_length(lines) :]))


def _front_matter_length(lines: list[str]) -> int:
    if lines[0].rstrip() == "---":
        for number, line in enumerate(lines[1:], start=2):
            if line.rstrip() == "---":
                return number
    return 0


LIMIT = 64 * 1024 * 1024
"""The largest size of an artifact; the store wrote no larger file."""
SEALABLE: Mapping[str, str] = MappingProxyType({"specs": "specs.lock.json"})
"""Names of folders that can be sealed, with the name of the lock file beside each."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A file that was written."""

    path: str
    sha256: str
    size: int


@dataclass(frozen=True, slots=True)
class Appended:
    """A line that was appended, and the bytes of an incomplete line that had to be dropped first after a crash."""

    path: str
    dropped: int


def content_hash(content: bytes) -> str:
    """Return the hash of some bytes in the spelling used everywhere."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


class Store:
    """Reads and writes the files below one root; paths are relative to it and use '/'."""

    def __init__(self, root: Path, *, sealable: Mapping[str, str] = SEALABLE, private: bool = False) -> None:
        """Take the root; with `private`, new files and folders are accessible to their owner only."""
        self.root = root
        self.private = private
        self.sealable = dict(sealable)
        self._locks = frozenset(self.sealable.values())

    def put(self, relative: str, content: bytes, *, backup: bool = False) -> Stored:
        """Write a file that may be replaced; with `backup`, save its current content as `<name>.backup` first."""
        self._check_write(relative)
        if backup:
            self._check_write(f"{relative}.backup")
            if files.is_file(self.root, relative):
                files.replace_file(self.root, f"{relative}.backup", self.get(relative), private=self.private)
        files.replace_file(self.root, relative, content, private=self.private)
        return _stored(relative, content)

    def create(self, relative: str, content: bytes) -> Stored:
        """Write a file once; repeating it with the same bytes is allowed, other bytes are an error."""
        self._check_write(relative, is_new=True)
        files.create_file(self.root, relative, content, private=self.private)
        return _stored(relative, content)

    def grow(self, relative: str, content: bytes) -> Stored:
        """Write a file whose new content must begin with its old content."""
        self._check_write(relative)

        def grown(old: bytes | None) -> bytes:
            if not content.startswith(old or b""):
                raise Immutable(
                    f"{relative} may only grow, but the new content does not begin with the old",
                    next_step="read the file again and add to its end",
                )
            return content

        return _stored(relative, files.revise_file(self.root, relative, grown, limit=LIMIT, private=self.private))

    def append(self, relative: str, line: str) -> Appended:
        """Append one line to a file."""
        self._check_write(relative)
        return Appended(relative, files.append_line(self.root, relative, line.encode(), private=self.private))

    def put_sections(self, relative: str, text: str, policy: Policy) -> Stored:
        """Write a Markdown file; raise `Immutable` if a section breaks its rule."""
        self._check_write(relative)

        def revised(old: bytes | None) -> bytes:
            try:
                broken = check_sections((old or b"").decode(), text, policy)
            except UnicodeDecodeError:
                raise Immutable(
                    f"{relative} is not UTF-8, so its sections cannot be compared", next_step="restore the file"
                ) from None
            if broken:
                raise Immutable(
                    f"{relative}: {'; '.join(str(one) for one in broken)}",
                    next_step="keep these sections as they were and write again",
                )
            return text.encode()

        return _stored(relative, files.revise_file(self.root, relative, revised, limit=LIMIT, private=self.private))

    def move(self, source: str, target: str) -> None:
        """Move a file or folder to a free name, such as a finished state or a resolved session to its archive."""
        for relative in (source, target):
            self._check_write(relative)
            self._check_unsealed([*relative.split("/"), ""])  # a sealed folder must not be moved
        files.move(self.root, source, target)

    def get(self, relative: str, *, sha256: str | None = None, limit: int = LIMIT) -> bytes:
        """Return the bytes of a file; with `sha256`, raise if they have another hash."""
        self._check(relative)
        content = files.read_plain(self.root, relative, limit=limit)
        if sha256 is not None and (found := content_hash(content)) != sha256:
            raise HashMismatch(
                f"{relative} was asked for as {sha256} but is {found}",
                next_step="find out what changed it; the run that wrote it must not trust it",
            )
        return content

    def exists(self, relative: str) -> bool:
        """Return True if a plain file is at the path; raise if a link or pipe is."""
        self._check(relative)
        return files.is_file(self.root, relative)

    def names(self, folder: str = "") -> tuple[str, ...]:
        """Return the names in a folder, sorted; none if the folder does not exist."""
        return tuple(entry.name for entry in self.entries(folder))

    def entries(self, folder: str = "") -> tuple[files.Entry, ...]:
        """Return the names in a folder with their kinds."""
        if folder:
            self._check(folder)
        return files.list_folder(self.root, folder)

    def folders(self, folder: str = "") -> tuple[str, ...]:
        """Return the paths of the folders in a folder, except those with a name that no store would use."""
        paths = [join(folder, entry.name) for entry in self.entries(folder) if entry.kind == "folder"]
        return tuple(path for path in paths if relative_path_problem(path) is None)

    def sweep(self, folder: str = "", *, older_than_s: float | None = None) -> tuple[str, ...]:
        """Remove what dead writers left in a folder and below (see `files.sweep`); return the removed paths."""
        swept = [join(folder, name) for name in files.sweep(self.root, folder, older_than_s=older_than_s)]
        for below in self.folders(folder):
            swept += self.sweep(below, older_than_s=older_than_s)
        return tuple(swept)

    def lock_of(self, folder: str) -> str | None:
        """Return the path of a folder's lock, or None if a folder of this name cannot be sealed."""
        above, _, name = folder.rpartition("/")
        return join(above, self.sealable[name]) if name in self.sealable else None

    def _check(self, relative: str) -> None:
        problem = relative_path_problem(relative)
        if problem is None and files.is_temporary(relative.rpartition("/")[2]):
            problem = "its name is that of a temporary file"
        if problem is not None:
            raise UnsafePath(f"{relative!r} cannot be stored: {problem}", next_step="name a path inside the folder")

    def _check_write(self, relative: str, *, is_new: bool = False) -> None:
        self._check(relative)
        parts = relative.split("/")
        if not is_new and parts[-1] in self._locks:
            raise Immutable(f"{relative} is a lock and is written once", next_step="leave it as it is")
        self._check_unsealed(parts)

    def _check_unsealed(self, parts: list[str]) -> None:
        for depth, part in enumerate(parts[:-1]):
            if part not in self.sealable:
                continue
            lock = "/".join([*parts[:depth], self.sealable[part]])
            if files.is_file(self.root, lock):
                raise Immutable(
                    f"{'/'.join(parts)} lies in a folder sealed by {lock}",
                    next_step="file a change request instead of changing what the run is built on",
                )


def _stored(relative: str, content: bytes) -> Stored:
    return Stored(relative, content_hash(content), len(content))


def join(folder: str, name: str) -> str:
    """Return the path of a name in a folder, where "" is the root."""
    return f"{folder}/{name}" if folder else name
