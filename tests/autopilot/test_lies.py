"""Agents of a run that lie or leave their bounds: they are found out, and it costs what it should."""

from collections.abc import Callable
from pathlib import Path

import pytest

from autopilot.grounds import Document, Grounds, Run, part
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.autopilot.rating import band_of
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.autopilot.rating import PhaseRating
from feature.grounds import call, git

pytestmark = pytest.mark.timeout(300)

PATIENT = {"no_progress_threshold": 50, "same_error_threshold": 50, "max_total_retries_per_run": 50}
"""A breaker that stays closed."""
Change = Callable[[Document], Document]
MET: Document = {"task_id": "part", "criteria_met": ["The part `first` is a good one -- parts/first:1 -- good"]}


def task(**fields: object) -> Change:
    """A plan whose first task is another one."""

    def changed(plan: Document) -> Document:
        plan["tasks"][0] |= fields
        return plan

    return changed


def card(**fields: object) -> Change:
    """A scorecard whose items are others."""

    def changed(rating: Document) -> Document:
        for item in rating["scorecard"]:
            item |= fields
        return rating

    return changed


def said_of(run: Run, phase: str, kind: str) -> list[Document]:
    """What the events of a kind say about a phase."""
    return [row.data for row in run.rows(kind) if row.phase == phase]


def steps_of(run: Run, phase: str) -> list[tuple[str, bool]]:
    """The steps of a phase, and whether they were good."""
    return [(step, good) for name, step, good in run.steps() if name.rpartition("-")[0] == phase]


def discrepancies(run: Run, node: str) -> dict[str, list[str]]:
    """In what the agents of a task were found wrong at first, by role."""
    rows = [row for row in run.observations("discrepancy") if row.subject == node and row.detail["number"] == 0]
    return {row.detail["by"]: row.detail["found"] for row in rows}


def a_verifier_that_passes_what_fails_costs_a_debug_attempt(run: Run) -> None:
    steps = [("execute", True), ("verify", False), ("judge", True), ("debug", True), ("verify", True)]
    assert steps_of(run, "1")[5:10] == steps
    (failed,) = said_of(run, "1", "step_failed")
    assert failed["error"] == "The part 1-part is a good one: sh check.sh parts/1-part is fail"
    assert failed["category"] == "acceptance_criteria_unmet"
    assert run.state().phases["1"].debug_attempts == 1
    assert run.parts() >= {"1-part", "1-other"}


def a_result_that_is_not_so_is_on_record_and_costs_a_retry(run: Run) -> None:
    found = discrepancies(run, "p2-part")
    assert set(found) == {Role.EXECUTOR.value, Role.MINI_VERIFIER.value}
    for said in found.values():
        assert any("sh check.sh parts/2-part” is said to have ended with exit code 0" in each for each in said)
    assert [each["attempt"] for each in said_of(run, "2", "task_retried")] == [1]
    assert discrepancies(run, "p4-part") == {Role.EXECUTOR.value: [], Role.MINI_VERIFIER.value: []}


def what_is_out_of_scope_is_not_written(run: Run) -> None:
    denied = {name: [each.target for each in outcome.denials] for name, outcome in run.outcomes().items()}
    assert denied["p2-part-1"] == ["check.sh"]
    assert {name for name, found in denied.items() if found} == {
        *("p2-part-1", "verify-3-1-1", "judge-3-1-1", "rate-3-1-1"),
    }
    changed = git(run.top, "diff", "--name-only", "main", run.target).split()
    assert changed == ["parts/1-other", "parts/1-part", "parts/2-part", "parts/4-part"]
    assert git(run.top, "status", "--porcelain", "--untracked-files=no") == ""


def a_plan_that_would_write_what_the_run_is_held_to_is_refused(run: Run) -> None:
    assert [each["error"] for each in said_of(run, "4", "step_failed")] == [
        "part: .planning/REQUIREMENTS.md binds the run and must not be written",
        "part: ** is a pattern and names no file",
    ]
    assert [name for name in run.outcomes() if name.startswith("plan_check-4")] == ["plan_check-4-1-3"]
    assert run.statuses()["4"] == "completed"


def a_score_without_a_decimal_is_no_score(run: Run) -> None:
    assert run.statuses()["1"] == "failed"
    outcomes = run.outcomes()
    for name in ("rate-1-1-1", "rate-1-1-1-try-2"):
        assert outcomes[name].status is OutcomeStatus.INVALID_ANSWER
        assert outcomes[name].problems[0].startswith("alignment_score: expected ")
    (failed,) = said_of(run, "1", "phase_failed")
    assert failed["reason"].startswith("the phase has no valid score: alignment_score: expected ")
    assert run.state().phases["1"].score_history == ()


