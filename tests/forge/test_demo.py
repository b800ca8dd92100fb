"""The forge demo as a stranger runs it: twelve nodes that become fourteen, with everything that can go wrong in it."""

import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.report_pages import demo_page
from cli.graph_grounds import NEEDS_SANDBOX, git
from cli.graph_ledgers import fits
from cli.runner import fairwitness
from fairwitness.app.run_records.forge import ForgeRunRecord, open_forge_run
from fairwitness.app.views.detail import resolve_run_at
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.rules.dag import run_counts
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.runs.forge.plan_files import broken_locks
from support import demo_forge as demo
from support.gates import assert_gates_are_explained

pytestmark = [pytest.mark.timeout(900), NEEDS_SANDBOX]

DISPUTE = "the walkthrough says that tests.test_parse pass; tests failed when Fair Witness ran them"
NODES = (*(task.id for task in (*demo.TASKS, *demo.ADDED)), *demo.COLLECTED)


@dataclass(frozen=True, slots=True)
class Played:
    """The demo as it was played."""

    done: "subprocess.CompletedProcess[str]"
    top: Path
    context: ForgeRunRecord
    events: tuple[Envelope, ...]

    @property
    def folder(self) -> Path:
        """Where the run keeps its files."""
        return self.top / self.context.layout.folder

    def told(self, kind: str) -> list[dict[str, Any]]:
        """What the events of a kind say."""
        return [event.data for event in self.events if event.type == kind]

    def json(self, name: str) -> dict[str, Any]:
        """A file of the run."""
        plain: dict[str, Any] = json.loads((self.folder / name).read_text())
        return plain


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The demo, played once by the command that a stranger types."""
    place = tmp_path_factory.mktemp("demo")
    done = fairwitness("demo", "--forge", "--dir", place / "here", "--plain", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    top = place / "here" / "measures"
    with open_forge_run(top, resolve_run_at(top, "last")) as context:
        yield Played(done, top, context, tuple(context.log.ledger.events(context.log.run_id)))


@pytest.mark.width("sample")  # one whole forge run
@pytest.mark.req("F6", "F10")
def test_it_ends_well_and_says_so(played: Played) -> None:
    assert "done      14 of 14 tasks merged" in played.done.stdout
    assert fits(played.done.stdout, is_plain=True)
    state = played.json("run-state.json")
    assert (state["status"], state["currentPhase"]) == ("completed", "completed")
    assert (state["totalTasks"], state["completedTasks"], state["failedTasks"], state["runningTasks"]) == (14, 14, 0, 0)
    assert (state["activeCRs"], state["lastEventSeq"]) == ([], len(played.events))
    assert state["repoUrl"] == played.top.as_uri()


@pytest.mark.req("P7", "F9")
def test_the_log_names_the_failing_test_and_every_gate_can_be_asked(played: Played) -> None:
    (again,) = played.told("task.retried")
    assert again["reason"].startswith("tests unittest (regressed): tests.test_parse."), again
    assert re.search(
        r"task +task-004 +failed +attempt 1, retrying: tests unittest \(regressed\): tests\.", played.done.stdout
    )
    answers = assert_gates_are_explained(played.top)
    assert answers["cr-001"]["answer"] == "open"
    first = fairwitness("gate", "explain", "last", "verify:task-004", cwd=played.top)
    assert "before   blocked at attempt 1: tests unittest (regressed)" in first.stdout


@pytest.mark.req("F6")
def test_at_every_moment_the_counts_are_those_of_the_graph(played: Played) -> None:
    log = played.context.log
    proposal, order, folded = log.proposal(), log.order(), None
    assert proposal is not None
    assert order is not None
    totals: list[int] = []
    for number, event in enumerate(played.events, start=1):
        # a run has a graph once it is proposed, and its files are made from the same
        after = fold_forge((event,), proposal.dag, max_attempts=order.options.max_attempts, onto=folded)
        assert not isinstance(after, Problem), after
        assert {name: getattr(after.run, name) for name in run_counts(after.dag)} == run_counts(after.dag)
        assert after.run.lastEventSeq == number > (0 if folded is None else folded.run.lastEventSeq)
        totals.append(after.run.totalTasks)
        folded = after
    assert list(dict.fromkeys(totals)) == [0, 12, 14]
    assert isinstance(folded, ForgeState)
    assert folded.run.plain() == played.json("run-state.json")
    assert folded.dag.plain() == played.json("dag-status.json")


@pytest.mark.req("F1", "F2", "F3")
def test_the_layout_is_complete_and_every_document_valid(played: Played) -> None:
    attempts = [(event["nodeId"], event["attemptId"]) for event in played.told("task.started")]
    assert Counter(name for name, _ in attempts) == dict.fromkeys(NODES, 1) | {demo.TWICE: 2}
    documents = {
        "dag.json",
        "dag-status.json",
        "run-state.json",
        f"change-requests/{demo.CHANGE_REQUEST}/change-request.md",
        f"change-requests/{demo.CHANGE_REQUEST}/dag-overlay.json",
        *(f"tasks/{task.id}.md" for task in (*demo.TASKS, *demo.ADDED)),
        *(f"{name}/attempt-{attempt}/walkthrough.md" for name, attempt in attempts),
        *(
            f"{event['nodeId']}/attempt-{event['attemptId']}/helpers/{event['dispatch']}.md"
            for event in played.told("helper.started")
        ),
        *(f"{demo.SUMS}/subtasks/subtask-{number:03d}.md" for number in (1, 2)),
    }
    specs = {"specs/units.md", "specs/writing.md", "specs.lock.json", "assumptions.md"}
    found = {path.relative_to(played.folder).as_posix() for path in played.folder.rglob("*") if path.is_file()}
    assert found == documents | specs  # nothing of an interrupted write is left either
    checked = fairwitness("schema", "check", "--strict", "--json", *sorted(documents), cwd=played.folder)
    assert checked.returncode == 0, checked.stdout
    assert len(json.loads(checked.stdout)) == len(documents)


@pytest.mark.req("F3", "F5", "F7")
def test_the_plan_stands_as_it_was_sealed_and_the_graph_grew_beside_it(played: Played) -> None:
    assert len(played.json("dag.json")["nodes"]) == 12
    assert [node.id for node in played.context.log.effective()[1].nodes][-2:] == [task.id for task in demo.ADDED]
    assert len(played.context.log.effective()[1].nodes) == 14
    assert broken_locks(played.context.log, played.context.files, played.context.layout) == ()
    (applied,) = played.told("overlay.applied")
    assert (applied["crId"], len(applied["addedNodes"]), applied["addedEdges"]) == (demo.CHANGE_REQUEST, 2, 1)


@pytest.mark.req("F4", "F9")
def test_a_refinery_settles_a_conflict_asks_for_more_and_the_captain_approves(played: Played) -> None:
    (emitted,) = played.told("cr.emitted")
    assert (emitted["crId"], emitted["emittedBy"]) == (demo.CHANGE_REQUEST, demo.FIRST_REFINERY)
    (approved,) = played.told("cr.approved")
    assert (approved["crId"], approved["actor"]) == (demo.CHANGE_REQUEST, "captain")
    assert "status: applied" in (played.folder / f"change-requests/{demo.CHANGE_REQUEST}/change-request.md").read_text()
    # it was the refinery that settled it, and no attempt was lost by it
    assert played.told("conflict.found") == []
    assert [event["nodeId"] for event in played.told("task.retried")] == [demo.TWICE]
    settled = git(played.top, "show", f"{target(played)}:measure/kinds.py")
    assert "KINDS = (LENGTH, MASS, DURATION)" in settled


@pytest.mark.req("F2", "F10")
def test_one_attempt_is_red_says_that_it_is_green_and_is_made_again(played: Played) -> None:
    (disputed,) = played.told("walkthrough.disputed")
    assert (disputed["nodeId"], disputed["attemptId"]) == (demo.TWICE, 1)
    assert disputed["differences"] == [DISPUTE]
    (retried,) = played.told("task.retried")
    assert (retried["nodeId"], retried["nextAttempt"]) == (demo.TWICE, 2)
    assert [event["nodeId"] for event in played.told("review.low_confidence")] == [demo.MIXED]
    first, second = (played.folder / f"{demo.TWICE}/attempt-{number}/walkthrough.md" for number in (1, 2))
    assert first.read_text() != second.read_text()


@pytest.mark.req("F8")
def test_helpers_and_parts_are_told(played: Played) -> None:
    helpers = Counter((event["nodeId"], event["agent"]) for event in played.told("helper.started"))
    assert helpers == {(demo.SHOW, "worker-1"): 1, (demo.SUMS, "worker-1"): 1, (demo.SUMS, "worker-2"): 1}
    changed = [(event["subtaskId"], event["status"]) for event in played.told("subtask.changed")]
    assert changed == [(f"subtask-{number:03d}", how) for number in (1, 2) for how in ("running", "completed")]
    for number in (1, 2):
        assert "status: completed" in (played.folder / f"{demo.SUMS}/subtasks/subtask-{number:03d}.md").read_text()


@pytest.mark.req("F10")
def test_its_report_says_what_was_merged_and_which_claim_was_wrong(played: Played) -> None:
    source, page = demo_page(played.top)
    header = page.header.split("forge run everyday-measures ")[1]
    assert header.startswith("Completed: 14 of 14 tasks merged")
    assert f"task-004, attempt 1: {DISPUTE}." in header
    assert "A later attempt was verified and merged." in header
    assert "23 of 23 criteria are met. Fair Witness ran the commands itself." in page.text
    assert "<ins>+ def parse(text: str)" in source


def target(played: Played) -> str:
    """The branch that holds everything."""
    order = played.context.log.order()
    assert order is not None
    return order.options.target


@pytest.mark.req("F9")
def test_the_branch_passes_the_tests_of_the_repository_and_the_checkout_is_as_it_was(
    played: Played, tmp_path: Path
) -> None:
    assert git(played.top, "status", "--porcelain") == ""
    assert git(played.top, "rev-parse", "--abbrev-ref", "HEAD") == "main"
    assert len(git(played.top, "worktree", "list").splitlines()) == 1
    assert git(played.top, "branch", "--format=%(refname:short)").splitlines() == [target(played), "main"]
    copy = tmp_path / "copy"
    git(tmp_path, "clone", "-q", "--branch", target(played), str(played.top), str(copy))
    for check in demo.CHECKS:
        done = subprocess.run(check, cwd=copy, capture_output=True, text=True, check=False, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
    shutil.rmtree(copy)


@pytest.mark.req("F10")
def test_resumed_once_more_it_changes_nothing(played: Played) -> None:
    def everything() -> dict[str, bytes]:
        found = {str(path): path.read_bytes() for path in sorted(played.folder.rglob("*")) if path.is_file()}
        return found | {"refs": git(played.top, "for-each-ref").encode()}

    before = everything()
    again = fairwitness("resume", "last", "--plain", cwd=played.top)
    assert again.returncode == 0, again.stderr
    assert "done      14 of 14 tasks merged" in again.stdout
    assert everything() == before
    assert tuple(played.context.log.ledger.events(played.context.log.run_id)) == played.events
