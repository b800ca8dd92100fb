"""Makes folders that an agent wrote accessible, and removes them with everything in them."""

from pathlib import Path

from fairwitness.kit.folder_trees import open_folder, remove_tree, visit


def remove(folder: Path) -> None:
    """Remove a folder with any content, or a file or link in its place; links are removed, not followed.

    It is no error if the folder is gone: another process may remove it too.
    """
    if (error := remove_tree(folder)) is not None:
        raise error


def open_up(folder: Path) -> None:
    """Make all folders within a folder readable and writable for the owner, so that they can be read and removed."""
    open_folder(folder)
    for _ in visit(folder, opened=True):  # each folder is opened before it is entered
        pass
