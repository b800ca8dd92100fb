"""Whatever is done to a ledger behind its back is found and named, on each database and in an exported file."""

from pathlib import Path

import pytest

from conftest import MOMENT, OpenDatabase
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Workflow
from fairwitness.db.base import Database, SqlDialect, Transaction, Value
from fairwitness.errors import UsageError
from fairwitness.kit.clock import spell
from fairwitness.ledger.chain import Head
from fairwitness.ledger.export import exported
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.tables import CHAINED
from fairwitness.ledger.verify import Tampering, verify
from ledger.samples import RUN, claim, execution, fill_all, observation

TIME = "2026-02-26T14:30:00Z"


def fill(ledger: Ledger, records: int = 4) -> None:
    """Records of every kind; each fourth one notes the head."""
    for number in range(1, records + 1):

        def write(record: Record, number: int = number) -> None:
            record.executed(execution(f"e{number}"), phase=Phase.AFTER, check_name="tests", round_=1)
            record.observed(observation(f"o{number}"), phase=Phase.AFTER, check_name="scope", round_=1)
            verdicts = {"review-code-security": (CategoryVerdict.APPROVE, None)}
            record.reviewed(claim(f"c{number}"), verdicts=verdicts, round_=1, summary="fine")
            record.event(Workflow.FEATURE, "step_started", {"step": f"step-{number}"}, timestamp=TIME)

        ledger.record(RUN, write)


def tamper(database: Database, *statements: str) -> None:
    """Does what nobody may do: with the guards taken away, as someone with the file in his hands would."""

    def work(transaction: Transaction) -> None:
        if database.dialect is SqlDialect.SQLITE:
            for (name,) in transaction.run("SELECT name FROM sqlite_master WHERE type = 'trigger'"):
                transaction.run(f"DROP TRIGGER {name}")
            transaction.run("PRAGMA defer_foreign_keys=ON")
        else:
            transaction.run("SET LOCAL session_replication_role = replica")
        for statement in statements:
            transaction.run(statement)

    if database.dialect is SqlDialect.SQLITE:
        database.read("SELECT 1")
        database._writer.execute("PRAGMA foreign_keys=OFF")  # type: ignore[attr-defined]  # only the tampering needs it
    database.write(work)


def _named(ledger: Ledger, heads: tuple[Head, ...] = ()) -> list[str]:
    return [f"{finding.kind.value} {finding.table} {finding.row}" for finding in verify(ledger.database, RUN, heads)]


@pytest.mark.req("X2")
def test_an_untouched_ledger_verifies(ledger: Ledger) -> None:
    fill(ledger)
    assert verify(ledger.database, RUN, (ledger.head(RUN),)) == []
    assert ledger.runs() == (RUN,)


@pytest.mark.req("X2", "P9")
@pytest.mark.parametrize("met", [True, False])
def test_a_claimed_criterion_verifies_by_what_its_claim_says(ledger: Ledger, met: bool) -> None:
    said = claim(kind="criterion", body={"met": met, "place": "src/a.py:3", "claim": "it compares"})
    ledger.record(RUN, lambda record: record.inspected(said, check_name="ac-1", round_=1))
    assert verify(ledger.database, RUN) == []
    tamper(ledger.database, f"UPDATE anvil_checks SET passed = {int(not met)}")
    assert _named(ledger) == ["edited anvil_checks 1", "edited anvil_checks 1"]


