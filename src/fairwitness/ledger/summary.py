"""A quick summary of a ledger: its runs, their progress, and the last events of each node of a graph.

It loads no contracts and does not check the order of events, so that it is fast; decisions are made by folding all
events instead. Of a long history it reads only what still matters: the last event of each type for each node.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairwitness.db.base import Database, SqlDialect
from fairwitness.db.migrations import check_version
from fairwitness.errors import EventsBroken

KNOWN_VERSION = 1
"""How many migrations this module knows; a test compares it with the ledger's own list."""

RUN_TYPES = (
    *("run.created", "run.started", "run.paused", "run.resumed", "run.completed", "run.failed"),
    *("plan.proposed", "plan.approved", "plan.returned", "overlay.applied"),
    *("cr.emitted", "cr.approved", "cr.rejected"),
    *("run_started", "run_resumed", "run_finished", "run_completed", "run_halted"),
    *("approval_requested", "approval_answered"),
    *("phase_started", "phase_completed", "phase_failed", "phase_skipped", "human_verdict_recorded"),
)
"""The events of all workflows that determine the state of a whole run; all of them are read."""

NODE_TYPES = (
    *("node.changed", "task.started", "task.verified", "task.retried", "task.exhausted", "task.reopened"),
    *("conflict.found", "merge.started", "merge.finished"),
)
"""The events that determine the state of nodes; the last of each type is enough for each node."""

_DEFERS = '%"deferral":%'
"""An autopilot event that defers a phase to a person has this in its facts, whatever its type."""

_COLUMNS = ("event_id", "seq", "timestamp", "workflow", "run_id", "phase", "task", "attempt", "type", "version", "data")
_SELECTED = ", ".join(f"e.{column}" for column in _COLUMNS)
_PAGE = 5000

_RUNS = """
SELECT e.run_id, e.workflow, e.seq, e.timestamp, e.type, first.timestamp
FROM events e
JOIN (SELECT run_id, MAX(seq) AS seq FROM events GROUP BY run_id) last ON last.run_id = e.run_id AND last.seq = e.seq
JOIN events first ON first.run_id = e.run_id AND first.seq = 1
ORDER BY e.timestamp DESC, e.run_id
"""

_NEW_STATE = {
    SqlDialect.SQLITE: "json_extract(e.data, '$.newStatus')",
    SqlDialect.POSTGRES: "CAST(e.data AS json) ->> 'newStatus'",
}


class RunGlance(NamedTuple):
    """One run: its last event, and when it started."""

    run_id: str
    workflow: str
    events: int
    last_time: str
    last_event: str
    began: str


