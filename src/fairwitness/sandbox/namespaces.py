"""The ns tier: confine a command with Linux namespaces, through bubblewrap."""

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
from fairwitness.sandbox import bwrap_args, forwarder, landlock_rules, scratch, seccomp, sockets
from fairwitness.sandbox.checked_command import CheckedCommand
from fairwitness.sandbox.launch import CommandFacts, Launch
from fairwitness.sandbox.observer import add_observer
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.supervision import supervise
from fairwitness.sandbox.tier_runner import TierRunner, base_plan, rlimits
from fairwitness.sandbox.watchdog import Watchdog


class NamespaceRunner(TierRunner):
    """Runs commands in their own user, pid, network, ipc and uts namespaces, with only the necessary files mounted."""

    tier = SandboxTier.NAMESPACES

    def _run(self, checked: CheckedCommand, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
        command = checked.command
        limits = command.limits
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise FileNotFoundError("bwrap is not installed")
        launch_plan = base_plan(checked, home=scratch.HOME, temporary=bwrap_args.TMP, limits=self._limits(checked))
        launch_plan |= {"confined": True, "segments": True}
        network = command.confinement.network
        # the host's network includes its abstract sockets, which only Landlock can block
        own_network = network is not Network.OPEN or self._features.landlock_abi >= landlock_rules.SCOPED
        families = seccomp.families(network, own_network=own_network)
        launch_plan["filter"] = seccomp.program(families, watch=False, alone=True)
        launch_plan["landlock"] = landlock_rules.scope_only(self._features.landlock_abi)
        launch = Launch(
            argv=lambda status: [*bwrap_args.arguments(bwrap, checked, status), *bwrap_args.launcher()],
            plan=launch_plan,
            namespaced=True,
            watchdog=Watchdog(limits, checked.write, (), (bwrap_args.TMP, bwrap_args.SHM, scratch.HOME)),
            observer=None,
        )
        add_observer(launch, checked, self.tier, families, self._features, bwrap_args.PRIVATE)
        with _ways(launch, checked):
            ended = supervise(launch, limits, streams, cancel)
        ended.warnings += tuple(map(_unseen, sockets.too_large(bwrap_args.read_only(checked))))
        return ended

    def _limits(self, checked: CheckedCommand) -> list[tuple[int, int, int]]:
        # the kernel never enforces this limit for root, and before 5.14 it counted per user, not per namespace
        return rlimits(checked.command.limits, count_processes=os.getuid() != 0 and _kernel() >= (5, 14))


@contextlib.contextmanager
def _ways(launch: Launch, checked: CheckedCommand) -> Iterator[None]:
    """Give the launcher a descriptor of each socket: none is mounted, so the command cannot connect to it directly."""
    with contextlib.ExitStack() as stack:
        ports = {}
        for port, path in checked.ways:
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
    """Return the forwarder's code for the launcher; it can be compiled here because both run the same interpreter."""
    return compile(Path(forwarder.__file__).read_text(encoding="utf-8"), "forwarder", "exec")


def _unseen(folder: str) -> Warned:
    text = f"{folder} holds more than {sockets.ENTRIES} files: a socket far inside it might not be seen"
    return Warned(code="read-unseen", text=text)


def _kernel() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(filter(str.isdigit, minor)) or 0)
