"""The evidence ledger of a repository: records go in, tallies and events come out, nothing is ever changed."""

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
from fairwitness.ledger.tables import CHAINED, create_all

T = TypeVar("T")

MIGRATIONS = (Migration("the four published tables, our own, and the chain", create_all),)

TALLY_SQL = """\
SELECT c.id, c.check_name, c.phase, c.round, c.passed, c.verdict, c.severity, c.instance,
       s.provenance, e.assessment, COALESCE(e.tree, o.tree), e.sandbox
FROM anvil_checks c
JOIN check_sources s ON s.check_id = c.id
LEFT JOIN executions e ON e.id = s.execution_id
LEFT JOIN observations o ON o.id = s.observation_id
WHERE c.run_id = ? AND c.task_id = ? AND c.phase = ?"""
"""Every row a gate may look at; `AND c.round = ?` follows where a round is asked for."""

_EVENT_COLUMNS = "event_id, seq, timestamp, workflow, run_id, phase, task, attempt, type, version, data"
_EXECUTION = CHAINED["executions"].columns[1:]
_PAGE = 1000


class Ledger:
    """An open ledger."""

    def __init__(self, database: Database, *, clock: Clock = system_clock) -> None:
        self.database = database
        self._clock = clock

    @classmethod
    def open(cls, database: Database, *, clock: Clock = system_clock) -> "Ledger":
        """Opens a ledger for writing, moving its tables forward if need be."""
        migrate(database, MIGRATIONS, spell(clock()))
        return cls(database, clock=clock)

    @classmethod
    def open_file(cls, path: Path, *, clock: Clock = system_clock) -> "Ledger":
        """Opens a ledger file for writing, or begins one; a file that is something else is not touched."""
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
        """Opens a ledger file to look at it; it is not written to."""
        database = SqliteDatabase(path, read_only=True)
        if check_version(database, len(MIGRATIONS)) == 0:
            database.close()
            raise DatabaseUnusable(f"{path} holds no ledger", next_step="check the path")
        return cls(database)

    def record(self, run_id: str, work: Callable[[Record], T]) -> T:
        """Writes one record: all its rows and their link, or nothing."""
        now = self._clock()

        def write(transaction: Transaction) -> T:
            transaction.take_turns(run_id)
            record = Record(transaction, run_id, now)
            result = work(record)
            killpoint("ledger.record.inserted")
            if record.members:
                add_link(transaction, run_id, record.members)
            killpoint("ledger.record.linked")
            return result

        result = self.database.write(write)
        killpoint("ledger.record.committed")
        return result

    def runs(self) -> tuple[str, ...]:
        """Every run with a record, in the order of their ids."""
        return tuple(run for (run,) in self.database.read("SELECT DISTINCT run_id FROM chain ORDER BY run_id"))

    def head(self, run_id: str) -> Head:
        """The end of a run's chain."""
        rows = self.database.read("SELECT seq, hash FROM chain WHERE run_id = ? ORDER BY seq DESC LIMIT 1", (run_id,))
        return Head(*rows[0]) if rows else Head(0, START)

    def tally(self, run_id: str, task_id: str, phase: Phase, round_: int | None = None) -> Tally:
        """Every row about a task in one phase (and round), oldest first; which of them still vote is for the rules."""
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
        """The execution a repeated step left behind, so that it is adopted and not run again."""
        rows = self.database.read("SELECT id FROM executions WHERE run_id = ? AND key = ?", (run_id, key))
        return rows[0][0] if rows else None

    def executions_of(self, key: str) -> tuple[tuple[str, int], ...]:
        """The run and number of every execution that answered the same question, newest first."""
        rows = self.database.read("SELECT run_id, id FROM executions WHERE key = ? ORDER BY id DESC", (key,))
        return tuple((str(run), int(number)) for run, number in rows)

    def execution(self, number: int) -> Execution | None:
        """An execution by its number."""
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
        """What was observed under a key, for what is recorded beside a check."""
        return kept.observation(self.database.read, run_id, key)

    def observations(self, run_id: str, kind: str, *, subject: str | None = None) -> tuple[Observation, ...]:
        """Everything of one kind that was observed in a run, or only what is about one subject; oldest first."""
        return kept.observations(self.database.read, run_id, kind, subject=subject)

    def claim(self, run_id: str, key: str) -> Claim | None:
        """What an agent said under a key, so that it is not asked again."""
        return kept.claim(self.database.read, run_id, key)

    def events(self, run_id: str, *, after: int = 0) -> Iterator[Envelope]:
        """The events of a run in order, from just after a sequence number."""
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
        """The last event of a type in a run."""
        rows = self.database.read(
            f"SELECT {_EVENT_COLUMNS} FROM events WHERE run_id = ? AND type = ? ORDER BY seq DESC LIMIT 1",
            (run_id, type_),
        )
        return _envelope(rows[0]) if rows else None

    def close(self) -> None:
        """Lets go of the database."""
        self.database.close()


def _envelope(row: Row) -> Envelope:
    return Envelope.model_validate(
        {**dict(zip(_EVENT_COLUMNS.split(", "), row, strict=True)), "data": json.loads(row[-1])}
    )
