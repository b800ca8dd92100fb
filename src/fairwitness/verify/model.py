"""The change that is to be proven, what a person allowed beforehand, and word of how it goes."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.checks import CheckSpec, Project
from fairwitness.contracts.verify.report import Side
from fairwitness.errors import FairWitnessError
from fairwitness.git.changes import FileChange


class Acceptance(NamedTuple):
    """A person's word that a path or a test may change, and why."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """Two trees and what lies between them."""

    base: Side
    head: Side
    files: tuple[FileChange, ...]
    accepts: tuple[Acceptance, ...] = ()
    declared: tuple[str, ...] | None = None
    """The files a plan allows; None without a plan."""

    def accepted(self, subject: str) -> str | None:
        """The reason a person gave for a test, for its file, or for a path; None if nobody did."""
        path = subject.split("::", 1)[0]
        for accept in self.accepts:
            if accept.subject in (subject, path) or path.startswith(accept.subject.rstrip("/") + "/"):
                return accept.reason
        return None


class Progress(NamedTuple):
    """One step of the work, for whoever is watching."""

    what: str
    """`begin`, `end` or `note`."""
    check: str
    text: str


ProgressCallback = Callable[[Progress], None]


class VerificationStopped(FairWitnessError):
    """Somebody asked that a verification end; what it had run stands in the ledger, and another try goes on there."""


def refuse_stopped(stop: threading.Event | None) -> None:
    """Raises if somebody asked for the end."""
    if stop is not None and stop.is_set():
        raise VerificationStopped(
            "the verification was stopped", next_step="verify it again: what was run is not run twice"
        )


class CheckRequest(NamedTuple):
    """One check at one tree."""

    spec: CheckSpec
    project: Project
    tree: str
    purpose: str
    """`baseline`, `after`, `protected`, `red`, `canary`, `mutant`, `again`."""
    phase: Phase | None = None
    """Under which phase the check's row stands; None for a run that only feeds another check."""
    ids: tuple[str, ...] = ()
    """Only these things, where the tool can."""
    environment_tree: str | None = None
    """Whose environment to use; the tree's own unless said."""
    turn: int = 0
    """How often the very same question was asked before, on purpose."""


def selected_ids(spec: CheckSpec, ids: Sequence[str]) -> tuple[str, ...]:
    """What to ask a tool for so that it runs some of its things; nothing if it can only run all.

    Pytest is asked for whole files: a test whose file does not load any more has no name that it would know.
    """
    if spec.select is None:
        return ()
    if spec.tool == "pytest":
        return tuple(dict.fromkeys(id_.split("::", 1)[0] for id_ in ids))
    return tuple(ids)
