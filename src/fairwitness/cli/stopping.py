"""Being told to stop, by Ctrl-C or by the system, and how a run's end becomes an exit code."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from fairwitness.cli.exit_codes import ExitCode

EXIT_CODES = {
    "completed": ExitCode.REACHED,
    "failed": ExitCode.GATE_SHUT,
    "budget": ExitCode.BUDGET,
    "person": ExitCode.WAITS_FOR_PERSON,
}
SIGNALS = {signal.SIGINT: ExitCode.INTERRUPTED, signal.SIGTERM: ExitCode.TERMINATED}


class Stopped(Exception):
    """Somebody wants this command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = SIGNALS[signal.Signals(number)]


def exit_code_of_end(end: str) -> ExitCode:
    """What a run's end says to a script."""
    return EXIT_CODES[end]


@contextmanager
def stoppable() -> Iterator[None]:
    """Inside, Ctrl-C and SIGTERM raise `Stopped`, so that the screen is left in order."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
