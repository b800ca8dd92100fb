"""The evidence ledger of a repository: records are appended, tallies and events are read, and nothing is changed."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.evidence import CheckRow, Claim, EvidenceQuery, Execution, Observation, Phase, Tally
from fairwitness.db.base import Database, Row, Transaction
from fairwitness.db.migrations import Migration, check_version, migrate
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.errors import DatabaseUnusable, FairWitnessError, UsageError
from fairwitness.kit.clock import Clock, spell, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger import kept
from fairwitness.ledger.anchors import Anchor, Anchorage, Reason, ledgers_at, place_of
from fairwitness.ledger.chain import START, Head, add_link
from fairwitness.ledger.record import Milestone, Record
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import rebuild_summary
from fairwitness.ledger.tables import CHAINED, add_anchors, add_summaries, create_all, detail_summaries

T = TypeVar("T")

MIGRATIONS = (
    Migration("the four published tables, our own, and the chain", create_all),
    Migration("a summary of each run", add_summaries),
    Migration("anchors over the heads of all runs", add_anchors),
    Migration("pipelines and boards in the summaries", detail_summaries),
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


class Anchored(NamedTuple):
    """An anchor on this machine, and why git holds none; None if git holds it too."""

    anchor: Anchor
    not_in_git: str | None

    @property
    def where(self) -> str:
        """Return in words where the anchor is kept."""
        here = "in the user's state directory"
        return f"in git and {here}" if self.not_in_git is None else f"{here} only: {self.not_in_git}"


KeepRef = Callable[[Anchor], None]
"""Stores an anchor as a git ref; raises an error that says why it cannot."""


class Ledger:
    """An open ledger."""

    def __init__(
        self,
        database: Database,
        *,
        clock: Clock = system_clock,
        is_anchored: bool = False,
        keep_ref: KeepRef | None = None,
    ) -> None:
        self.database = database
        self._clock = clock
        self._keep_ref = keep_ref
        self._anchorage = Anchorage(database) if is_anchored else None
        self._anchoring = threading.Lock()
        self._announced: set[str] = set()
        self._summaries: dict[str, RunSummary] = {}
        """The summary of each run after the last record that this process wrote."""

    @classmethod
    def open(
        cls,
        database: Database,
        *,
        clock: Clock = system_clock,
        is_anchored: bool = True,
        keep_ref: KeepRef | None = None,
    ) -> "Ledger":
        """Open a ledger for writing, and migrate its tables if necessary.

        `is_anchored` is False only for a ledger that is thrown away with its folder.
        """
        migrate(database, MIGRATIONS, spell(clock()))
        ledger = cls(database, clock=clock, is_anchored=is_anchored, keep_ref=keep_ref)
        ledger._inherit()
        return ledger

    @classmethod
    def open_file(
        cls,
        path: Path,
        *,
        clock: Clock = system_clock,
        is_anchored: bool = True,
        keep_ref: KeepRef | None = None,
    ) -> "Ledger":
        """Open a ledger file for writing, or create it; a file of another kind is not changed."""
        if path.exists() and path.stat().st_size:
            looking = SqliteDatabase(path, read_only=True)
            try:
                check_version(looking, len(MIGRATIONS))
            finally:
                looking.close()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        return cls.open(SqliteDatabase(path), clock=clock, is_anchored=is_anchored, keep_ref=keep_ref)

    @classmethod
    def read_only(cls, path: Path) -> "Ledger":
        """Open a ledger file for reading only."""
        database = SqliteDatabase(path, read_only=True)
        if check_version(database, len(MIGRATIONS)) == 0:
            database.close()
            raise DatabaseUnusable(f"{path} holds no ledger", next_step="check the path")
        return cls(database)

    def record(self, run_id: str, work: Callable[[Record], T]) -> T:
        """Write one record: all its rows and their link, or nothing.

        A run is announced before its first record. A record with an event at which a run decides, waits or ends is
        followed by an anchor; if that fails, the next one covers it.
        """
        self._announce(run_id)
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
        if self._anchorage is not None and written[0].milestone:
            with suppress(FairWitnessError):
                self.anchor(run_id, with_ref=written[0].milestone is Milestone.REST)
        return result

    def anchor(self, run_id: str, *, with_ref: bool = True) -> Anchored:
        """Anchor the present head of a run, on this machine and as a git ref; say what could not be written."""
        if self._anchorage is None:
            raise UsageError("this ledger is not anchored", next_step="open it for writing")
        with self._anchoring:
            anchor = self._anchorage.write(run_id, spell(self._clock()), Reason.REACHED)
            if not with_ref or anchor.links == 0:
                return Anchored(anchor, None)
            if self._keep_ref is None:
                return Anchored(anchor, "there is no repository")
            try:
                self._keep_ref(anchor)
            except FairWitnessError as error:
                return Anchored(anchor, error.what)
            killpoint("ledger.anchor.ref")
            return Anchored(anchor, None)

    def adopt(self, *, gone: Iterable[str] = ()) -> Anchor | None:
        """Accept the ledger as it is: give it a new id and anchor the heads of all its runs.

        `gone` names runs (as in refs) that the ledger lost, and that a person accepts as lost.
        """
        if self._anchorage is None:
            raise UsageError("this ledger is not anchored", next_step="open it for writing")
        with self._anchoring:
            return self._anchorage.take_over(spell(self._clock()), Reason.ADOPTED, gone=gone)

    def _announce(self, run_id: str) -> None:
        """Anchor a run that has no record yet, so that it is known as begun on this machine."""
        if self._anchorage is None or run_id in self._announced:
            return
        with self._anchoring:
            if self.head(run_id).links == 0:
                self._anchorage.write(run_id, spell(self._clock()), Reason.BEGUN)
        self._announced.add(run_id)

    def _inherit(self) -> None:
        """Anchor the runs that were written before there were anchors.

        Where this machine kept an anchored ledger before, a ledger without anchors is not an old one, but a forged one.
        """
        if self._anchorage is None or self.database.read("SELECT 1 FROM anchors LIMIT 1"):
            return
        if self.database.read("SELECT 1 FROM chain LIMIT 1") and not ledgers_at(place_of(self.database)):
            self._anchorage.take_over(spell(self._clock()), Reason.INHERITED)

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
        row, what = dict(zip(_EXECUTION, rows[0], strict=True)), f"execution {number}"
        argv = kept.parsed(row["argv"], str(row["run_id"]), what)
        return kept.shaped(
            Execution.model_validate,
            {**row, "argv": tuple(argv) if isinstance(argv, list) else argv},
            str(row["run_id"]),
            what,
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
    fields = dict(zip(_EVENT_COLUMNS.split(", "), row, strict=True))
    run_id, what = str(fields["run_id"]), f"event {fields['seq']}"
    return kept.shaped(Envelope.model_validate, {**fields, "data": kept.parsed(row[-1], run_id, what)}, run_id, what)
