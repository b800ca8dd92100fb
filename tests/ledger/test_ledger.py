"""The ledger on each database: what can be written, what follows from it, and what is refused."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import OpenDatabase
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Severity, Size, Workflow
from fairwitness.db.base import SqlDialect
from fairwitness.errors import DatabaseUnusable, RowRefused, UsageError
from fairwitness.ledger.chain import START, Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.queries import BY_NAME
from fairwitness.ledger.record import Record
from fairwitness.ledger.tables import CHAINED, PUBLISHED
from fairwitness.rules.gates import verification_sufficient
from ledger.samples import RUN, TASK, claim, execution, fill_all, observation
from support.fixtures import SEEDS


def _tests(ledger: Ledger, key: str = "k1", *, round_: int = 1, **changes: Any) -> int:
    return ledger.record(
        RUN,
        lambda record: record.executed(
            execution(key, **changes), phase=Phase.AFTER, check_name="tests", round_=round_, output="ok"
        ),
    )


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("assessment", "end", "passed"),
    [
        ("pass", {"exit_code": 0}, True),
        ("fail", {"exit_code": 1}, False),
        ("timeout", {"exit_code": None, "signal": 9}, False),
        ("violation", {"exit_code": 0}, False),
        ("lost", {"exit_code": None}, False),
    ],
)
def test_a_check_passes_exactly_when_its_execution_did(
    ledger: Ledger, assessment: str, end: dict[str, Any], passed: bool
) -> None:
    _tests(ledger, assessment=assessment, **end)
    (row,) = ledger.tally(RUN, TASK, Phase.AFTER, 1).rows
    assert (row.passed, row.assessment, row.provenance) == (passed, Assessment(assessment), "executed")


def test_what_was_observed_is_found_by_its_kind_and_by_its_subject(ledger: Ledger) -> None:
    rows = [("1", "scope", "a"), ("2", "scope", "b"), ("3", "other", "a"), ("4", "scope", "a")]
    seen = [observation(key, kind=kind, subject=subject) for key, kind, subject in rows]
    ledger.record(RUN, lambda record: [record.observation(each) for each in seen])
    assert [row.key for row in ledger.observations(RUN, "scope")] == ["1", "2", "4"]
    assert [row.key for row in ledger.observations(RUN, "scope", subject="a")] == ["1", "4"]
    assert ledger.observations(RUN, "scope", subject="") == ()


@pytest.mark.req("P9")
@pytest.mark.parametrize("holds", [True, False])
def test_a_check_passes_exactly_when_what_was_observed_holds(ledger: Ledger, holds: bool) -> None:
    seen = observation(holds=holds)
    ledger.record(RUN, lambda record: record.observed(seen, phase=Phase.AFTER, check_name="scope", round_=1))
    (row,) = ledger.tally(RUN, TASK, Phase.AFTER, 1).rows
    assert (row.passed, row.provenance, row.assessment, row.sandbox) == (holds, "observed", None, None)


@pytest.mark.req("P7")
def test_a_review_is_a_claim_with_one_row_for_each_category(ledger: Ledger) -> None:
    verdicts = {
        "review-code-security": (CategoryVerdict.NEEDS_REVISION, Severity.MAJOR),
        "review-code-architecture": (CategoryVerdict.APPROVE, None),
        "review-code-correctness": (CategoryVerdict.BLOCKER, Severity.BLOCKER),
    }
    ledger.record(RUN, lambda record: record.reviewed(claim(), verdicts=verdicts, round_=1, summary="x" * 600))
    rows = ledger.tally(RUN, "login-code-review", Phase.REVIEW, 1).rows
    assert [(row.check_name, row.passed, row.verdict, row.severity) for row in rows] == [
        ("review-code-security", False, CategoryVerdict.NEEDS_REVISION, Severity.MAJOR),
        ("review-code-architecture", True, CategoryVerdict.APPROVE, None),
        ("review-code-correctness", False, CategoryVerdict.BLOCKER, Severity.BLOCKER),
    ]
    assert {row.provenance.value for row in rows} == {"claimed"}
    ((length,),) = ledger.database.read("SELECT MAX(LENGTH(output_snippet)) FROM anvil_checks")
    assert length == 500


@pytest.mark.req("P7", "P9")
def test_a_tally_holds_every_row_of_its_round_oldest_first_and_the_query_behind_it(ledger: Ledger) -> None:
    first = _tests(ledger, "k1", assessment="fail", exit_code=1)
    second = _tests(ledger, "k2")
    third = _tests(ledger, "k3", round_=2)
    tally = ledger.tally(RUN, TASK, Phase.AFTER, 1)
    assert [row.id for row in tally.rows] == [first, second]
    assert tally.query.values == (RUN, TASK, "after", 1)
    assert [row[0] for row in ledger.database.read(tally.query.sql, tally.query.values)] == [first, second]
    assert [row.id for row in ledger.tally(RUN, TASK, Phase.AFTER).rows] == [first, second, third]


@pytest.mark.req("P9")
def test_only_the_latest_row_of_a_check_votes_at_its_gate(ledger: Ledger) -> None:
    _tests(ledger, "k1", assessment="fail", exit_code=1)
    lint = execution("k2")
    ledger.record(RUN, lambda record: record.executed(lint, phase=Phase.AFTER, check_name="lint", round_=1))

    def answer() -> str:
        tally = ledger.tally(RUN, TASK, Phase.AFTER, 1)
        return verification_sufficient(tally, size=Size.STANDARD, iteration=1).answer

    assert answer() == "blocked"
    _tests(ledger, "k3")
    assert answer() == "open"
    _tests(ledger, "k4", assessment="fail", exit_code=1)
    assert answer() == "blocked"


def test_a_row_of_another_run_or_task_is_not_counted(ledger: Ledger) -> None:
    _tests(ledger)
    assert ledger.tally("2026-02-26T14:30:01Z", TASK, Phase.AFTER, 1).rows == ()
    assert ledger.tally(RUN, "task-04", Phase.AFTER, 1).rows == ()


@pytest.mark.req("P13")
def test_no_row_is_ever_changed_or_deleted(ledger: Ledger) -> None:
    _tests(ledger)
    ledger.record(RUN, lambda record: record.event(Workflow.FEATURE, "x", {}, timestamp="2026-02-26T14:30:00Z"))
    for table in ("anvil_checks", "executions", "check_sources", "chain", "events"):
        for statement in (f"UPDATE {table} SET run_id = 'x'", f"DELETE FROM {table}"):
            with pytest.raises(RowRefused, match="append-only"):
                ledger.database.write(lambda transaction, sql=statement: transaction.run(sql))  # type: ignore[misc]  # a default argument binds the loop's value


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("phase", "passed", "verdict"),
    [("after", 1, "approve"), ("baseline", 0, "blocker"), ("review", 1, None), ("review", 1, "needs_revision")],
)
def test_the_database_itself_refuses_a_verdict_where_none_belongs_and_a_review_that_lies(
    ledger: Ledger, phase: str, passed: int, verdict: str | None
) -> None:
    sql = "INSERT INTO anvil_checks (run_id, task_id, phase, check_name, passed, verdict) VALUES (?, ?, ?, ?, ?, ?)"
    with pytest.raises(RowRefused):
        ledger.database.write(lambda transaction: transaction.run(sql, (RUN, TASK, phase, "tests", passed, verdict)))


@pytest.mark.parametrize(
    "row",
    [
        {"phase": "during"},
        {"passed": 2},
        {"output_snippet": "x" * 501},
        {"severity": "Bad", "phase": "review", "verdict": "approve", "passed": 1},
        {"check_name": None},
        {"passed": None},
    ],
)
def test_the_published_checks_hold_on_both_databases(ledger: Ledger, row: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"run_id": RUN, "phase": "after", "check_name": "tests", "passed": 0} | row
    sql = f"INSERT INTO anvil_checks ({', '.join(plain)}) VALUES ({', '.join('?' * len(plain))})"
    with pytest.raises(RowRefused):
        ledger.database.write(lambda transaction: transaction.run(sql, tuple(plain.values())))


def test_no_column_defaults_to_the_passing_value(ledger: Ledger) -> None:
    with pytest.raises(RowRefused):
        ledger.database.write(
            lambda transaction: transaction.run(
                "INSERT INTO anvil_checks (run_id, phase, check_name) VALUES ('r', 'after', 'tests')"
            )
        )


def test_a_repeated_key_is_refused_and_the_first_can_be_adopted(ledger: Ledger) -> None:
    _tests(ledger, "k1")
    assert ledger.execution_id(RUN, "k1") == 1
    assert ledger.execution_id(RUN, "k2") is None
    head = ledger.head(RUN)
    with pytest.raises(RowRefused):
        _tests(ledger, "k1")
    assert ledger.head(RUN) == head


def test_a_failing_record_leaves_nothing(ledger: Ledger) -> None:
    def fail(record: Record) -> None:
        record.executed(execution(), phase=Phase.AFTER, check_name="tests", round_=1)
        raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        ledger.record(RUN, fail)
    assert ledger.head(RUN) == Head(0, START)
    assert ledger.database.read("SELECT COUNT(*) FROM executions") == [(0,)]


def test_a_row_of_another_run_cannot_slip_into_a_record(ledger: Ledger) -> None:
    with pytest.raises(UsageError):
        ledger.record("2027-01-01T00:00:00Z", lambda record: record.execution(execution()))


def test_a_review_without_a_reviewer_is_refused(ledger: Ledger) -> None:
    nobody = claim(instance=None)
    with pytest.raises(UsageError):
        ledger.record(RUN, lambda record: record.reviewed(nobody, verdicts={}, round_=1, summary="x"))


def _criterion(**body: Any) -> Any:
    said = {"met": True, "place": "src/a.py:3", "claim": "it compares"}
    return claim("criterion:1", task_id=TASK, agent="verifier", instance=None, kind="criterion", body=said | body)


@pytest.mark.req("P9")
@pytest.mark.parametrize("met", [True, False])
def test_a_criterion_is_met_exactly_when_the_claim_about_a_place_says_so(ledger: Ledger, met: bool) -> None:
    said = _criterion(met=met, claim="y" * 600)
    ledger.record(RUN, lambda record: record.inspected(said, check_name="ac-2", round_=3))
    (row,) = ledger.tally(RUN, TASK, Phase.AFTER, 3).rows
    assert (row.check_name, row.passed, row.provenance, row.verdict) == ("ac-2", met, "claimed", None)
    assert (row.assessment, row.tree, row.sandbox) == (None, None, None)
    ((tool, text),) = ledger.database.read("SELECT tool, output_snippet FROM anvil_checks")
    assert tool == "inspection"
    assert text.startswith("src/a.py:3: yyy")
    assert len(text) == 500
    assert ledger.claim(RUN, "criterion:1") == said
    with pytest.raises(RowRefused):
        ledger.record(RUN, lambda record: record.inspected(said, check_name="ac-2", round_=3))


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize(
    "body", [{"met": None}, {"met": 1}, {"met": "yes"}, {"place": None}, {"place": " "}, {"claim": ""}, {"claim": 3}]
)
def test_a_claim_that_does_not_say_whether_or_where_is_refused(ledger: Ledger, body: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ledger.record(RUN, lambda record: record.inspected(_criterion(**body), check_name="ac-1", round_=1))
    assert ledger.database.read("SELECT COUNT(*) FROM claims") == [(0,)]


@pytest.mark.req("A5", "F6")
def test_events_count_from_one_without_gaps_in_each_run(ledger: Ledger) -> None:
    def tell(run: str, word: str) -> int:
        return ledger.record(
            run,
            lambda record: record.event(
                Workflow.FORGE, "run.paused", {"reason": word}, timestamp="2026-02-26T14:30:00Z", task="task-001"
            ),
        )

    assert [tell(RUN, "a"), tell("run-2", "b"), tell(RUN, "c")] == [1, 2 - 1, 2]
    told = list(ledger.events(RUN))
    assert [(event.seq, event.event_id, event.data) for event in told] == [
        (1, "2026-02-26T14-30-00Z.1", {"reason": "a"}),
        (2, "2026-02-26T14-30-00Z.2", {"reason": "c"}),
    ]
    assert list(ledger.events(RUN, after=1)) == told[1:]


def test_a_long_log_is_read_page_by_page(ledger: Ledger) -> None:
    def tell(record: Record) -> None:
        for number in range(2100):
            record.event(Workflow.FORGE, "x", {"n": number}, timestamp="2026-02-26T14:30:00Z")

    ledger.record(RUN, tell)
    assert [event.data["n"] for event in ledger.events(RUN)] == list(range(2100))


@pytest.mark.req("P13")
def test_every_canned_query_runs_and_has_its_columns(ledger: Ledger) -> None:
    fill_all(ledger)
    for query in BY_NAME.values():
        values = {"run": RUN, "file": ".github/instructions/tests.md"}
        rows = ledger.database.read(query.sql, [values[name] for name in query.parameters])
        assert rows, query.name
        assert {len(row) for row in rows} == {len(query.columns)}, query.name


@pytest.mark.req("P13", "P10")
def test_the_queries_answer_what_they_say(ledger: Ledger) -> None:
    fill_all(ledger)

    def ask(name: str, *values: str) -> list[tuple[Any, ...]]:
        return ledger.database.read(BY_NAME[name].sql, values)

    assert ask("dispatch-count", RUN) == [(2,)]
    assert [round(float(row[1])) for row in ask("slowest-steps", RUN)] == [140, 20]
    assert ask("retries", RUN) == [("designer", None, 1)]
    assert ask("failed-steps", RUN) == [("step-3", "designer", "TIMEOUT", "slow")]
    assert [(row[0], float(row[1])) for row in ask("worst-artifacts", RUN)] == [("tasks/task-03.yaml", 4.0)]
    assert ask("missing-information", RUN) == [("tasks/task-03.yaml", "no criteria")]
    assert [row[1] for row in ask("instruction-pending")] == [".github/instructions/other.md"]
    assert [tuple(map(int, row)) for row in ask("instruction-state")] == [(1, 1)]
    assert [row[4] for row in ask("instruction-history", ".github/instructions/tests.md")] == [0, 1]


def test_the_four_tables_are_exactly_as_published(open_database: OpenDatabase, tmp_path: Path) -> None:
    """Columns, types, defaults, checks and indexes of a fresh ledger against the statements of seed 000."""
    database = open_database()
    if database.dialect is not SqlDialect.SQLITE:
        pytest.skip("the published schema is SQLite's; its checks are tested on both")
    Ledger.open(database)
    published = sqlite3.connect(tmp_path / "published.db")
    published.executescript((SEEDS / "000" / "ledger.sql").read_text())

    def shape(ask: Callable[[str], list[tuple[Any, ...]]], table: str) -> tuple[Any, ...]:
        ((sql,),) = ask(f"SELECT sql FROM sqlite_master WHERE name = '{table}'")
        indexes = ask(
            f"SELECT name, sql FROM sqlite_master WHERE type = 'index' AND tbl_name = '{table}' ORDER BY name"
        )
        ours = [row for row in indexes if not row[0].startswith("idx_fairwitness") and row[0] != "idx_anvil_run"]
        return (" ".join(sql.split()), ask(f"PRAGMA table_info({table})"), ours)

    def ask_published(sql: str) -> list[tuple[Any, ...]]:
        return published.execute(sql).fetchall()

    for table in PUBLISHED:
        assert shape(database.read, table) == shape(ask_published, table)
    published.close()


def test_ledgers_of_both_databases_have_the_same_columns(ledger: Ledger) -> None:
    for table in CHAINED.values():
        ledger.database.read(f"SELECT {', '.join(table.columns)} FROM {table.name}")
    assert {row[0] for row in ledger.database.read("SELECT table_name FROM schema_meta")} == set(PUBLISHED)


def test_opening_for_reading_refuses_what_is_no_ledger_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(DatabaseUnusable, match="there is no database"):
        Ledger.read_only(tmp_path / "none.db")
    assert list(tmp_path.iterdir()) == []
    foreign = tmp_path / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(DatabaseUnusable, match="tables of something else"):
        Ledger.read_only(foreign)
    with pytest.raises(DatabaseUnusable, match="tables of something else"):
        Ledger.open_file(foreign)
    assert foreign.read_bytes() == before
    (tmp_path / "empty.db").touch()
    with pytest.raises(DatabaseUnusable, match="holds no ledger"):
        Ledger.read_only(tmp_path / "empty.db")
    (tmp_path / "text.db").write_text("this is no database " * 100)
    with pytest.raises(DatabaseUnusable, match="cannot be used as a database"):
        Ledger.read_only(tmp_path / "text.db")


def test_json_in_a_row_has_one_spelling(ledger: Ledger) -> None:
    ledger.record(RUN, lambda record: record.observation(observation(detail={"b": 1, "a": "é"})))
    ((detail,),) = ledger.database.read("SELECT detail FROM observations")
    assert detail == '{"a":"é","b":1}'
    assert json.loads(detail) == {"b": 1, "a": "é"}
