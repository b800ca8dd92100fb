"""Forge keeps its promise: an unmet criterion, a lost branch and a contradicted claim are stopped before the merge.

Each dishonest agent has an honest twin, its next attempt, which is merged. Whole runs with real git, real checks and a
recorded team; where several faults fit into one run, they share it.
"""

import pytest

from cli.graph_grounds import NEEDS_SANDBOX
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.runs.shared.criteria import NOT_RED
from feature.grounds import Turn, call
from forge.grounds import JOIN, ONE, TWO, Document, Grounds, Node, Run, part, planned, refined, walked, worked

pytestmark = [pytest.mark.timeout(400), NEEDS_SANDBOX]

THREE = Node("task-003")


def shown(node: Node, command: str) -> Document:
    """A walkthrough that names the command for the criterion of a task."""
    evidence = [{"criterion": f"parts/{node.id} is good", "command": command}]
    return walked(f"parts/{node.id}", evidence=evidence)


def insisted(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
    """Somebody who is told what is wrong with an answer, and gives it again."""
    return (*turns, turns[-1])


@pytest.fixture(scope="module")
def unmet(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three workers who claim what is not so at first. The plan says how the first is judged, the workers the rest."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("unmet"), ONE, TWO, THREE)
    plan = planned(ONE, TWO, THREE)
    for task in plan["tasks"][1:]:
        del task["evidence"]
    grounds.plans(plan)
    grounds.does(ONE, worked(part("other")))  # every check passes, and its own part is not there
    grounds.does(ONE, attempt=2)
    grounds.does(TWO, insisted(worked(part("task-002"))), sessions=2)
    grounds.does(TWO, worked(part("task-002"), said=shown(TWO, "sh check.sh parts/task-002")), attempt=2)
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh check.sh parts/first")))
    grounds.does(THREE, worked(part("task-003"), said=shown(THREE, "sh check.sh parts/task-003")), attempt=2)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


def why(run: Run, node: Node) -> str:
    """Why a node was tried again, once."""
    (retried,) = run.events("task.retried", nodeId=node.id)
    return str(retried["reason"])


@pytest.mark.req("F2", "X1")
def test_a_worker_that_claims_an_unmet_criterion_is_not_merged_and_its_honest_twin_is(unmet: Run) -> None:
    assert "ac-1 is unmet: parts/task-001 is good (it fails: exit code 1)" in why(unmet, ONE)
    assert unmet.parts() == {"task-001", "task-002", "task-003"}
    with unmet.context() as context:
        rows = context.log.ledger.observations(unmet.run_id, "criteria")
    assert {(row.key, row.holds) for row in rows} >= {
        ("criteria:task-001:1", False),
        ("criteria:task-001:2", True),
        ("criteria:task-002:2", True),
    }


@pytest.mark.req("F2", "X1")
def test_a_criterion_without_evidence_comes_back_to_the_worker_and_then_fails_the_attempt(unmet: Run) -> None:
    outcome = unmet.outcomes()["task-002-1"]
    assert outcome.status is OutcomeStatus.INVALID_ANSWER
    assert "the worker did not judge it" in "".join(outcome.problems)
    told = unmet.transcript("task-002-1")
    assert "commands may begin with: `sh check.sh`" in told
    assert "invalid_answer" in why(unmet, TWO)


@pytest.mark.req("F2", "X1")
def test_evidence_that_was_green_before_the_change_shows_no_new_behaviour(unmet: Run) -> None:
    assert NOT_RED in why(unmet, THREE)


# --- a refinery that throws work away


NO_CONFLICT_BEFORE = "files were changed that were neither in conflict nor named in `fixes`: parts/task-002"


@pytest.fixture(scope="module")
def dropped(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A refinery that deletes the work of a task: first in silence, then as a declared fix. Its twin joins both."""
    grounds = Grounds.lay_out(tmp_path_factory.mktemp("dropped"), ONE, TWO, JOIN)
    drop = call("run_in_terminal", command="rm parts/task-002")
    grounds.does(JOIN, insisted(refined(drop)), sessions=2)
    grounds.does(JOIN, insisted(refined(drop, fixes=["parts/task-002"])), attempt=2, sessions=2)
    grounds.does(JOIN, attempt=3)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED, run.events("run.failed")
    return run


@pytest.mark.req("F4", "X1")
def test_a_refinery_that_drops_a_branch_is_told_and_fails_and_its_honest_twin_joins_both(dropped: Run) -> None:
    first, second = (dropped.outcomes()[f"refinery-001-{number}"] for number in (1, 2))
    assert {first.status, second.status} == {OutcomeStatus.INVALID_ANSWER}
    assert NO_CONFLICT_BEFORE in first.problems
    assert "the work of task-002 is gone from parts/task-002" in first.problems
    assert second.problems == ("the work of task-002 is gone from parts/task-002",)
    assert [event["nextAttempt"] for event in dropped.events("task.retried", nodeId="refinery-001")] == [2, 3]
    assert dropped.parts() == {"task-001", "task-002"}


@pytest.mark.req("F4", "X1")
def test_the_criteria_of_joined_tasks_are_judged_again_on_the_joined_tree(dropped: Run) -> None:
    with dropped.context() as context:
        row = context.log.ledger.observation(dropped.run_id, "criteria:refinery-001:3")
    assert row is not None
    assert row.holds
    assert [each["check"] for each in row.detail["judged"]] == ["ac-1", "ac-2"]
