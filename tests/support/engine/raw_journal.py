"""The tables of the raw engine, and every transaction on them: whatever must happen together is one function here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairwitness.db.base import Row, Transaction
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.engine.base import DEEPEST_GENERATION, EngineError, ExecutionStatus, RunInfo

_TABLES = """
CREATE TABLE IF NOT EXISTS raw_run (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, flow TEXT NOT NULL, args TEXT NOT NULL,
  version TEXT NOT NULL, parent TEXT, generation INTEGER NOT NULL, status TEXT NOT NULL, executor TEXT, value TEXT,
  error TEXT, fits INTEGER NOT NULL DEFAULT 1, beat REAL);
CREATE INDEX IF NOT EXISTS raw_run_status ON raw_run (status, executor);
CREATE TABLE IF NOT EXISTS raw_step (
  run TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, failed INTEGER NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (run, position), UNIQUE (run, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS raw_gate (
  run TEXT NOT NULL, key TEXT NOT NULL, deadline REAL, answer TEXT, PRIMARY KEY (run, key)) WITHOUT ROWID;
"""

_NOW = "(julianday('now') - 2440587.5) * 86400.0"


class NotOurs(Exception):
    """The run was cancelled or taken over: whoever still works on it must stop and leave no trace."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this worker now has."""

    id: str
    flow: str
    args: str
    generation: int
    """0 of a run, 1 of its children, 2 of their children."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What stands in the journal at one position of a run."""

    key: str
    failed: bool
    result: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    status: ExecutionStatus
    value: str | None
    error: str | None
    fits: bool


class Journal:
    """One open file."""

    def __init__(self, path: Path) -> None:
        self.database = SqliteDatabase(path)

        def make(transaction: Transaction) -> None:
            for statement in _TABLES.strip().rstrip(";").split(";\n"):
                transaction.run(statement)

        self.database.write(make)

    def close(self) -> None:
        """Lets go of the file."""
        self.database.close()

    def submit(self, run: str, flow: str, args: str, version: str, *, parent: tuple[str, str] | None = None) -> None:
        """Queues a run, once; the child of a parent and its worker only while the parent is that worker's."""

        def work(transaction: Transaction) -> None:
            generation = 0
            if parent is not None:
                still_ours(transaction, *parent)
                ((above,),) = transaction.run("SELECT generation FROM raw_run WHERE id = ?", parent[:1])
                generation = above + 1
            if generation > DEEPEST_GENERATION:
                raise EngineError(f"{run} comes of too many runs", next_step="submit it from further above")
            transaction.run(
                "INSERT INTO raw_run (id, flow, args, version, parent, generation, status) "
                "VALUES (?, ?, ?, ?, ?, ?, 'queued') ON CONFLICT (id) DO NOTHING",
                (run, flow, args, version, parent and parent[0], generation),
            )
            ((known,),) = transaction.run("SELECT flow FROM raw_run WHERE id = ?", (run,))
            if known != flow:
                raise EngineError(f"run {run} is one of flow {known}, not of {flow}", next_step="take another id")

        self.database.write(work)

    def claim(
        self, executor: str, version: str, flows: frozenset[str], context: Mapping[int, int], busy: frozenset[str]
    ) -> list[Claimed]:
        """Takes queued runs of a version: all without a parent, and of children as many as there is room for."""
        queued = (
            "SELECT id, flow, args, generation FROM raw_run WHERE status = 'queued' AND version = ? ORDER BY number"
        )
        if not self.database.read(queued + " LIMIT 1", (version,)):
            return []  # nothing is locked while there is nothing to do

        def work(transaction: Transaction) -> list[Claimed]:
            claimed: list[Claimed] = []
            left = dict(context)
            for run, flow, args, generation in transaction.run(queued, (version,)):
                if flow in flows and run not in busy and (generation == 0 or left[generation] > 0):
                    left[generation] = left.get(generation, 0) - 1
                    claimed.append(Claimed(run, flow, args, generation))
            for one in claimed:
                transaction.run(
                    f"UPDATE raw_run SET status = 'running', executor = ?, beat = {_NOW} WHERE id = ?",
                    (executor, one.id),
                )
            return claimed

        return self.database.write(work)

    def owned(self, executor: str) -> frozenset[str]:
        """The runs that a worker has."""
        rows = self.database.read("SELECT id FROM raw_run WHERE status = 'running' AND executor = ?", (executor,))
        return frozenset(run for (run,) in rows)

    def beat(self, executor: str) -> None:
        """A sign of life of all the runs that a worker has."""
        statement = f"UPDATE raw_run SET beat = {_NOW} WHERE status = 'running' AND executor = ?"
        self.database.write(lambda transaction: transaction.run(statement, (executor,)))

    def silent(self, runs: Collection[str]) -> dict[str, float]:
        """Seconds since the last sign of life of those of some runs that a worker has."""
        rows = self.database.read(
            f"SELECT id, {_NOW} - beat FROM raw_run WHERE status = 'running' AND id IN {_signs(runs)}",
            tuple(runs),
        )
        return {run: max(0.0, seconds) for run, seconds in rows}

    def recorded(self, run: str) -> dict[int, Recorded]:
        """The steps of a run, by position."""
        rows = self.database.read(
            "SELECT position, key, failed, result FROM raw_step WHERE run = ? ORDER BY position", (run,)
        )
        return {position: Recorded(key, bool(failed), result) for position, key, failed, result in rows}

    def record(self, run: str, executor: str, position: int, step: Recorded) -> None:
        """The one commit of a step."""

        def work(transaction: Transaction) -> None:
            still_ours(transaction, run, executor)
            insert_step(transaction, run, position, step)

        self.database.write(work)

    def finish(self, run: str, executor: str, ending: Ending) -> None:
        """The end of a run."""

        def work(transaction: Transaction) -> None:
            still_ours(transaction, run, executor)
            transaction.run(
                "UPDATE raw_run SET status = ?, executor = NULL, value = ?, error = ?, fits = ? WHERE id = ?",
                (ending.status.value, ending.value, ending.error, int(ending.fits), run),
            )

        self.database.write(work)

    def cancel(self, run: str, *, parent: tuple[str, str] | None = None) -> None:
        """Ends a run and all that came of it; for a parent and its worker only a child of its own."""

        def work(transaction: Transaction) -> None:
            known_status(transaction, run)
            if parent is not None:
                still_ours(transaction, *parent)
                if not transaction.run("SELECT 1 FROM raw_run WHERE id = ? AND parent = ?", (run, parent[0])):
                    raise EngineError(f"{run} is no child of {parent[0]}", next_step="cancel children of this run only")
            transaction.run(
                "WITH RECURSIVE doomed (id) AS (VALUES (?) UNION SELECT r.id FROM raw_run r "
                "JOIN doomed ON r.parent = doomed.id) UPDATE raw_run SET status = 'cancelled', executor = NULL "
                "WHERE status IN ('queued', 'running') AND id IN (SELECT id FROM doomed)",
                (run,),
            )

        self.database.write(work)

    def rewind(self, run: str, key: str, version: str) -> None:
        """Forgets the steps of an ended run from a key on, with the answers they had, and queues it."""

        def work(transaction: Transaction) -> None:
            if known_status(transaction, run) in (ExecutionStatus.QUEUED, ExecutionStatus.RUNNING):
                raise EngineError(f"run {run} has not ended", next_step=f"cancel {run} first")
            found = transaction.run("SELECT position FROM raw_step WHERE run = ? AND key = ?", (run, key))
            if not found:
                raise EngineError(f"run {run} has no step {key}", next_step="take one of its recorded steps")
            later = "SELECT key FROM raw_step WHERE run = ? AND position >= ?"
            transaction.run(
                f"DELETE FROM raw_gate WHERE run = ? AND (answer IS NULL OR key IN ({later}))",
                (run, run, *found[0]),
            )
            transaction.run("DELETE FROM raw_step WHERE run = ? AND position >= ?", (run, *found[0]))
            _queue_again(transaction, run, version)

        self.database.write(work)

    def resume(self, run: str, version: str, workers: Collection[str]) -> None:
        """Queues a run that failed, was cancelled, or is nobody's; if its last step failed, that is forgotten."""

        def work(transaction: Transaction) -> None:
            status = known_status(transaction, run)
            if status in (ExecutionStatus.FAILED, ExecutionStatus.CANCELLED):
                last = "SELECT MAX(position) FROM raw_step WHERE run = ?"
                transaction.run(f"DELETE FROM raw_step WHERE run = ? AND failed AND position = ({last})", (run, run))
                _queue_again(transaction, run, version)
            elif status is ExecutionStatus.RUNNING:
                nobodys = f"id = ? AND executor NOT IN {_signs(workers)}"
                transaction.run(
                    f"UPDATE raw_run SET status = 'queued', executor = NULL WHERE {nobodys}",
                    (run, *workers),
                )

        self.database.write(work)

    def ended(self, runs: Collection[str]) -> list[Row]:
        """Id, status, value and error of those of some runs that are over."""
        return self.database.read(
            "SELECT id, status, value, error FROM raw_run WHERE status NOT IN ('queued', 'running') "
            f"AND id IN {_signs(runs)}",
            tuple(runs),
        )

    def runs(self) -> list[tuple[RunInfo, bool]]:
        """Every run, and whether its steps fitted the code."""
        rows = self.database.read(
            "SELECT id, flow, status, version, executor, error, parent, fits FROM raw_run ORDER BY number"
        )
        return [(RunInfo(row[0], row[1], ExecutionStatus(row[2]), *row[3:7]), bool(row[7])) for row in rows]


def still_ours(transaction: Transaction, run: str, executor: str) -> None:
    """Goes on only if a worker has this run."""
    if not transaction.run(
        "SELECT 1 FROM raw_run WHERE id = ? AND status = 'running' AND executor = ?", (run, executor)
    ):
        raise NotOurs(run)


def known_status(transaction: Transaction, run: str) -> ExecutionStatus:
    """How a run stands that there must be."""
    rows = transaction.run("SELECT status FROM raw_run WHERE id = ?", (run,))
    if not rows:
        raise EngineError(f"there is no run {run}", next_step="look at the list of runs")
    return ExecutionStatus(rows[0][0])


def _queue_again(transaction: Transaction, run: str, version: str) -> None:
    transaction.run(
        "UPDATE raw_run SET status = 'queued', version = ?, value = NULL, error = NULL, fits = 1 WHERE id = ?",
        (version, run),
    )


def _signs(values: Collection[str]) -> str:
    return f"({', '.join('?' * len(values))})"


def insert_step(transaction: Transaction, run: str, position: int, step: Recorded) -> None:
    """Records a step."""
    transaction.run(
        "INSERT INTO raw_step VALUES (?, ?, ?, ?, ?)", (run, position, step.key, int(step.failed), step.result)
    )
