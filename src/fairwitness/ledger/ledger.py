"""The evidence ledger of a repository: records are appended, tallies and events are read, and nothing is changed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.evidence import CheckRow, Claim, EvidenceQuery, Execution, Observation, Phase, Tally
from fairwitness.db.base import Database, Row, Transaction
from fairwitness.db.migrations import Migration, check_version, migrate
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseUnusable
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger import kept
from fairwitness.ledger.chain import START, Head, add_link
from fairwitness.ledger.record import Record
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import rebuild_summary
from fairwitness.ledger.tables import CHAINED, add_summaries, create_all

T = TypeVar("T")

MIGRATIONS = (
    Migration("the four published tables, our own, and the chain", create_all),
    Migration("a summary of each run", add_summaries),
)

TALLY_SQL = """\
SELECT c.id, c.check_name, c.phase, c.round, c.passed, c.verdict, c.severity, c.instance,
       s.provenance, e.assessment, COALESCE(e.tree, o.tree), e.sandbox
FROM anvil_checks c
JOIN check_sources s ON s.check_id = c.id
LEFT JOIN executions e ON e.id = s.execution_id
LEFT JOIN observations o ON o.id = s.observation_id
WHERE c.run_id = ? AND c.task_id = ? AND c.phase = ?"""
"""Selects all rows that a gate may use; `AND c.round = ?` is appended to select a round."""

_EVENT_COLUMNS = "event_id, seq, timestamp, workflow, run_id, phase, task, attempt, type, version, data"
_EXECUTION = CHAINED["executions"].columns[1:]
_PAGE = 1000


class Ledger:
    """An open ledger."""

    def __init__(self, database: Database, *, clock: Clock = system_clock) -> None:
        self.database = database
        self._clock = clock
        self._summaries: dict[str, RunSummary] = {}
        """The summary of each run after the last record that this process wrote."""

    @classmethod
    def open(cls, database: Database, *, clock: Clock = system_clock) -> "Ledger":
        """Open a ledger for writing, and migrate its tables if necessary."""
        migrate(database, MIGRATIONS, spell(clock()))
        return cls(database, clock=clock)

    @classmethod
    def open_file(cls, path: Path, *, clock: Clock = system_clock) -> "Ledger":
        """Open a ledger file for writing, or create it; a file of another kind is not changed."""
        if path.exists() and path.stat().st_size:
            looking = SqliteDatabase(path, read_only=True)
            try:
                check_version(looking, len(MIGRATIONS))
            finally:
                looking.close()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        return cls.open(SqliteDatabase(path), clock=clock)

    @classmethod
    def read_only(cls, path: Path) -> "Ledger":
        """Open a ledger file for reading only."""
        database = SqliteDatabase(path, read_only=True)
        if check_version(database, len(MIGRATIONS)) == 0:
            database.close()
            raise DatabaseUnusable(f"{path} holds no ledger", next_step="check the path")
        return cls(database)

    def record(self, run_id: str, work: Callable[[Record], T]) -> T:
        """Write one record: all its rows and their link, or nothing."""
        now = self._clock()
        written: dict[int, Record] = {}

        def write(transaction: Transaction) -> T:
            transaction.take_turns(run_id)
            # taken out meanwhile, so that a summary is only kept for what was committed
            record = written[0] = Record(transaction, run_id, now, self._summaries.pop(run_id, None))
            result = work(record)
            record.summary.save()
            killpoint("ledger.record.inserted")
            if record.members:
                add_link(transaction, run_id, record.members)
            killpoint("ledger.record.linked")
            return result

        result = self.database.write(write)
        killpoint("ledger.record.committed")
        if (summary := written[0].summary.run) is not None:
            self._summaries[run_id] = summary
        return result

    def rebuild_summary(self, run_id: str) -> None:
        """Replace the summary of a run by the one that its events give."""
        self.database.write(lambda transaction: rebuild_summary(transaction, run_id))

    def runs(self) -> tuple[str, ...]:
        """Return all runs that have a record, in the order of their ids."""
        return tuple(run for (run,) in self.database.read("SELECT DISTINCT run_id FROM chain ORDER BY run_id"))

    def head(self, run_id: str) -> Head:
        """Return the end of a run's chain."""
        rows = self.database.read("SELECT seq, hash FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run_id,))
        return Head(*rows[0]) if rows else Head(0, START)

    def tally(self, run_id: str, task_id: str, phase: Phase, round_: int | None = None) -> Tally:
        """Return all rows about a task in one phase (and round), oldest first; the rules decide which of them count."""
        values: tuple[str | int | None, ...] = (run_id, task_id, phase.value, *(() if round_ is None else (round_,)))
        sql = f"{TALLY_SQL}{'' if round_ is None else ' AND c.round = ?'} ORDER BY c.id"
        rows = tuple(
            CheckRow(
                id=row[0],
                check_name=row[1],
                phase=row[2],
                round=row[3],
                passed=bool(row[4]),
                verdict=row[5],
                severity=row[6],
                instance=row[7],
                provenance=row[8],
                assessment=row[9],
                tree=row[10],
                sandbox=row[11],
            )
            for row in self.database.read(sql, values)
        )
        return Tally(query=EvidenceQuery(sql=sql, values=values), rows=rows)

    def execution_id(self, run_id: str, key: str) -> int | None:
        """Return the execution that an earlier attempt of a step recorded, so that it is reused and not run again."""
        rows = self.database.read("SELECT id FROM executions WHERE run_id = ? AND key = ?", (run_id, key))
        return rows[0][0] if rows else None

    def executions_of(self, key: str) -> tuple[tuple[str, int], ...]:
        """Return the run and the number of every execution with this key, newest first."""
        rows = self.database.read("SELECT run_id, id FROM executions WHERE key = ? ORDER BY id DESC", (key,))
        return tuple((str(run), int(number)) for run, number in rows)

    def execution(self, number: int) -> Execution | None:
        """Return an execution by its number, or None."""
        rows = self.database.read(f"SELECT {', '.join(_EXECUTION)} FROM executions WHERE id = ?", (number,))
        if not rows:
            return None
        return Execution.model_validate(
            {
                **dict(zip(_EXECUTION, rows[0], strict=True)),
                "argv": tuple(json.loads(rows[0][_EXECUTION.index("argv")])),
            }
        )

    def observation(self, run_id: str, key: str) -> Observation | None:
        """Return the observation with a key, or None."""
        return kept.observation(self.database.read, run_id, key)

    def observations(self, run_id: str, kind: str, *, subject: str | None = None) -> tuple[Observation, ...]:
        """Return all observations of one kind in a run, or only those about one subject; oldest first."""
        return kept.observations(self.database.read, run_id, kind, subject=subject)

    def claim(self, run_id: str, key: str) -> Claim | None:
        """Return the claim with a key, so that the agent is not asked again, or None."""
        return kept.claim(self.database.read, run_id, key)

    def events(self, run_id: str, *, after: int = 0) -> Iterator[Envelope]:
        """Yield the events of a run in order, after a sequence number."""
        while True:
            rows = self.database.read(
                f"SELECT {_EVENT_COLUMNS} FROM events WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT {_PAGE}",
                (run_id, after),
            )
            for row in rows:
                yield _envelope(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1][1]

    def last_event(self, run_id: str, type_: str) -> Envelope | None:
        """Return the last event of a type in a run, or None."""
        rows = self.database.read(
            f"SELECT {_EVENT_COLUMNS} FROM events WHERE run_id = ? AND type = ? ORDER BY seq DESC LIMIT 1",
            (run_id, type_),
        )
        return _envelope(rows[0]) if rows else None

    def close(self) -> None:
        """Close the database."""
        self.database.close()


def _envelope(row: Row) -> Envelope:
    return Envelope.model_validate(
        {**dict(zip(_EVENT_COLUMNS.split(", "), row, strict=True)), "data": json.loads(row[-1])}
    )
