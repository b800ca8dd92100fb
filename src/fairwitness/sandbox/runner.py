"""The promise of every runner: one command in, what came of it out."""

import threading
from dataclasses import dataclass
from typing import Protocol

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confined, Features


@dataclass(frozen=True)
class Attached:
    """Handles of pipes that become a command's own streams, to talk with it while it runs.

    They are the runner's from the call on, whatever comes of it: its copies are closed as soon as the command has
    them, and where nothing is run, so that each side sees the end of the other. What the command says on stdout is then
    the caller's alone: it is not kept, counted or hashed (the result says 0 bytes and the hash of nothing), and to
    stop who says too much (`output_killed`) is the caller's duty. All else is as ever, stderr too.
    """

    stdin: int
    """The end that is read from."""
    stdout: int
    """The end that is written to."""


@dataclass(frozen=True)
class Finished:
    """What came of a command, and what was kept of its output: the head and the tail of each stream."""

    result: Confined
    stdout: bytes
    stderr: bytes


class Runner(Protocol):
    """Runs commands that are not ours. Threads may share one.

    Nothing that a command does raises. `run` returns when no process of the command's tree lives any more.
    """

    @property
    def features(self) -> Features:
        """What this machine offers."""
        ...

    @property
    def tier(self) -> SandboxTier:
        """How commands are kept in."""
        ...

    def run(
        self,
        command: Command,
        *,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
    ) -> Finished:
        """Runs one command to its end; `UsageError` only if the request itself cannot be meant.

        It reads either `stdin` or what comes through the attached pipe.
        """
        ...