CASES: list[tuple[str, list[str]]] = [
    ("UPDATE anvil_checks SET passed = 0 WHERE id = 4", ["edited anvil_checks 4", "edited anvil_checks 4"]),
    ("UPDATE anvil_checks SET output_snippet = 'x' WHERE id = 5", ["edited anvil_checks 5"]),
    ("UPDATE executions SET exit_code = 1 WHERE id = 2", ["edited executions 2"]),
    ("UPDATE events SET data = '{}' WHERE seq = 3", ["edited events 3"]),
    ("UPDATE claims SET body = '{}' WHERE id = 1", ["edited claims 1"]),
    ("DELETE FROM events WHERE seq = 4", ["deleted events 4"]),
    ("DELETE FROM anvil_checks WHERE id = 12", ["deleted anvil_checks 12"]),
    ("DELETE FROM check_sources WHERE check_id = 1", ["deleted check_sources 1", "without a source anvil_checks 1"]),
    (
        "INSERT INTO anvil_checks (run_id, task_id, phase, check_name, passed, ts) "
        f"VALUES ('{RUN}', 'task-03', 'after', 'lint', 1, 'now')",
        ["inserted anvil_checks 13", "without a source anvil_checks 13"],
    ),
    (
        "INSERT INTO events (run_id, seq, event_id, timestamp, workflow, type, version, data) "
        f"VALUES ('{RUN}', 9, 'x', 'now', 'feature', 'x', 1, '{{}}')",
        ["inserted events 9"],
    ),
    ("UPDATE chain SET hash = 'sha256:0' WHERE seq = 2", ["edited chain 2", "reordered chain 3"]),
    ("UPDATE chain SET members = '[]' WHERE seq = 4", ["edited chain 4", "inserted anvil_checks 10"]),
    ("UPDATE chain SET members = 'x' WHERE seq = 4", ["edited chain 4", "edited chain 4"]),
    ('UPDATE chain SET members = \'[["songs",1,"x"]]\' WHERE seq = 4', ["edited chain 4", "edited chain 4"]),
    ("DELETE FROM chain WHERE seq = 2", ["deleted chain 2", "inserted anvil_checks 4"]),
]


@pytest.mark.req("X2")
@pytest.mark.parametrize(("statement", "named"), CASES, ids=[statement[:40] for statement, _ in CASES])
def test_each_kind_of_tampering_is_found_and_its_row_named(ledger: Ledger, statement: str, named: list[str]) -> None:
    fill(ledger)
    tamper(ledger.database, statement)
    found = _named(ledger)
    assert set(named) <= set(found)


@pytest.mark.req("X2")
def test_two_rows_whose_contents_were_swapped_are_both_named(ledger: Ledger) -> None:
    fill(ledger)
    tamper(
        ledger.database,
        "UPDATE executions SET key = 'x' WHERE id = 1",
        "UPDATE executions SET key = 'e1' WHERE id = 2",
        "UPDATE executions SET key = 'e2' WHERE id = 1",
    )
    assert _named(ledger) == ["edited executions 1", "edited executions 2"]


@pytest.mark.req("X2")
def test_two_links_that_changed_places_are_named(ledger: Ledger) -> None:
    fill(ledger)
    tamper(
        ledger.database,
        "UPDATE chain SET seq = 99 WHERE seq = 2",
        "UPDATE chain SET seq = 2 WHERE seq = 3",
        "UPDATE chain SET seq = 3 WHERE seq = 99",
    )
    found = _named(ledger)
    assert found[:2] == ["edited chain 2", "edited chain 3"]
    assert "reordered anvil_checks 4" in found


def _cut(ledger: Ledger) -> None:
    """Takes the last record away, rows, event and link, so that what is left is consistent in itself."""
    tamper(
        ledger.database,
        "DELETE FROM check_sources WHERE check_id > 9",
        "DELETE FROM anvil_checks WHERE id > 9",
        *(f"DELETE FROM {table} WHERE id > 3" for table in ("executions", "observations", "claims")),
        "DELETE FROM events WHERE seq > 3",
        "DELETE FROM chain WHERE seq > 3",
    )


@pytest.mark.req("X2")
def test_a_cut_end_shows_against_a_head_kept_elsewhere_and_only_there(ledger: Ledger) -> None:
    fill(ledger)
    kept = ledger.head(RUN)
    _cut(ledger)
    assert _named(ledger) == []
    assert _named(ledger, (kept,)) == ["truncated chain 4"]


@pytest.mark.req("X2")
def test_a_head_in_the_event_log_shows_a_ledger_that_was_written_anew(ledger: Ledger) -> None:
    fill(ledger, 2)
    noted = {"head": "sha256:" + "f" * 64, "rows": 2}
    ledger.record(RUN, lambda record: record.event(Workflow.FEATURE, "head_recorded", noted, timestamp=TIME))
    assert _named(ledger) == ["edited chain 2"]
    ledger.record(RUN, lambda record: record.event(Workflow.FEATURE, "head_recorded", {"x": 1}, timestamp=TIME))
    assert _named(ledger) == ["edited chain 2"]


