"""The input of preparing one project's environment."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairwitness.contracts.verify.checks import Project, SetupSettings
from fairwitness.errors import StoreError
from fairwitness.kit.files import read_plain
from fairwitness.verify.discovery.files import READ_LIMIT, TreeFiles
from fairwitness.verify.environment.environment_store import EnvironmentStore


@dataclass(frozen=True, slots=True)
class EnvironmentRequest:
    """A project of a tree, with the settings, tools and folders for preparing its environment."""

    project: Project
    files: TreeFiles
    settings: SetupSettings
    store: EnvironmentStore
    environ: Mapping[str, str]
    """The person's variables."""
    search: tuple[Path, ...]
    """The person's PATH without any folder of the repository."""
    checkout: Path | None
    """The tree, exported; only the commands of [verify.setup] are run there."""
    user_checkout: Path | None
    tools: tuple[str, ...]
    """Tools that the project's checks need; well-known ones are installed if they are not declared."""

    @property
    def repositories(self) -> tuple[Path, ...]:
        """Folders whose programs and code belong to the repository, not to the machine."""
        return tuple(path for path in (self.checkout, self.user_checkout) if path is not None)

    def content(self, paths: Iterable[str]) -> list[tuple[str, str]]:
        """Return paths of the tree with the hashes of their contents, for a digest."""
        known = set(self.files.paths)
        told = []
        for path in sorted(set(paths) & known):
            content = self.files.read(path)
            told.append((path, "unread" if content is None else hashlib.sha256(content).hexdigest()))
        return told

    def differs_from_user_checkout(self, paths: Sequence[str]) -> str | None:
        """Return the first of some paths whose bytes are not the same in the tree and in the user's checkout."""
        assert self.user_checkout is not None
        known = set(self.files.paths)
        for path in sorted(set(paths)):
            tree = self.files.read(path) if path in known else None
            if path in known and tree is None:
                return path  # unreadable, so it counts as different
            try:
                theirs = read_plain(self.user_checkout, path, limit=READ_LIMIT)
            except StoreError:
                theirs = None
            if tree != theirs:
                return path
        return None

    def write_manifests(self, paths: Iterable[str], folder: Path) -> None:
        """Copy files of the tree into a folder, under their own paths."""
        known = set(self.files.paths)
        for path in sorted(set(paths) & known):
            content = self.files.read(path)
            target = folder / path
            if content is not None and ".." not in Path(path).parts and not Path(path).is_absolute():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
