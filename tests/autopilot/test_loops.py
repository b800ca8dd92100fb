"""Cycles over phases that fall short: remediation, quality, gaps, and phases that are run anew."""

from pathlib import Path

import pytest

from autopilot.grounds import Grounds
from autopilot.loops import PATIENT, add, assert_emits, cycle, history, loops, merge, scored, standing
from fairwitness.app.views.run import WatchEnd
from fairwitness.errors import UsageError
from feature.grounds import git

pytestmark = pytest.mark.timeout(300)


@pytest.mark.req("A13", "A5", "A6", "A11")
def test_a_phase_below_nine_gets_two_cycles_and_one_that_makes_it_no_better_is_taken_back(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, breaker=PATIENT)
    grounds.plays("rate-1-1-1", scored(8.5))
    cycle(grounds, 1, 2, 2, 9.2)
    grounds.plays("rate-2-1-1", scored(8.6))
    cycle(grounds, 2, 2, 2, 8.1)
    cycle(grounds, 2, 3, 3, 9.9, recommendation="rollback", concerns=["parts/2-more-3-3 is not wanted"])
    run = grounds.begin("all", "--complete")
    assert run.carry() is WatchEnd.COMPLETED
    phases = run.state().phases

    # reached after one
    assert loops(run, "1") == [None, "remediation"]
    assert history(run, "1") == [(8.5, "initial", 0), (9.2, "remediation", 1)]
    assert (phases["1"].force_incomplete, phases["1"].remediation_cycles) == (False, 1)
    done = run.events("remediation_completed", phase_id="1")
    assert [(each["old_score"], each["new_score"], each["reached_threshold"]) for each in done] == [(8.5, 9.2, True)]

    # exhausted after two; one was worse and one failed, so both are taken back, and the score before them stands
    assert loops(run, "2") == [None, "remediation", "remediation"]
    assert (standing(run, "2"), phases["2"].force_incomplete, phases["2"].remediation_cycles) == (8.6, True, 2)
    assert history(run, "2") == [(8.6, "initial", 0), (8.1, "remediation", 1)]
    assert run.parts() == {"1-part", "1-more-2-2", "2-part"}
    assert [row.detail["document"]["why"] for row in run.observations("reverted")] == [
        "a cycle made the score worse",
        "a cycle failed: parts/2-more-3-3 is not wanted",
    ]
    branches = git(run.top, "branch", "--list", "autopilot-diagnostic-phase-2*").split()
    assert branches == ["autopilot-diagnostic-phase-2", "autopilot-diagnostic-phase-2-2"]
    (marked,) = run.events("force_incomplete_marked")
    assert (marked["phase_id"], marked["final_score"], marked["remediation_cycles"]) == ("2", 8.6, 2)

    # the diagnostic and the second cycle are about the rating that stands, not about one of what is gone
    assert phases["2"].diagnostic_path == marked["diagnostic_path"]
    page = run.file(marked["diagnostic_path"])
    assert "which cost 1.4" in page
    assert "which cost 1.9" not in page
    assert [item.deficiency for each in run.passes() if each.phase == "2" for item in each.items] == [
        "parts/2-part:1 names no maker, which cost 1.4"
    ] * 2
    assert [each["alignment_score"] for each in run.events("confidence_diagnostic_written")] == [8.5, 8.6]
    assert_emits("remediation", run)


