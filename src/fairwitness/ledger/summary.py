"""Summaries of runs in the ledger: written with the events, read without a contract, rebuilt from the events.

The events of a run can be read here as well, without being validated.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from fairwitness.db.base import Database, ReadQuery, Transaction
from fairwitness.db.migrations import check_version
from fairwitness.errors import EventsBroken
from fairwitness.ledger.run_summary import AUTOPILOT, RUN, RunSummary, SummaryT
from fairwitness.ledger.summary_event import Plain, SummaryEvent

KNOWN_VERSION = 4
"""How many migrations this module knows; a test compares it with the ledger's own list."""
SUMMARIES_SINCE = 4
"""The version whose migration wrote the summaries as they are now; those of a ledger that was not opened for writing
since then are computed."""

EVENT_COLUMNS = (
    "event_id",
    "seq",
    "timestamp",
    "workflow",
    "run_id",
    "phase",
    "task",
    "attempt",
    "type",
    "version",
    "data",
)
_SELECTED = ", ".join(f"e.{column}" for column in EVENT_COLUMNS)
_PAGE = 5000
_PUT = (
    "INSERT INTO run_summaries (run_id, part, data) VALUES (?, ?, ?) "
    "ON CONFLICT (run_id, part) DO UPDATE SET data = excluded.data"
)
_spelled = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def holds_a_ledger(database: Database) -> bool:
    """Return whether the database holds a ledger; raise an error for a foreign or newer database."""
    return check_version(database, KNOWN_VERSION) > 0


def run_summaries(database: Database, make: type[SummaryT]) -> list[SummaryT]:
    """Return all runs with events, those with the newest event first; their nodes are counted, not loaded."""
    found = [_restored(make, run_id, {RUN: plain}) for run_id, plain in _runs(database)]
    found.sort(key=lambda run: run.run_id)
    found.sort(key=lambda run: run.last_time or "", reverse=True)
    return found


def _runs(database: Database) -> Iterator[tuple[str, Plain]]:
    if check_version(database, KNOWN_VERSION) >= SUMMARIES_SINCE:
        for run_id, data in database.read("SELECT run_id, data FROM run_summaries WHERE part = ?", (RUN,)):
            yield str(run_id), _parsed(data, run_id, "its summary")
        return
    for (run_id,) in database.read("SELECT DISTINCT run_id FROM events"):
        yield str(run_id), folded_summary(database.read, run_id).plain()


def summary_of(database: Database, run_id: str, make: type[SummaryT]) -> SummaryT:
    """Return the summary of a run with its nodes, in the order of their first event."""

    if check_version(database, KNOWN_VERSION) < SUMMARIES_SINCE:
        return make.restored(run_id, database.look(lambda read: folded_summary(read, run_id)).parts())
    return _stored(database.read, run_id, make)


def _stored(read: ReadQuery, run_id: str, make: type[SummaryT]) -> SummaryT:
    rows = read("SELECT part, data FROM run_summaries WHERE run_id = ?", (run_id,))
    parts = {str(part): _parsed(data, run_id, "its summary") for part, data in rows}
    return _restored(make, run_id, parts)


def _restored(make: type[SummaryT], run_id: str, parts: Mapping[str, Plain]) -> SummaryT:
    try:
        return make.restored(run_id, parts)
    except (KeyError, TypeError, ValueError):
        raise EventsBroken(f"run {run_id}: its summary cannot be read", next_step="fairwitness ledger verify") from None


def folded_summary(read: ReadQuery, run_id: str, *, up_to: int | None = None) -> RunSummary:
    """Return the summary of a run, computed from its events."""
    run = RunSummary(run_id)
    while found := _events(read, _AFTER, run_id, run.seq):
        for event in found:
            if up_to is not None and event.seq > up_to:
                return run
            _advance(read, run, event)
    return run


_AFTER = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? AND e.seq > ? ORDER BY e.seq LIMIT {_PAGE}"


def _advance(read: ReadQuery, run: RunSummary, event: SummaryEvent) -> set[str]:
    if event.workflow == AUTOPILOT and not run.phases.needs:
        run.phases.needs = _phase_needs(read, run.run_id)
    return run.advance(event)


class SummaryWriter:
    """Keeps the summary of a run up to date within one transaction that appends events."""

    def __init__(self, transaction: Transaction, run_id: str, known: RunSummary | None) -> None:
        self._read, self._run_id, self.run = transaction.run, run_id, known
        self._changed: set[str] = set()

    def add(self, event: SummaryEvent) -> None:
        """Apply the event that was just appended."""
        before = event.seq - 1
        if self.run is None or self.run.seq != before:
            self.run = self._before(before)
        self._changed |= _advance(self._read, self.run, event)

    def _before(self, seq: int) -> RunSummary:
        if seq == 0:
            return RunSummary(self._run_id)
        with suppress(EventsBroken):
            stored = _stored(self._read, self._run_id, RunSummary)
            if stored.seq == seq:
                return stored
        run = folded_summary(self._read, self._run_id, up_to=seq)  # the stored one is missing or was changed
        self._changed |= run.parts().keys()
        return run

    def save(self) -> None:
        """Write what changed."""
        if self.run is not None:
            for part, plain in self.run.parts(self._changed).items():
                self._read(_PUT, (self._run_id, part, _spelled(plain)))


