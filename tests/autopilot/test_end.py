"""How runs end: the audit of what was built, verdicts of people, reports, numbers over runs, archive and lessons."""

import json
from pathlib import Path
from typing import Any

import pytest

from autopilot.grounds import Grounds
from autopilot.loops import PATIENT, SURE, UNSURE, add, assert_emits, by_a_person, cycle, merge, refused, scored
from autopilot.runs import Run
from autopilot.sessions import Document
from autopilot.team import part
from fairwitness.app.runs.verdict import give_verdict
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.autopilot.events import AUTOPILOT_EVENT_TYPES
from fairwitness.errors import UsageError
from fairwitness.store.layout import autopilot as layout

pytestmark = pytest.mark.timeout(300)


def audited(grounds: Grounds, **gaps: str) -> Document:
    """What the audit returns that finds something missing of these requirements."""
    answer = grounds.good("self-audit-1")
    details = []
    for result in answer["audit_results"]:
        (checked,) = result["requirements_checked"]
        name = checked["requirement_id"]
        missing = gaps.get(name.replace("-", ""))
        if missing is not None:
            checked |= {"status": "gap", "gap_description": missing, "fix_complexity": "small"}
            advice = {"phase_id": result["phase_id"], "suggested_fix": f"write it: {missing}"}
            details.append({"requirement_id": name, "gap_description": missing, "fix_complexity": "small"} | advice)
    total = answer["aggregate"]["total_requirements_checked"]
    aggregate = {"passed_on_first_check": total - len(details), "gaps_found": len(details), "gap_details": details}
    return answer | {"aggregate": answer["aggregate"] | aggregate}


def fixes(grounds: Grounds, number: int, name: str) -> None:
    """The number-th fix of a gap: a part is added."""
    done: Document = {
        "tasks_completed": "1/1",
        "tasks_failed": "0/1",
        "evidence": [{"task_id": f"audit-{number}", "criteria_met": [f"parts/{name}:1"], "commands_run": []}],
        "deviations": [],
    }
    grounds.plays(f"audit-{number}-{number}", whole=done, calls=[part(name)])


def read(run: Run, path: str) -> Any:
    """A JSON file of the run."""
    return json.loads(run.file(path))


@pytest.mark.width("sample")  # one whole autopilot run
@pytest.mark.req("A10", "A9", "A6", "A5")
def test_gaps_of_the_audit_are_closed_in_two_cycles_at_most_and_the_run_is_kept_whole(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, autopilot={"audit": True}, breaker=PATIENT)
    add(grounds, "1-part", "2-part")
    first, second = "parts/1-spare is not there", "parts/2-spare has no label"
    grounds.plays("self-audit-1", whole=audited(grounds, CAT1=first, CAT2=second))
    grounds.plays("self-audit-2", whole=audited(grounds, CAT2=second))
    grounds.plays("self-audit-3", whole=audited(grounds, CAT2=second))
    for number, name in enumerate(("1-spare", "2-spare", "2-label"), start=1):
        fixes(grounds, number, name)
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED
    found = [(each["requirement_id"], each["gap_description"]) for each in run.events("self_audit_gap_found")]
    assert found == [("CAT-1", first), ("CAT-2", second)]
    (fixed,) = run.events("self_audit_gap_fixed")
    assert (fixed["requirement_id"], fixed["re_verified"]) == ("CAT-1", True)
    (done,) = run.events("self_audit_completed")
    assert done == {
        "total_requirements_checked": 2,
        "passed_on_first_check": 0,
        "gaps_found": 2,
        "gaps_fixed": 1,
        "gaps_remaining": 1,
        "audit_cycles": 2,
    }
    assert [name for name in run.outcomes() if name.startswith(("self", "audit"))] == [
        *("self-audit-1", "audit-1-1", "audit-2-2", "self-audit-2", "audit-3-3", "self-audit-3"),
    ]
    assert run.parts() == {"1-part", "2-part", "1-spare", "2-spare", "2-label"}
    assert second in run.file(layout.COMPLETION_REPORT)
    assert_emits("audit", run)

    # what was told in the run stands in its archive, all of it
    kept = read(run, layout.archived_state(run.run_id))
    assert [each["event"] for each in kept["event_log"]] == [
        kind for kind in run.types() if kind in AUTOPILOT_EVENT_TYPES
    ]
    assert not (run.top / layout.STATE).exists()
    (numbers,) = read(run, layout.METRICS)
    assert (numbers["run_id"], numbers["phases_succeeded"], numbers["avg_alignment_score"]) == (run.run_id, 2, 9.3)
    assert "## Trend" in run.file(layout.COMPLETION_REPORT)

    # another run has numbers of its own, and a trend
    merge(run)
    cycle(grounds, 1, 1, 1, 9.6)
    grounds.plays("self-audit-1")
    again = grounds.begin("1", "--quality")
    assert again.carry() is WatchEnd.COMPLETED
    before, after = read(again, layout.METRICS)
    assert (before, after["run_id"], after["avg_alignment_score"]) == (numbers, again.run_id, 9.6)
    page = again.file(layout.COMPLETION_REPORT)
    assert again.run_id in page
    assert "+0.3" in page
    assert (again.top / layout.archived_state(run.run_id)).exists()


