"""The folder in which git keeps what it knows of one worktree: found by the place it names, or made by hand.

Git makes one only together with an empty worktree; a folder that is full already gets its own here, laid out as git
documents it. It is written elsewhere and moved to its place whole, so that nobody who lists or prunes worktrees
meanwhile sees half of it.
"""

import errno
import itertools
import os
import shutil
from pathlib import Path

from fairwitness.git.call import bytes_of
from fairwitness.git.folders import remove
from fairwitness.kit.killpoints import killpoint

_TAKEN = frozenset({errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR})


def admin_of(common_dir: Path, folder: Path) -> Path | None:
    """What the repository keeps of the worktree in a folder; None if it knows of none."""
    wanted = os.fsencode(folder / ".git")
    for place in sorted((common_dir / "worktrees").glob("*")):
        try:
            if (place / "gitdir").read_bytes().rstrip(b"\n") == wanted:
                return place
        except (FileNotFoundError, NotADirectoryError):
            continue  # another process makes it or takes it away
    return None


def unfinished_of(common_dir: Path, folder: Path) -> Path:
    """Where it is written first; what stands there was left by a killed process."""
    return common_dir / f"fairwitness-{folder.name}.new"


def can_be_made(common_dir: Path) -> bool:
    """True if refs are kept in files: other stores want more beside a worktree than is written here."""
    return not (common_dir / "reftable").exists()


def make_admin(common_dir: Path, folder: Path, branch: str, index: Path) -> None:
    """Makes a folder that holds the files of a commit a worktree on a branch."""
    new = unfinished_of(common_dir, folder)
    remove(new)
    new.mkdir()
    (new / "commondir").write_bytes(b"../..\n")
    (new / "HEAD").write_bytes(bytes_of(f"ref: refs/heads/{branch}\n"))
    (new / "gitdir").write_bytes(os.fsencode(folder / ".git") + b"\n")
    shutil.copy2(index, new / "index")
    killpoint("git.admin.begun")
    for number in itertools.count():
        place = common_dir / "worktrees" / (f"{folder.name}{number}" if number else folder.name)
        place.parent.mkdir(exist_ok=True)  # git takes the last one's away
        (folder / ".git").write_bytes(b"gitdir: " + os.fsencode(place) + b"\n")
        try:
            new.rename(place)
        except OSError as error:
            if error.errno not in {*_TAKEN, errno.ENOENT} or not new.exists():
                raise
        else:
            return
