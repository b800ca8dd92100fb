"""Every error Fair Witness raises on purpose; each says what, where, and what to do next.

FairWitnessError
├── BadDocument          a text is not an acceptable document (position and reason)
├── UsageError           the caller asked for something that cannot be meant (exit 2)
├── NotReady             the environment lacks something (exit 3)
│   └── DatabaseUnusable the database is missing, foreign, newer, corrupt or stays locked
│       └── DatabaseBusy another process held it too long; trying again may help
├── RowRefused           the database's own constraints refused a row
├── EventsBroken         a run's events cannot have happened in this order (exit 6)
├── LedgerTampered       the ledger is not as it was written (exit 6)
└── StoreError           a file could not be read or written as asked
    ├── UnsafePath       an id or path would leave its folder, or a link was planted
    ├── NotStored        there is no such file
    ├── AlreadyWritten   a write-once file exists with other content
    ├── Immutable        the write would change what may only stay or grow
    ├── HashMismatch     the content is not the content that was asked for
    └── DiskRefused      the operating system said no (full, read-only, not permitted)
"""

from dataclasses import dataclass


class FairWitnessError(Exception):
    """One sentence about what and where, and one about what to do next."""

    def __init__(self, what: str, *, next_step: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.next_step = next_step


@dataclass(frozen=True, slots=True)
class Position:
    """A place in a text, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}"


class BadDocument(FairWitnessError):
    """The only thing a reader of documents raises."""

    def __init__(self, reason: str, position: Position, *, source: str = "", next_step: str = "") -> None:
        place = f"{source}:{position}" if source else f"line {position.line}, column {position.column}"
        super().__init__(f"{place}: {reason}", next_step=next_step)
        self.reason = reason
        self.position = position
        self.source = source


class UsageError(FairWitnessError):
    """The request itself is wrong; trying again unchanged cannot help."""


class NotReady(FairWitnessError):
    """Something outside Fair Witness is missing; `next_step` says how to get it."""


class DatabaseUnusable(NotReady):
    """The database cannot be used as it is; it was not written to."""


class DatabaseBusy(DatabaseUnusable):
    """Another process held the database for too long; nothing was written, and a later try may succeed."""


class RowRefused(FairWitnessError):
    """A constraint or trigger of the database refused what was to be written; nothing of the transaction stands."""


class EventsBroken(FairWitnessError):
    """The events of a run contradict themselves, so no state can be told from them."""


class LedgerTampered(FairWitnessError):
    """Rows of the ledger were edited, deleted, inserted or reordered, so nothing may rest on them."""


class StoreError(FairWitnessError):
    """A file could not be read or written as asked; what stood there before still stands."""


class UnsafePath(StoreError):
    """The path would leave its folder, or is not a plain file of ours."""


class NotStored(StoreError):
    """There is no file at this path."""


class AlreadyWritten(StoreError):
    """The file is write-once and exists with other content."""


class Immutable(StoreError):
    """The write would change what may only stay or grow."""


class HashMismatch(StoreError):
    """The content on disk is not the content that was asked for."""


class DiskRefused(StoreError):
    """The operating system refused; the old content is untouched."""
