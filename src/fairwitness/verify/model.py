"""The change to be verified, one check to be run for it, and progress reports."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.checks import CheckSpec, Project
from fairwitness.contracts.verify.report import Side
from fairwitness.errors import FairWitnessError
from fairwitness.git.changes import FileChange
from fairwitness.kit.redaction import MARK


class Acceptance(NamedTuple):
    """A person's permission for a path or a test to change, with the reason."""

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class ProposedChange:
    """Two trees and the files that differ between them."""

    base: Side
    head: Side
    files: tuple[FileChange, ...]
    accepts: tuple[Acceptance, ...] = ()
    declared: tuple[str, ...] | None = None
    """The files a plan allows to change; None without a plan."""

    def accepted(self, subject: str) -> str | None:
        """Return the reason a person gave for a test, its file or a path; None if they accepted none of these."""
        path = subject.split("::", 1)[0]
        for accept in self.accepts:
            if accept.subject in (subject, path) or path.startswith(accept.subject.rstrip("/") + "/"):
                return accept.reason
        return None


class Progress(NamedTuple):
    """One step of a verification, for display."""

    what: str
    """`begin`, `end` or `note`."""
    check: str
    text: str


ProgressCallback = Callable[[Progress], None]


class VerificationStopped(FairWitnessError):
    """The caller stopped the verification. Finished checks stay in the ledger, and the next try reuses them."""


def refuse_stopped(stop: threading.Event | None) -> None:
    """Raise `VerificationStopped` if the caller has set the stop event."""
    if stop is not None and stop.is_set():
        raise VerificationStopped(
            "the verification was stopped", next_step="verify again: finished checks are not run twice"
        )


AGENT = "agent"
"""The purpose of a check that an agent asked for. The harness never takes its result for a run of its own."""


class CheckRequest(NamedTuple):
    """A request to run one check at one tree."""

    spec: CheckSpec
    project: Project
    tree: str
    purpose: str
    """`baseline`, `after`, `protected`, `red`, `canary`, `mutant`, `coverage`, `again` or `agent`."""
    phase: Phase | None = None
    """The phase of the check's row in the ledger; None for a run that only feeds another check."""
    ids: tuple[str, ...] = ()
    """Run only these items, if the tool can select."""
    environment_tree: str | None = None
    """The tree whose environment is used; None means this tree's own."""
    rerun: int = 0
    """How often the same request was deliberately run before."""


def selected_ids(spec: CheckSpec, ids: Sequence[str]) -> tuple[str, ...]:
    """Return what to pass to a tool so that it runs some of its items; nothing if it can only run all.

    Pytest gets whole files: if a test's file no longer loads, pytest does not know the name of the test.
    """
    if spec.select is None or any(MARK.search(id_) for id_ in ids):
        return ()  # a name from which a secret was removed is not one that the tool knows
    if spec.tool == "pytest":
        return tuple(dict.fromkeys(id_.split("::", 1)[0] for id_ in ids))
    return tuple(ids)
