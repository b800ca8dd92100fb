"""The summary of a run is what its events give: after every record, after a crash, and whoever wrote last."""

import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.autopilot_grounds import begun, completed, deferred, lay_out, paused, started, tell
from app.graph_walk import random_walk
from app.report_ledgers import FeatureWalk, finished, going
from fairwitness.app.views.ledger import open_ledger
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.db.base import Transaction
from fairwitness.errors import EventsBroken
from fairwitness.ledger.export import exported
from fairwitness.ledger.ledger import MIGRATIONS, Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.run_summary import RunSummary
from fairwitness.ledger.summary import run_summaries, summary_differs, summary_of
from ledger.test_migrations import fixture_of
from support.summaries import assert_summaries

TIME = "2026-02-26T14:30:00Z"


def _tell(ledger: Ledger, type_: str, data: dict[str, Any], run_id: str = "run-1", *, version: int = 1) -> None:
    ledger.record(run_id, lambda record: record.event(Workflow.FORGE, type_, data, timestamp=TIME, version=version))


def _change(ledger: Ledger, sql: str) -> None:
    def change(transaction: Transaction) -> None:
        transaction.run(sql)

    ledger.database.write(change)


@pytest.mark.req("X2", "F5")
@pytest.mark.parametrize("version", range(1, len(MIGRATIONS) + 1))
def test_a_kept_ledger_has_the_summaries_of_its_events_before_and_after_it_is_migrated(
    tmp_path: Path, version: int
) -> None:
    kept = Path(shutil.copy(fixture_of(version), tmp_path / "evidence.db"))
    with closing(Ledger.read_only(kept)) as ledger:
        before = run_summaries(ledger.database, RunSummary)
        plain = summary_of(ledger.database, before[0].run_id, RunSummary).plain()
        assert not summary_differs(ledger.database, before[0].run_id)
    with closing(Ledger.open_file(kept)) as ledger:
        after = run_summaries(ledger.database, RunSummary)
        assert [run.plain() for run in after] == [run.plain() for run in before]
        assert summary_of(ledger.database, before[0].run_id, RunSummary).plain() == plain
        assert not any(summary_differs(ledger.database, run) for run in ledger.runs())


@pytest.mark.req("F5")
@pytest.mark.parametrize("seed", range(8))
def test_the_summary_of_a_forge_run_is_what_its_fold_says(tmp_path: Path, seed: int) -> None:
    walk = random_walk(tmp_path, seed, steps=10 + 9 * seed)
    assert_summaries(walk.ledger)
    walk.close()


@pytest.mark.req("P12")
@pytest.mark.parametrize("run", [finished, going])
def test_the_summary_of_a_feature_run_is_what_its_fold_says(tmp_path: Path, run: type[FeatureWalk]) -> None:
    walk = run(tmp_path)
    assert_summaries(walk.ledger)
    walk.tell("run_resumed", from_step="step-5")
    assert_summaries(walk.ledger)
    walk.close()


@pytest.mark.req("A5")
def test_the_summary_of_an_autopilot_run_is_what_its_fold_says_after_every_event(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top, ("1", "2", "3.1"))
    words = []
    for event in (started("1"), deferred("1"), started("3.1"), paused(), completed("3.1")):
        tell(top, event)
        with closing(open_ledger(top)) as ledger:
            (run,) = assert_summaries(ledger)
            words.append(run.status)
    assert words == ["executing", "executing", "executing", "paused", "paused"]


@pytest.mark.req("X4")
def test_two_writers_that_take_turns_leave_one_summary(ledger: Ledger) -> None:
    other = Ledger(ledger.database)
    _tell(ledger, "run.created", {"request": "a shop"})
    _tell(ledger, "plan.proposed", {"tasks": 2, "refineries": 0})
    for number, writer in enumerate((other, ledger, ledger, other, ledger)):
        node = f"t{number % 2}"
        _tell(writer, "node.changed", {"nodeId": node, "newStatus": "RUNNING" if number < 4 else "MERGED"})
        assert not summary_differs(ledger.database, "run-1")
    (run,) = run_summaries(ledger.database, RunSummary)
    assert (run.seq, run.counted) == (7, {"merged": 1, "failed": 0, "running": 1})
    assert list(summary_of(ledger.database, "run-1", RunSummary).nodes) == ["t0", "t1"]


