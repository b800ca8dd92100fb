"""The ledger's commands: intact or tampered, open or blocked, each with its exit code and what is behind it."""

import json
import signal
import sqlite3
import subprocess
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from cli.runner import FAIRWITNESS, fairwitness
from fairwitness.contracts.common.evidence import Dispatch, Phase
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Severity, Workflow
from fairwitness.contracts.feature.review import Category, Perspective
from fairwitness.git.ledger_heads import kept_heads
from fairwitness.kit.clock import spell, system_clock
from fairwitness.ledger.export import exported
from fairwitness.ledger.ledger import MIGRATIONS, Ledger
from fairwitness.ledger.record import Record
from fairwitness.ledger.summary import KNOWN_VERSION
from fairwitness.runs.feature.bundle import record_head
from ledger.samples import RUN, TASK, claim, execution, fill_all
from support.state import own_state


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one run: a baseline, two passed checks, three reviews of which one wants a revision."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    ledger = Ledger.open_file(own_state(tmp_path) / "evidence.db")
    fill_all(ledger)

    def write(record: Record) -> None:
        record.executed(execution("b1"), phase=Phase.BASELINE, check_name="baseline-tests", round_=0)
        record.executed(execution("a2"), phase=Phase.AFTER, check_name="lint", round_=1)
        for perspective in Perspective:
            wants = CategoryVerdict.NEEDS_REVISION if perspective is Perspective.PRAGMATIC else CategoryVerdict.APPROVE
            said = claim(f"r-{perspective}", instance=perspective.value)
            verdicts = {f"review-code-{category}": (wants, Severity.MAJOR) for category in Category}
            record.reviewed(said, verdicts=verdicts, round_=1, summary="looked")

    ledger.record(RUN, write)
    record_head(ledger, tmp_path, RUN, Workflow.FEATURE, timestamp=spell(system_clock()))
    export = tmp_path / "docs" / "feature" / "login"
    export.mkdir(parents=True)
    (export / "verification-ledger.db").write_bytes(exported(ledger.database, RUN, spell(system_clock())))
    ledger.close()
    return tmp_path


def _tamper(file: Path, *statements: str) -> None:
    with sqlite3.connect(file) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
    connection.close()


@pytest.mark.req("X2")
def test_an_intact_ledger_and_its_export_verify(repository: Path) -> None:
    done = fairwitness("ledger", "verify", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "2 runs checked, all as written\n")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["intact", "intact", "head"]
    file = repository / "docs" / "feature" / "login" / "verification-ledger.db"
    assert fairwitness("ledger", "verify", file, cwd=repository).returncode == 0


@pytest.mark.req("X2")
def test_an_edited_row_is_named_and_leaves_six(repository: Path) -> None:
    _tamper(repository / ".fairwitness" / "evidence.db", "UPDATE executions SET exit_code = 1 WHERE id = 2")
    done = fairwitness("ledger", "verify", cwd=repository)
    assert done.returncode == 6
    assert f"run {RUN}: executions 2 edited" in done.stdout
    reports = json.loads(fairwitness("ledger", "verify", "--json", cwd=repository).stdout)
    assert [len(report["findings"]) for report in reports] == [1, 0]


@pytest.mark.req("X2")
def test_a_summary_that_differs_is_rebuilt_in_the_ledger_and_told_about_another_file(repository: Path) -> None:
    database = repository / ".fairwitness" / "evidence.db"
    export = repository / "docs" / "feature" / "login" / "verification-ledger.db"
    for file in (database, export):
        _tamper(file, "UPDATE run_summaries SET data = replace(data, 'head_recorded', 'run_finished')")
    before = export.read_bytes()
    told = fairwitness("ledger", "verify", export, cwd=repository)
    assert told.returncode == 6
    assert "its summary differs from its events" in told.stdout
    done = fairwitness("ledger", "verify", "--json", cwd=repository)
    reports = json.loads(done.stdout)
    assert [(report["rebuilt"], len(report["findings"])) for report in reports] == [(True, 0), (False, 1)]
    assert export.read_bytes() == before
    export.unlink()
    again = fairwitness("ledger", "verify", cwd=repository)
    assert (again.returncode, "rebuilt" in again.stdout) == (0, False)
    _tamper(database, "UPDATE run_summaries SET data = '{}'")
    shown = fairwitness("status", cwd=repository)
    assert shown.returncode == 6
    assert "fairwitness ledger verify" in shown.stderr
    mended = fairwitness("ledger", "verify", cwd=repository)
    assert mended.returncode == 0
    assert "its summary differed from its events and was rebuilt" in mended.stdout
    assert fairwitness("status", cwd=repository).returncode == 0


