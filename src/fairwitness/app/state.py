"""The state folder of a repository and its ledger for writing.

The state is in `.fairwitness/` of the repository, or in the user's state directory if that is not writable or foreign.
Only a folder that this user made on this machine is used; `adopt` makes another one so (docs/adr/0024). The ledger is
on the server that `FAIRWITNESS_DATABASE_URL` names, else in the state folder."""

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairwitness.app.repository import DATABASE, FOLDER, URL, say_foreign, user_state_folder
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import NotReady, UsageError
from fairwitness.git.folders import remove
from fairwitness.git.ledger_heads import KeptHead, keep_head
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import ASIDE, POOL
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.own_folder import KnownFolder, Standing, claim, doubt, look, vouch
from fairwitness.kit.text import visible
from fairwitness.ledger.anchors import Anchor
from fairwitness.ledger.ledger import KeepRef, Ledger

if TYPE_CHECKING:  # imported late: a ledger in a file needs neither
    from fairwitness.db.postgres import Outage
    from fairwitness.engine.leases import FenceHolder

DERIVED = ("git", "env", "cache", "work", "locks")
"""What Fair Witness makes again when it is missing; adopting a folder removes it instead of trusting it."""
_WORKTREES = "worktrees"
_UNTRACK = f"git rm -r --cached {FOLDER}, then `fairwitness adopt`"


def state_of(repository: Repository) -> Path:
    """Return the state folder for writing, created if necessary: mode 0700, and ignored by git.

    Raise `NotReady` for a copied or moved one: nothing in it is run or reused until it is adopted. A foreign one is
    left untouched, and the state is in the user's state directory.
    """
    outside = user_state_folder(repository.top or repository.common_dir)
    if repository.top is not None and os.access(repository.top, os.W_OK | os.X_OK):
        inside = _judged(repository, look(repository.top / FOLDER))
        if inside.standing is Standing.NEW and not outside.is_dir():
            inside = claim(inside.path)
        if inside.standing is Standing.OURS:
            return inside.path
        if inside.standing is Standing.COPIED:
            raise NotReady(
                f"{visible(str(inside.path))} {visible(inside.why)}, so nothing in it is run or reused",
                next_step=_UNTRACK if repository.tracked(FOLDER) else "fairwitness adopt",
            )
        if inside.standing is Standing.FOREIGN:
            say_foreign(inside)
    made = claim(outside)
    if made.standing is not Standing.OURS:
        raise NotReady(f"{visible(str(made.path))} {made.why}", next_step="remove it")
    return made.path


def _judged(repository: Repository, folder: KnownFolder) -> KnownFolder:
    """Return what a folder is if git may have written into it: a commit can bring files for every path."""
    tracked = repository.tracked(FOLDER)
    if tracked is None:
        return folder
    why = f"holds files that git tracks ({tracked})"
    if folder.standing is Standing.OURS:
        return doubt(folder, why)
    return KnownFolder(folder.path, Standing.FOREIGN, why) if folder.standing is Standing.NEW else folder


def artifact_root(repository: Repository, state: Path) -> Path:
    """Return the folder that the paths of a forge run are relative to; they begin with the state folder's name."""
    return repository.top if repository.top is not None and state == repository.top / FOLDER else state


@dataclass(frozen=True, slots=True)
class Adoption:
    """A state folder that a person adopts: what it is, and what is removed because it can be made again."""

    folder: KnownFolder
    removed: tuple[str, ...]
    kept: tuple[str, ...]


def adoption_of(root: Path) -> Adoption:
    """Return what adopting the state folder of a repository would do; raise an error if it cannot be adopted."""
    folder = look(root / FOLDER)
    if folder.standing is Standing.NEW:
        raise UsageError(f"there is no state folder in {visible(str(root))}", next_step="fairwitness status")
    if (root / ".git").exists() and (tracked := Repository.open(root).tracked(FOLDER)):
        raise NotReady(f"git tracks {visible(tracked)}, so git writes into the state folder", next_step=_UNTRACK)
    if folder.standing is Standing.OURS:
        return Adoption(folder, (), ())
    if folder.path.is_symlink() or not folder.path.is_dir() or folder.path.stat().st_uid != os.geteuid():
        raise NotReady(f"{visible(str(folder.path))} {folder.why}, so it cannot be adopted", next_step="remove it")
    worktrees = (POOL, ASIDE) if folder.standing is Standing.COPIED else ("",)
    derived = (*DERIVED, *(str(Path(_WORKTREES, name)) for name in worktrees))
    names = sorted(each.name for each in folder.path.iterdir())
    kept = tuple(name for name in names if name not in derived)
    _refuse_odd(folder.path, [name for name in kept if name != _WORKTREES])
    return Adoption(folder, tuple(name for name in derived if os.path.lexists(folder.path / name)), kept)


def adopt(adoption: Adoption) -> KnownFolder:
    """Carry out an adoption and return the folder, which is this user's from now on."""
    for name in adoption.removed:
        remove(adoption.folder.path / name)
        killpoint("adopt.removed")
    return vouch(adoption.folder.path)


def _refuse_odd(folder: Path, names: list[str]) -> None:
    """Raise `NotReady` for a link, a device or a file of another user: it could lead out of the folder or change."""
    ahead = [folder / name for name in names]
    while ahead:
        place = ahead.pop()
        status = place.lstat()
        if status.st_uid != os.geteuid() or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            what = "belongs to another user" if status.st_uid != os.geteuid() else "is a link or no plain file"
            raise NotReady(f"{visible(str(place))} {what}, so {FOLDER} cannot be adopted", next_step="remove it")
        if stat.S_ISDIR(status.st_mode):
            ahead += place.iterdir()


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


def _refs_of(repository: Repository) -> KeepRef:
    """Return the function that keeps the heads of a ledger as refs of the repository."""

    def keep_ref(anchor: Anchor) -> None:
        kept = KeptHead(anchor.links, anchor.head, anchor.number, anchor.hash, anchor.ledger)
        keep_head(repository.top or repository.common_dir, anchor.run_id, kept)

    return keep_ref


def ledger_in(state: Path, repository: Repository, *, clock: Clock = system_clock) -> Ledger:
    """Open the ledger for writing; create it if there is none. Its heads are kept as refs of the repository."""
    url = os.environ.get(URL)
    if not url:
        return Ledger.open_file(state / DATABASE, clock=clock, keep_ref=_refs_of(repository))
    from fairwitness.db.postgres import PostgresDatabase

    return Ledger.open(PostgresDatabase(url), clock=clock, keep_ref=_refs_of(repository))


def worker_ledger_in(
    state: Path, repository: Repository, outage: "Outage", fences: "FenceHolder", *, clock: Clock = system_clock
) -> Ledger:
    """Open the ledger for the bodies of a worker: on a server they outlast an outage, and write only with a lease.

    A file needs no fence: its workers are on one machine, where a worker is ended before it is taken over.
    """
    url = os.environ.get(URL)
    if not url:
        return Ledger.open_file(state / DATABASE, clock=clock, keep_ref=_refs_of(repository))
    from fairwitness.db.postgres import PostgresDatabase
    from fairwitness.engine.leases import FencedDatabase

    database = FencedDatabase(PostgresDatabase(url, outage=outage), fences)
    return Ledger.open(database, clock=clock, keep_ref=_refs_of(repository))
