"""A feature run survives `kill -9` after every durable write: same commit, decisions and evidence, no remains."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.runner import fairwitness
from dag.kills import KILLED
from dag.remains import git
from feature.kills import Drill, Grounds
from feature.remains import TABLES, assert_alike, assert_same
from support import demo_feature as demo
from support.ladder import SWEEP

pytestmark = pytest.mark.timeout(1200)  # each process that tests makes its own references first

SOMETIMES = frozenset(
    {
        *("engine.lease.beat", "engine.body.beat", "git.pool.displaced", "git.pool.taken"),
    }
)
"""Points that not every run passes: signs of life come every few seconds, and the pool is full or is not."""

PURPOSES = (*("baseline", "after", "again", "protected", "red", "mutant", "criterion-1", "criterion-2", "criterion-3"),)
POINTS = (
    *("db.migration.applied", "environment.build.begun", "environment.build.unmarked"),
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
    *("feature.begin.archived", "feature.begin.baseline", "feature.begin.excluded", "feature.begin.request"),
    *("feature.decided", "feature.stored", "feature.answer", "reader.made", "reader.left"),
    *("feature.graph", "feature.attempt", "criteria.judged", "feature.discrepancy", "feature.measured"),
    *("feature.proven", "feature.degraded", "feature.by_us", "feature.whole", "feature.headed"),
    *("feature.knowledge.noted", "feature.decisions", "feature.memory"),
    *("feature.commit.kept", "feature.commit.noted", "feature.commit.branched", "feature.commit.switched"),
    *("feature.committed", "feature.swept", "feature.exported"),
    *("git.candidate.stacked", "git.candidate.held", "git.landed", "git.commit.made", "git.commit.written"),
    *("git.pool.brought", "git.pool.marked", "git.pool.parked", "git.ref.moved", "git.ref.deleted"),
    *("git.switch.locked", "git.switch.written", "git.switch.indexed", "git.switch.headed", "git.switch.done"),
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

Case = tuple[str, str]
CHAINS: tuple[tuple[str, ...], ...] = (
    (
        *("engine.file.made#1", "feature.begin.archived#1", "reader.made#1", "dispatch.audited#2"),
        *("feature.stored#5", "feature.degraded#1", "graph.committed#1", "verify.ran.after#2"),
        *("feature.proven#1", "git.candidate.held#1"),
    ),
    (
        "store.write.written#24",  # in the midst of a document that the person sees
        *("dispatch.kept#8", "verify.recorded.mutant#3", "git.landed#1"),
        *("graph.prepared#1", "verify.ran.again#1", "feature.memory#1"),
        *("feature.commit.noted#1", "git.switch.written#1", "feature.swept#1"),
    ),
)
"""What the ordinary tests take of all points: two runs that are killed at ten each, one life after the other.

Each is counted from the start of its life.
"""
EVERY_ALONE: tuple[Case, ...] = tuple((point, passage) for point in POINTS for passage in ("first", "middle"))
EVERY_TOGETHER: tuple[Case, ...] = tuple(
    (point, "middle") for point in POINTS if point.startswith(("dispatch.", "feature.", "git.", "graph.", "verify."))
)
OFTEN = range(300, 2100, 100)
needs_hours = pytest.mark.width("sweep")  # each takes half a minute or more


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Runs that nobody killed are kept here, to hold others against them."""
    made = Grounds(tmp_path_factory.mktemp("kills"))
    yield made
    made.close()


def killed_at(grounds: Grounds, point: str, passage: str, *, alone: bool) -> Drill:
    """A run that was killed once, when a point was passed for the first time or for a time in the middle."""
    passed = grounds.reference(alone=alone).passed.count(point)
    if not passed:
        pytest.skip("this run does not pass it")
    if alone and passage == "middle" and passed == 1:
        pytest.skip("the first time is the only one")
    drill = grounds.drill(alone=alone)
    life = drill.live(f"{point}#{1 if passage == 'first' else passed // 2 + 1}")
    assert life.is_killed or point in SOMETIMES
    return drill


