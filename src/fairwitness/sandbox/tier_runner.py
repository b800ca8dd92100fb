"""What all tiers have in common: check a command, record the state before it, run it, compare, build the result."""

import resource
import sys
import threading
from abc import ABC, abstractmethod
from typing import Any

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confinement, Features, Network, SandboxLimits, Warned
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.sandbox import result, scratch
from fairwitness.sandbox.checked_command import CheckedCommand, check_command
from fairwitness.sandbox.integrity_watch import IntegrityWatch
from fairwitness.sandbox.launch import CommandFacts
from fairwitness.sandbox.runner import Attached, Finished
from fairwitness.sandbox.streams import Streams

_ABOUT_ALL = frozenset({"no-cgroup", "no-notify", "root-nproc-unenforced"})
"""Warnings that apply to every tier; the others explain why no stronger tier is available."""
_NO_SOCKETS = Warned(code="net-all-blocked", text="a command has no network of its own, so it gets no sockets at all")
_GIT = Warned(code="git-replaceable", text="a command can replace its worktree's .git; that is seen and is a violation")
_ARGUMENTS = Warned(code="arguments-readable", text="a command can read the command lines of other processes")
_SHARED = Warned(code="shm-shared", text="places that everybody may write to are open to the command")
ABOUT_TIER: dict[SandboxTier, tuple[Warned, ...]] = {
    SandboxTier.NAMESPACES: (),
    SandboxTier.LANDLOCK: (_NO_SOCKETS, _GIT, _ARGUMENTS),
    SandboxTier.UID: (_NO_SOCKETS, _GIT, _ARGUMENTS, _SHARED),
    SandboxTier.NONE: (_SHARED, Warned(code="unsandboxed", text="nothing keeps the command in")),
}
"""The inherent gaps of each tier."""


class TierRunner(ABC):
    """A runner of one tier; subclasses define only how a command is launched."""

    tier: SandboxTier

    def __init__(self, features: Features, *, clock: Clock = system_clock) -> None:
        self._features = features
        self._clock = clock

    @property
    def features(self) -> Features:
        """The sandbox features of this machine."""
        return self._features

    def run(
        self,
        command: Command,
        *,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
    ) -> Finished:
        """Run a command to its end."""
        with Streams(stdin, attached) as streams:
            return self._finished(command, streams, cancel)

    def _finished(self, command: Command, streams: Streams, cancel: threading.Event | None) -> Finished:
        checked = check_command(command, self.tier)
        started_at = self._clock()
        facts: dict[str, Any] = {
            "tier": self.tier,
            "features": self._features,
            "warnings": self._warnings(command.confinement),
            "started_at": started_at,
        }
        if checked.problem is not None:
            return result.not_run(checked, checked.problem, **facts)
        survey = IntegrityWatch(checked, self.tier)
        if survey.problem is not None:
            return result.not_run(checked, survey.problem, **facts)
        facts["warnings"] += survey.warnings
        try:
            ended = self._run(checked, streams, cancel)
        except OSError as error:
            return result.not_run(checked, f"the sandbox cannot be built: {error}", **facts)
        return result.finished(checked, ended, changed=survey.changed(), **facts)

    @abstractmethod
    def _run(self, checked: CheckedCommand, streams: Streams, cancel: threading.Event | None) -> CommandFacts:
        """Run a checked command."""

    def _warnings(self, confinement: Confinement) -> tuple[Warned, ...]:
        degraded = self.tier is not SandboxTier.NAMESPACES
        found = {warned.code: warned for warned in self._features.warnings if degraded or warned.code in _ABOUT_ALL}
        found |= {warned.code: warned for warned in ABOUT_TIER[self.tier]}
        if confinement.network is Network.OPEN:
            found.pop(_NO_SOCKETS.code, None)
        return tuple(found.values())


def rlimits(limits: SandboxLimits, *, count_processes: bool) -> list[tuple[int, int, int]]:
    """Return the limits that the kernel enforces for each process."""
    found = [
        # DATA and not AS: language runtimes such as the JVM reserve far more address space than they use
        (resource.RLIMIT_DATA, limits.memory_process, limits.memory_process),
        (resource.RLIMIT_FSIZE, limits.file_size, limits.file_size),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1),
        (resource.RLIMIT_CORE, 0, 0),
    ]
    if count_processes and sys.platform == "linux":
        # this also counts threads, so it only slows down a fork bomb until the watchdog notices it
        found.append((resource.RLIMIT_NPROC, limits.processes * 4, limits.processes * 4))
    return found


def base_plan(
    checked: CheckedCommand, *, home: str, temporary: str, limits: list[tuple[int, int, int]]
) -> dict[str, Any]:
    """Return the part of the launcher's plan that is the same in every tier; it confines nothing yet."""
    return {
        "argv": [word.encode(errors="surrogateescape") for word in checked.command.argv],
        "env": {
            name.encode(errors="surrogateescape"): value.encode(errors="surrogateescape")
            for name, value in checked.env(home, temporary).items()
        },
        "cwd": checked.cwd.encode(errors="surrogateescape"),
        "limits": limits,
        "confined": False,
        "uid": None,
        "landlock": None,
        "filter": None,
        "watched": None,
        "attached": None,
        "ways": None,
        "segments": False,
    }


def host_launcher() -> list[str]:
    """Return the launcher's command line for tiers without a mount namespace."""
    return [scratch.interpreter(), "-I", "-S", "-X", "utf8", str(scratch.etc() / scratch.LAUNCHER)]
