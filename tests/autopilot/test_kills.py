"""An autopilot run survives `kill -9` after every durable write: same phases, commits and evidence, no remains."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from autopilot.grounds import Grounds as Catalogue
from autopilot.kills import AUTOPILOT, put_to_a_person
from autopilot.remains import assert_archived
from autopilot.runs import Run
from cli.runner import fairwitness
from dag.kills import KILLED
from fairwitness.cli.exit_codes import ExitCode
from fairwitness.store.layout import autopilot
from feature.kills import Grounds
from feature.remains import assert_alike, assert_same
from forge.chains import firsts, in_order, middles, share, sweep

pytestmark = pytest.mark.timeout(1800)  # each process that tests makes its own references first

SOMETIMES = frozenset(
    {
        *("engine.lease.beat", "engine.body.beat", "git.pool.displaced", "git.pool.taken", "autopilot.checkpoint"),
    }
)
"""Points that not every run passes: signs of life come every few seconds, and the pool is full or is not."""

PURPOSES = ("baseline", "after", "command-1", "command-2")
POINTS = (
    *("autopilot.codebase", "autopilot.learnings", "autopilot.moved", "autopilot.kept", "autopilot.written"),
    *("autopilot.step.begun", "autopilot.step.recorded", "autopilot.returned"),
    *("autopilot.backup", "autopilot.state"),
    *("autopilot.graph", "autopilot.execution", "autopilot.check", "autopilot.checks", "autopilot.discrepancy"),
    *("agent.put-back", "autopilot.diagnostic", "autopilot.reverted"),
    *("autopilot.ended", "autopilot.metrics", "autopilot.report", "autopilot.archive", "autopilot.archived"),
    "autopilot.swept",
    *(
        "dispatch.started",
        "dispatch.driven",
        "dispatch.answered",
        "dispatch.audited",
        "dispatch.kept",
        "dispatch.finished",
    ),
    *("engine.file.made", "engine.tables.made", "engine.queue.made", "engine.lease.joined", "engine.lease.left"),
    *("engine.queued", "engine.taken", "engine.body.entered", "engine.step.recorded", "engine.body.left"),
    "engine.outcome.written",
    *("reader.made", "reader.left"),
    *("git.candidate.stacked", "git.candidate.held", "git.landed", "git.commit.made", "git.commit.written"),
    *("git.pool.brought", "git.pool.marked", "git.pool.parked", "git.ref.moved", "git.ref.deleted"),
    *("git.admin.begun", "git.worktree.added", "git.worktree.branched", "git.worktree.filled", "git.worktree.ready"),
    *("git.worktree.quarantined", "git.worktree.unmarked", "git.worktree.forgetting", "git.worktree.forgotten"),
    *("graph.target", "graph.prepared", "graph.committed"),
    *("ledger.record.inserted", "ledger.record.linked", "ledger.record.committed"),
    *("ledger.anchor.row", "ledger.anchor.line", "ledger.anchor.ref"),
    *("store.write.opened", "store.write.written", "store.write.synced", "store.write.renamed"),
    *("store.append.opened", "store.append.written", "store.append.synced"),
    *("verify.turn.taken", "verify.begun", "verify.checked-out", "verify.concluded", "verify.turn.left"),
    *(f"verify.ran.{purpose}" for purpose in PURPOSES),
    *(f"verify.recorded.{purpose}" for purpose in PURPOSES),
)
"""Every point that a run passes for sure which nobody kills; a test holds it to that."""

KINDS = frozenset(
    {
        *("order", "pass", "begun", "step", "trace", "returned", "verdict", "graph", "attempt", "task-retry"),
        *("execution", "check", "checks", "discrepancy", "put-back", "rating", "reverted"),
        *("self-audit", "self-audit-answer", "self-audit-fix", "metrics", "report"),
    }
)
"""What a run observes about itself: this one has all of it, so all of it is compared."""

CHAINS: tuple[tuple[str, ...], ...] = (
    (
        # before anything is done, when phase 1 is begun, and around its research
        *("autopilot.codebase#1", "autopilot.moved#1", "autopilot.step.begun#3", "autopilot.step.recorded#1"),
        *("autopilot.backup#2", "autopilot.graph#1"),
        # the script of the first task, what its agents said of it, the second one's work, and the checks of the phase
        *("autopilot.execution#1", "autopilot.discrepancy#1", "agent.put-back#1", "autopilot.check#1"),
        *("autopilot.checks#1", "autopilot.returned#1"),
    ),
    (
        # phase 2 is begun, its first cycle is asked for, and taken back
        *("autopilot.moved#3", "autopilot.moved#2", "autopilot.diagnostic#1", "autopilot.reverted#1"),
        # its second cycle returns, the audit has its fix, and the run ends
        *("autopilot.returned#1", "autopilot.graph#1", "autopilot.ended#1", "autopilot.metrics#1"),
        *("autopilot.report#1", "autopilot.archive#1", "autopilot.archived#1", "autopilot.swept#1"),
    ),
)
"""What the ordinary tests take of all points: two runs that are killed at a dozen each, one life after the other.

