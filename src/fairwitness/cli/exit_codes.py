"""The exit codes; scripts and CI rely on these numbers."""

from enum import IntEnum

from fairwitness.errors import (
    BadDocument,
    EventsBroken,
    FairWitnessError,
    LedgerTampered,
    NotReady,
    StoreError,
    UsageError,
)


class ExitCode(IntEnum):
    """The exit codes of all commands; they never change."""

    REACHED = 0
    GATE_SHUT = 1
    USAGE = 2
    NOT_READY = 3
    WAITS_FOR_PERSON = 4
    BUDGET = 5
    UNTRUSTED = 6
    BUG = 70
    HUNG_UP = 129
    INTERRUPTED = 130
    UNHEARD = 141
    TERMINATED = 143


def exit_code_of(error: FairWitnessError) -> ExitCode:
    """Return the exit code for an error."""
    match error:
        case UsageError():
            return ExitCode.USAGE
        case BadDocument():
            return ExitCode.GATE_SHUT
        case EventsBroken() | LedgerTampered():
            return ExitCode.UNTRUSTED
        case NotReady() | StoreError():
            return ExitCode.NOT_READY
        case _:
            return ExitCode.BUG
