"""What a ledger contains is never taken for a bug of the program: the run and the place are named."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.report_ledgers import FeatureWalk
from fairwitness.app.run_records.feature import order_of
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.errors import EventsBroken
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger

HOSTILE = [{}, {"order": None}, {"order": []}, {"order": {"request": 1}}, {"order": {}, "budget": "x"}]


@pytest.mark.parametrize("detail", HOSTILE)
def test_an_order_that_does_not_fit_is_named_with_its_run(tmp_path: Path, detail: dict[str, object]) -> None:
    walk = FeatureWalk(tmp_path)
    walk.see("order", "order", detail)
    with pytest.raises(EventsBroken, match=rf"run {walk.run_id}: observation order does not fit .*: (order|budget)"):
        order_of(walk.ledger, walk.run_id)
    walk.close()


def test_a_missing_field_of_a_row_is_no_key_error(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.see("a", "whole", {"tree": "x"})
    row = walk.ledger.observation(walk.run_id, "a")
    assert row is not None
    assert row.detail["tree"] == "x"
    with pytest.raises(EventsBroken, match="commit is missing"):
        row.detail["commit"]
    with pytest.raises(EventsBroken, match="observation a"):
        recorded(BudgetTable, row, "tree", "below")
    walk.close()


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, "3", '"x"', "null"])
def test_a_column_that_holds_no_mapping_is_named(tmp_path: Path, text: str) -> None:
    walk = FeatureWalk(tmp_path)
    walk.see("a", "whole", {})
    walk.begin()
    walk.close()
    file = tmp_path / ".fairwitness" / "evidence.db"
    with closing(sqlite3.connect(file)) as connection:
        for (trigger,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f'DROP TRIGGER "{trigger}"')
        for table, column in (("observations", "detail"), ("events", "data")):
            connection.execute(f"UPDATE {table} SET {column} = ?", (text,))
        connection.commit()
    with closing(Ledger.open_file(file)) as ledger:
        with pytest.raises(EventsBroken, match="observation a"):
            ledger.observation(walk.run_id, "a")
        with pytest.raises(EventsBroken, match="event 1"):
            list(ledger.events(walk.run_id))


def test_what_a_row_says_is_a_plain_mapping_for_its_readers(tmp_path: Path) -> None:
    walk = FeatureWalk(tmp_path)
    walk.see("a", "whole", {"tree": "x", "files": [1]})
    row = walk.ledger.observation(walk.run_id, "a")
    assert row is not None
    assert row.detail == {"tree": "x", "files": [1]}
    assert json.loads(json.dumps(row.plain()))["detail"] == row.detail
    walk.close()