@pytest.mark.req("A14", "A13")
def test_quality_stops_without_gain_and_lenient_and_forced_runs_do_as_they_are_told(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=3, breaker=PATIENT)
    add(grounds, "1-part", "2-part", "3-part")
    grounds.plays("rate-1-1-1", scored(7.0))
    grounds.plays("rate-2-1-1", scored(9.2))
    run = grounds.begin("1-2", "--lenient")
    assert run.carry() is WatchEnd.COMPLETED

    # at 7.0 and lenient it passes at once, and what is missing is still written down
    assert (loops(run, "1"), standing(run, "1"), run.state().phases["1"].force_incomplete) == ([None], 7.0, False)
    (written,) = run.events("confidence_diagnostic_written")
    assert (written["phase_id"], written["pass_threshold"], written["path_to_9_items"]) == ("1", 7.0, 1)
    assert "parts/1-part:1 names no maker, which cost 3.0" in run.file(written["diagnostic_path"])

    # quality finds these scores in another run: three cycles where each brings something, and one where it does not
    for number, score in enumerate((8.8, 9.0, 9.1), start=1):
        cycle(grounds, 1, number, number, score)
    cycle(grounds, 2, 1, 1, 9.2)
    grounds.plays("rate-3-1-1", scored(9.4, why="it could be better"))
    run = grounds.begin("all", "--quality")
    assert run.carry() is WatchEnd.COMPLETED
    assert history(run, "1") == [(7.0, "initial", 0), (8.8, "quality", 1), (9.0, "quality", 2), (9.1, "quality", 3)]
    assert history(run, "2") == [(9.2, "initial", 0), (9.2, "quality", 1)]
    # a phase of which nobody says what it lacks gets no cycle, and that it falls short can be seen all the same
    assert (loops(run, "3"), history(run, "3")) == ([None], [(9.4, "initial", 0)])
    spent = [(each.get("cycles"), each["final_score"], each["target"]) for each in run.events("quality_exhausted")]
    assert spent == [(3, 9.1, 9.5), (1, 9.2, 9.5), (None, 9.4, 9.5)]
    for record in run.state().phases.values():
        assert (record.status.value, record.quality_exhausted, record.force_incomplete) == ("completed", True, False)
    assert run.events("force_incomplete_marked") == []
    assert_emits("quality", run)
    merge(run)

    # forced, a phase goes through all its steps although it is there, and its old score is kept
    grounds.plays("rate-1-1-1")
    run = grounds.begin("1", "--force")
    assert run.carry() is WatchEnd.COMPLETED
    assert [step for _, step, good in run.steps() if good][:6] == [
        *("preflight", "triage", "research", "plan", "plan_check", "execute")
    ]
    assert history(run, "1") == [(9.1, "initial", 0), (9.3, "force", 0)]
    assert run.events("force_reexecution_started") == [{"previous_score": 9.1, "previous_status": "completed"}]
    assert_emits("force", run)
    with pytest.raises(UsageError, match="--force and --quality exclude each other"):
        grounds.begin("1", "--force", "--quality")
    assert_emits("conflict", run)


@pytest.mark.req("A14")
def test_gaps_are_closed_one_at_a_time_the_widest_first_and_beyond_quality_they_go_on(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, tasks={1: ("one", "two")}, breaker=PATIENT)
    add(grounds, "1-one", "1-two", "2-part")
    grounds.plays("rate-1-1-1", scored(9.0, 8.0))
    grounds.plays("rate-2-1-1", scored(9.2, why="parts/2-part:1 names no maker"))
    run = grounds.begin("all", "--lenient")
    assert run.carry() is WatchEnd.COMPLETED

    cycle(grounds, 1, 1, 1, 9.0, 9.4)
    cycle(grounds, 1, 2, 2, 9.6, 9.4)
    cycle(grounds, 2, 1, 1, 9.1, why="parts/2-part:1 names no maker")
    run = grounds.begin("all", "--gaps")
    assert run.carry() is WatchEnd.COMPLETED
    assert [(each.phase, [item.file for item in each.items]) for each in run.passes()] == [
        ("1", ["parts/1-two"]),
        ("1", ["parts/1-one"]),
        ("2", ["parts/2-part"]),
    ]
    done = run.events("gaps_iteration_completed")
    assert [(each["old_score"], each["new_score"], each["remaining_deficiencies"]) for each in done] == [
        (8.5, 9.2, 2),
        (9.2, 9.5, 1),
        (9.2, 9.1, 0),
    ]
    # the first reached its target; of the second everything was tried, and what made it worse is gone
    assert [each["final_score"] for each in run.events("gaps_exhausted")] == [9.2]
    assert [(standing(run, name), record.gaps_exhausted) for name, record in run.state().phases.items()] == [
        (9.5, False),
        (9.2, True),
    ]
    assert run.parts() == {"1-one", "1-two", "1-more-1-1", "1-more-2-2", "2-part"}
    merge(run)

    cycle(grounds, 2, 1, 1, 9.5)
    cycle(grounds, 2, 2, 2, 9.8)
    both = grounds.begin("2", "--quality", "--gaps")
    assert both.carry() is WatchEnd.COMPLETED
    assert loops(both, "2") == ["quality", "gaps"]
    assert history(both, "2") == [(9.2, "initial", 0), (9.5, "quality", 1), (9.8, "gaps", 1)]
    assert_emits("gaps", run, both)
