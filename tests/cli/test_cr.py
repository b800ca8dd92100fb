"""`fairwitness cr` lists, shows and decides; it is on record who did, and what it prints does nothing to a terminal."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.graph_walk import Walk, dag_of
from cli.graph_grounds import git, types_of
from cli.graph_ledgers import HOSTILE, fits
from fairwitness.app.assembly.engine import FORGE_FLOW
from fairwitness.app.runs.drive import engine_at
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.documents import ChangeRequest
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.forge.change_requests import emit, extend, request_of
from fairwitness.runs.forge.log import ForgeLog
from support.state import own_state

RUN = "run-2026-02-26-143000"
ADA = "Ada <ada@example.org>"
BODY = "## Description\nIt is missing.\n\n## Impact Assessment\nLittle.\n## Proposed Resolution\nAdd it.\n"
_CALL = """
import sys
from fairwitness.cli.commands.cr import command
from fairwitness.cli.exit_codes import exit_code_of
from fairwitness.errors import FairWitnessError
import click
try:
    sys.exit(int(command.main(sys.argv[1:], prog_name="fairwitness cr", standalone_mode=False) or 0))
except click.UsageError as error:
    print(error.format_message(), file=sys.stderr)
    sys.exit(2)
except FairWitnessError as error:
    print(error.what, error.next_step, file=sys.stderr)
    sys.exit(exit_code_of(error))
