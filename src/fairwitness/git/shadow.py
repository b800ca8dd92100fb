"""A bare repository of Fair Witness that reads the user's objects: makes, compares and writes trees.

It has its own configuration, so it has no filter, hook or driver of the user or the repository. New objects stay in it;
the user's object store is only read.
"""

from dataclasses import dataclass
from pathlib import Path

from fairwitness.git import changes, indexes, snapshots
from fairwitness.git.bare_repository import lay_out
from fairwitness.git.changes import FileChange
from fairwitness.git.objects import Objects
from fairwitness.git.repository import Repository
from fairwitness.git.snapshots import FolderSnapshot


@dataclass(frozen=True, slots=True)
class Shadow(Objects):
    """Operations on trees; `Objects` reads, composes and checks them out."""

    working_tree: Path | None = None
    """The working tree of the user's repository; None if it has none."""

    @classmethod
    def open(cls, folder: Path, repository: Repository) -> "Shadow":
        """Return the shadow of a repository in a folder of Fair Witness; create it if necessary."""
        folder = folder.absolute()
        git = lay_out(
            folder,
            objects=repository.objects_dir,
            object_format=repository.object_format,
            shallow=repository.common_dir / "shallow",
        )
        return cls(git, folder / "passing", repository.object_format, repository.top)

    def snapshot(self, folder: Path, base_tree: str) -> str:
        """Return a folder's current content as a tree; ignored files are left out unless the base has them."""
        return self.take(folder, base_tree).tree

    def take(self, folder: Path, base_tree: str) -> FolderSnapshot:
        """Return a folder's current content as a tree, and the nested repositories that were left out."""
        with self.index(base_tree) as git:
            return snapshots.take(self, git, folder.absolute())

    def staged_tree(self, repository: Repository) -> str:
        """Return the user's index as a tree; raise `UsageError` while it holds conflicts."""
        return indexes.staged_tree(self, repository)

    def worktree_tree(self, repository: Repository) -> str:
        """Return the user's checkout as a tree: tracked files with their content, and untracked, not ignored ones."""
        return indexes.worktree_tree(self, repository)

    def diff(self, base: str, head: str) -> tuple[FileChange, ...]:
        """Return the differences between two trees."""
        return changes.diff(self, base, head)

    def into_store(self, repository: Repository) -> Objects:
        """Return this configuration with new objects going into the user's store, for commits that are kept.

        Objects that exist only in the shadow are not visible there, so nothing that is kept can depend on them.
        """
        git = self.git.given(
            settings={"core.fsync": "committed"}, env={"GIT_OBJECT_DIRECTORY": str(repository.objects_dir)}
        )
        return Objects(git, self.scratch, self.object_format)