Each is counted from the start of its life.
"""
TOGETHER: tuple[str, ...] = tuple(
    point for point in POINTS if point.startswith(("autopilot.", "dispatch.", "git.", "graph.", "verify."))
)
"""Points at which it matters that others are at work."""
REPORTED = "batch_completion_report"
ALONE_CHAINS, TOGETHER_CHAINS = 12, 5
"""How many runs the points are dealt out to: about a dozen each."""
needs_minutes = pytest.mark.width("sweep")  # each takes a minute or two


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Runs that nobody killed are kept here, to hold others against them."""
    made = Grounds(tmp_path_factory.mktemp("kills"), AUTOPILOT)
    yield made
    made.close()


@pytest.mark.req("P16")
def test_a_run_that_nobody_kills_passes_every_point_and_none_that_is_not_listed(grounds: Grounds) -> None:
    content, passed = grounds.reference(alone=True)
    assert set(passed).difference(SOMETIMES) == set(POINTS)
    assert set(content.tries.values()) == {1}
    seen = [row for row in content.rows if row.startswith("observations ")]
    assert {json.loads(row.removeprefix("observations "))["kind"] for row in seen} >= KINDS


@pytest.mark.req("P16")
@pytest.mark.parametrize("points", CHAINS, ids=["first-phase", "to-the-end"])
def test_killed_at_a_dozen_points_a_run_ends_as_if_nothing_had_happened(
    grounds: Grounds, points: tuple[str, ...]
) -> None:
    drill = grounds.drill(alone=True)
    for point in points:
        assert drill.live(point).is_killed, f"{point} was not passed any more"
    assert_same(drill.end(), grounds.reference(alone=True).content)


@needs_minutes
@pytest.mark.req("P16")
@pytest.mark.parametrize("chain", range(ALONE_CHAINS))
def test_killed_at_every_point_in_turn_a_run_ends_as_if_nothing_had_happened(
    grounds: Grounds, tmp_path: Path, chain: int
) -> None:
    content, passed = grounds.reference(alone=True)
    own = share(POINTS, chain, of=ALONE_CHAINS)
    cases = in_order([*firsts(own), *middles(own, passed)], passed)
    sweep(grounds, cases, tmp_path / "log", alone=True, check=lambda found: assert_same(found, content))


@needs_minutes
@pytest.mark.req("P16")
@pytest.mark.parametrize("chain", range(TOGETHER_CHAINS))
def test_killed_at_every_point_in_turn_while_two_work_a_run_ends_alike(
    grounds: Grounds, tmp_path: Path, chain: int
) -> None:
    content, passed = grounds.reference(alone=False)
    own = share(TOGETHER, chain, of=TOGETHER_CHAINS)
    once = [point for point in own if passed.count(point) == 1]
    cases = in_order([*firsts(once), *middles(own, passed)], passed)
    sweep(grounds, cases, tmp_path / "log", alone=False, check=lambda found: assert_alike(found, content))


