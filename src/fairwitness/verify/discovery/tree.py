"""A tree's files, indexed by folder and read within a budget; manifests are parsed once."""

import bisect
from collections.abc import Set
from fnmatch import fnmatchcase
from typing import Any

from fairwitness.errors import BadDocument
from fairwitness.kit import yaml_text
from fairwitness.verify.discovery.documents import Ini, UnreadableDocument, ini_of, json_of, toml_of
from fairwitness.verify.discovery.files import PATHS_LIMIT, UNSEEN, TreeFiles

TOP = "."
"""The root of a project that is the whole repository."""
_READS = 20_000
_BYTES = 128 << 20
_LONGEST = 1_000
"""Maximum length of a path; tools accept little more."""

TOO_LARGE = "it is no plain file of at most a megabyte"


def join(root: str, name: str) -> str:
    """Return a path inside a project, relative to the repository.

    >>> join(".", "setup.py"), join("api", "setup.py")
    ('setup.py', 'api/setup.py')
    """
    return name if root == TOP else f"{root}/{name}"


def parent(path: str) -> str:
    """Return the folder a path lies in.

    >>> parent("api/src/a.py"), parent("a.py")
    ('api/src', '.')
    """
    folder, _, _ = path.rpartition("/")
    return folder or TOP


def inside(path: str, root: str) -> bool:
    """Return True if a path is a root or lies in it."""
    return root == TOP or path == root or path.startswith(f"{root}/")


def _is_sound(path: str) -> bool:
    """Return False for a path that cannot be stored in a record or passed to a command."""
    if not path or len(path) > _LONGEST or "\0" in path or path.startswith("/"):
        return False
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    parts = path.split("/")
    return not any(part in ("", ".", "..") for part in parts) and not UNSEEN.intersection(parts[:-1])


class IndexedTree:
    """The files of a tree, indexed for discovery."""

    def __init__(self, files: TreeFiles) -> None:
        self._files = files
        self.is_cut = len(files.paths) > PATHS_LIMIT
        """Whether there were more files than the limit."""
        self.is_tired = False
        """Whether the budget for reading files was used up."""
        self.paths = sorted(path for path in files.paths[:PATHS_LIMIT] if _is_sound(path))
        self._known = frozenset(self.paths)
        self._names: dict[str, list[str]] = {}
        self._subfolders: dict[str, set[str]] = {}
        for path in self.paths:
            folder, _, name = path.rpartition("/")
            self._names.setdefault(folder or TOP, []).append(name)
            self._note_folders(folder)
        self._texts: dict[str, str | None] = {}
        self._values: dict[str, Any] = {}
        self._left = _BYTES

    def _note_folders(self, folder: str) -> None:
        while folder:
            above, _, name = folder.rpartition("/")
            known = self._subfolders.setdefault(above or TOP, set())
            if name in known:
                return
            known.add(name)
            folder = above

    def has(self, path: str) -> bool:
        """Return True if there is such a file."""
        return path in self._known

    def names(self, folder: str, *patterns: str) -> list[str]:
        """Return the files directly in a folder, by name."""
        found = self._names.get(folder, [])
        return [name for name in found if any(fnmatchcase(name, pattern) for pattern in patterns or "*")]

    def first(self, root: str, *names: str) -> str | None:
        """Return the first of some names that is a file in a folder."""
        return next((name for name in names if self.has(join(root, name))), None)

    def folders(self, folder: str) -> list[str]:
        """Return the names of the folders directly in a folder."""
        return sorted(self._subfolders.get(folder, ()))

    def folders_with(self, names: Set[str], prefix: str = "\0") -> list[str]:
        """Return every folder that holds a file of one of these names, or one whose name begins with the prefix."""
        return sorted(
            folder
            for folder, found in self._names.items()
            if any(name in names or name.startswith(prefix) for name in found)
        )

    def under(self, root: str) -> list[str]:
        """Return all files beneath a folder."""
        if root == TOP:
            return self.paths
        start = bisect.bisect_left(self.paths, f"{root}/")
        return self.paths[start : bisect.bisect_left(self.paths, f"{root}0")]  # "0" is the sign after "/"

    def text(self, path: str) -> str | None:
        """Return the text of a file; None if it is missing or unreadable. Invalid UTF-8 is replaced."""
        if path not in self._known:
            return None
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        if len(self._texts) >= _READS or self._left <= 0:
            self.is_tired = True
            return None
        content = self._files.read(path)
        if content is None:
            return None
        self._left -= len(content)
        return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n").replace("\r", "\n")

    def toml(self, path: str) -> dict[str, Any] | UnreadableDocument | None:
        """Return the tables of a TOML file; None if there is no such file."""
        found: dict[str, Any] | UnreadableDocument | None = self._parsed(path, toml_of)
        return found

    def json(self, path: str) -> Any | UnreadableDocument | None:
        """Return the value of a JSON file; None if there is no such file."""
        return self._parsed(path, json_of)

    def yaml(self, path: str) -> Any | UnreadableDocument | None:
        """Return the plain value of a YAML file, without tags and anchors; None if there is no such file."""
        return self._parsed(path, _yaml_of)

    def ini(self, path: str) -> Ini:
        """Return the sections of an INI file; none if it is not there."""
        found = self._parsed(path, ini_of)
        return found if isinstance(found, dict) else {}

    def _parsed(self, path: str, parse: Any) -> Any:
        if not self.has(path):
            return None
        if path not in self._values:
            text = self.text(path)
            self._values[path] = UnreadableDocument(TOO_LARGE) if text is None else parse(text)
        return self._values[path]


def _yaml_of(text: str) -> Any | UnreadableDocument:
    try:
        return yaml_text.parse(text)
    except BadDocument as error:
        return UnreadableDocument(error.reason)
