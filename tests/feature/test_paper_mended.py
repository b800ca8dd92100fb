"""Runs on paper that once went wrong: each is the smallest script that showed it."""

import pytest

from fairwitness.contracts.common.decisions import Finish, FinishOutcome
from feature.paper_grounds import played
from feature.paper_scripts import SCRIPTS, two_object
from support.paper.script import Ending, How, Rows, Script, error


def _end(script: Script) -> Finish:
    with played(script) as (steps, _):
        last = steps[-1].decision
        assert isinstance(last, Finish)
        return last


@pytest.mark.parametrize(
    "calls",
    [
        {"step-6-1-task-01-1": error(), "step-6-1-task-01-2": error()},
        {"step-6-1-task-04-1": Ending(How.OVER_BUDGET)},
    ],
    ids=["failed", "out-of-budget"],
)
def test_a_run_goes_on_after_it_stopped_for_want_of_a_verifier(calls: dict[str, Ending]) -> None:
    assert _end(Script(calls=calls, resumes=1)).outcome is FinishOutcome.COMMITTED


def test_a_run_whose_commit_failed_can_be_resumed_and_commits() -> None:
    assert _end(SCRIPTS["commit-fails-twice"]).outcome is FinishOutcome.COMMITTED


def test_a_task_without_a_baseline_is_tried_again_when_the_run_is_resumed() -> None:
    assert _end(SCRIPTS["no-baseline"]).outcome is FinishOutcome.COMMITTED


def test_a_fix_that_is_red_on_the_merged_tree_is_dropped() -> None:
    script = Script(calls=two_object("step-7", 1), rows={"task-00:2": Rows(merges=False)})
    with played(script) as (steps, _):
        reasons = [step.decision.reason for step in steps]
    assert any("the fix was dropped" in reason for reason in reasons)
