"""Every gate that a log names can be asked: without rows, of a person, of a phase, and with its earlier answers."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.autopilot_grounds import RUN as PILOT
from app.autopilot_grounds import begun, completed, deferred, lay_out, started
from app.autopilot_grounds import failed as phase_failed
from app.autopilot_grounds import tell as tell_autopilot
from app.report_ledgers import FeatureWalk, going
from cli.runner import fairwitness
from fairwitness.app.views.gates import GateView, one_gate, run_gates
from fairwitness.contracts.common.decisions import Replan
from fairwitness.contracts.common.evidence import CheckRow, EvidenceQuery, Observation, Tally
from fairwitness.contracts.common.gates import Blocked, Gate, Open
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import CategoryVerdict
from fairwitness.errors import EventsBroken, UsageError
from fairwitness.rules.gates import task_gates
from fairwitness.runs.feature.decisions import DECISION
from rules.build import failed, row, task
from support.gates import assert_gates_are_explained

TEST = "tests.test_receipt.Cash.test_a_receipt (AssertionError: 1 != 2)"


def asked(run_id: str, name: str, *rows: CheckRow) -> Tally:
    """The rows of a task as its run asks for them."""
    return Tally(query=EvidenceQuery(sql="SELECT 1", values=(run_id, name, "after", 1)), rows=rows)


def decide(walk: FeatureWalk, number: int, *rows: CheckRow, **differs: Any) -> None:
    """Record a decision that evaluated both gates of `task-09`, and the events that name them."""
    tallies = {"baseline": asked(walk.run_id, "task-09"), "after": asked(walk.run_id, "task-09", *rows)}
    answers = task_gates(task("task-09", **tallies, **differs), Policy())
    decision = Replan(reason="tasks lack evidence", gates=answers, iteration=2, tasks=("task-09",))
    seen = Observation(
        run_id=walk.run_id,
        task_id=None,
        key=f"{DECISION}:{number}",
        kind=DECISION,
        subject=decision.kind,
        holds=True,
        detail={"decision": decision.plain()},
        tree=None,
        observed_at="2026-02-26T14:30:00Z",
    )
    walk.ledger.record(walk.run_id, lambda record: record.observation(seen))
    for answer in answers:
        missing = list(answer.missing) if answer.answer == "blocked" else []
        walk.tell(
            "gate_evaluated",
            gate=f"{answer.gate.value}.task-09",
            open=not missing,
            missing=missing,
            count=answer.count,
            threshold=answer.threshold,
        )


@pytest.mark.req("P7")
def test_the_gates_of_a_task_without_a_single_row_are_explained(tmp_path: Path) -> None:
    """Its implementer failed: nothing was run, and just this is what the gates that decided say."""
    walk = going(tmp_path)
    decide(walk, 1)
    with closing(walk.ledger) as ledger:
        views = run_gates(ledger, walk.run_id)
        for name in ("EG-1:task-09", "EG-1.task-09", "EG-2.task-09"):
            view = one_gate(walk.run_id, views, name)
            assert view.answer.answer == "blocked"
            assert view.task == "task-09"
    answers = assert_gates_are_explained(tmp_path)
    assert answers["EG-1.task-09"]["because"] == "nothing was run before the change"


@pytest.mark.req("P7")
def test_a_gate_is_found_by_every_name_that_a_screen_shows() -> None:
    query = EvidenceQuery(sql="SELECT 1", values=())
    opened = {gate: Open(gate=gate, evidence=(), count=1, threshold=1, query=query) for gate in Gate}
    shut = Blocked(
        gate=Gate.CHANGE_HOLDS, missing=("tests",), because="tests failed", count=0, threshold=1, query=query
    )
    views = (
        GateView("task-01", 1, opened[Gate.CHANGE_HOLDS]),
        GateView("task-01", 0, opened[Gate.BASELINE_EXISTS]),
        GateView("task-01", 1, opened[Gate.VERIFICATION_SUFFICIENT]),
        GateView("task-02", 1, shut),
        GateView("task-02", 0, opened[Gate.BASELINE_EXISTS]),
        GateView("till-design-review", 1, opened[Gate.NO_BLOCKER]),
    )
    for pasted, name in {
        "task-01": "EG-2:task-01",
        "verify:task-01": "verify:task-01",
        "task-02": "verify:task-02",
        "EG-2:task-02": "verify:task-02",
        "EG-2.task-02": "verify:task-02",
        "design-review": "EG-4:till-design-review",
        "EG-4:design-review": "EG-4:till-design-review",
        "EG-4": "EG-4:till-design-review",
    }.items():
        assert one_gate("run-1", views, pasted).name == name, pasted
    with pytest.raises(UsageError, match="'EG-1' could be EG-1:task-01 or EG-1:task-02"):
        one_gate("run-1", views, "EG-1")


@pytest.mark.req("P7")
def test_a_gate_that_opened_later_tells_why_it_was_blocked_before(tmp_path: Path) -> None:
    walk = going(tmp_path)
    decide(walk, 1, failed("tests"), failing=(("tests", TEST),))
    decide(walk, 2, failed("tests"), failing=(("tests", TEST),))
    decide(walk, 3, *(row(check) for check in ("syntax-check", "lint", "tests")))
    walk.close()
    done = fairwitness("gate", "explain", walk.run_id, "EG-2:task-09", cwd=tmp_path)
    assert done.stdout.startswith("EG-2:task-09 is OPEN: 3 of 2\n")
    before = [line for line in done.stdout.splitlines() if line.startswith("before")]
    assert len(before) == 1, "the same answer twice is told once"
    assert f"blocked at decision 1: tests (failed): {TEST}" in before[0]


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        pytest.param(("step-7",), 1, id="on the light path"),
        pytest.param(("step-7", "left"), 1, id="reviewed before it left the light path"),
        pytest.param(("left", "step-7"), 3, id="reviewed after it left the light path"),
        pytest.param(("broken", "step-7"), 3, id="events that cannot be read"),
    ],
)
def test_a_review_is_explained_by_the_path_on_which_it_was_made(
    tmp_path: Path, events: tuple[str, ...], wanted: int
) -> None:
    walk = FeatureWalk(tmp_path)
    walk.begin(path="light")
    for event in events:
        if event == "left":
            walk.tell("path_changed", path="full", reason="🔴 src/auth.py")
        elif event == "broken":
            walk.tell("path_changed", path="sideways")
        else:
            walk.tell("step_started", step=event)
    walk.review("pragmatic-verifier", CategoryVerdict.APPROVE)
    with closing(walk.ledger) as ledger:
        answers = {view.answer.gate: view.answer for view in run_gates(ledger, walk.run_id)}
    assert answers[Gate.REVIEWERS_SUBMITTED].threshold == wanted
    assert isinstance(answers[Gate.REVIEWERS_SUBMITTED], Open) == (wanted == 1)


@pytest.mark.parametrize("kind", ["approval_requested", "approval_answered"])
@pytest.mark.req("P7")
def test_an_event_without_the_fields_of_a_gate_is_named(tmp_path: Path, kind: str) -> None:
    walk = going(tmp_path)
    walk.tell(kind, x={"y": [1, None]})
    with closing(walk.ledger) as ledger, pytest.raises(EventsBroken, match=rf"event \d+ .*{kind}"):
        run_gates(ledger, walk.run_id)


@pytest.mark.req("P7")
def test_an_approval_is_explained_by_its_name_in_the_log(tmp_path: Path) -> None:
    walk = going(tmp_path)
    walk.tell("approval_requested", gate_id="gate-post-planning", options=["approve", "revise", "abort"])
    with closing(walk.ledger) as ledger:
        view = one_gate(walk.run_id, run_gates(ledger, walk.run_id), "gate-post-planning")
        assert (view.name, view.answer.answer) == ("approval:gate-post-planning", "blocked")
        for option, answer in (("revise", "blocked"), ("approve", "open")):
            walk.tell(
                "approval_answered",
                gate_id="gate-post-planning",
                selected_option=option,
                auto_selected=False,
                actor="Ada",
            )
            view = one_gate(walk.run_id, run_gates(ledger, walk.run_id), "approval:gate-post-planning")
            assert view.answer.answer == answer
    assert_gates_are_explained(tmp_path)


@pytest.mark.req("P7")
def test_the_phases_of_an_autopilot_run_are_gates(tmp_path: Path) -> None:
    top = lay_out(tmp_path / "shop")
    begun(top, ("1", "2", "3"))
    tell_autopilot(top, started("1"), completed("1"), started("2"), phase_failed("2"), started("3"), deferred("3"))
    answers = assert_gates_are_explained(top)
    assert {name: answer["answer"] for name, answer in answers.items()} == {
        "phase:1": "open",
        "phase:2": "blocked",
        "phase:3": "blocked",
    }
    waits = fairwitness("gate", "explain", PILOT, "verdict.3", cwd=top)
    assert waits.returncode == 1
    assert "missing  an answer of a person" in waits.stdout


def test_a_gate_that_no_run_has_is_refused_with_those_it_has(tmp_path: Path) -> None:
    walk = going(tmp_path)
    decide(walk, 1)
    with closing(walk.ledger) as ledger:
        views = run_gates(ledger, walk.run_id)
        with pytest.raises(UsageError, match="has no gate 'EG-9'") as refused:
            one_gate(walk.run_id, views, "EG-9")
        assert "EG-1:task-09, EG-2:task-09" in (refused.value.next_step or "")
