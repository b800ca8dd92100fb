"""The promise of every runner: one command in, what came of it out."""

import threading
from dataclasses import dataclass
from typing import Protocol

from assay.contracts.common.evidence import SandboxTier
from assay.contracts.common.sandbox import Command, Confined, Features


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

    def run(self, command: Command, *, stdin: bytes = b"", cancel: threading.Event | None = None) -> Finished:
        """Runs one command to its end; `UsageError` only if the request itself cannot be meant."""
        ...
