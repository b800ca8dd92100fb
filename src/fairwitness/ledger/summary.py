"""A quick look at a ledger: which runs, how far each is, and what happened last to each node of a graph.

It loads no contract and checks no order, so that it answers at once; whoever decides anything by events folds them. Of
a long history it reads only what still counts: the last event of each kind for each node.
"""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from fairwitness.db.base import Database, SqlDialect
from fairwitness.db.migrations import check_version
from fairwitness.errors import EventsBroken

KNOWN_VERSION = 1
"""How many migrations this program knows; held equal to the ledger's own list by a test."""

RUN_TYPES = (
    *("run.created", "run.started", "run.paused", "run.resumed", "run.completed", "run.failed"),
    *("plan.proposed", "plan.approved", "plan.returned", "overlay.applied"),
    *("cr.emitted", "cr.approved", "cr.rejected"),
    *("run_started", "run_resumed", "run_finished", "run_completed", "run_halted"),
    *("approval_requested", "approval_answered"),
    *("phase_started", "phase_completed", "phase_failed", "phase_skipped", "human_verdict_recorded"),
)
"""The events that tell where a run as a whole stands, of every workflow; all of them are read."""

NODE_TYPES = (
    *("node.changed", "task.started", "task.verified", "task.retried", "task.exhausted", "task.reopened"),
    *("conflict.found", "merge.started", "merge.finished"),
)
"""The events that tell where nodes stand; of each node and kind the last one is enough."""

_DEFERS = '%"deferral":%'
"""An event of autopilot that puts a phase to a person says so in its facts, whatever its type."""

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
    """One run: its last event, and when it began."""

    run_id: str
    workflow: str
    events: int
    last_time: str
    last_event: str
    began: str


class SummaryEvent(NamedTuple):
    """One event as it stands in the table; its data is of no known shape."""

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
        """The event as plain values, as every other command spells it."""
        return {name: value for name, value in self._asdict().items() if value is not None}


def holds_a_ledger(database: Database) -> bool:
    """Whether there is anything to look at; a stranger's or a newer database is refused."""
    return check_version(database, KNOWN_VERSION) > 0


def glance(database: Database) -> tuple[RunGlance, ...]:
    """The runs of a ledger, newest first."""
    return tuple(RunGlance(*row) for row in database.read(_RUNS))


def course(database: Database, run_id: str, *, up_to: int) -> list[SummaryEvent]:
    """The events that tell where a run as a whole stands, in order."""
    told = f"({_one_of(RUN_TYPES)} OR (e.workflow = 'autopilot' AND e.data LIKE ?))"
    where = f"e.run_id = ? AND e.seq <= ? AND {told}"
    sql = f"SELECT {_SELECTED} FROM events e WHERE {where} ORDER BY e.seq"
    return _events(database, sql, run_id, up_to, _DEFERS)


def standings(database: Database, run_id: str, *, up_to: int) -> list[SummaryEvent]:
    """For each node the last event of each kind, and the last merge, in order."""
    where = f"e.run_id = ? AND e.seq <= ? AND {_one_of(NODE_TYPES)}"
    last = f"SELECT MAX(e.seq) AS seq FROM events e WHERE {where} GROUP BY e.task, e.type"
    sql = f"SELECT {_SELECTED} FROM events e JOIN ({last}) last ON e.seq = last.seq WHERE e.run_id = ? ORDER BY e.seq"
    return _events(database, sql, run_id, up_to, run_id)


def node_states(database: Database, run_id: str) -> dict[str, int]:
    """How many nodes of a graph are in which state; those that nothing happened to are not among them."""
    last = "SELECT MAX(seq) AS seq FROM events WHERE run_id = ? AND type = 'node.changed' GROUP BY task"
    state = _NEW_STATE[database.dialect]
    sql = f"SELECT {state}, COUNT(*) FROM events e JOIN ({last}) last ON e.seq = last.seq WHERE e.run_id = ? GROUP BY 1"
    return {str(name): int(count) for name, count in database.read(sql, (run_id, run_id))}


def exhausted(database: Database, run_id: str) -> int:
    """How many nodes of a graph have no attempt left, and were given no more since."""
    either = _one_of(("task.exhausted", "task.reopened"))
    last = f"SELECT MAX(e.seq) AS seq FROM events e WHERE e.run_id = ? AND {either} GROUP BY e.task"
    found = f"events e JOIN ({last}) last ON e.seq = last.seq"
    sql = f"SELECT COUNT(*) FROM {found} WHERE e.run_id = ? AND e.type = 'task.exhausted'"
    return int(database.read(sql, (run_id, run_id))[0][0])


def events_after(database: Database, run_id: str, after: int) -> list[SummaryEvent]:
    """The next events of a run, as many as are read at once; none if there is nothing new."""
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? AND e.seq > ? ORDER BY e.seq LIMIT {_PAGE}"
    return _events(database, sql, run_id, after)


def last_events(database: Database, run_id: str, count: int) -> list[SummaryEvent]:
    """The last events of a run, oldest first."""
    sql = f"SELECT {_SELECTED} FROM events e WHERE e.run_id = ? ORDER BY e.seq DESC LIMIT ?"
    return _events(database, sql, run_id, count)[::-1]


def graph_of(database: Database, run_id: str) -> dict[str, Any] | None:
    """What a run of a graph began with; None if it is no such run."""
    rows = database.read("SELECT detail FROM observations WHERE run_id = ? AND key = 'graph'", (run_id,))
    return _parsed(rows[0][0], run_id, "its graph") if rows else None


def phase_needs(database: Database, run_id: str) -> dict[str, list[str]]:
    """Which phases each phase of an autopilot run rests on; empty if it is no such run."""
    rows = database.read("SELECT detail FROM observations WHERE run_id = ? AND key = 'order'", (run_id,))
    order = _parsed(rows[0][0], run_id, "its order").get("order") if rows else None
    try:
        phases = order["roadmap"]["phases"] if order else ()
        return {str(phase["id"]): [str(other) for other in phase["depends_on"]] for phase in phases}
    except (KeyError, TypeError):
        return {}  # the order of another workflow


def _one_of(types: Iterable[str]) -> str:
    """A condition; the names come from this module and hold no quote."""
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
