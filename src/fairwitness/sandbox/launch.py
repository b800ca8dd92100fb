"""What goes into one run of the launcher, and the bare facts that come out of it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from fairwitness.contracts.common.sandbox import Violation, Warned
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.watchdog import LimitName, Watchdog


class WriteObserver(Protocol):
    """Somebody who answers the kernel's listener."""

    failed: str | None
    blind: bool
    """Whether some process could not be looked into."""

    @property
    def violations(self) -> tuple[Violation, ...]:
        """What was seen."""
        ...

    def start(self) -> None:
        """Begins, in a thread of its own."""
        ...

    def finish(self) -> None:
        """Ends; nothing is left to be watched."""
        ...


@dataclass
class Launch:
    """How one command is started."""

    argv: Callable[[int], list[str]]
    """The launcher's command line, given the handle to which bubblewrap reports; control and plan are added."""
    plan: dict[str, Any]
    namespaced: bool
    watchdog: Watchdog | None
    observer: Callable[[int], WriteObserver] | None
    """Makes the observer from the kernel's listener."""
    handles: tuple[int, ...] = ()
    """What the launcher is given beside; nothing of it reaches the command."""


@dataclass
class CommandFacts:
    """The bare facts of one run."""

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
    """What could not be promised for this one."""
