"""A run that an older version began is continued by this one: its databases are brought up to date in mid-run."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from autopilot.grounds import Grounds
from autopilot.remains import assert_archived
from cli.runner import fairwitness
from dag.kills import KILLED
from fairwitness.cli.exit_codes import ExitCode
from fairwitness.db.migrations import version_of
from fairwitness.db.sqlite import SqliteDatabase
from fairwitness.kit.user_state import user_state
from fairwitness.ledger.ledger import MIGRATIONS

pytestmark = [pytest.mark.timeout(600), pytest.mark.req("P16", "X2"), pytest.mark.width("full")]

ADDED = {2: ("run_summaries",), 3: ("anchors",), 4: ()}
"""The tables that a migration of the ledger added."""


def set_back(top: Path, version: int) -> None:
    """Give both databases the shape that an older version wrote, and this machine no anchors."""
    state = top / ".fairwitness"
    with closing(sqlite3.connect(state / "evidence.db")) as ledger, ledger:
        for number in range(version + 1, len(MIGRATIONS) + 1):
            for table in ADDED[number]:
                ledger.execute(f"DROP TABLE {table}")
        ledger.execute("DELETE FROM migrations WHERE number > ?", (version,))
    with closing(sqlite3.connect(state / "engine.db")) as engine, engine:
        for column in ("beat", "beats"):
            engine.execute(f"ALTER TABLE engine_body DROP COLUMN {column}")
    for file in (*(user_state() / "heads").glob("*"), user_state() / "ledgers.jsonl"):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("version", [1, 2])
def test_a_run_of_an_older_version_is_continued_in_the_middle(tmp_path: Path, version: int) -> None:
    run = Grounds.lay_out(tmp_path).begin()
    code = fairwitness("resume", run.run_id, "--plain", cwd=run.top, FAIRWITNESS_KILL_AT="dispatch.finished#3")
    assert code.returncode == KILLED
    for ref in ("heads", "places"):
        refs = run.top / ".git" / "refs" / "fairwitness" / ref
        for path in refs.rglob("*") if refs.exists() else ():
            if path.is_file():
                path.unlink()
    set_back(run.top, version)
    seen = fairwitness("status", run.run_id, cwd=run.top)
    assert seen.returncode == ExitCode.REACHED, seen.stderr
    done = fairwitness("resume", run.run_id, "--plain", cwd=run.top)
    assert done.returncode == ExitCode.REACHED, done.stdout + done.stderr
    assert_archived(run.top, run.run_id)
    with closing(SqliteDatabase(run.top / ".fairwitness" / "evidence.db", read_only=True)) as database:
        assert version_of(database) == len(MIGRATIONS)
    verified = fairwitness("ledger", "verify", cwd=run.top)
    assert verified.returncode == ExitCode.REACHED, verified.stdout + verified.stderr
    assert (run.top / ".fairwitness" / f"evidence.db.v{version}.backup").is_file()


def test_a_run_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    run = Grounds.lay_out(tmp_path).begin()
    file = run.top / ".fairwitness" / "evidence.db"
    with closing(sqlite3.connect(file)) as ledger, ledger:
        columns = [row[1] for row in ledger.execute("PRAGMA table_info(migrations)")]
        values = [99 if name == "number" else "x" for name in columns]
        ledger.execute(f"INSERT INTO migrations VALUES ({', '.join('?' for _ in columns)})", values)
    before = file.read_bytes()
    for words in (("status",), ("resume", run.run_id), ("ledger", "verify"), ("report", run.run_id)):
        said = fairwitness(*words, cwd=run.top)
        assert said.returncode == ExitCode.NOT_READY, (words, said.stdout, said.stderr)
        assert "newer" in said.stderr, said.stderr
    assert file.read_bytes() == before