"""


def cr(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """What the command prints, and how it leaves."""
    return subprocess.run(
        [sys.executable, "-c", _CALL, *arguments], cwd=cwd, capture_output=True, text=True, check=False
    )


def request(**differs: Any) -> ChangeRequest:
    ordinary: dict[str, Any] = {
        "id": "cr-001",
        "title": "A part is missing",
        "emitted_by": "refinery-01",
        "emitted_at": "2026-02-26T14:30:00Z",
        "status": "pending",
        "reason": "Two parts do not meet.",
        "affected_tasks": ["task-03"],
        "suggested_changes": "Add one between them.",
        "body": BODY,
    }
    return ChangeRequest.model_validate(ordinary | differs)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository with a run that asked for two things."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "config", "user.name", "Ada")
    git(tmp_path, "config", "user.email", "ada@example.org")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    waits: dict[str, tuple[str, ...]] = {"task-01": (), "refinery-01": ("task-01",), "task-03": ("refinery-01",)}
    walk = Walk(tmp_path, dag_of(RUN, waits, refineries=["refinery-01"]))
    walk.tell(happened.ForgeRunStarted())
    emit(ForgeLog(walk.ledger, RUN), "refinery-01", 1, [request(), request(title=HOSTILE, reason=HOSTILE)])
    walk.close()
    return tmp_path


def stands(repo: Path, cr_id: str) -> tuple[str, str | None]:
    """How far a request is, and who decided that."""
    ledger = Ledger.read_only(repo / ".fairwitness" / "evidence.db")
    try:
        found = request_of(ForgeLog(ledger, RUN), cr_id)
        return found.status.value, found.decided_by
    finally:
        ledger.close()


@pytest.mark.req("F4")
def test_requests_are_listed_for_people_and_for_machines(repo: Path) -> None:
    (repo / "src").mkdir()
    told = cr("list", cwd=repo / "src")
    assert told.returncode == 0
    assert told.stdout.splitlines()[0] == f"cr-001  pending   {'refinery-01':<20}  A part is missing"
    assert told.stderr == f"next:  fairwitness cr show cr-001 {RUN}\n"
    assert fits(told.stdout)
    plain = json.loads(cr("list", RUN, "--json", cwd=repo).stdout)
    assert plain["run_id"] == RUN
    assert [each["id"] for each in plain["change_requests"]] == ["cr-001", "cr-002"]
    assert ChangeRequest.model_validate(plain["change_requests"][0]).body == BODY


@pytest.mark.req("F4")
def test_one_is_shown_with_everything_that_is_known_and_harmlessly(repo: Path) -> None:
    told = cr("show", "cr-001", cwd=repo)
    lines = told.stdout.splitlines()
    assert lines[0] == "cr-001  pending  A part is missing"
    assert "because   Two parts do not meet." in lines
    assert "affects   task-03" in lines
    assert "  ## Impact Assessment" in lines
    assert told.stderr == f"next:  fairwitness cr approve cr-001 {RUN}\n"
    hostile = cr("show", "cr-002", "last", cwd=repo)
    assert hostile.returncode == 0
    assert fits(told.stdout)
    assert fits(hostile.stdout)
    plain = json.loads(cr("show", "cr-001", "--json", cwd=repo).stdout)
    assert (plain["change_request"]["status"], plain["overlay"], plain["refused"]) == ("pending", None, [])


@pytest.mark.req("F4")
def test_a_person_approves_and_is_on_record(repo: Path) -> None:
    done = cr("approve", "cr-001", cwd=repo)
    assert (done.returncode, done.stdout) == (0, f"{RUN}: cr-001 is approved\n")
    assert done.stderr == f"next:  fairwitness resume {RUN}\n"
    assert stands(repo, "cr-001") == ("approved", ADA)
    file = repo / ".fairwitness" / "artifacts" / RUN / "change-requests" / "cr-001" / "change-request.md"
    assert f"decided_by: {ADA}" in file.read_text()
    again = cr("approve", "cr-001", RUN, "--json", cwd=repo)
    plain = json.loads(again.stdout)
    assert (plain["change_request"]["decided_by"], plain["is_carried"]) == (ADA, False)
    assert plain["next"] == f"fairwitness resume {RUN}"
    assert types_of(repo, RUN).count("cr.approved") == 1


@pytest.mark.req("F4")
def test_a_person_rejects_with_a_reason(repo: Path) -> None:
    silent = cr("reject", "cr-002", cwd=repo)
    assert (silent.returncode, silent.stdout) == (2, "")
    assert "--reason" in silent.stderr
    assert cr("reject", "cr-002", "--reason", " ", cwd=repo).returncode == 2
    assert stands(repo, "cr-002") == ("pending", None)
    done = cr("reject", "cr-002", RUN, "--reason", "Not now.", cwd=repo)
    assert (done.returncode, done.stdout) == (0, f"{RUN}: cr-002 is rejected\n")
    assert stands(repo, "cr-002") == ("rejected", ADA)
    told = cr("show", "cr-002", cwd=repo)
    assert "reason    Not now." in told.stdout.splitlines()
    assert told.stderr == f"next:  fairwitness status {RUN}\n"
    late = cr("approve", "cr-002", cwd=repo)
    assert (late.returncode, late.stdout) == (2, "")
    assert "cr-002: the request is rejected" in late.stderr


@pytest.mark.req("F4")
def test_whoever_emitted_it_cannot_approve_it(repo: Path) -> None:
    ledger = Ledger.open_file(own_state(repo) / "evidence.db")
    emit(ForgeLog(ledger, RUN), ADA, 1, [request()])
    ledger.close()
    refused = cr("approve", "cr-003", cwd=repo)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{ADA} emitted the request and cannot decide about it" in refused.stderr
    assert stands(repo, "cr-003") == ("pending", None)


@pytest.mark.req("F4", "F5")
def test_what_was_refused_and_what_was_added_is_shown(repo: Path) -> None:
    def answer(*edges: dict[str, str]) -> CaptainReturn:
        overlay = {
            "crId": "cr-001",
            "appliedAt": "2026-02-26T14:30:00Z",
            "addedNodes": [
                {
                    "id": "r-2",
                    "type": "refinery",
                    "agentType": "refinery",
                    "dependencies": ["task-01"],
                    "status": "PENDING",
                }
            ],
            "addedEdges": edges,
        }
        plain = {"specs": [], "tasks": [], "overlay": overlay, "assumptions": [], "open_questions": []}
        return CaptainReturn.model_validate(plain)

    ledger = Ledger.open_file(own_state(repo) / "evidence.db")
    log = ForgeLog(ledger, RUN)
    assert extend(log, "cr-001", answer({"from": "r-2", "to": "nowhere"}), "captain")
    assert extend(log, "cr-001", answer({"from": "r-2", "to": "task-03"}), "captain") == ()
    ledger.close()
    told = cr("show", "cr-001", cwd=repo)
    lines = told.stdout.splitlines()
    assert "added     r-2; task-03 waits for r-2" in lines
    assert "refused   addedEdges[0].to: expected a node of the graph or of this overlay;" in lines
    assert fits(told.stdout)
    assert json.loads(cr("show", "cr-001", "--json", cwd=repo).stdout)["overlay"]["addedNodes"][0]["id"] == "r-2"


@pytest.mark.parametrize("arguments", [("show", "cr-009"), ("approve", "cr-009"), ("list", "run-x"), ("show", "\x1b")])
def test_what_is_not_there_is_said_in_one_sentence(repo: Path, arguments: tuple[str, ...]) -> None:
    done = cr(*arguments, cwd=repo)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().isprintable()


def test_a_run_that_asked_for_nothing_says_so(tmp_path: Path) -> None:
    Walk(tmp_path, dag_of("run-still", {"x": ()})).close()
    told = cr("list", cwd=tmp_path)
    assert (told.returncode, told.stdout) == (0, "No change requests in run-still.\n")
    assert told.stderr == "next:  fairwitness status run-still\n"


@pytest.mark.req("F4")
@pytest.mark.timeout(240)
def test_whoever_carries_the_run_hears_of_it(repo: Path) -> None:
    async def given() -> None:
        async with engine_at(repo, worker=False) as engine:
            await engine.submit(RUN, FORGE_FLOW, {"run_id": RUN})

    async def is_answered() -> bool:
        async with engine_at(repo, worker=False) as engine:
            return not await engine.answer(RUN, "cr-001", "another")  # only the first one counts

    asyncio.run(given())
    assert cr("approve", "cr-001", cwd=repo).returncode == 0
    assert asyncio.run(is_answered())
