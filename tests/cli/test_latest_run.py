"""A command that reads a run takes the latest one if none is named, and says where it looked if there is none."""

import json
import subprocess
from pathlib import Path

import pytest

from app.report_ledgers import RUN as FEATURE
from app.report_ledgers import FeatureWalk
from cli.graph_ledgers import completed, failed, going
from cli.runner import fairwitness
from fairwitness.contracts.common.evidence import Phase
from fairwitness.ledger.ledger import Ledger
from ledger.samples import execution
from support.state import own_state

VERIFIED = "verify-20260226T143000-000001"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A forge run, then a feature run that began later in the day, then a change that was verified."""
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    going(tmp_path, step_s=-1).close()
    walk = FeatureWalk(tmp_path)
    walk.begin()
    walk.close()
    ledger = Ledger.open_file(own_state(tmp_path) / "evidence.db")
    verified = execution("v1").model_copy(update={"run_id": VERIFIED})
    ledger.record(VERIFIED, lambda record: record.executed(verified, phase=Phase.AFTER, check_name="lint", round_=1))
    ledger.close()
    return tmp_path


@pytest.mark.parametrize("command", [("dag", "show"), ("cr", "list"), ("task", "show", "ledger")])
def test_a_command_about_graphs_takes_the_latest_forge_run(repository: Path, command: tuple[str, ...]) -> None:
    done = fairwitness(*command, cwd=repository)
    named = fairwitness(*command, "run-going", cwd=repository)
    assert (done.returncode, done.stdout, done.stderr) == (named.returncode, named.stdout, named.stderr)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["events", "report"])
def test_a_command_about_any_run_takes_the_one_that_status_names_last(repository: Path, command: str) -> None:
    done = fairwitness(command, cwd=repository)
    assert done.returncode == 0, done.stderr
    assert done.stdout == fairwitness(command, FEATURE, cwd=repository).stdout
    assert done.stdout == fairwitness(command, "last", cwd=repository).stdout


def test_a_gate_is_explained_in_the_run_that_was_judged_last(repository: Path) -> None:
    done = fairwitness("gate", "explain", "EG-2", "--json", cwd=repository)
    assert done.returncode == 1, done.stderr
    named = fairwitness("gate", "explain", VERIFIED, "EG-2", "--json", cwd=repository)
    assert json.loads(done.stdout) == json.loads(named.stdout)
    every = fairwitness("gate", "explain", cwd=repository)
    assert every.stdout == fairwitness("ledger", "gates", cwd=repository).stdout
    assert (every.returncode, "EG-2:" in every.stdout) == (1, True)


@pytest.mark.parametrize("gate", ["EG-9", "EG-2:task-99", "verify"])
def test_an_unknown_gate_is_answered_with_the_gates_of_the_run(repository: Path, gate: str) -> None:
    done = fairwitness("gate", "explain", gate, cwd=repository)
    assert done.returncode == 2
    assert f"run {VERIFIED} has no gate '{gate}'" in done.stderr
    known = [line.split()[1] for line in fairwitness("ledger", "gates", cwd=repository).stdout.splitlines()]
    assert len(known) == 2
    assert all(name in done.stderr for name in known)


def test_a_repository_that_only_verifies_has_a_latest_run_too(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    ledger = Ledger.open_file(own_state(tmp_path) / "evidence.db")
    verified = execution("v1").model_copy(update={"run_id": VERIFIED})
    ledger.record(VERIFIED, lambda record: record.executed(verified, phase=Phase.AFTER, check_name="lint", round_=1))
    ledger.close()
    assert VERIFIED in fairwitness("report", cwd=tmp_path).stdout
    done = fairwitness("dag", "show", cwd=tmp_path)
    assert (done.returncode, "there is no forge run" in done.stderr) == (2, True)


def test_evidence_alone_is_the_bundle_of_the_latest_feature_run(repository: Path) -> None:
    done, named = fairwitness("evidence", cwd=repository), fairwitness("evidence", "bundle", FEATURE, cwd=repository)
    assert (done.returncode, done.stdout, done.stderr) == (named.returncode, named.stdout, named.stderr)
    assert "sage: fairwitness evidence" not in done.stderr


def test_knowledge_alone_lists(tmp_path: Path) -> None:
    done = fairwitness("knowledge", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout == fairwitness("knowledge", "list", cwd=tmp_path).stdout
    assert "Usage" not in done.stdout


def test_a_failed_run_that_can_continue_is_found_by_a_bare_resume(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    failed(tmp_path, "run-a").close()
    done = fairwitness("resume", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no run to resume: the latest, run-a, failed and has no attempt left" in done.stderr
    completed(tmp_path, "run-b").close()
    done = fairwitness("resume", cwd=tmp_path)
    assert done.returncode == 2
    assert "the latest, run-b, is completed" in done.stderr


HINT = "FAIRWITNESS_DATABASE_URL"


@pytest.mark.parametrize(
    "command", [("status",), ("inbox",), ("events",), ("dag", "show"), ("resume",), ("ledger", "gates")]
)
def test_a_forgotten_database_setting_is_mentioned_where_runs_are_missing(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    assert HINT not in fairwitness(*command, cwd=tmp_path).stderr, "nothing was ever run here"
    (own_state(tmp_path) / "worktrees").mkdir()
    assert f"{HINT} is not set" in fairwitness(*command, cwd=tmp_path).stderr


def test_an_unknown_run_says_where_it_was_looked_for(repository: Path) -> None:
    done = fairwitness("status", "nonsense", cwd=repository)
    assert done.returncode == 2
    assert f"in {repository}/.fairwitness/evidence.db" in done.stderr
    assert HINT in done.stderr
