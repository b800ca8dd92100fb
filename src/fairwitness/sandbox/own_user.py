"""The uid tier, for root on a kernel with neither namespaces nor Landlock: run each command as a unique user."""

import contextlib
import itertools
import os
import stat
import threading
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.kit.folder_trees import VisitedEntry, remove_tree, visit
from fairwitness.sandbox import seccomp
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.launch import CommandFacts, Launch
from fairwitness.sandbox.locked_tmp import LENT
from fairwitness.sandbox.observer import add_observer
from fairwitness.sandbox.private_folders import PrivateFolders, private_folders
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervision import supervise
from fairwitness.sandbox.tier_runner import TierRunner, base_plan, host_launcher, rlimits
from fairwitness.sandbox.watchdog import Watchdog

_OPEN_PLACES = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock")  # noqa: S108 -- to be cleaned
_turns = itertools.count()


class OwnUserRunner(TierRunner):
    """Runs commands as a user with no other files or processes; what everyone may write to stays writable."""

    tier = SandboxTier.UID

    def _run(self, checked: CheckedCommand, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
        uid = own_uid()
        before = _in_open_places()
        try:
            with private_folders() as own, _lent((own.folder, *checked.write), uid):
                return self._run_as(uid, checked, own, streams, cancel)
        finally:
            _sweep(uid, before)  # only now, when the lent folders have their owners back

    def _run_as(
        self, uid: int, checked: CheckedCommand, own: PrivateFolders, streams: Streams, cancel: threading.Event | None
    ) -> CommandFacts:
        command = checked.command
        _refuse_unreachable(checked.worktree)
        sockets = seccomp.families(command.confinement.network, own_network=False)
        limits = rlimits(command.limits, count_processes=True)
        launch_plan = base_plan(checked, home=own.home, temporary=own.temporary, limits=limits)
        launch_plan |= {"confined": True, "uid": uid, "filter": seccomp.program(sockets, watch=False, alone=False)}
        launch = Launch(
            argv=lambda _: host_launcher(),
            plan=launch_plan,
            namespaced=False,
            watchdog=Watchdog(command.limits, checked.write, (own.folder,), ()),
            observer=None,
        )
        add_observer(launch, checked, self.tier, sockets, self._features, (own.home, own.temporary))
        return supervise(launch, command.limits, streams, cancel)


def own_uid() -> int:
    """Return a user id that no other command on this machine has now."""
    return LENT + (os.getpid() << 8) + next(_turns) % 256


def _refuse_unreachable(worktree: str) -> None:
    for folder in Path(worktree).parents:
        if not folder.stat().st_mode & stat.S_IXOTH:
            raise PermissionError(f"another user cannot reach the worktree through {folder}")
    if not Path(worktree).stat().st_mode & 0o005 and Path(worktree).stat().st_uid < LENT:
        raise PermissionError(f"another user cannot read {worktree}")


def _in_open_places() -> dict[str, os.DirEntry[str]]:
    found: dict[str, os.DirEntry[str]] = {}
    for place in _OPEN_PLACES:
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            found |= {entry.path: entry for entry in entries}
    return found


def _sweep(uid: int, before: Container[str]) -> None:
    """Remove what the command left in the places that are writable for all; only it ran as this user."""
    for path, entry in _in_open_places().items():
        with contextlib.suppress(OSError):
            if path in before or entry.stat(follow_symlinks=False).st_uid != uid:
                continue
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(path))
            else:
                Path(path).unlink()


@contextlib.contextmanager
def _lent(folders: Iterable[str], uid: int) -> Iterator[None]:
    """Give folders with their contents to a user; afterwards restore the owner of everything that user owns there."""
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    places = tuple(folders)
    heirs = {place: Path(place).stat() for place in places}
    try:
        for place in places:
            for entry in visit(place, skip=".git"):
                _lend(entry, uid, owners)
            owners[heirs[place].st_dev, heirs[place].st_ino] = (heirs[place].st_uid, heirs[place].st_gid)
            os.chown(place, uid, uid)
        yield
    finally:
        for place, heir in heirs.items():
            for entry in visit(place):
                _give_back(entry, uid, owners, (heir.st_uid, heir.st_gid))
            if Path(place).lstat().st_uid == uid:
                os.lchown(place, heir.st_uid, heir.st_gid)


def _lend(entry: VisitedEntry, uid: int, owners: dict[tuple[int, int], tuple[int, int]]) -> None:
    status = entry.status
    # a file with a second hard link may also exist outside, under the other name
    if stat.S_ISDIR(status.st_mode) or (status.st_nlink == 1 and not stat.S_ISLNK(status.st_mode)):
        owners[status.st_dev, status.st_ino] = (status.st_uid, status.st_gid)
        _chown(entry, (uid, uid))


def _give_back(
    entry: VisitedEntry, uid: int, owners: dict[tuple[int, int], tuple[int, int]], heir: tuple[int, int]
) -> None:
    if entry.status.st_uid == uid:
        _chown(entry, owners.get((entry.status.st_dev, entry.status.st_ino), heir))


def _chown(entry: VisitedEntry, owner: tuple[int, int]) -> None:
    with contextlib.suppress(FileNotFoundError):  # another program may remove a file meanwhile
        os.chown(entry.name, *owner, dir_fd=entry.folder, follow_symlinks=False)