@pytest.mark.req("X2")
def test_a_cut_or_vanished_ledger_shows_against_the_git_ref(repository: Path) -> None:
    ((_, head),) = kept_heads(repository).items()
    database = repository / ".fairwitness" / "evidence.db"
    _tamper(database, f"DELETE FROM events WHERE seq = {head.links - 2}", f"DELETE FROM chain WHERE seq = {head.links}")
    done = fairwitness("ledger", "verify", cwd=repository)
    assert done.returncode == 6
    assert f"chain {head.links} truncated" in done.stdout
    for name in ("evidence.db", "evidence.db-wal", "evidence.db-shm"):
        (repository / ".fairwitness" / name).unlink(missing_ok=True)
    Ledger.open_file(database).close()
    done = fairwitness("ledger", "verify", cwd=repository)
    assert done.returncode == 6
    assert "git keeps its head, the ledger nothing" in done.stdout
    assert "the ledger holds no such link" in done.stdout


@pytest.mark.req("P9")
def test_gates_are_shown_with_what_is_missing(repository: Path) -> None:
    done = fairwitness("ledger", "gates", "last", cwd=repository)
    assert done.returncode == 1
    assert done.stdout == snapshot("""\
OPEN     EG-1:task-03            1 of 1
BLOCKED  EG-2:task-03            2 of 3  missing: readiness-secrets (not run), 1 more passing check
OPEN     EG-3:login-code-review  3 of 3
OPEN     EG-4:login-code-review  0 of 0
OPEN     EG-5:login-code-review  3 of 3
OPEN     EG-6:login-code-review  2 of 2
""")
    assert fairwitness("ledger", "gates", RUN, "--size", "Standard", cwd=repository).returncode == 0


@pytest.mark.req("P9")
def test_a_gate_explains_itself_with_query_values_and_rows(repository: Path) -> None:
    done = fairwitness("gate", "explain", RUN, "EG-6", cwd=repository)
    assert done.returncode == 0
    assert done.stdout == snapshot("""\
EG-6:login-code-review is OPEN: 2 of 2
evidence row 4, row 5, row 6, row 7, row 8, row 9
asked
SELECT c.id, c.check_name, c.phase, c.round, c.passed, c.verdict, c.severity, c.instance,
       s.provenance, e.assessment, COALESCE(e.tree, o.tree), e.sandbox
FROM anvil_checks c
JOIN check_sources s ON s.check_id = c.id
LEFT JOIN executions e ON e.id = s.execution_id
LEFT JOIN observations o ON o.id = s.observation_id
WHERE c.run_id = ? AND c.task_id = ? AND c.phase = ? AND c.round = ? ORDER BY c.id
with     '2026-02-26T14:30:00Z', 'login-code-review', 'review', 1
""")
    plain = json.loads(fairwitness("gate", "explain", RUN, f"EG-2:{TASK}", "--json", cwd=repository).stdout)
    assert (plain["answer"], plain["threshold"], plain["query"]["values"]) == ("blocked", 3, [RUN, TASK, "after", 1])


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gate", "explain", RUN, "EG-9"), 2, f"run {RUN} has no gate 'EG-9'"),
        (("gate", "explain", "nobody", "EG-1"), 2, "the ledger has no run 'nobody'"),
        (("gate", "explain", RUN, "EG-1:task-99"), 2, "the run has no gate 'EG-1:task-99' yet"),
        (("ledger", "query", "songs"), 2, "there is no query called 'songs'"),
        (("ledger", "query", "timing"), 2, "the query timing wants a run"),
        (("ledger", "verify", "missing.db"), 3, "there is no database missing.db"),
        (("events", RUN, "--follow", "--json"), 2, "use --jsonl"),
    ],
)
def test_a_wrong_question_gets_one_sentence(
    repository: Path, arguments: tuple[str, ...], code: int, words: str
) -> None:
    done = fairwitness(*arguments, cwd=repository)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("ledger", "verify"), ("ledger", "gates", "last"), ("events", "last")])
def test_a_repository_without_a_ledger_is_told_so(tmp_path: Path, command: tuple[str, ...]) -> None:
    done = fairwitness(*command, cwd=tmp_path)
    assert done.returncode == 3
    assert done.stderr.startswith("fairwitness: there is no ledger in")
    assert list(tmp_path.iterdir()) == []