@pytest.mark.req("A19", "A11", "A8", "A7", "A5")
def test_verdicts_complete_or_fail_phases_and_failures_teach_those_after_them(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=6, after={5: (3,)}, breaker=PATIENT)
    for number in (1, 2, 3):
        grounds.plays(f"plan_check-1-1-{number}", refused(f"parts/1-part has no label {number}"))
    for phase in (2, 3, 4, 6):
        grounds.plays(f"plan-{phase}-1-1", by_a_person(phase))
        grounds.plays(f"verify-{phase}-1-1", SURE if phase == 6 else UNSURE)
    grounds.plays("rate-6-1-1", scored(9.1))
    run = grounds.begin("all", "--complete")
    assert run.carry() is WatchEnd.PERSON
    waits = "needs_human_verification"
    assert run.statuses() == {"1": "failed", "2": waits, "3": waits, "4": waits, "5": "not_started", "6": "completed"}
    assert [row.phase for row in run.rows("autonomous_resolution_success")] == ["6"]
    report = read(run, layout.COMPLETION_DATA)
    assert (report["phases_deferred"], report["completion_percentage"]) == (3, 16.67)

    assert not (run.top / layout.archived_state(run.run_id)).exists()

    # what the first phase failed of is told to whoever plans and builds after it
    rule = json.loads(run.file(layout.phase_post_mortem("1")))["prevention_rule"]
    assert rule.rpartition("“")[0] in run.file(layout.LEARNINGS)
    for name in ("plan-2-1-1", "p2-part-1", "plan-6-1-1"):
        assert "Phase 1 failure -- executor_wrong_approach" in run.transcript(name)
    assert "Phase 1 failure" not in run.transcript("verify-2-1-1")

    # one passes, two do not; from the third verdict on people are asked more readily
    assert give_verdict(run.top, "2", "pass", (), None).recorded.new_limit == 6.0
    assert give_verdict(run.top, "3", "fail", (), run.run_id).recorded.new_limit == 6.0
    with pytest.raises(UsageError, match="requires at least one"):
        give_verdict(run.top, "4", "issues", (), None)
    given = give_verdict(run.top, "4", "issues", ("the number is upside down",), None)
    assert (given.recorded.old_limit, given.recorded.new_limit, given.recorded.waiting) == (6.0, 6.5, ())
    with pytest.raises(UsageError, match="waits for"):
        give_verdict(run.top, "4", "pass", (), None)
    assert run.carry() is WatchEnd.FAILED
    assert run.statuses() == {
        **{"1": "failed", "2": "completed", "3": "failed"},
        **{"4": "failed", "5": "skipped", "6": "completed"},
    }
    assert run.events("phase_skipped")[-1]["reason"] == "blocked_by_phase_3"
    moved = run.events("deferral_threshold_adjusted")
    assert [(each["old_confidence"], each["new_confidence"], each["verdicts"]) for each in moved] == [(6.0, 6.5, 3)]
    assert run.state().meta.deferral_confidence == 6.5

    report = read(run, layout.COMPLETION_DATA)
    assert {name: report[name] for name in report if name.startswith(("phases_", "compl", "total"))} == {
        "total_phases_in_roadmap": 6,
        "completed_phases_total": 2,
        "completion_percentage": 33.33,
        "phases_attempted": 5,
        "phases_succeeded": 2,
        "phases_failed": 3,
        "phases_skipped": [
            {
                "phase_id": "5",
                "phase_name": "Parts of 5",
                "reason": "blocked_by_phase_3",
                "blocking_phase": "3",
            }
        ],
        "phases_deferred": 0,
    }
    assert [
        (gap["failed_phase_id"], [each["phase_id"] for each in gap["blocked_phases"]])
        for gap in report["dependency_gaps"]
    ] == [("1", []), ("3", ["5"]), ("4", [])]
    learned = run.file(layout.LEARNINGS)
    for entry in ("Phase 2 -- PASS", "Phase 3 -- FAIL", "Phase 4 -- ISSUES_FOUND", "the number is upside down"):
        assert entry in learned
    assert run.state().meta.autonomous_resolution_rate == pytest.approx(0.4)
    assert_emits("person", run)
