"""Tells whether this user made a folder on this machine; nothing in a folder is trusted because of what it contains.

A folder has a random id in a file. The user's state directory records the id together with the folder's path and inode.
A folder that came with a clone or an archive has an unknown id; a copy of a known folder has another path or inode.

The record is written before the file: after a crash there is either a record that no folder uses, or a folder that is
still empty and can be claimed again. Of two processes that claim a folder at once, one writes the file and both use it.
"""

import contextlib
import os
import stat
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from fairwitness.errors import AlreadyWritten, NotReady, NotStored, StoreError
from fairwitness.kit.files import create_file, is_temporary, read_plain, replace_file
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.user_state import remember, remembered, user_state_path

IDENTITY = "identity"
IGNORE = ".gitignore"
_IGNORED = b"# everything Fair Witness keeps here is for this machine only\n*\n"
_RECORDS = "state_folders.jsonl"
_ID_LENGTH = 32
_LIMIT = 256
_OTHERS_MAY_WRITE = 0o022


class Standing(Enum):
    """What a folder is to this user."""

    NEW = "new"
    """It does not exist, or contains nothing yet."""
    OURS = "ours"
    """This user made it here."""
    COPIED = "copied"
    """This user made it, but it was moved, copied or written by others since: it can be read, but not reused."""
    FOREIGN = "foreign"
    """Nothing shows that this user made it: it is not read."""


@dataclass(frozen=True, slots=True)
class KnownFolder:
    """A folder and what it is to this user."""

    path: Path
    standing: Standing
    why: str = ""
    """Why it is not ours: the rest of a sentence that begins with the folder."""
    id: str | None = None


def look(folder: Path) -> KnownFolder:
    """Return what a folder is to this user; nothing is written."""
    place = Path(os.path.realpath(folder.parent)) / folder.name
    try:
        status = place.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return KnownFolder(place, Standing.NEW)
    except OSError as error:
        raise NotReady(
            f"{place} cannot be read: {error.strerror}", next_step="give this user the right to read it"
        ) from None
    if not stat.S_ISDIR(status.st_mode):
        what = "is a link" if stat.S_ISLNK(status.st_mode) else "is not a folder"
        return KnownFolder(place, Standing.FOREIGN, what)
    if status.st_uid != os.geteuid():
        return KnownFolder(place, Standing.FOREIGN, "belongs to another user")
    try:
        id_ = _identity(place)
    except StoreError:
        return KnownFolder(place, Standing.FOREIGN, "has an identity that cannot be read")
    if _is_private(place):
        return KnownFolder(place, Standing.NEW if id_ is None else Standing.OURS, id=id_)
    if id_ is None and _is_empty(place):
        return KnownFolder(place, Standing.NEW)
    id_ = id_ or identity_of(place)  # another process may have claimed it in between
    if id_ is None:
        return KnownFolder(place, Standing.FOREIGN, "has no identity")
    return _recorded(place, status, id_)


def identity_of(folder: Path) -> str | None:
    """Return the id of a folder, or None if it has none."""
    try:
        return _identity(folder)
    except StoreError:
        return None


def claim(folder: Path) -> KnownFolder:
    """Create a folder that is this user's, mode 0700 and ignored by git, and return what it is then.

    An existing folder is claimed only if it is empty; any other is returned unchanged.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = look(folder)
        if found.standing is not Standing.NEW:
            return found
        killpoint("own_folder.made")
        create_file(found.path, IGNORE, _IGNORED)
    except (OSError, StoreError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise NotReady(f"{folder} cannot be written: {said}", next_step="make it writable") from None
    id_ = _recorded_id(found.path)
    with contextlib.suppress(AlreadyWritten):  # another process claimed it first, and recorded its id before
        create_file(found.path, IDENTITY, f"{id_}\n".encode())
    return look(folder)


def vouch(folder: Path) -> KnownFolder:
    """Make an existing folder this user's, under a new id; the caller has removed what must not be reused."""
    id_ = _recorded_id(folder)
    killpoint("own_folder.recorded")
    folder.chmod(0o700)
    replace_file(folder, IGNORE, _IGNORED)
    replace_file(folder, IDENTITY, f"{id_}\n".encode())
    return look(folder)


def doubt(folder: KnownFolder, why: str) -> KnownFolder:
    """Record that others have written into a folder of ours: from now on it counts as copied, until it is adopted."""
    remember(_RECORDS, {"id": folder.id, "doubt": why})
    return KnownFolder(folder.path, Standing.COPIED, why, folder.id)


def _recorded(place: Path, status: os.stat_result, id_: str) -> KnownFolder:
    records = [record for record in remembered(_RECORDS) if record.get("id") == id_]
    made = [record for record in records if "path" in record]
    if not made:
        return KnownFolder(place, Standing.FOREIGN, "was not made by you on this machine", id_)
    doubts = [str(record["doubt"]) for record in records if "doubt" in record]
    here = [record for record in made if record["path"] == str(place)]
    if not here:
        return KnownFolder(place, Standing.COPIED, f"was copied or moved from {made[-1]['path']}", id_)
    if not any(record.get("inode") == status.st_ino for record in here):
        return KnownFolder(place, Standing.COPIED, "was replaced by a copy", id_)
    if doubts:
        return KnownFolder(place, Standing.COPIED, doubts[0], id_)
    if status.st_mode & _OTHERS_MAY_WRITE:
        return KnownFolder(place, Standing.COPIED, "can be written by other users", id_)
    return KnownFolder(place, Standing.OURS, id=id_)


def _recorded_id(place: Path) -> str:
    """Draw an id and record it for a folder; the record is on disk when this returns."""
    id_ = os.urandom(_ID_LENGTH // 2).hex()
    remember(_RECORDS, {"id": id_, "path": str(place), "inode": place.lstat().st_ino})
    return id_


def _identity(place: Path) -> str | None:
    try:
        said = read_plain(place, IDENTITY, limit=_LIMIT).decode("ascii", "replace").strip()
    except NotStored:
        return None
    if len(said) != _ID_LENGTH or said.strip("0123456789abcdef"):
        raise StoreError(f"{place / IDENTITY} holds no id")
    return said


def _is_private(place: Path) -> bool:
    """Return whether a folder is in the user's state directory, where no repository can bring content."""
    return place.is_relative_to(os.path.realpath(user_state_path()))


def _is_empty(place: Path) -> bool:
    """Return whether a folder holds only what a killed `claim` may have left in it."""
    names = [name for name in (each.name for each in place.iterdir()) if not is_temporary(name)]
    return not names or (names == [IGNORE] and _holds(place, IGNORE, _IGNORED))


def _holds(place: Path, name: str, content: bytes) -> bool:
    try:
        return read_plain(place, name, limit=len(content)) == content
    except StoreError:
        return False
