"""Ways through a phase other than the straight one: what is skipped, refused, repeated, split, taken back or halted."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from autopilot.grounds import Grounds
from autopilot.loops import (
    PATIENT,
    UNSURE,
    add,
    assert_emits,
    by_a_person,
    insists,
    only,
    refused,
    scored,
    split,
    standing,
    tree_of,
    with_files,
)
from autopilot.runs import Run
from autopilot.sessions import Document
from autopilot.team import part
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.vocabulary import FailureCategory
from fairwitness.kit.clock import system_clock
from feature.grounds import git

pytestmark = pytest.mark.timeout(300)

SIX = ("a", "b", "c", "d", "e", "f")


def steps_of(run: Run, name: str) -> list[str]:
    """The steps of a pass, in order."""
    return [step for pass_, step, _ in run.steps() if pass_ == name]


@pytest.mark.req("A3", "A6")
def test_what_is_there_by_more_than_four_fifths_is_only_verified_and_the_rest_debugged(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, tasks={1: SIX, 2: SIX[:5]}, breaker=PATIENT)
    add(grounds, *(f"1-{name}" for name in SIX[:5]), *(f"2-{name}" for name in SIX[:4]))
    grounds.plays("p1-debug-1-debug-1", calls=[part("1-f")])
    grounds.plays("plan-2-1-1", only("e"))
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED
    assert steps_of(run, "1-1") == [
        *("preflight", "triage", "verify", "judge", "debug", "verify", "judge", "rate"),
    ]
    assert steps_of(run, "2-1")[:6] == ["preflight", "triage", "research", "plan", "plan_check", "execute"]
    routes = [record.steps.triage for record in run.state().phases.values()]
    assert [(each.status.value, each.pass_ratio) for each in routes if each is not None] == [
        ("verify_only", 0.8333),
        ("full_pipeline", 0.8),
    ]
    assert run.parts() == {*(f"1-{name}" for name in SIX), *(f"2-{name}" for name in SIX[:5])}


@pytest.mark.req("A3", "A5", "A7", "A11")
def test_a_phase_is_planned_three_times_replanned_once_debugged_thrice_and_then_taken_back(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=5, after={2: (1,)}, breaker=PATIENT)

    # a plan with a blocker that needs no opinion, one that its checker is not sure of, and one that is refused
    def vague(said: Document) -> Document:
        said["tasks"][0]["criteria"][0]["criterion"] = "It works properly"
        return said

    grounds.plays("plan-1-1-1", vague)
    grounds.plays("plan_check-1-1-2", {"confidence": 6.9})
    grounds.plays("plan_check-1-1-3", refused("parts/1-part is not what is wanted"))
    # a score below seven, twice
    grounds.plays("rate-3-1-1", scored(6.9))
    grounds.plays("rate-3-1-2", scored(6.8))
    # a task that nobody gets right
    bad = [part("4-part", "bad\n")]
    for name in ("p4-part-1", "p4-part-1-debug-1", "p4-part-1-debug-2"):
        grounds.plays(name, calls=bad)
    for number in (1, 2, 3, 4):
        wanted = {
            "recommendation": "debug",
            "missing_requirements": [f"parts/4-part is missing, for the {number}. time"],
        }
        grounds.plays(f"judge-4-1-{number}", whole=grounds.good("judge-4-1-1") | wanted)
        grounds.plays(f"verify-4-1-{number}", whole=grounds.good("verify-4-1-1"))
        mended = grounds.good("p4-debug-1-debug-1")
        grounds.plays(f"p4-debug-{number}-debug-1", whole=mended, calls=[part(f"4-tried-{number}")])
    grounds.plays("judge-5-1-1", {"recommendation": "rollback", "missing_requirements": ["CAT-5: it is not asked for"]})
    run = grounds.begin("all", "--complete")
    assert run.carry() is WatchEnd.FAILED
    assert run.statuses() == {"1": "failed", "2": "skipped", "3": "failed", "4": "failed", "5": "failed"}
    failed = {row.phase: row.data for row in run.rows("phase_failed")}

    assert steps_of(run, "1-1")[2:] == ["research", *("plan", "plan_check") * 3]
    assert [name for name in run.outcomes() if name.startswith("plan_check-1")] == [
        "plan_check-1-1-2",
        "plan_check-1-1-3",
    ]
    assert failed["1"]["reason"] == "3 plans were refused: parts/1-part is not what is wanted"
    refusals = [row.data["category"] for row in run.rows("step_failed") if row.phase == "1"]
    assert refusals == [FailureCategory.COORDINATION_FAILURE.value] * 3, "no executor had begun"
    assert "Give every requirement of a phase a task" in run.file(failed["1"]["postmortem_path"])
    assert "It works properly" in run.transcript("plan-1-1-2")
    assert "the checker is sure to 6.9 of 10" in run.transcript("plan-1-1-3")
    assert run.events("phase_skipped") == [
        {"phase_id": "2", "reason": "blocked_by_phase_1", "blocking_phase": "1"},
    ]

    assert [step for step in steps_of(run, "3-1") if step in ("research", "rate")] == ["research", "rate"] * 2
    assert failed["3"]["reason"] == "its score is 6.8 and no replanning is left"
    (again,) = run.events("replan_attempt")
    assert again["alignment_score"] == 6.9
    assert "names no maker, which cost 3.1" in run.transcript("research-3-1-2")

    assert steps_of(run, "4-1")[5:] == ["execute", "verify", "judge", *("debug", "verify", "judge") * 3]
    assert failed["4"]["reason"].startswith("debugging is exhausted: ")
    executed = [row.detail["document"] for row in run.observations("step") if row.subject == "4-1"]
    (why,) = next(each["issues"] for each in executed if each["step"] == "execute")
    assert why.startswith(
        "part is failed: The part 4-part is a good one (`sh check.sh parts/4-part`): it ended with fail"
    )
    assert [each["attempt"] for each in run.events("debug_attempt")] == [1, 2, 3]
    assert [each["attempt"] for each in run.events("task_retried")] == [1, 2]
    (lost,) = run.events("task_failed")
    assert (lost["task"], lost["category"]) == ("part", FailureCategory.ACCEPTANCE_CRITERIA_UNMET.value)
    assert run.state().phases["4"].debug_attempts == 3

    assert failed["5"]["reason"] == "CAT-5: it is not asked for"
    # everything of all of them is taken back, and kept aside
    assert run.parts() == set()
    assert tree_of(run.top, run.target) == tree_of(run.top, "HEAD")
    kept = {row.phase: row.data["diagnostic_branch"] for row in run.rows("rollback_completed")}
    assert kept == {phase: f"autopilot-diagnostic-phase-{phase}" for phase in ("3", "4", "5")}
    listed = git(run.top, "ls-tree", "-r", "--name-only", kept["4"], "parts/").split()
    assert [name for name in listed if "4-" in name] == [f"parts/4-tried-{number}" for number in (2, 3, 4)]
    assert all(FailureCategory(each["category"]) for each in failed.values())
    assert_emits("retries", run)
    assert_emits("rollback", run)


def _later() -> datetime:
    return system_clock() + timedelta(minutes=6)


@pytest.mark.req("A3", "A5")
def test_a_failure_with_dependents_halts_the_run_and_resuming_tries_the_phase_again(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, after={2: (1,)}, breaker={"no_progress_threshold": 2})
    grounds.plays("plan_check-1-1-1", refused("parts/1-part has no maker"))
    grounds.plays("plan_check-1-1-2", refused("parts/1-part has no date"))
    grounds.plays("judge-1-1-1", {"recommendation": "halt", "missing_requirements": ["CAT-1: somebody must look"]})
    run = grounds.begin(pause_after=1)
    assert run.carry() is WatchEnd.PERSON
    assert run.state().circuit_breaker.state is BreakerPosition.OPEN
    assert run.resume(clock=_later)
    assert run.carry() is WatchEnd.FAILED
    assert run.statuses() == {"1": "failed", "2": "not_started"}
    assert run.state().circuit_breaker.state is BreakerPosition.CLOSED
    halted = run.events("run_halted")[-1]
    assert (halted["reason"], halted["status"]) == ("phase 1 failed: CAT-1: somebody must look", "failed")
    assert run.parts() == set()

    # resumed, the phase is tried once more from its beginning; as soon as one phase has ended, the run pauses
    assert run.carry() is WatchEnd.PERSON
    assert run.statuses() == {"1": "completed", "2": "not_started"}
    assert [(each.phase, each.number, each.kind.value) for each in run.passes()] == [
        ("1", 1, "whole"),
        ("1", 2, "whole"),
    ]
    halted = run.events("run_halted")[-1]
    assert (halted["reason"], halted["status"]) == (
        "1 phases have ended, and the run pauses after so many",
        "paused",
    )
    assert run.carry() is WatchEnd.COMPLETED
    assert run.parts() == {"1-part", "2-part"}
    assert_emits("halt", run)
    assert_emits("breaker", run)


@pytest.mark.req("A3", "A13", "A19")
def test_what_integrity_asks_for_is_done_again_once_and_a_deferral_survives_it(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=3, breaker=PATIENT)
    add(grounds, "1-part", "3-part")
    for name in ("rate-1-1-1", "rate-1-2-1"):
        grounds.plays(name, scored(8.5, why="it could be better"))
    grounds.plays("plan-2-1-1", by_a_person(2))
    grounds.plays("verify-2-1-1", UNSURE)
    grounds.plays("judge-2-1-1", {"independent_evidence": []})
    whole = grounds.good("rate-3-1-1") | {"alignment_score": 9}
    insists(grounds, "rate-3-1-1", whole, times=2, sessions=2)
    run = grounds.begin("all", "--complete")
    assert run.carry() is WatchEnd.PERSON
    assert run.statuses() == {"1": "failed", "2": "needs_human_verification", "3": "failed"}
    assert [(each.phase, each.kind.value, [step.value for step in each.again]) for each in run.passes()] == [
        *(("1", "whole", []), ("1", "again", ["rate"])),
        *(("2", "whole", []), ("2", "again", ["judge"])),
        ("3", "whole", []),
    ]
    failed = {row.phase: row.data["reason"] for row in run.rows("phase_failed")}
    assert failed["1"].startswith("integrity check 15, diagnostic below nine: parts/1-part: the deficiency is vague")
    # only the judge looks again; that a person has to is not forgotten over it
    assert steps_of(run, "2-2") == ["judge"]
    assert run.parts() == {"1-part", "2-part", "3-part"}
    # a score without its decimal is no score: the rater is told so once, then another one is asked, and that is all
    asked = {name: outcome.asked for name, outcome in run.outcomes().items() if name.startswith("rate-3")}
    assert asked == {"rate-3-1-1": 2, "rate-3-1-1-try-2": 2}
    assert failed["3"].startswith("the phase has no valid score: ")
    assert "alignment_score" in failed["3"]


@pytest.mark.req("A3")
def test_a_plan_that_is_too_large_is_carried_out_in_parts_and_fails_with_one_of_them(tmp_path: Path) -> None:
    names = ("one", "two")
    grounds = Grounds.lay_out(tmp_path, phases=3, tasks={1: names, 2: names}, after={3: (2,)}, breaker=PATIENT)
    for phase in (1, 2):
        grounds.plays(f"plan-{phase}-1-1", with_files(6))
        split(grounds, phase, "a", "one", 9.1)
        split(grounds, phase, "b", "two", 9.6)
    # of a part, too, steps are done again where somebody did not do enough
    grounds.plays("judge-1a-1-1", whole=grounds.good("judge-1-1-1") | {"independent_evidence": []})
    split(grounds, 1, "a", "one", 9.1, number=2)
    grounds.plays("judge-2b-1-1", whole=grounds.good("judge-2-1-1") | {"recommendation": "rollback"})
    run = grounds.begin()
    assert run.carry() is WatchEnd.FAILED
    assert [(each.phase, each.kind.value, each.tasks) for each in run.passes()] == [
        *(("1", "whole", ()), ("1a", "part", ("one",)), ("1a", "again", ()), ("1b", "part", ("two",))),
        *(("2", "whole", ()), ("2a", "part", ("one",)), ("2b", "part", ("two",))),
    ]
    assert steps_of(run, "1-1") == ["preflight", "triage", "research", "plan", "plan_check"]
    assert steps_of(run, "1a-1") == ["preflight", "execute", "verify", "judge", "rate"]
    assert steps_of(run, "1a-2") == ["judge", "rate"]
    # the score of the whole is the mean of its parts, rounded down
    assert [standing(run, phase) for phase in ("1a", "1b", "1")] == [9.1, 9.6, 9.3]
    assert run.statuses() == {
        **{"1": "completed", "1a": "completed", "1b": "completed"},
        **{"2": "failed", "2a": "completed", "2b": "failed", "3": "not_started"},
    }
    # of a phase with a part that failed nothing stays, and what rests on it is not begun
    assert run.parts() == {"1-one", "1-two"}
    assert run.events("run_halted")[-1]["reason"] == "phase 2 failed: its part 2b is not completed"


@pytest.mark.req("A3", "A5")
def test_scores_that_hardly_differ_are_suspect_after_three_five_and_seven(tmp_path: Path) -> None:
    phases = [str(phase) for phase in range(1, 9)]
    grounds = Grounds.lay_out(tmp_path, phases=8, breaker=PATIENT)
    add(grounds, *(f"{phase}-part" for phase in phases))
    for phase, score in zip(phases, (9.0, 9.3, 9.5, 9.4, 9.3, 9.4, 9.5, 9.3), strict=True):
        grounds.plays(f"rate-{phase}-1-1", scored(score))
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED
    told = [
        (row.type.removeprefix("rubber_stamp_"), row.data["count"], row.data["lowest"], row.data["highest"])
        for row in run.rows()
        if row.type.startswith("rubber_stamp_")
    ]
    # the first score is too far from the others to be one of the row
    assert told == [
        ("warning", 3, 9.3, 9.5),
        ("warning", 4, 9.3, 9.5),
        ("enhanced", 5, 9.3, 9.5),
        ("enhanced", 6, 9.3, 9.5),
        ("critical", 7, 9.3, 9.5),
    ]
    suspects = [phase for phase, record in run.state().phases.items() if record.rubber_stamp_suspect]
    assert suspects == phases[1:]
    warned = [each.phase for each in run.verdicts() if any(found.number == 5 for found in each.findings)]
    assert warned == ["4", "5", "6", "7", "8"]
    assert_emits("stamps", run)
