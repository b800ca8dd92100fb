"""The errors that Fair Witness raises on purpose. Each says what happened, where, and what to do next.

FairWitnessError
├── BadDocument          a text is not an acceptable document (position and reason)
├── UsageError           the request makes no sense as given (exit 2)
├── NotReady             the environment lacks something (exit 3)
│   ├── Interrupted      a run stopped because of the machine; it can be resumed when that is mended
│   ├── ProviderAway     the provider of a model cannot be used now, or not with these settings
│   └── DatabaseUnusable the database is missing, foreign, newer, corrupt or stays locked
│       ├── DatabaseBusy another process held it too long; a later try may succeed
│       └── DatabaseAway the server cannot be reached or ended the connection
├── RowRefused           a constraint of the database refused a row
├── EventsBroken         the events of a run contradict each other (exit 6)
├── LedgerTampered       the ledger was changed after it was written (exit 6)
├── InternalError        Fair Witness contradicts itself: a bug (exit 70)
└── StoreError           a file could not be read or written
    ├── UnsafePath       an id or path would leave its folder, or a link was planted
    ├── NotStored        the file does not exist
    ├── AlreadyWritten   a write-once file exists with other content
    ├── Immutable        the write would change content that may only stay or grow
    ├── HashMismatch     the content differs from the content that was requested
    └── DiskRefused      the operating system refused (full, read-only, not permitted)
"""

import errno
from dataclasses import dataclass

_DISK_NUMBERS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
_MACHINE_NUMBERS = _DISK_NUMBERS | {
    errno.ENOMEM,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ESTALE,
    errno.EAGAIN,  # no further process can be started
}
_DISK_WORDS = (
    "No space left on device",
    "Out of diskspace",
    "Disk quota exceeded",
    "Read-only file system",
    "database or disk is full",
    "attempt to write a readonly database",
    "(ENOSPC)",
    "(EROFS)",
)
"""How libraries and programs that Fair Witness runs, such as SQLite and git, report a full or read-only disk."""


class FairWitnessError(Exception):
    """An error with one sentence about what happened and where, and one about what to do next."""

    is_machine_fault = False
    """Whether the machine or its records are at fault, so that every further attempt would fail in the same way."""

    def __init__(self, what: str, *, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Position:
    """A line and column of a text, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


def is_machine_fault(error: BaseException) -> bool:
    """Return whether an error stops all work on this machine, and not only the attempt that met it.

    >>> is_machine_fault(OSError(errno.ENOSPC, "No space left on device")), is_machine_fault(ValueError("a task"))
    (True, False)
    """
    if isinstance(error, FairWitnessError):
        cause = error.__cause__ or error.__context__  # also if the message hides it
        if error.is_machine_fault or is_disk_fault(error):
            return True
        return isinstance(cause, OSError) and is_machine_fault(cause)
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _MACHINE_NUMBERS)


def is_disk_fault(error: BaseException) -> bool:
    """Return whether a full or read-only disk is the reason of an error, which passes as soon as there is room.

    >>> is_disk_fault(DiskRefused("cannot write x: Read-only file system")), is_disk_fault(OSError(errno.EIO, ""))
    (True, False)
    """
    if isinstance(error, OSError):
        return error.errno in _DISK_NUMBERS
    return isinstance(error, FairWitnessError) and any(word in error.what for word in _DISK_WORDS)


class BadDocument(FairWitnessError):
    """A text that is not an acceptable document; document readers raise no other error."""

    def __init__(self, reason: str, position: Position, *, source: str = "", next_step: str = "") -> None:
        place = f"{source}:{position}" if source else f"line {position.line}, column {position.column}"
        super().__init__(f"{place}: {reason}", next_step=next_step)
        self.reason = reason
        self.position = position
        self.source = source


class UsageError(FairWitnessError):
    """A request that is wrong in itself; the same request fails again."""


class NotReady(FairWitnessError):
    """Something outside Fair Witness is missing; `next_step` says how to get it."""

    is_machine_fault = True


class Interrupted(NotReady):
    """A run stopped because of the machine that it runs on; it has not failed and can be resumed."""


class ProviderAway(NotReady):
    """The provider of a model refuses or does not answer; no agent is at fault, and what was not used is not paid."""


class DatabaseUnusable(NotReady):
    """A database that cannot be used in its current state; nothing was written to it."""


class DatabaseBusy(DatabaseUnusable):
    """Another process held the database for too long; nothing was written, and a later try may succeed."""


class DatabaseAway(DatabaseUnusable):
    """The database server cannot be reached, or ended the connection; what was not committed was not written."""


class RowRefused(FairWitnessError):
    """A constraint or trigger of the database refused a row; the whole transaction was rolled back."""


class EventsBroken(FairWitnessError):
    """The events of a run contradict each other, so its state cannot be computed."""

    is_machine_fault = True


class LedgerTampered(FairWitnessError):
    """Rows of the ledger were edited, deleted, inserted or reordered, so they prove nothing."""

    is_machine_fault = True


class InternalError(FairWitnessError):
    """Fair Witness contradicts itself. This is a bug, not a mistake of the user."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"internal error in Fair Witness: {what}",
            next_step="this is a bug: report it with this message and the output of `fairwitness doctor`",
        )


class StoreError(FairWitnessError):
    """A file could not be read or written; its earlier content is unchanged."""


class UnsafePath(StoreError):
    """A path that would leave its folder, or that is not a plain file."""


class NotStored(StoreError):
    """The file does not exist."""


class AlreadyWritten(StoreError):
    """A write-once file exists with other content."""


class Immutable(StoreError):
    """The write would change content that may only stay or grow."""


class HashMismatch(StoreError):
    """The content on disk differs from the content that was requested."""


class DiskRefused(StoreError):
    """The operating system refused to write; the old content is unchanged."""

    is_machine_fault = True
