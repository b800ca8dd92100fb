"""Change requests of forge runs: list, show, approve, reject."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.forge import open_forge_run
from fairwitness.app.views.detail import FORGE, open_database, resolve_run, resolve_run_at
from fairwitness.app.views.workers import has_engine, worker_on
from fairwitness.contracts.forge.dag import DagOverlay
from fairwitness.contracts.forge.documents import ChangeRequest, ChangeRequestStatus
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.change_requests import RequestDecision
from fairwitness.runs.forge.change_requests import RequestState, decide, request_state, request_states
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.graph.log import OVERLAY


@dataclass(frozen=True, slots=True)
class ChangeRequestView:
    """A change request, its result, and what it added to the graph."""

    run_id: str
    request: ChangeRequest
    reason: str | None
    """The reason of the rejection."""
    refused: tuple[tuple[str, ...], ...]
    """The problems of each answer of the captain that was refused."""
    overlay: DagOverlay | None

    @property
    def is_pending(self) -> bool:
        """Whether it is undecided."""
        return self.request.status is ChangeRequestStatus.PENDING

    def plain(self) -> dict[str, Any]:
        """Return the documents and the results from events as plain values."""
        return {
            "run_id": self.run_id,
            "change_request": self.request.plain(),
            "overlay": None if self.overlay is None else self.overlay.plain(),
            "reason": self.reason,
            "refused": [list(problems) for problems in self.refused],
        }


@dataclass(frozen=True, slots=True)
class DecidedRequest:
    """A decided change request, and whether a worker executes its run."""

    view: ChangeRequestView
    is_carried: bool

    @property
    def following(self) -> str:
        """The next command."""
        return f"fairwitness {'watch' if self.is_carried else 'resume'} {self.view.run_id}"


def listed(root: Path, wanted: str) -> tuple[str, tuple[ChangeRequestView, ...]]:
    """Return the id of the run and its change requests, oldest first."""
    with _looked_into(root, wanted) as log:
        overlays = _overlays(log)
        return log.run_id, tuple(_look(log, each, overlays) for each in request_states(log).values())


def shown_request(root: Path, cr_id: str, wanted: str) -> ChangeRequestView:
    """Return one change request."""
    with _looked_into(root, wanted) as log:
        return _look(log, request_state(log, cr_id), _overlays(log))


def approve(root: Path, cr_id: str, wanted: str | None) -> DecidedRequest:
    """Approve a change request, so that the captain plans it."""
    return _decided(root, cr_id, wanted, RequestDecision.APPROVE, None)


def reject(root: Path, cr_id: str, wanted: str | None, reason: str) -> DecidedRequest:
    """Reject a change request."""
    return _decided(root, cr_id, wanted, RequestDecision.REJECT, reason)


def _decided(
    root: Path, cr_id: str, wanted: str | None, verdict: RequestDecision, reason: str | None
) -> DecidedRequest:
    """Record a decision of the person and notify the engine. Without a worker, the next one reads it."""
    run_id = resolve_run_at(root, wanted)
    with open_forge_run(root, run_id) as context:
        decide(context.log, cr_id, verdict, context.actor, reason)
        context.refresh()
        view = _look(context.log, request_state(context.log, cr_id), _overlays(context.log))
    if has_engine(root):
        from fairwitness.app.runs.answer import wake_engine  # imported late: reading needs no engine

        asyncio.run(wake_engine(root, run_id, cr_id))
    return DecidedRequest(view, worker_on(root, run_id) is not None)


@contextmanager
def _looked_into(root: Path, wanted: str) -> Iterator[ForgeLog]:
    with open_database(root) as database:
        yield ForgeLog(Ledger(database), resolve_run(database, wanted, workflow=FORGE))


def _overlays(log: ForgeLog) -> dict[str, DagOverlay]:
    rows = log.ledger.observations(log.run_id, OVERLAY)
    return {row.subject: recorded(DagOverlay, row) for row in rows}


def _look(log: ForgeLog, standing: RequestState, overlays: dict[str, DagOverlay]) -> ChangeRequestView:
    request = standing.request
    return ChangeRequestView(log.run_id, request, standing.reason, standing.refused, overlays.get(request.id))