@pytest.mark.req("A19", "P16")
def test_killed_as_it_waits_and_as_it_is_answered_a_run_goes_on_with_the_verdict(tmp_path: Path) -> None:
    catalogue = Catalogue.lay_out(tmp_path)
    put_to_a_person(catalogue, 1, "part")
    run = catalogue.begin()
    # its report is the last thing that it does before it waits; the step after that says so
    assert _resumed(run, "autopilot.moved#3") == KILLED
    assert _resumed(run, "engine.step.recorded#2") == KILLED
    assert run.statuses() == {"1": "needs_human_verification"}
    assert _resumed(run) == ExitCode.WAITS_FOR_PERSON
    assert _resumed(run) == ExitCode.WAITS_FOR_PERSON  # it stays where it is, however often somebody looks
    said = fairwitness("verdict", "1", "pass", cwd=run.top, FAIRWITNESS_KILL_AT="autopilot.verdict")
    assert said.returncode == KILLED, said.stderr
    assert run.events("human_verdict_recorded", verdict="pass")
    again = fairwitness("verdict", "1", "fail", cwd=run.top)
    assert again.returncode == ExitCode.USAGE, again.stderr  # what was said first stands
    assert _resumed(run) == ExitCode.REACHED
    assert len(run.events("human_verdict_recorded")) == 1
    assert run.statuses() == {"1": "completed"}
    assert "Human Verdict: Phase 1" in run.file(autopilot.LEARNINGS)
    assert_archived(run.top, run.run_id)


@pytest.mark.req("A19", "P16")
def test_killed_before_it_reports_a_run_is_left_to_a_person_only_after_its_report(tmp_path: Path) -> None:
    """A fast process reports within a second in any case; `tests/app/test_autopilot_look.py` holds the rule."""
    catalogue = Catalogue.lay_out(tmp_path)
    put_to_a_person(catalogue, 1, "part")
    run = catalogue.begin("all", "--complete")
    assert _resumed(run, "autopilot.moved#2") == KILLED  # the phase is deferred, and nothing is reported yet
    assert (run.statuses(), run.events(REPORTED)) == ({"1": "needs_human_verification"}, [])
    assert _resumed(run) == ExitCode.WAITS_FOR_PERSON
    assert len(run.events(REPORTED)) == 1
    assert fairwitness("verdict", "1", "pass", cwd=run.top).returncode == ExitCode.REACHED
    assert _resumed(run) == ExitCode.REACHED
    assert len(run.events(REPORTED)) == 2


@pytest.mark.req("P16")
def test_killed_after_its_last_event_a_run_that_is_resumed_mends_its_files(tmp_path: Path) -> None:
    run = Catalogue.lay_out(tmp_path).begin()
    metrics, report, archived = (
        run.top / path
        for path in (autopilot.METRICS, autopilot.COMPLETION_REPORT, autopilot.archived_state(run.run_id))
    )
    assert _resumed(run, "autopilot.ended") == KILLED
    assert run.events("run_completed")
    assert [path for path in (metrics, report, archived) if path.exists()] == []
    assert _resumed(run, "autopilot.metrics") == KILLED
    assert _resumed(run, "autopilot.archive") == KILLED
    assert _resumed(run) == ExitCode.REACHED
    assert_archived(run.top, run.run_id)
    (ended,) = json.loads(metrics.read_text())  # once, however often it was written
    assert ended["run_id"] == run.run_id
    assert run.run_id in report.read_text()
    assert len(run.events("run_completed")) == 1


def _resumed(run: Run, kill_at: str = "") -> int:
    """One more life of a run; how it ended."""
    return fairwitness("resume", run.run_id, "--plain", cwd=run.top, FAIRWITNESS_KILL_AT=kill_at).returncode