def test_a_corrupt_foreign_or_newer_ledger_is_refused_and_left_alone(repository: Path) -> None:
    text = repository / "text.db"
    text.write_bytes(b"no database, but long enough to look at " * 100)
    foreign = repository / "foreign.db"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title)")
    connection.close()
    newer = repository / "newer.db"
    newer.write_bytes((repository / "docs" / "feature" / "login" / "verification-ledger.db").read_bytes())
    _tamper(newer, "INSERT INTO migrations VALUES (99, 'later', 'now')")
    for file, words in ((text, "not a database"), (foreign, "tables of something else"), (newer, "newer Fair Witness")):
        before = file.read_bytes()
        done = fairwitness("ledger", "verify", file, cwd=repository)
        assert (done.returncode, len(done.stderr.splitlines())) == (3, 2), done.stderr
        assert words in done.stderr
        assert file.read_bytes() == before


@pytest.mark.req("P13")
def test_queries_by_name_as_table_json_and_sql(repository: Path) -> None:
    assert "slowest-steps" in fairwitness("ledger", "query", "--list", cwd=repository).stdout
    done = fairwitness("ledger", "query", "slowest-steps", "last", cwd=repository)
    assert (done.returncode, done.stdout) == (0, "step    total_s\nstep-3  140.0\nstep-1  20.0\n")
    rows = json.loads(fairwitness("ledger", "query", "retries", RUN, "--json", cwd=repository).stdout)
    assert rows == [{"agent": "designer", "instance": None, "retry_count": 1}]
    assert fairwitness("ledger", "query", "retries", "--sql", cwd=repository).stdout.startswith(
        "SELECT agent, instance"
    )
    names = [
        row["name"] for row in json.loads(fairwitness("ledger", "query", "--list", "--json", cwd=repository).stdout)
    ]
    assert "instruction-history" in names


def test_a_call_during_which_the_clock_was_set_back_took_no_time(repository: Path) -> None:
    moments = {"started_at": "2026-02-26T14:30:00Z", "completed_at": "2026-02-26T14:29:00Z"}
    plain = {
        "run_id": RUN,
        "step": "step-9",
        "agent": "late",
        "instance": None,
        "status": "DONE",
        "dispatch_count": 1,
        "retry_count": 0,
    }
    ledger = Ledger.open_file(own_state(repository) / "evidence.db")
    ledger.record(RUN, lambda record: record.dispatch(Dispatch.model_validate(plain | moments)))
    ledger.close()
    rows = json.loads(fairwitness("ledger", "query", "timing", RUN, "--json", cwd=repository).stdout)
    assert [row["duration_s"] for row in rows if row["agent"] == "late"] == [0.0]


@pytest.mark.req("A5")
def test_events_are_shown_and_followed(repository: Path) -> None:
    shown = json.loads(fairwitness("events", RUN, "--json", cwd=repository).stdout)
    assert [event["type"] for event in shown] == ["head_recorded"]
    assert fairwitness("events", RUN, "--after", "1", cwd=repository).stdout == ""
    assert "head_recorded" in fairwitness("events", "last", cwd=repository).stdout
    following = subprocess.Popen(
        [FAIRWITNESS, "events", RUN, "--follow", "--jsonl"],
        cwd=repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert following.stdout is not None
    assert json.loads(following.stdout.readline())["seq"] == 1
    ledger = Ledger.open_file(own_state(repository) / "evidence.db")
    ledger.record(RUN, lambda record: record.event(Workflow.FEATURE, "x", {}, timestamp="2026-02-26T14:30:00Z"))
    ledger.close()
    assert json.loads(following.stdout.readline())["seq"] == 2
    following.send_signal(signal.SIGINT)
    _, said = following.communicate(timeout=20)
    assert (following.returncode, said.strip()) == (130, "fairwitness: interrupted")


def test_status_lists_the_runs(repository: Path) -> None:
    done = fairwitness("status", cwd=repository)
    assert done.returncode == 0
    assert done.stdout.startswith(f"{RUN}  feature    head_recorded  ")
    (run,) = json.loads(fairwitness("status", "--json", cwd=repository).stdout)["runs"]
    assert (run["run_id"], run["events"]) == (RUN, 1)


def test_a_glance_knows_as_many_versions_as_the_ledger() -> None:
    assert len(MIGRATIONS) == KNOWN_VERSION
