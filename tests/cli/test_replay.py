"""`fairwitness replay`: one line for each decision, and exit code 6 for a run that would go another way now."""

import json
from pathlib import Path

import pytest

from cli.runner import fairwitness
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.events import FeatureStepStarted
from fairwitness.ledger.export import exported
from fairwitness.runs.feature.context import FeatureContext
from feature.paper_grounds import begun, played
from support.paper.run import RUN
from support.paper.script import Script, worries
from support.state import own_state

_SHORT = Script(calls={"step-0-1-intake-1": worries(Severity.BLOCKER)})
_LINES = """\
   1  advance    the run begins
   2  halt       a reported blocker is final: the request cannot be met in its current form
"""


def _lay(context: FeatureContext, file: Path) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(exported(context.ledger.database, context.run_id, context.now()))
    return file


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A folder whose ledger holds one run that ended early."""
    with played(_SHORT) as (_, context):
        _lay(context, own_state(tmp_path) / "evidence.db")
    return tmp_path


@pytest.mark.req("P14")
def test_a_run_that_would_go_the_same_way_is_told_line_by_line(repository: Path) -> None:
    done = fairwitness("replay", cwd=repository)
    assert (done.returncode, done.stdout) == (0, _LINES)
    assert done.stderr == f"2 decisions of {RUN}, all as they were taken\n"


def test_an_exported_ledger_needs_no_repository(repository: Path, tmp_path: Path) -> None:
    file = tmp_path / "elsewhere.db"
    (repository / ".fairwitness" / "evidence.db").rename(file)
    done = fairwitness("replay", "--file", file, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, _LINES)


def test_the_decisions_are_told_as_json(repository: Path) -> None:
    done = fairwitness("replay", RUN, "--json", cwd=repository)
    assert done.returncode == 0
    assert [(each["number"], each["step"], each["kind"], each["flips"]) for each in json.loads(done.stdout)] == [
        (1, None, "advance", []),
        (2, "step-0", "halt", []),
    ]


@pytest.mark.req("P14")
def test_a_run_that_is_not_as_its_decisions_say_cannot_be_trusted(tmp_path: Path) -> None:
    with played(_SHORT) as (_, context):
        context.write_event(FeatureStepStarted(step="step-9"))
        _lay(context, own_state(tmp_path) / "evidence.db")
    done = fairwitness("replay", "last", cwd=tmp_path)
    assert done.returncode == 6
    told = done.stdout.splitlines()
    assert told[2] == "      FLIPPED at step-0"
    assert told[3].startswith("      stood:  halt: a reported blocker")
    assert told[5].startswith("      events: [")
    assert "1 of 2 decisions would not be taken so now: 2\n" in done.stderr


def test_a_run_without_decisions_cannot_be_replayed(tmp_path: Path) -> None:
    with begun(Script()) as context:
        _lay(context, own_state(tmp_path) / "evidence.db")
    done = fairwitness("replay", "last", cwd=tmp_path)
    assert done.returncode == 2
    assert "has made no decision yet" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(("2026-01-01T00:00:00Z",), "there is no run"), (("--file", "none.db"), "there is no file")],
)
def test_what_cannot_be_meant_is_refused(repository: Path, arguments: tuple[str, ...], told: str) -> None:
    done = fairwitness("replay", *arguments, cwd=repository)
    assert done.returncode == 2
    assert told in done.stderr
