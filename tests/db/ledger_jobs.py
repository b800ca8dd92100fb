"""What the tests' processes write into a ledger, and how a ledger is checked to be whole afterwards."""

from multiprocessing.queues import SimpleQueue
from multiprocessing.synchronize import Barrier
from pathlib import Path

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.db.base import Database, SqlDialect
from fairwitness.errors import DatabaseBusy, FairWitnessError
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.summary import summary_differs
from fairwitness.ledger.verify import verify
from ledger.samples import RUN, execution

TIME = "2026-02-26T14:30:00Z"
TABLES = ("executions", "anvil_checks", "check_sources", "events", "chain")
"""Each record of these tests puts one row into each of them."""


def write(ledger: Ledger, key: str, run_id: str = RUN) -> str:
    """One check with its execution, source and event; adopted if an earlier try left it behind."""
    ran = execution(key, run_id=run_id)

    def work(record: Record) -> None:
        record.executed(ran, phase=Phase.AFTER, check_name="tests", round_=1, output="ok")
        record.event(Workflow.FEATURE, "step_started", {"key": key}, timestamp=TIME)

    try:
        if ledger.execution_id(run_id, key) is not None:
            return "adopted"
        ledger.record(run_id, work)
    except FairWitnessError as error:
        return f"{type(error).__name__}: {error.what} ({error.next_step})"
    return "written"


def assert_whole(ledger: Ledger) -> set[str]:
    """No record is there by half, and the chain verifies; returns the keys of all records."""
    database = ledger.database
    if database.dialect is SqlDialect.SQLITE:
        assert database.read("PRAGMA integrity_check") == [("ok",)]
        assert database.read("PRAGMA foreign_key_check") == []
    counts = {table: database.read(f"SELECT COUNT(*) FROM {table}")[0][0] for table in TABLES}
    assert len(set(counts.values())) == 1, counts
    for run in ledger.runs():
        assert verify(database, run) == []
        assert not summary_differs(database, run)
    return {str(key) for (key,) in database.read("SELECT key FROM executions")}


def open_again(address: str) -> Database:
    """A database by its path or its address on a server."""
    if address.startswith("postgresql:"):
        from fairwitness.db.postgres import PostgresDatabase

        return PostgresDatabase(address)
    from fairwitness.db.sqlite import SqliteDatabase

    return SqliteDatabase(Path(address))


def write_many(gate: Barrier, address: str, writer: int, rows: int, runs: int, refusals: "SimpleQueue[int]") -> None:
    """Opens the ledger at the same moment as everybody else and writes rows; tells how often it was told `busy`."""
    gate.wait(400)  # a process that a loaded machine starts late must not break the gate for all
    ledger = Ledger.open(open_again(address))
    refused = 0
    for number in range(rows):
        run_id = RUN if runs == 1 else f"run-{writer % runs}"
        while (answer := write(ledger, f"{writer}-{number}", run_id)).startswith(DatabaseBusy.__name__):
            refused += 1
        assert answer == "written", answer
    ledger.close()
    refusals.put(refused)
