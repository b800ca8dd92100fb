"""The input of one run of the launcher and the raw facts of its outcome."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairwitness.contracts.common.sandbox import Violation, Warned
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.watchdog import LimitName, Watchdog


class WriteObserver(Protocol):
    """Watches a command's attempts to write, by answering the kernel's seccomp listener."""

    failed: str | None
    blind: bool
    """Whether some process could not be inspected."""
    lacked: set[str]
    """What the command tried to use and the tier does not have."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """The violations that were seen."""
        ...

    def start(self) -> None:
        """Start watching in a separate thread."""
        ...

    def finish(self) -> None:
        """Stop watching; called when no process of the command is left."""
        ...


@dataclass
class Launch:
    """How to start one command."""

    argv: Callable[[int], list[str]]
    """Returns the launcher's command line for bubblewrap's status descriptor; control and plan are appended."""
    plan: dict[str, Any]
    namespaced: bool
    watchdog: Watchdog | None
    observer: Callable[[int], WriteObserver] | None
    """Creates the observer for the kernel's listener."""
    handles: tuple[int, ...] = ()
    """Further descriptors for the launcher; the command does not inherit them."""


@dataclass
class CommandFacts:
    """The raw facts of one run."""

    stdout: Capture
    stderr: Capture
    wait_status: int | None = None
    stopped: LimitName | None = None
    cancelled: bool = False
    lost: str | None = None
    setup_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_memory: int = 0
    peak_processes: int = 0
    survivors: int | None = None
    observer: WriteObserver | None = None
    warnings: tuple[Warned, ...] = ()
    """Warnings about what could not be guaranteed for this run."""
