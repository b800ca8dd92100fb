"""What goes wrong around a run: ground that moves, agents that hang, hostile documents, and a worker that dies."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from autopilot.grounds import Document, Grounds, Run, part
from fairwitness.agents.roles import ROLES
from fairwitness.app.runs.autopilot_setup import lock
from fairwitness.app.views.run import WatchEnd
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import UsageError
from fairwitness.runs.dispatch.budget_account import STARTED
from feature.grounds import call, git

pytestmark = pytest.mark.timeout(300)

SPEC = ".planning/REQUIREMENTS.md"
PATIENT = {"no_progress_threshold": 50, "same_error_threshold": 50, "max_total_retries_per_run": 50}


def why_failed(run: Run, phase: str) -> str:
    """Why a phase failed last."""
    told = [row.data["reason"] for row in run.rows("phase_failed") if row.phase == phase]
    assert told, f"phase {phase} did not fail"
    return str(told[-1])


@pytest.mark.req("A2", "A3")
def test_a_changed_specification_stops_the_preflight_until_it_is_locked_on_purpose(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path)
    run = grounds.begin()
    grounds.commit(SPEC, run.file(SPEC) + "- **CAT-9**: One more.\n")
    assert run.carry() is WatchEnd.FAILED
    assert why_failed(run, "1").startswith(f"{SPEC} was changed since it was locked")
    assert run.observations(STARTED) == []
    assert run.steps() == [("1-1", "preflight", False)]
    assert [change.path for change in lock(grounds.top, None).changes] == [SPEC]
    assert run.carry() is WatchEnd.COMPLETED
    assert run.steps()[1][:2] == ("1-2", "preflight")
    assert run.statuses() == {"1": "completed"}
    assert run.state().circuit_breaker.state.value == "closed"


@pytest.mark.req("A3")
def test_a_dirty_checkout_stops_a_run_before_and_after_it_begins(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path)
    stranger = grounds.top / "notes.txt"
    stranger.write_text("mine\n")
    with pytest.raises(UsageError, match=r"uncommitted changes: notes\.txt"):
        grounds.begin()
    stranger.unlink()
    run = grounds.begin()
    stranger.write_text("mine\n")
    assert run.carry() is WatchEnd.FAILED
    assert why_failed(run, "1") == "the checkout holds changes that are not committed: notes.txt"
    assert run.observations(STARTED) == []
    assert stranger.read_text() == "mine\n"


@pytest.mark.req("A3")
def test_a_phase_that_rests_on_an_unfinished_one_is_stopped(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path, phases=2, after={2: (1,)})
    run = grounds.begin("2")
    assert run.carry() is WatchEnd.FAILED
    assert why_failed(run, "2") == "phase 1 is not completed, and phase 2 rests on it"
    assert run.observations(STARTED) == []


@pytest.mark.req("A3", "A7")
def test_an_agent_that_hangs_is_ended_and_leaves_nothing(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path)
    hasty = ROLES[Role.EXECUTOR].model_copy(update={"timeout_s": 1.5})
    grounds.plays("p1-part-1", calls=[part("1-part", "slow\n"), call("run_in_terminal", command="sh check.sh")])
    run = grounds.begin()
    assert run.carry_with(roles={Role.EXECUTOR: hasty}) == "done"
    statuses = {name: each.status for name, each in run.outcomes().items() if each.status is not OutcomeStatus.OK}
    assert statuses == dict.fromkeys(("p1-part-1", "p1-part-1-try-2"), OutcomeStatus.TIMED_OUT)
    (failed,) = run.events("task_failed")
    assert (failed["category"], failed["error"]) == ("tool_failure", "it did not end within 1.5 s")
    # nothing of it was there to be verified, and a debugger did the work
    assert [step for _, step, good in run.steps() if not good] == ["execute", "verify"]
    assert "slow" not in git(grounds.top, "log", "-p", f"main..{run.target}")
    assert run.statuses() == {"1": "completed"}


LONG = "x" * 200_000
HOSTILE: tuple[tuple[Document, str], ...] = (
    ({"files": ["../../outside"]}, "has a '..' segment"),
    ({"id": "../../outside"}, "expected a name of letters"),
    ({"id": "x;touch${IFS}outside\x1b[2J"}, "expected a name of letters"),
    ({"script": LONG}, "a command or a script of more than 100000 bytes cannot be run"),
)
"""Fields of a task that nobody should believe, and what is said of them."""


def assert_refused(run: Run, phase: int, why: str) -> None:
    """A hostile plan is one clear failure, of which nothing was carried out and no page was written."""
    assert run.statuses()[str(phase)] == "failed"
    assert why in why_failed(run, str(phase))
    assert f"p{phase}-part-1" not in run.outcomes()
    folder = run.top / ".planning" / "phases" / str(phase)
    if "script" not in HOSTILE[phase - 1][0]:  # that one can be written down, and is refused by its check
        assert not (folder / "PLAN.md").exists()
        assert not (folder / "tests").exists()


@pytest.mark.req("A3")
def test_hostile_documents_are_refused_and_hostile_words_do_nothing(tmp_path: Path) -> None:
    last = len(HOSTILE) + 1
    grounds = Grounds.lay_out(tmp_path, phases=last, breaker=PATIENT)
    for phase, (fields, _) in enumerate(HOSTILE, start=1):
        for number in (1, 2, 3):
            plan = grounds.good(f"plan-{phase}-1-1")
            plan["tasks"][0] |= fields
            grounds.plays(f"plan-{phase}-1-{number}", whole=plan, insists=True)
    grounds.plays("research-4-1-1", {"risks": ["$(touch outside) `touch outside`\x1b[2J | # <script>", LONG]})
    odd = grounds.good(f"plan-{last}-1-1")
    odd["concerns"] = ["\x1b]0;title\x07 $(touch outside)", "<!-- -->", "| a | b |", "..\\..\\outside"]
    odd["tasks"][0]["criteria"][0]["criterion"] += " '; touch outside; echo `touch outside` $(touch outside)"
    odd["tasks"][0]["action"] += "\n\n# Another heading\n\n```\n$(touch outside)\n"
    grounds.plays(f"plan-{last}-1-1", whole=odd)
    run = grounds.begin("all", "complete")
    assert run.carry() is WatchEnd.FAILED
    for phase, (_, why) in enumerate(HOSTILE, start=1):
        assert_refused(run, phase, why)
    assert run.parts() == {f"{last}-part"}
    around = (grounds.top.parent, grounds.top, grounds.top / ".planning", grounds.top / ".autopilot")
    assert not [path for folder in around for path in folder.rglob("*outside*") if ".git" not in path.parts]
    pages = [*grounds.top.glob(".planning/phases/**/*"), *grounds.top.glob(".autopilot/**/*")]
    assert not [page for page in pages if page.is_file() and b"\x1b" in page.read_bytes()]
    assert not list(grounds.top.rglob("*.tmp*"))
    assert git(grounds.top, "status", "--porcelain", "--untracked-files=no") == ""


_CARRY = """\
import sys
from pathlib import Path
from autopilot.runs import Run
Run(Path(sys.argv[1]), sys.argv[2]).carry()
"""


@pytest.mark.width("sample")  # one kill of a whole run
@pytest.mark.req("A1", "A3")
def test_a_worker_that_is_killed_at_work_loses_nothing(tmp_path: Path) -> None:
    grounds = Grounds.lay_out(tmp_path)
    grounds.plays("p1-part-1", calls=[part("1-part", "slow\n"), call("run_in_terminal", command="sh check.sh")])
    run = grounds.begin()
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    worker = subprocess.Popen(
        [sys.executable, "-c", _CARRY, str(grounds.top), run.run_id], env=environment, start_new_session=True
    )
    try:
        until = time.monotonic() + 120
        while not any(row.subject == "p1-part-1" for row in run.observations(STARTED)):
            assert time.monotonic() < until
            assert worker.poll() is None
            time.sleep(0.1)
        time.sleep(0.5)
    finally:
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
    before = run.steps()
    assert [step for _, step, _ in before] == ["preflight", "triage", "research", "plan", "plan_check"]
    grounds.plays("p1-part-1")
    assert run.carry() is WatchEnd.COMPLETED
    assert run.steps()[: len(before)] == before
    started = [row.subject for row in run.observations(STARTED)]
    assert {name: started.count(name) for name in started if started.count(name) > 1} == {"p1-part-1": 2}
    assert run.parts() == {"1-part"}
    assert run.events("task_retried") == []
