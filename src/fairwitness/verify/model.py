"""The change that is to be proven, what a person allowed beforehand, and word of how it goes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from fairwitness.contracts.verify.report import Side
from fairwitness.errors import FairWitnessError
from fairwitness.git.changes import FileChange


class Accept(NamedTuple):
    """A person's word that a path or a test may change, and why."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Change:
    """Two trees and what lies between them."""

    base: Side
    head: Side
    files: tuple[FileChange, ...]
    accepts: tuple[Accept, ...] = ()
    declared: tuple[str, ...] | None = None
    """The files a plan allows; None without a plan."""

    def accepted(self, subject: str) -> str | None:
        """The reason a person gave for a test, for its file, or for a path; None if nobody did."""
        path = subject.split("::", 1)[0]
        for accept in self.accepts:
            if accept.subject in (subject, path) or path.startswith(accept.subject.rstrip("/") + "/"):
                return accept.reason
        return None


class Told(NamedTuple):
    """One step of the work, for whoever is watching."""

    what: str
    """`begin`, `end` or `note`."""
    check: str
    text: str


Tell = Callable[[Told], None]


class Stopped(FairWitnessError):
    """Somebody asked that a verification end; what it had run stands in the ledger, and another try goes on there."""


def refuse_stopped(stop: threading.Event | None) -> None:
    """Raises if somebody asked for the end."""
    if stop is not None and stop.is_set():
        raise Stopped("the verification was stopped", next_step="verify it again: what was run is not run twice")