def a_score_above_its_mean_counts_as_the_mean(run: Run) -> None:
    (row,) = (row for row in run.observations("rating") if row.subject == "2")
    kept = PhaseRating.model_validate(row.detail["document"])
    assert (kept.said.alignment_score, kept.settled.score) == (9.9, 9.3)
    assert kept.settled.discrepancies == ("the score is given as 9.9, and the mean of its scorecard is 9.3",)
    assert [each["alignment_score"] for each in said_of(run, "2", "phase_completed")] == [9.3]


def a_scorecard_that_leaves_out_a_criterion_is_no_score(run: Run) -> None:
    assert run.statuses()["3"] == "failed"
    (failed,) = said_of(run, "3", "phase_failed")
    assert failed["reason"].endswith("the scorecard leaves out: The part 3-two is a good one")
    record = run.state().phases["3"]
    assert record.steps.rate is not None
    assert (record.steps.rate.alignment_score, record.score_history) == (None, ())


def a_command_that_fails_and_a_place_that_is_missing_cost_the_phase(run: Run) -> None:
    (again,) = said_of(run, "4", "replan_attempt")
    assert again["alignment_score"] == 4.9
    (failed,) = said_of(run, "4", "phase_failed")
    assert failed["reason"] == "its score is 6.9 and no replanning is left"
    record = run.state().phases["4"]
    assert (record.status, record.replan_attempts) == (PhaseStatus.FAILED, 1)
    assert "4-part" not in run.parts()


@pytest.mark.req("A2", "A3", "A15")
def test_whoever_lies_or_leaves_its_bounds_is_found_out(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=4, breaker=PATIENT)
    # 1: a plan that is easier than the roadmap, and a verifier who calls it verified
    weak = {"criterion": "The part `first` is a good one", "command": "sh check.sh parts/first"}
    grounds.plays("plan-1-1-1", task(files=["parts/1-other"], criteria=[weak], script="sh check.sh\n"))
    ran = [f"{weak['command']} -> OK"]
    grounds.plays("p1-part-1", {"evidence": [MET | {"commands_run": ran}]}, calls=[part("1-other")])
    grounds.plays(
        "p1-part-1-check-0",
        lambda said: said | {"commands_run": ran, "criteria_results": [said["criteria_results"][0] | weak]},
    )
    # 2: an executor and a check who call a bad part good; the former also tries to weaken the check
    easy = call("create_file", path="check.sh", content="echo OK\n")
    grounds.plays("p2-part-1", calls=[part("2-part", "bad\n"), easy])
    # 3: whoever only looks tries to write, and the rater to look; there is nothing else to be done in this phase
    grounds.commit("parts/3-part", "good\n")
    grounds.plays("verify-3-1-1", calls=[part("3-more")])
    grounds.plays("judge-3-1-1", calls=[call("run_in_terminal", command="cp parts/first parts/3-more")])
    grounds.plays("rate-3-1-1", calls=[call("read_file", path=".planning/phases/3/JUDGE-REPORT.md")])
    # 4: what the run is held to is to be written anew
    grounds.plays("plan-4-1-1", task(files=["parts/4-part", ".planning/REQUIREMENTS.md"]))
    grounds.plays("plan-4-1-2", task(files=["**"]))
    run = grounds.begin("all", "complete")
    assert run.carry() is WatchEnd.COMPLETED
    a_verifier_that_passes_what_fails_costs_a_debug_attempt(run)
    a_result_that_is_not_so_is_on_record_and_costs_a_retry(run)
    what_is_out_of_scope_is_not_written(run)
    a_plan_that_would_write_what_the_run_is_held_to_is_refused(run)


@pytest.mark.req("A4", "A15", "A20")
def test_no_rating_counts_for_more_than_what_it_shows(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(
        tmp_path,
        phases=4,
        tasks={3: ("one", "two")},
        breaker={**PATIENT, "max_replan_attempts_per_phase": 1},
    )
    for there in ("1-part", "2-part", "3-one", "3-two"):  # of these phases nothing is left but to verify and rate them
        grounds.commit(f"parts/{there}", "good\n")
    grounds.plays("rate-1-1-1", {"alignment_score": 9}, insists=True)
    grounds.plays("rate-2-1-1", {"alignment_score": 9.9, "score_band": band_of(9.9).value}, insists=True)
    grounds.plays("rate-3-1-1", lambda rating: rating | {"scorecard": rating["scorecard"][:1]})
    grounds.plays("rate-4-1-1", card(verification_command="sh check.sh parts/nothing"))
    grounds.plays("rate-4-1-2", card(evidence="I have seen it."))
    run = grounds.begin("all", "complete")
    assert run.carry() is WatchEnd.FAILED
    a_score_without_a_decimal_is_no_score(run)
    a_score_above_its_mean_counts_as_the_mean(run)
    a_scorecard_that_leaves_out_a_criterion_is_no_score(run)
    a_command_that_fails_and_a_place_that_is_missing_cost_the_phase(run)