NUMBERS = {
    "exit_code": 7,
    "passed": 0,
    "round": 3,
    "dispatch_count": 9,
    "retry_count": 9,
    "usefulness_score": 9,
    "clarity_score": 9,
    "applied": 1,
    "duration_ms": 9,
    "signal": 9,
    "holds": 0,
    "auto_selected": 0,
    "attempt": 9,
    "version": 9,
}
WORDS = {
    "phase": "baseline",
    "verdict": "approve",
    "severity": "Minor",
    "status": "ERROR",
    "assessment": "fail",
    "change_type": "delete",
    "file_path": ".github/instructions/zzz.md",
    "workflow": "forge",
    "sandbox": "ll",
    "mode": "interactive",
}
"""Other values that a column's own check would take; any other column takes any text."""


@pytest.mark.req("X2")
@pytest.mark.parametrize("table", [name for name in CHAINED if name != "check_sources"])
def test_every_column_of_every_table_is_held_by_the_chain(ledger: Ledger, table: str) -> None:
    fill_all(ledger)
    fill(ledger, 1)
    shape = CHAINED[table]
    tamper(ledger.database)
    for column in shape.columns:
        if column in (shape.key, "run_id"):
            continue
        ((row, old),) = ledger.database.read(f"SELECT {shape.key}, {column} FROM {table} ORDER BY {shape.key} LIMIT 1")
        new = NUMBERS.get(column, WORDS.get(column, "zzz"))
        assert new != old
        _set(ledger.database, f"UPDATE {table} SET {column} = ? WHERE {shape.key} = ?", new, row)
        assert f"edited {table} {row}" in _named(ledger), column
        _set(ledger.database, f"UPDATE {table} SET {column} = ? WHERE {shape.key} = ?", old, row)
    assert _named(ledger) == []


def _set(database: Database, sql: str, *values: Value) -> None:
    def work(transaction: Transaction) -> None:
        if database.dialect is SqlDialect.POSTGRES:
            transaction.run("SET LOCAL session_replication_role = replica")
        transaction.run(sql, values)

    database.write(work)


@pytest.mark.req("X2")
def test_an_exported_run_is_a_file_that_verifies_and_shows_tampering(
    open_database: OpenDatabase, tmp_path: Path
) -> None:
    ledger = Ledger.open(open_database(), clock=lambda: MOMENT)
    fill(ledger)
    other = execution("x", run_id="2027-01-01T00:00:00Z")
    ledger.record(other.run_id, lambda record: record.execution(other))
    file = tmp_path / "verification-ledger.db"
    file.write_bytes(exported(ledger.database, RUN, spell(MOMENT)))
    copy = Ledger.read_only(file)
    assert verify(copy.database, RUN, (ledger.head(RUN),)) == []
    assert copy.runs() == (RUN,)
    assert copy.tally(RUN, "task-03", Phase.AFTER, 1).rows == ledger.tally(RUN, "task-03", Phase.AFTER, 1).rows
    assert list(copy.events(RUN)) == list(ledger.events(RUN))
    copy.close()
    assert sorted(path.name for path in tmp_path.glob("verification*")) == ["verification-ledger.db"]
    writable = Ledger.open_file(file)
    tamper(writable.database, "UPDATE executions SET exit_code = 3 WHERE id = 3")
    assert _named(writable) == ["edited executions 3"]
    writable.close()


def test_a_run_that_does_not_exist_cannot_be_exported(ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="no run"):
        exported(ledger.database, "nobody", spell(MOMENT))


def test_findings_are_sentences(ledger: Ledger) -> None:
    fill(ledger, 1)
    tamper(ledger.database, "DELETE FROM claims WHERE id = 1")
    (finding,) = verify(ledger.database, RUN)
    assert str(finding) == f"run {RUN}: claims 1 deleted: link 1 holds it"
    assert finding.kind is Tampering.DELETED
