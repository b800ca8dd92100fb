"""The state folder of a repository and its ledger for writing.

The state is in `.fairwitness/` of the repository, or in the user's state folder if that is not writable. The ledger is
on the server that `FAIRWITNESS_DATABASE_URL` names, else in the state folder."""

import hashlib
import os
import stat
import tempfile
from pathlib import Path

from fairwitness.app.repository import DATABASE, FOLDER, URL, user_state_folder
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import NotReady
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger

IGNORE = "# everything Fair Witness keeps here is for this machine only\n*\n"


def state_of(repository: Repository) -> Path:
    """Return the state folder, created if necessary: mode 0700, and ignored by git through its own .gitignore."""
    if repository.top is not None and os.access(repository.top, os.W_OK | os.X_OK):
        return _made(repository.top / FOLDER)
    return _made(user_state_folder(repository.top or repository.common_dir))


def scratch_root(state: Path, tier: SandboxTier) -> Path:
    """Return the folder for checkouts and environments: the state folder, unless commands run as another user.

    That user must be able to enter it, but only the person may enter the state folder.
    """
    if tier is not SandboxTier.UID:
        return state
    name = f"fairwitness-{os.geteuid()}-{hashlib.sha256(os.fsencode(state)).hexdigest()[:16]}"
    made = Path(tempfile.gettempdir()) / name
    try:
        made.mkdir(mode=0o711, exist_ok=True)
        status = made.lstat()
    except OSError as error:
        raise NotReady(f"{made} cannot be created: {error.strerror}", next_step="make it writable") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        raise NotReady(f"{made} belongs to another user", next_step="remove it")
    made.chmod(0o711)
    return made


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text(IGNORE)
    except OSError as error:
        raise NotReady(f"{folder} cannot be written: {error.strerror}", next_step="make it writable") from None
    return folder


def ledger_in(state: Path, *, clock: Clock = system_clock) -> Ledger:
    """Open the ledger for writing; create it if there is none."""
    url = os.environ.get(URL)
    if not url:
        return Ledger.open_file(state / DATABASE, clock=clock)
    from fairwitness.db.postgres import PostgresDatabase

    return Ledger.open(PostgresDatabase(url), clock=clock)