@needs_hours
@pytest.mark.req("P16")
def test_a_run_that_nobody_kills_passes_every_point_and_none_that_is_not_listed(grounds: Grounds) -> None:
    content, passed = grounds.reference(alone=True)
    assert set(passed).difference(SOMETIMES) == set(POINTS)
    assert set(content.tries.values()) == {1}
    empty = {"instruction_updates"}  # nobody proposed one
    assert {row.partition(" ")[0] for row in content.rows} == set(TABLES) - empty  # so all are compared
    kinds = [kind for kind, _ in content.decisions]
    assert {"revise", "replan"} <= set(kinds)
    assert kinds[-1] == "finish"


@pytest.mark.req("P16")
@pytest.mark.parametrize("points", CHAINS, ids=["early", "late"])
def test_killed_at_ten_points_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, points: tuple[str, ...]) -> None:
    drill = grounds.drill(alone=True)
    for point in points:
        assert drill.live(point).is_killed, f"{point} was not passed any more"
    assert_same(drill.end(), grounds.reference(alone=True).content)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize(("point", "passage"), EVERY_ALONE)
def test_killed_at_any_point_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, point: str, passage: str) -> None:
    drill = killed_at(grounds, point, passage, alone=True)
    assert_same(drill.end(), grounds.reference(alone=True).content)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize(("point", "passage"), EVERY_TOGETHER)
def test_killed_while_several_work_a_run_ends_alike(grounds: Grounds, point: str, passage: str) -> None:
    drill = killed_at(grounds, point, passage, alone=False)
    assert_alike(drill.end(), grounds.reference(alone=False).content)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize("every", OFTEN)
def test_killed_again_and_again_a_run_still_ends_as_if_nothing_had_happened(grounds: Grounds, every: int) -> None:
    """Each life comes so many points far; what counts is that each brings the run forward."""
    reference = grounds.reference(alone=True)
    drill = grounds.drill(alone=True)
    while drill.live(f"#{every}").is_killed:
        assert drill.kills <= 2 + 2 * len(reference.passed) // every, "it does not come forward"
    assert drill.kills
    assert_same(drill.end(), reference.content)


ROLLBACK = (
    *("git.switch.locked", "git.switch.written", "git.switch.indexed", "git.switch.headed", "git.switch.done"),
    *("git.ref.moved", "git.ref.deleted", "feature.rollback.left", "feature.rollback.kept", "feature.rollback.deleted"),
    *("ledger.record.inserted", "ledger.record.committed", "feature.rollback.noted"),
)


@pytest.mark.req("P11")
def test_a_rollback_that_is_killed_anywhere_is_brought_to_its_end_by_the_next(grounds: Grounds) -> None:
    for point in ROLLBACK if SWEEP else ROLLBACK[1::4]:
        drill = grounds.ended(alone=True)
        place = drill.repository
        assert drill.command("rollback", drill.run_id, kill_at=point).is_killed, point
        assert drill.command("rollback", drill.run_id).code == 0, point
        assert git(place, "symbolic-ref", "--short", "HEAD") == "main", point
        assert git(place, "status", "--porcelain") == "", point
        assert git(place, "branch", "--list", "feature*") == "", point
        assert git(place, "for-each-ref", "refs/fairwitness/rolled-back"), point
        assert "rolled back before" in drill.command("rollback", drill.run_id).said, point
        assert "all as written" in drill.command("ledger", "verify").said, point


@pytest.mark.req("P16")
@pytest.mark.parametrize("point", ["ledger.record.inserted", "feature.begun"])
def test_a_demo_that_is_killed_as_it_begins_left_no_run_or_one_that_is_there(tmp_path: Path, point: str) -> None:
    done = fairwitness("demo", "--dir", tmp_path / "play", cwd=tmp_path, FAIRWITNESS_KILL_AT=point)
    assert done.returncode == KILLED, done.stderr
    place = tmp_path / "play" / demo.DEMO.repository.folder
    listed = fairwitness("status", cwd=place)
    assert listed.returncode == 0
    assert listed.stdout.startswith("No runs in ") == (point != "feature.begun")
    assert git(place, "status", "--porcelain") == ""
    assert fairwitness("ledger", "verify", cwd=place).returncode == 0
    if point != "feature.begun":
        assert fairwitness("resume", cwd=place).returncode == 2
