"""The tables of the raw engine, and every transaction on them: whatever must happen together is one function here."""

from dataclasses import dataclass
from pathlib import Path

from assay.db.base import Row, Transaction
from assay.db.sqlite import SqliteDatabase
from assay.engine.base import EngineError, RunInfo, RunStatus

_TABLES = """
CREATE TABLE IF NOT EXISTS raw_run (
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, flow TEXT NOT NULL, args TEXT NOT NULL,
  version TEXT NOT NULL, parent TEXT, status TEXT NOT NULL, executor TEXT, value TEXT, error TEXT,
  fits INTEGER NOT NULL DEFAULT 1);
CREATE INDEX IF NOT EXISTS raw_run_status ON raw_run (status, executor);
CREATE TABLE IF NOT EXISTS raw_step (
  run TEXT NOT NULL, position INTEGER NOT NULL, key TEXT NOT NULL, failed INTEGER NOT NULL, result TEXT NOT NULL,
  PRIMARY KEY (run, position), UNIQUE (run, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS raw_gate (
  run TEXT NOT NULL, key TEXT NOT NULL, deadline REAL, answer TEXT, PRIMARY KEY (run, key)) WITHOUT ROWID;
"""


class NotOurs(Exception):
    """The run was cancelled or taken over: whoever still works on it must stop and leave no trace."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that this worker now has."""

    id: str
    flow: str
    args: str
    is_child: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """What stands in the journal at one position of a run."""

    key: str
    failed: bool
    result: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended."""

    status: RunStatus
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
            if parent is not None:
                _still_ours(transaction, *parent)
            transaction.run(
                "INSERT INTO raw_run (id, flow, args, version, parent, status) VALUES (?, ?, ?, ?, ?, 'queued') "
                "ON CONFLICT (id) DO NOTHING",
                (run, flow, args, version, parent and parent[0]),
            )
            ((known,),) = transaction.run("SELECT flow FROM raw_run WHERE id = ?", (run,))
            if known != flow:
                raise EngineError(f"run {run} is one of flow {known}, not of {flow}", next_step="take another id")

        self.database.write(work)

    def claim(
        self, executor: str, version: str, flows: frozenset[str], room: int, busy: frozenset[str]
    ) -> list[Claimed]:
        """Takes queued runs of a version: all that have no parent, and as many children as there is room for."""
        queued = "SELECT id, flow, args, parent FROM raw_run WHERE status = 'queued' AND version = ? ORDER BY number"
        if not self.database.read(queued + " LIMIT 1", (version,)):
            return []  # nothing is locked while there is nothing to do

        def work(transaction: Transaction) -> list[Claimed]:
            claimed: list[Claimed] = []
            left = room
            for run, flow, args, parent in transaction.run(queued, (version,)):
                if flow in flows and run not in busy and (parent is None or left > 0):
                    left -= parent is not None
                    claimed.append(Claimed(run, flow, args, parent is not None))
            for one in claimed:
                transaction.run("UPDATE raw_run SET status = 'running', executor = ? WHERE id = ?", (executor, one.id))
            return claimed

        return self.database.write(work)

    def owned(self, executor: str) -> frozenset[str]:
        """The runs that a worker has."""
        rows = self.database.read("SELECT id FROM raw_run WHERE status = 'running' AND executor = ?", (executor,))
        return frozenset(run for (run,) in rows)

    def recorded(self, run: str) -> dict[int, Recorded]:
        """The steps of a run, by position."""
        rows = self.database.read(
            "SELECT position, key, failed, result FROM raw_step WHERE run = ? ORDER BY position", (run,)
        )
        return {position: Recorded(key, bool(failed), result) for position, key, failed, result in rows}

    def record(self, run: str, executor: str, position: int, step: Recorded) -> None:
        """The one commit of a step."""

        def work(transaction: Transaction) -> None:
            _still_ours(transaction, run, executor)
            _insert(transaction, run, position, step)

        self.database.write(work)

    def finish(self, run: str, executor: str, ending: Ending) -> None:
        """The end of a run."""

        def work(transaction: Transaction) -> None:
            _still_ours(transaction, run, executor)
            transaction.run(
                "UPDATE raw_run SET status = ?, executor = NULL, value = ?, error = ?, fits = ? WHERE id = ?",
                (ending.status.value, ending.value, ending.error, int(ending.fits), run),
            )

        self.database.write(work)

    def ask(self, run: str, executor: str, key: str, deadline: float | None) -> float | None:
        """Opens a gate, or finds it open; until when it waits stays as it was asked for first."""

        def work(transaction: Transaction) -> float | None:
            _still_ours(transaction, run, executor)
            transaction.run(
                "INSERT INTO raw_gate (run, key, deadline) VALUES (?, ?, ?) "
                "ON CONFLICT (run, key) DO UPDATE SET deadline = COALESCE(deadline, excluded.deadline)",
                (run, key, deadline),
            )
            ((until,),) = transaction.run("SELECT deadline FROM raw_gate WHERE run = ? AND key = ?", (run, key))
            return until  # type: ignore[no-any-return]  # a REAL or nothing

        return self.database.write(work)

    def pass_gate(self, run: str, executor: str, position: int, key: str, *, shut: str | None) -> str | None:
        """Records a gate's answer, or that none came (`shut`); None while it has to wait."""
        answered = "SELECT answer FROM raw_gate WHERE run = ? AND key = ?"
        if shut is None and self.database.read(answered + " AND answer IS NOT NULL", (run, key)) == []:
            return None

        def work(transaction: Transaction) -> str | None:
            _still_ours(transaction, run, executor)
            ((answer,),) = transaction.run(answered, (run, key))
            passed: str | None = answer if answer is not None else shut
            if passed is not None:
                _insert(transaction, run, position, Recorded(key, failed=False, result=passed))
            return passed

        return self.database.write(work)

    def answer(self, run: str, key: str, value: str) -> bool:
        """Keeps an answer, if it is the first and the gate did not shut before it came."""

        def work(transaction: Transaction) -> bool:
            _known(transaction, run)
            if transaction.run("SELECT 1 FROM raw_step WHERE run = ? AND key = ?", (run, key)):
                return False
            return bool(
                transaction.run(
                    "INSERT INTO raw_gate (run, key, answer) VALUES (?, ?, ?) ON CONFLICT (run, key) "
                    "DO UPDATE SET answer = excluded.answer WHERE answer IS NULL RETURNING 1",
                    (run, key, value),
                )
            )

        return self.database.write(work)

    def cancel(self, run: str) -> None:
        """Ends a run and all that came of it."""

        def work(transaction: Transaction) -> None:
            _known(transaction, run)
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
            if _known(transaction, run) in (RunStatus.QUEUED, RunStatus.RUNNING):
                raise EngineError(f"run {run} has not ended", next_step=f"cancel {run} first")
            found = transaction.run("SELECT position FROM raw_step WHERE run = ? AND key = ?", (run, key))
            if not found:
                raise EngineError(f"run {run} has no step {key}", next_step="take one of its recorded steps")
            later = "SELECT key FROM raw_step WHERE run = ? AND position >= ?"
            transaction.run(
                f"DELETE FROM raw_gate WHERE run = ? AND (answer IS NULL OR key IN ({later}))",  # noqa: S608
                (run, run, *found[0]),
            )
            transaction.run("DELETE FROM raw_step WHERE run = ? AND position >= ?", (run, *found[0]))
            transaction.run(
                "UPDATE raw_run SET status = 'queued', version = ?, value = NULL, error = NULL, fits = 1 WHERE id = ?",
                (version, run),
            )

        self.database.write(work)

    def ended(self, run: str) -> Row | None:
        """Status, value and error of a run that is over."""
        rows = self.database.read(
            "SELECT status, value, error FROM raw_run WHERE id = ? AND status NOT IN ('queued', 'running')", (run,)
        )
        return rows[0] if rows else None

    def runs(self) -> list[tuple[RunInfo, bool]]:
        """Every run, and whether its steps fitted the code."""
        rows = self.database.read(
            "SELECT id, flow, status, version, executor, error, fits FROM raw_run ORDER BY number"
        )
        return [(RunInfo(row[0], row[1], RunStatus(row[2]), *row[3:6]), bool(row[6])) for row in rows]


def _still_ours(transaction: Transaction, run: str, executor: str) -> None:
    if not transaction.run(
        "SELECT 1 FROM raw_run WHERE id = ? AND status = 'running' AND executor = ?", (run, executor)
    ):
        raise NotOurs(run)


def _known(transaction: Transaction, run: str) -> RunStatus:
    rows = transaction.run("SELECT status FROM raw_run WHERE id = ?", (run,))
    if not rows:
        raise EngineError(f"there is no run {run}", next_step="look at the list of runs")
    return RunStatus(rows[0][0])


def _insert(transaction: Transaction, run: str, position: int, step: Recorded) -> None:
    transaction.run(
        "INSERT INTO raw_step VALUES (?, ?, ?, ?, ?)", (run, position, step.key, int(step.failed), step.result)
    )
