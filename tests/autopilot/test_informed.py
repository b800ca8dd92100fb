"""Who judges a phase is told what was demanded and what the harness ran; what is unchanged is not judged again."""

from pathlib import Path

import pytest

from autopilot.grounds import Grounds
from autopilot.loops import history, scored
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.autopilot.breaker import BreakerPosition

pytestmark = pytest.mark.timeout(300)

JUDGES = ("verify-1-1-1", "judge-1-1-1", "rate-1-1-1")
LOST = {"tasks_completed": "0/1", "tasks_failed": "1/1", "deviations": ["I do not know what is missing."]}


@pytest.mark.req("A2", "A3", "A5", "A13")
def test_a_lost_remediation_costs_one_dispatch_and_does_not_open_the_breaker(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, breaker={"no_progress_threshold": 2})
    grounds.plays("rate-1-1-1", scored(8.5))
    for graph in (2, 3):
        grounds.plays(f"p1-cycle-{graph}", LOST, calls=())
        grounds.plays(f"p1-cycle-{graph}-check-0", {"pass": False, "concerns": ["The diff is empty."]}, calls=())
        for number in (1, 2, 3):
            grounds.plays(f"p1-cycle-{graph}-debug-{number}", {"fixed": False}, calls=())
            grounds.plays(f"p1-cycle-{graph}-check-{number}", {"pass": False, "concerns": ["Still empty."]}, calls=())
    run = grounds.begin()
    run.carry()

    # what the harness ran and what was demanded reaches everybody who judges, and the page
    for name in JUDGES:
        said = run.transcript(name)
        assert "The catalogue has the parts of phase 1." in said, name
        assert "tests (passed)" in said, name
    page = run.file(".planning/phases/1/VERIFICATION.md")
    assert "tests: pass" in page
    assert "tests (passed)" in page

    # the first cycle changed nothing: it ended there, and the breaker stayed closed
    steps = [(name, step) for name, step, _ in run.steps() if name != "1-1"]
    assert steps[:2] == [("1-2", "preflight"), ("1-2", "execute")]
    assert not {"verify", "judge", "rate"} & {step for _, step in steps}
    first = run.verdicts()[1]
    assert first.because
    assert history(run, "1")[:2] == [(8.5, "initial", 0), (8.5, "initial", 1)]
    opened = run.events("circuit_breaker_opened")
    assert all(each["value"] >= 2 for each in opened), "one lost remediation is not enough"
    assert len(run.events("remediation_started")) == 2


@pytest.mark.req("A5")
def test_lost_remediations_leave_the_score_and_end_the_phase(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path)
    grounds.plays("rate-1-1-1", scored(8.5))
    for graph in (2, 3):
        grounds.plays(f"p1-cycle-{graph}", LOST, calls=())
    run = grounds.begin()
    assert run.carry() is WatchEnd.COMPLETED
    assert run.state().circuit_breaker.state is BreakerPosition.CLOSED
    assert (run.state().phases["1"].force_incomplete, run.statuses()["1"]) == (True, "completed")
