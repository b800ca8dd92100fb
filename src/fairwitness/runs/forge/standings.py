"""Where the change requests of a forge run stand: as they were emitted, after the events that tell of them."""

from typing import NamedTuple

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.documents import ChangeRequest, ChangeRequestStatus
from fairwitness.errors import UsageError
from fairwitness.runs.forge.log import ForgeLog

REQUEST = "request"
DECIDING: frozenset[str] = frozenset({"cr.approved", "cr.rejected", "overlay.applied", "overlay.refused"})
"""The events that tell what became of a request."""


class Standing(NamedTuple):
    """A request as it stands now."""

    request: ChangeRequest
    reason: str | None = None
    """Why it was rejected."""
    refused: tuple[tuple[str, ...], ...] = ()
    """What did not fit, for each time that the captain answered and nothing could be applied."""

    def after(self, envelope: Envelope) -> "Standing":
        """The same after an event that is about it."""
        data = envelope.data
        match envelope.type:
            case "cr.approved":
                return self._decided(ChangeRequestStatus.APPROVED, data["actor"], envelope.timestamp)
            case "cr.rejected":
                decided = self._decided(ChangeRequestStatus.REJECTED, data["actor"], envelope.timestamp)
                return decided._replace(reason=data["reason"])
            case "overlay.applied":
                return self._replace(request=self.request.model_copy(update={"status": ChangeRequestStatus.APPLIED}))
            case _:
                return self._replace(refused=(*self.refused, tuple(data["problems"])))

    def _decided(self, status: ChangeRequestStatus, actor: str, when: str) -> "Standing":
        update = {"status": status, "decided_by": actor, "decided_at": when}
        return self._replace(request=self.request.model_copy(update=update))


def standings(log: ForgeLog) -> dict[str, Standing]:
    """Every request of the run with what became of it, oldest first."""
    return _read(log)[1]


def _read(log: ForgeLog) -> tuple[int, dict[str, Standing]]:
    """The number of the run's last event, and its requests after it."""
    seq, events = 0, []
    for envelope in log.ledger.events(log.run_id):
        seq = envelope.seq
        if envelope.type in DECIDING:
            events.append(envelope)
    rows = log.ledger.observations(log.run_id, REQUEST)
    found = {row.subject: Standing(ChangeRequest.model_validate(row.detail)) for row in rows}
    for envelope in events:
        cr_id = envelope.data["crId"]
        if cr_id in found:  # a graph that somebody else planned may grow without one
            found[cr_id] = found[cr_id].after(envelope)
    return seq, found


def found(log: ForgeLog, cr_id: str) -> tuple[int, Standing]:
    """The same, with the number of the event after which it stands so."""
    seq, found = _read(log)
    if cr_id not in found:
        raise UsageError(
            f"run {log.run_id} has no change request {cr_id!r}", next_step=f"fairwitness cr list {log.run_id}"
        )
    return seq, found[cr_id]


def standing_of(log: ForgeLog, cr_id: str) -> Standing:
    """One request with what became of it; `UsageError` if there is none of that name."""
    return found(log, cr_id)[1]


def request_of(log: ForgeLog, cr_id: str) -> ChangeRequest:
    """A request as it was emitted, with where it stands and who decided that and when."""
    return standing_of(log, cr_id).request


def requests_of(log: ForgeLog) -> tuple[ChangeRequest, ...]:
    """All of them, oldest first."""
    return tuple(standing.request for standing in standings(log).values())
