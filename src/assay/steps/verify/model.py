"""The change that is to be proven, and what a person allowed beforehand."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from assay.contracts.verify.report import Side
from assay.git.changes import FileChange


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
