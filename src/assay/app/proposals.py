"""Changes of instruction files that a run proposed, as a person sees and applies them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.app.database import ledger_in
from assay.app.feature import order_of, room_of
from assay.app.looking import meant, opened
from assay.app.state import state_of
from assay.errors import AssayError, UsageError
from assay.git.identity import read_identity
from assay.git.repository import Repository
from assay.steps.feature.instructions import apply, diff_of, proposals
from assay.steps.feature.room import Room


@dataclass(frozen=True, slots=True)
class Proposal:
    """One change, and what it would do to the file."""

    number: int
    file: str
    change: str
    summary: str
    diff: str

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@contextmanager
def _room(root: Path, wanted: str) -> Iterator[Room]:
    with opened(root) as database:
        run_id = meant(database, wanted)
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository))
    try:
        order, _ = order_of(ledger, run_id)
        yield room_of(repository, ledger, run_id, order)
    finally:
        ledger.close()


def pending(root: Path, wanted: str) -> list[Proposal]:
    """What a run proposed and nobody applied."""
    with _room(root, wanted) as room:
        found = []
        for number, update in enumerate(proposals(room), start=1):
            try:
                diff = diff_of(room, update)
            except AssayError as error:
                diff = f"(it does not fit: {error.what})"
            found.append(Proposal(number, update.file_path, update.change_type.value, update.change_summary, diff))
        return found


def apply_proposal(root: Path, wanted: str, number: int) -> str:
    """Applies one of them as the person of this repository; the file's path."""
    with _room(root, wanted) as room:
        waiting = proposals(room)
        if not 1 <= number <= len(waiting):
            raise UsageError(
                f"run {room.run_id} has no proposal {number}", next_step=f"assay knowledge proposals {room.run_id}"
            )
        identity = read_identity(room.repository)
        apply(room, waiting[number - 1], f"{identity.author_name} <{identity.author_email}>")
        return waiting[number - 1].file_path
