"""The interface of every runner: it takes a command and returns its result."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confined, Features


@dataclass(frozen=True)
class Attached:
    """Descriptors of pipes that become a command's stdin and stdout, to talk with it while it runs.

    The runner owns them from the call on, whatever its outcome. It closes its copies as soon as the command has them,
    and also if nothing is run, so that each side sees the end of the other. The caller alone gets the command's
    stdout: it is not kept, counted or hashed (the result says 0 bytes and the hash of nothing), and the caller must
    stop a command that writes too much (`output_killed`). Everything else, stderr included, works as without pipes.
    """

    stdin: int
    """The reading end of a pipe."""
    stdout: int
    """The writing end of a pipe."""


@dataclass(frozen=True)
class Finished:
    """A command's result, with the head and the tail of each output stream, without secrets."""

    result: Confined
    stdout: bytes
    stderr: bytes
    unredacted: Callable[[Literal["stdout", "stderr"]], bytes] = field(repr=False)
    """Returns the head and the tail of a stream as the command wrote them. Only for readers of reports, which must see
    what the tool wrote, and which redact what they return."""


class Runner(Protocol):
    """Runs foreign commands. Threads may share a runner.

    Nothing that a command does raises an exception. `run` returns when no process of the command's tree is alive.
    """

    @property
    def features(self) -> Features:
        """The sandbox features of this machine."""
        ...

    @property
    def tier(self) -> SandboxTier:
        """How strictly commands are confined."""
        ...

    def run(
        self,
        command: Command,
        *,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
    ) -> Finished:
        """Run a command to its end; raise `UsageError` only if the request itself is invalid.

        The command reads either `stdin` or the attached pipe.
        """
        ...