@pytest.mark.req("X4")
def test_a_record_that_fails_leaves_the_summary_as_it_was(ledger: Ledger) -> None:
    _tell(ledger, "run.created", {"request": "a shop"})

    def fails(record: Record) -> None:
        record.event(Workflow.FORGE, "run.failed", {"reason": "no"}, timestamp=TIME)
        raise ValueError("in the middle")

    with pytest.raises(ValueError, match="in the middle"):
        ledger.record("run-1", fails)
    assert not summary_differs(ledger.database, "run-1")
    _tell(ledger, "run.started", {})
    (run,) = run_summaries(ledger.database, RunSummary)
    assert (run.seq, run.status, run.is_over) == (2, "executing", False)


def test_an_event_that_cannot_be_applied_is_recorded_and_the_summary_says_so(ledger: Ledger) -> None:
    _tell(ledger, "run.created", {"request": "a shop"})
    _tell(ledger, "plan.proposed", {"tasks": "many"})
    _tell(ledger, "run.started", {})
    (run,) = run_summaries(ledger.database, RunSummary)
    assert run.seq == 3
    with pytest.raises(EventsBroken, match=r"event 2, plan\.proposed, is malformed"):
        run.refuse_broken()
    assert not summary_differs(ledger.database, "run-1")


@pytest.mark.req("X2")
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE run_summaries SET data = replace(data, 'executing', 'completed') WHERE part = ''",
        "UPDATE run_summaries SET data = '{}' WHERE part = ''",
        "DELETE FROM run_summaries WHERE part <> ''",
        "DELETE FROM run_summaries",
        "INSERT INTO run_summaries (run_id, part, data) VALUES ('run-1', 'node/x', '{}')",
    ],
)
def test_a_summary_that_was_changed_is_noticed_and_rebuilt(ledger: Ledger, change: str) -> None:
    _tell(ledger, "run.created", {"request": "a shop"})
    _tell(ledger, "run.started", {})
    _tell(ledger, "node.changed", {"nodeId": "t1", "newStatus": "RUNNING"})
    assert not summary_differs(ledger.database, "run-1")
    _change(ledger, change)
    assert summary_differs(ledger.database, "run-1")
    ledger.rebuild_summary("run-1")
    assert not summary_differs(ledger.database, "run-1")


@pytest.mark.req("X2")
def test_a_record_after_a_lost_summary_writes_the_whole_of_it_again(ledger: Ledger) -> None:
    _tell(ledger, "run.created", {"request": "a shop"})
    _tell(ledger, "node.changed", {"nodeId": "t1", "newStatus": "RUNNING"})
    for change in ("DELETE FROM run_summaries", "UPDATE run_summaries SET data = '{}'"):
        _change(ledger, change)
        with pytest.raises(EventsBroken, match="its summary cannot be read"):
            summary_of(ledger.database, "run-1", RunSummary)
        _tell(Ledger(ledger.database), "run.started", {})
        assert not summary_differs(ledger.database, "run-1")


def test_an_export_has_the_summary_of_its_run(ledger: Ledger, tmp_path: Path) -> None:
    _tell(ledger, "run.created", {"request": "a shop"})
    _tell(ledger, "run.created", {"request": "another"}, "run-2")
    (tmp_path / "export.db").write_bytes(exported(ledger.database, "run-1", TIME))
    with closing(Ledger.read_only(tmp_path / "export.db")) as copy:
        assert [run.run_id for run in run_summaries(copy.database, RunSummary)] == ["run-1"]
        assert not summary_differs(copy.database, "run-1")
