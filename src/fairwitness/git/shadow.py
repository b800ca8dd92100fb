"""A repository of ours over a person's objects: trees are read, made, compared and written out without touching theirs.

It is bare and has a configuration of its own, so no filter, hook or driver of anybody's exists in it. New objects stay
in it; the person's store is only read.
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
    """Everything about trees; see `Objects` for reading, composing and checking them out."""

    @classmethod
    def open(cls, folder: Path, repository: Repository) -> "Shadow":
        """The shadow of a repository in a folder of ours, made if there is none."""
        folder = folder.absolute()
        git = lay_out(
            folder,
            objects=repository.objects_dir,
            object_format=repository.object_format,
            shallow=repository.common_dir / "shallow",
        )
        return cls(git, folder / "passing", repository.object_format)

    def snapshot(self, folder: Path, base_tree: str) -> str:
        """A folder as it is now as a tree; what its .gitignore files name is left out unless the base has it."""
        return self.take(folder, base_tree).tree

    def take(self, folder: Path, base_tree: str) -> FolderSnapshot:
        """The same, and the nested repositories that were left out."""
        with self.index(base_tree) as git:
            return snapshots.take(self, git, folder.absolute())

    def staged_tree(self, repository: Repository) -> str:
        """The person's index as a tree; `UsageError` while it holds conflicts."""
        return indexes.staged_tree(self, repository)

    def worktree_tree(self, repository: Repository) -> str:
        """The person's checkout as a tree: tracked files as they are, and others that are not ignored."""
        return indexes.worktree_tree(self, repository)

    def diff(self, base: str, head: str) -> tuple[FileChange, ...]:
        """What differs between two trees."""
        return changes.diff(self, base, head)

    def into_store(self, repository: Repository) -> Objects:
        """The same configuration, but new objects go into the person's store: for commits that shall stay.

        What exists only in the shadow is not seen there, so nothing kept can depend on it.
        """
        git = self.git.given(
            settings={"core.fsync": "committed"}, env={"GIT_OBJECT_DIRECTORY": str(repository.objects_dir)}
        )
        return Objects(git, self.scratch, self.object_format)
