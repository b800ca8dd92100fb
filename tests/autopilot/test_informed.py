"""Who judges a phase is told what was demanded and what the harness ran; what is unchanged is not judged again."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autopilot.grounds import Document, Grounds, part
from autopilot.loops import history, scored
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from feature.grounds import call

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
        assert "the project's test command (passed): `sh check.sh`, exit code 0" in said, name
    took = re.search(r"verification_duration_seconds: ([0-9.]+)", run.transcript("judge-1-1-1"))
    assert took is not None
    assert float(took[1]) > 0, "the time of the verifier is measured"
    page = run.file(".planning/phases/1/VERIFICATION.md")
    assert "tests: pass" in page
    assert "tests (passed)" in page

    # the first cycle changed nothing: it ended there, and the breaker stayed closed
    steps = [(name, step) for name, step, _ in run.steps() if name != "1-1"]
    assert steps[:2] == [("1-2", "preflight"), ("1-2", "execute")]
    assert not {"verify", "judge", "rate"} & {step for _, step in steps}
    first = run.verdicts()[1]
    assert first.because
    assert history(run, "1") == [(8.5, "initial", 0)], "what was not rated has no score"
    done = run.events("remediation_completed")[0]
    assert (done["old_score"], done.get("new_score"), done["improved"]) == (8.5, None, False)
    assert run.state().phases["1"].remediation_cycles >= 1
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
    report = run.file(".autopilot/completion-report.md")
    used = run.state().metrics.total_tokens_used
    assert f"1 file changed on the branch `{run.target}`; {used:,} tokens used." in report
    assert "- `parts/1-part`" in report


def claims(*commands: str) -> Callable[[Document], Document]:
    """An executor's answer that names these commands."""

    def said(good: Document) -> Document:
        good["evidence"][0]["commands_run"] = list(commands)
        return good

    return said


@pytest.mark.req("A3", "A20")
def test_a_result_of_a_command_that_did_not_run_is_no_answer_and_one_that_ran_is(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, tasks={1: ("part", "other")})
    grounds.plays("p1-part-1", claims("python3 -m pytest -q -> 400 passed"), insists=True)
    ran = call("run_in_terminal", command="sh check.sh parts/first")
    grounds.plays("p1-other-1", claims("sh check.sh parts/first -> OK"), calls=[part("1-other"), ran])
    run = grounds.begin()
    run.carry()
    outcomes = run.outcomes()
    lied = outcomes["p1-part-1"]
    assert lied.status is OutcomeStatus.INVALID_ANSWER
    assert lied.problems == (
        "“python3 -m pytest -q” is said to have passed, but it was not run in this session; run it, or leave it out",
    )
    assert outcomes["p1-other-1"].status is OutcomeStatus.OK
    assert "1-other" in run.parts()