class SummaryEvent(NamedTuple):
    """One event as in the table; its data is not validated."""

    event_id: str
    seq: int
    timestamp: str
    workflow: str
    run_id: str
    phase: str | None
    task: str | None
    attempt: int | None
    type: str
    version: int
    data: dict[str, Any]

    def plain(self) -> dict[str, Any]:
        """Return the event as plain JSON values."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def holds_a_ledger(database: Database) -> bool:
    """Return whether the database holds a ledger; raise an error for a foreign or newer database."""
    return check_version(database, KNOWN_VERSION) > 0


def glance(database: Database) -> tuple[RunGlance, ...]:
    """Return the runs of a ledger, newest first."""
    return tuple(RunGlance(*row) for row in database.read(_RUNS))


def course(database: Database, run_id: str, *, up_to: int) -> list[SummaryEvent]:
    """Return the events that determine the state of a whole run, in order."""
    told = f"({_one_of(RUN_TYPES)} OR (e.workflow = 'autopilot' AND e.data LIKE ?))"
    where = f"e.run_id = ? AND e.seq <= ? AND {told}"
    sql = f"SELECT {_SELECTED} FROM events e WHERE {where} ORDER BY e.seq"
    return _events(database, sql, run_id, up_to, _DEFERS)


def standings(database: Database, run_id: str, *, up_to: int) -> list[SummaryEvent]:
    """Return the last event of each type for each node, and the last merge, in order."""
    where = f"e.run_id = ? AND e.seq <= ? AND {_one_of(NODE_TYPES)}"
    last = f"SELECT MAX(e.seq) AS seq FROM events e WHERE {where} GROUP BY e.task, e.type"
    sql = f"SELECT {_SELECTED} FROM events e JOIN ({last}) last ON e.seq = last.seq WHERE e.run_id = ? ORDER BY e.seq"
    return _events(database, sql, run_id, up_to, run_id)


def node_states(database: Database, run_id: str) -> dict[str, int]:
    """Return the number of nodes of a graph in each state; nodes without events are not counted."""
    last = "SELECT MAX(seq) AS seq FROM events WHERE run_id = ? AND type = 'node.changed' GROUP BY task"
    state = _NEW_STATE[database.dialect]
    sql = f"SELECT {state}, COUNT(*) FROM events e JOIN ({last}) last ON e.seq = last.seq WHERE e.run_id = ? GROUP BY 1"
    return {str(name): int(count) for name, count in database.read(sql, (run_id, run_id))}


def exhausted(database: Database, run_id: str) -> int:
    """Return how many nodes of a graph have no attempts left and were not reopened."""
    either = _one_of(("task.exhausted", "task.reopened"))
    last = f"SELECT MAX(e.seq) AS seq FROM events e WHERE e.run_id = ? AND {either} GROUP BY e.task"
    found = f"events e JOIN ({last}) last ON e.seq = last.seq"
    sql = f"SELECT COUNT(*) FROM {found} WHERE e.run_id = ? AND e.type = 'task.exhausted'"
    return int(database.read(sql, (run_id, run_id))[0][0])


def events_after(database: Database, run_id: str, after: int) -> list[SummaryEvent]:
    """Return the next events of a run, at most one page; an empty list if there is nothing new."""
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? AND e.seq > ? ORDER BY e.seq LIMIT {_PAGE}"
    return _events(database, sql, run_id, after)


def last_events(database: Database, run_id: str, count: int) -> list[SummaryEvent]:
    """Return the last events of a run, oldest first."""
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? ORDER BY e.seq DESC LIMIT ?"
    return _events(database, sql, run_id, count)[::-1]


def graph_of(database: Database, run_id: str) -> dict[str, Any] | None:
    """Return the graph that a run started with, or None if the run has no graph."""
    rows = database.read("SELECT detail FROM observations WHERE run_id = ? AND key = 'graph'", (run_id,))
    return _parsed(rows[0][0], run_id, "its graph") if rows else None


def phase_needs(database: Database, run_id: str) -> dict[str, list[str]]:
    """Return the phases that each phase of an autopilot run depends on; empty for another workflow."""
    rows = database.read("SELECT detail FROM observations WHERE run_id = ? AND key = 'order'", (run_id,))
    order = _parsed(rows[0][0], run_id, "its order").get("order") if rows else None
    try:
        phases = order["roadmap"]["phases"] if order else ()
        return {str(phase["id"]): [str(other) for other in phase["depends_on"]] for phase in phases}
    except (KeyError, TypeError):
        return {}  # the order of another workflow


def _one_of(types: Iterable[str]) -> str:
    """Return a condition on the event type; the names come from this module and contain no quote."""
    listed = "', '".join(types)
    return f"e.type IN ('{listed}')"


def _events(database: Database, sql: str, run_id: str, *values: str | int) -> list[SummaryEvent]:
    rows = database.read(sql, (run_id, *values))
    return [SummaryEvent._make((*row[:-1], _parsed(row[-1], run_id, f"event {row[1]}"))) for row in rows]


def _parsed(text: str, run_id: str, what: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise EventsBroken(f"run {run_id}: {what} cannot be read", next_step="fairwitness ledger verify")
    return value
