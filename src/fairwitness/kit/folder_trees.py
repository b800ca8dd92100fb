"""Go through folder trees that a foreign command made, and remove them; no depth, name or permission stops it.

`os.walk`, `shutil.rmtree` and `Path.rglob` of Python 3.11 call themselves for each level, so a thousand nested folders
end them with a RecursionError, and a path of more than 4096 bytes cannot be opened at all. Here nothing recurses, and
`visit` and `remove_tree` open each folder from the one above it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class VisitedEntry(NamedTuple):
    """One entry of a tree; use `name` relative to the open `folder`, and before the next entry is asked for."""

    folder: int
    name: str
    status: os.stat_result


def walk(top: str | Path) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder with the names of its folders and files, like `os.walk`, from the top down.

    Folders that cannot be read, or whose path is too long, are left out. Remove names from the first list to leave out
    those folders. Links to folders are listed as folders and not followed.
    """
    front = [os.fspath(top)]
    while front:
        place = front.pop()
        folders: list[str] = []
        files: list[str] = []
        try:
            with os.scandir(place) as found:
                for entry in found:
                    (folders if _is_folder(entry) else files).append(entry.name)
        except OSError:
            continue
        yield place, folders, files
        inner = (f"{place}/{name}" for name in reversed(folders))
        front.extend(path for path in inner if not os.path.islink(path))  # noqa: PTH114 -- a Path is slower


def visit(top: str | Path, *, opened: bool = False, skip: str = "") -> Iterator[VisitedEntry]:
    """Yield everything below a folder, the contents of a folder before the folder itself.

    Links are not followed and other file systems not entered. With `opened`, each folder is made accessible to its
    owner first. Entries with the name `skip` are left out. Raise OSError if the top cannot be opened, or if a folder
    is moved meanwhile.
    """
    handle = os.open(top, _FOLDER)
    try:
        here = os.fstat(handle)
        trail = [("", here)]
        pending = [_names(handle)]
        while True:
            if pending[-1]:
                name = pending[-1].pop()
                if name == skip:
                    continue
                try:
                    status = os.lstat(name, dir_fd=handle)
                    inner = _entered(handle, name, status, here.st_dev, opened=opened)
                except FileNotFoundError:
                    continue
                if inner is None:
                    yield VisitedEntry(handle, name, status)
                    continue
                os.close(handle)
                handle = inner
                trail.append((name, status))
                pending.append(_names(handle))
            else:
                pending.pop()
                name, status = trail.pop()
                if not trail:
                    return
                above = os.open("..", _FOLDER, dir_fd=handle)
                os.close(handle)
                handle = above
                if not os.path.samestat(os.fstat(handle), trail[-1][1]):
                    raise OSError(errno.ESTALE, "the folder was moved", name)
                yield VisitedEntry(handle, name, status)
    finally:
        os.close(handle)


def open_folder(path: str | Path, above: int | None = None) -> None:
    """Give the owner all rights to a folder; raise OSError if a link is in its place."""
    handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    try:
        mode = stat.S_IMODE(os.fstat(handle).st_mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(f"/proc/self/fd/{handle}", mode | stat.S_IRWXU)  # noqa: PTH101 -- fchmod refuses such a handle
    finally:
        os.close(handle)


def remove_tree(folder: Path) -> OSError | None:
    """Remove a folder with everything in it, or the file or link in its place; return the first error, if any.

    It is no error if something is already gone. What cannot be removed stays, and everything else is removed.
    """
    failed: OSError | None = None
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            folder.unlink()
            return None
        with contextlib.suppress(PermissionError):  # another user's folder may still be writable
            open_folder(folder)
        for entry in visit(folder, opened=True):
            try:
                is_folder = stat.S_ISDIR(entry.status.st_mode)
                (os.rmdir if is_folder else os.unlink)(entry.name, dir_fd=entry.folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                failed = failed or error
        folder.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        failed = failed or error
    return failed


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a loop of links
        return False


def _entered(folder: int, name: str, status: os.stat_result, device: int, *, opened: bool) -> int | None:
    """Return a descriptor of a folder, or None for anything that is not to be entered."""
    if not stat.S_ISDIR(status.st_mode) or status.st_dev != device:
        return None
    try:
        if opened and status.st_mode & stat.S_IRWXU != stat.S_IRWXU:
            open_folder(name, folder)
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError:
        return None


def _names(handle: int) -> list[str]:
    try:
        return os.listdir(handle)
    except OSError:
        return []