def summary_differs(database: Database, run_id: str) -> bool:
    """Return whether the stored summary of a run is not the one that its events give."""
    if check_version(database, KNOWN_VERSION) < SUMMARIES_SINCE:
        return False

    def differs(read: ReadQuery) -> bool:
        try:
            run = folded_summary(read, run_id)
        except EventsBroken:
            return True
        stored = read("SELECT part, data FROM run_summaries WHERE run_id = ?", (run_id,))
        expected = {part: _spelled(plain) for part, plain in run.parts().items()} if run.seq else {}
        return {str(part): str(data) for part, data in stored} != expected

    return database.look(differs)


def rebuild_summary(transaction: Transaction, run_id: str) -> None:
    """Replace the stored summary of a run by the one that its events give."""
    transaction.run("DELETE FROM run_summaries WHERE run_id = ?", (run_id,))
    run = folded_summary(transaction.run, run_id)
    for part, plain in run.parts().items() if run.seq else ():
        transaction.run(_PUT, (run_id, part, _spelled(plain)))


def events_after(database: Database, run_id: str, after: int) -> list[SummaryEvent]:
    """Return the next events of a run, at most one page; an empty list if there is nothing new."""
    return _events(database.read, _AFTER, run_id, after)


def last_events(database: Database, run_id: str, count: int, *, up_to: int | None = None) -> list[SummaryEvent]:
    """Return the last events of a run, or the last up to a sequence number, oldest first."""
    known, values = ("", ()) if up_to is None else (" AND e.seq <= ?", (up_to,))
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ?{known} ORDER BY e.seq DESC LIMIT ?"
    return _events(database.read, sql, run_id, *values, count)[::-1]


def events_of(database: Database, run_id: str, *types: str) -> list[SummaryEvent]:
    """Return the events of a run that have one of these types, oldest first."""
    marks = ", ".join("?" * len(types))
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? AND e.type IN ({marks}) ORDER BY e.seq"
    return _events(database.read, sql, run_id, *types)


def doubtful_tasks(database: Database, run_id: str) -> dict[str, float]:
    """Return the tasks of a forge run whose worker is unsure of its last attempt, with the confidence it claims."""
    found: dict[str, float] = {}
    for event in events_of(database, run_id, "walkthrough.written", "review.low_confidence"):
        found.pop(str(event.data["nodeId"]), None)
        if event.type == "review.low_confidence":
            found[str(event.data["nodeId"])] = float(event.data["confidence"])
    return found


def path_of(database: Database, run_id: str) -> str:
    """Return the path of a feature run: `full`, or `light` while it is on the light path."""
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? AND e.type IN (?, ?) ORDER BY e.seq DESC LIMIT 1"
    last = _events(database.read, sql, run_id, "run_started", "path_changed")
    return str(last[0].data.get("path", "full")) if last else "full"


def graph_of(database: Database, run_id: str) -> dict[str, Any] | None:
    """Return the graph that a run started with, or None if the run has no graph."""
    rows = database.read("SELECT detail FROM observations WHERE run_id = ? AND key = 'graph'", (run_id,))
    return _parsed(rows[0][0], run_id, "its graph") if rows else None


def details(database: Database, run_id: str, kind: str) -> list[dict[str, Any]]:
    """Return the details of all observations of one kind, in the order of their recording."""
    return [detail for _, _, detail in observed(database, run_id, kind)]


def observed(database: Database, run_id: str, *kinds: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return kind, subject and detail of all observations of these kinds, in the order of their recording."""
    marks = ", ".join("?" for _ in kinds)
    sql = f"SELECT kind, subject, detail FROM observations WHERE run_id = ? AND kind IN ({marks}) ORDER BY id"
    rows = database.read(sql, (run_id, *kinds))
    return [
        (str(kind), str(subject), _parsed(detail, run_id, f"an observation of kind {kind}"))
        for kind, subject, detail in rows
    ]


def order_of(database: Database, run_id: str) -> Plain:
    """Return what a run was started with, as plain values; empty if no order is on record."""
    return _order(database.read, run_id)


def _order(read: ReadQuery, run_id: str) -> Plain:
    rows = read("SELECT detail FROM observations WHERE run_id = ? AND key = 'order'", (run_id,))
    order = _parsed(rows[0][0], run_id, "its order").get("order") if rows else None
    return order if isinstance(order, dict) else {}


def _phase_needs(read: ReadQuery, run_id: str) -> dict[str, list[str]]:
    """Return the phases that each phase of an autopilot run depends on; empty without an order."""
    try:
        phases = _order(read, run_id)["roadmap"]["phases"]
        return {str(phase["id"]): [str(other) for other in phase["depends_on"]] for phase in phases}
    except (KeyError, TypeError):
        return {}


def _events(read: ReadQuery, sql: str, run_id: str, *values: str | int) -> list[SummaryEvent]:
    rows = read(sql, (run_id, *values))
    return [SummaryEvent._make((*row[:-1], _parsed(row[-1], run_id, f"event {row[1]}"))) for row in rows]


def _parsed(text: str, run_id: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise EventsBroken(f"run {run_id}: {what} cannot be read", next_step="fairwitness ledger verify")
    return value
