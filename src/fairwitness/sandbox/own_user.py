"""The uid tier, for root on a kernel with neither namespaces nor Landlock: run each command as a unique user."""

import contextlib
import itertools
import os
import shutil
import stat
import threading
from collections.abc import Container, Iterable, Iterator
from pathlib import Path

from fairwitness.contracts.common.evidence import SandboxTier
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
                shutil.rmtree(path, ignore_errors=True)
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
            for path, status in _everything(place, skip=".git"):
                # a file with a second hard link may also exist outside, under the other name
                if stat.S_ISDIR(status.st_mode) or (status.st_nlink == 1 and not stat.S_ISLNK(status.st_mode)):
                    owners[status.st_dev, status.st_ino] = (status.st_uid, status.st_gid)
                    os.lchown(path, uid, uid)
        yield
    finally:
        for place in places:
            for path, status in _everything(place):
                if status.st_uid == uid:
                    heir = heirs[place]
                    before = owners.get((status.st_dev, status.st_ino), (heir.st_uid, heir.st_gid))
                    os.lchown(path, *before)


def _everything(place: str, *, skip: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield a folder and everything below it, without following links and without entries of the name `skip`."""
    with contextlib.suppress(OSError):
        yield place, os.lstat(place)
    front = [place]
    while front:
        with contextlib.suppress(OSError), os.scandir(front.pop()) as found:
            for entry in found:
                if entry.name == skip:
                    continue
                with contextlib.suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)
                    if entry.is_dir(follow_symlinks=False):
                        front.append(entry.path)
