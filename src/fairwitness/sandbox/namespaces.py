"""The ns tier: Linux namespaces through bubblewrap."""

import contextlib
import functools
import os
import shutil
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Network, Warned
from fairwitness.sandbox import doors, forwarder, ruleset, scratch, seccomp, view
from fairwitness.sandbox.confine import Confining, plan, rlimits
from fairwitness.sandbox.launch import Ended, Launch
from fairwitness.sandbox.observer import observed
from fairwitness.sandbox.request import Request
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervise import supervise
from fairwitness.sandbox.watchdog import Watchdog


class NamespaceRunner(Confining):
    """Own user, process, network, ipc and host name; a view of the file system that holds only what is needed."""

    tier = SandboxTier.NAMESPACES

    def _run(self, asked: Request, streams: Streams, cancel: threading.Event | None) -> Ended:
        command = asked.command
        limits = command.limits
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise FileNotFoundError("bwrap is not installed")
        told = plan(asked, home=scratch.HOME, temporary=view.TMP, limits=self._limits(asked))
        told["confined"] = True
        network = command.confinement.network
        # with the machine's network come its abstract sockets, which only Landlock can shut off
        own_network = network is not Network.OPEN or self._features.landlock_abi >= ruleset.SCOPED
        sockets = seccomp.families(network, own_network=own_network)
        told["filter"] = seccomp.program(sockets, watch=False, alone=True)
        told["landlock"] = ruleset.scope_only(self._features.landlock_abi)
        launch = Launch(
            argv=lambda status: [*view.arguments(bwrap, asked, status), *view.launcher()],
            plan=told,
            namespaced=True,
            watchdog=Watchdog(limits, asked.write, (), (view.TMP, view.SHM, scratch.HOME)),
            observer=None,
        )
        observed(launch, asked, self.tier, sockets, self._features, view.PRIVATE)
        with _ways(launch, asked):
            ended = supervise(launch, limits, streams, cancel)
        ended.warnings += tuple(map(_unseen, doors.unseen(view.read_only(asked))))
        return ended

    def _limits(self, asked: Request) -> list[tuple[int, int, int]]:
        # the kernel never counts for root; and before 5.14 it counted all that the user runs, not the namespace
        return rlimits(asked.command.limits, count_processes=os.getuid() != 0 and _kernel() >= (5, 14))


@contextlib.contextmanager
def _ways(launch: Launch, asked: Request) -> Iterator[None]:
    """Gives the launcher a hold on each socket: none is in the command's view, where it could be called directly."""
    with contextlib.ExitStack() as stack:
        ports = {}
        for port, path in asked.ways:
            ports[port] = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
            stack.callback(os.close, ports[port])
            if not stat.S_ISSOCK(os.fstat(ports[port]).st_mode):
                raise FileNotFoundError(f"{path} is no socket any more")
        if ports:
            launch.handles = tuple(ports.values())
            launch.plan["ways"] = {"code": _forwarding(), "ports": ports}
        yield


@functools.cache
def _forwarding() -> CodeType:
    """What the launcher does not know by itself; both are run by the same interpreter."""
    return compile(Path(forwarder.__file__).read_text(encoding="utf-8"), "forwarder", "exec")


def _unseen(folder: str) -> Warned:
    text = f"{folder} holds more than {doors.ENTRIES} files: a socket far inside it might not be seen"
    return Warned(code="read-unseen", text=text)


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)
