"""A forge run survives `kill -9` after every durable write: same plan, graph, requests and evidence, no remains."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cli.runner import fairwitness
from dag.kills import KILLED
from dag.remains import git
from feature.kills import Drill, Grounds
from feature.remains import assert_alike, assert_same
from forge.chains import Case, firsts, in_order, middles, share, sweep
from forge.kills import FORGE
from support import demo_forge as demo

pytestmark = pytest.mark.timeout(1800)  # each process that tests makes its own references first

SOMETIMES = frozenset(
    {
        *("engine.lease.beat", "engine.body.beat", "git.pool.displaced", "git.pool.taken"),
    }
)
"""Points that not every run passes: signs of life come every few seconds, and the pool is full or is not."""

PURPOSES = ("baseline", "after", "again", "protected", "red", "mutant", "criterion-1", "criterion-2", "criterion-3")
POINTS = (
    *(
        "dispatch.started",
        "dispatch.driven",
        "dispatch.answered",
        "dispatch.audited",
        "dispatch.kept",
        "dispatch.finished",
    ),
    "criteria.judged",
    *("engine.file.made", "engine.tables.made", "engine.queue.made", "engine.lease.joined", "engine.lease.left"),
    *("engine.queued", "engine.taken", "engine.body.entered", "engine.step.recorded", "engine.body.left"),
    "engine.outcome.written",
    *("environment.build.begun", "environment.build.unmarked"),
    *("forge.plan.written", "forge.proposed", "forge.sealed", "forge.locked", "reader.made", "reader.left"),
    *("forge.subtask", "forge.subtask.stored", "forge.subtask.changed"),
    *("forge.walkthrough.stored", "forge.walkthrough", "forge.disputed"),
    *("forge.requested", "forge.decided", "forge.requests.written", "forge.ended"),
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
        *("order", "proposal", "graph", "overlay", "document"),
        *("helper", "subtask", "walkthrough", "dispute", "wanted", "request"),
    }
)
"""What a run observes about itself: the demo has all of it, so all of it is compared."""

CHAINS: tuple[tuple[str, ...], ...] = (
    (
        *("engine.queued#1", "dispatch.driven#1", "forge.plan.written#7", "forge.proposed#1", "forge.sealed#1"),
        *("forge.locked#1", "forge.walkthrough.stored#2", "forge.disputed#1", "forge.requested#1", "git.landed#1"),
    ),
    (
        "forge.decided#1",
        # task-005: its helper begins, ends, and is taken over
        *("dispatch.started#2", "dispatch.finished#1", "forge.helper.restored#1"),
        # task-006: both parts are written, the first helper is at work, its part is done, the second has ended
        *("forge.subtask#2", "dispatch.audited#1", "forge.subtask.changed#1", "dispatch.finished#1"),
        # told by the agent of task-006; then the run's last event, before anything is swept
        *("forge.walkthrough#1", "forge.ended#1"),
    ),
)
"""What the ordinary tests take of all points: two runs that are killed at ten each, one life after the other.

Each is counted from the start of its life.
"""
PASSAGES = ("first", "middle")
TOGETHER: tuple[str, ...] = tuple(
    point for point in POINTS if point.startswith(("dispatch.", "forge.", "git.", "graph.", "verify."))
)
"""Points at which it matters that others are at work."""
HELPED: tuple[str, ...] = (
    *(f"dispatch.started#{number}" for number in (10, 12, 13)),
    *(f"dispatch.{point}#{number}" for point in ("driven", "audited", "kept", "finished") for number in (9, 11, 12)),
    *(f"forge.subtask.changed#{number}" for number in (1, 2, 3, 4)),
    *(f"forge.subtask.stored#{number}" for number in (1, 4, 6)),
)
"""Moments at which an agent and one that it asked for help are both under way, or hardly not any more."""
OFTEN = range(300, 2100, 150)
ALONE_CHAINS, TOGETHER_CHAINS = 13, 5
"""How many runs the points are dealt out to: about a dozen each."""
needs_hours = pytest.mark.width("sweep")  # each takes half a minute or more
needs_minutes = pytest.mark.width("sweep")  # each takes a minute or two


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """Runs that nobody killed are kept here, to hold others against them."""
    made = Grounds(tmp_path_factory.mktemp("kills"), FORGE)
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
    assert drill.live(f"{point}#{1 if passage == 'first' else passed // 2 + 1}").is_killed
    return drill


@pytest.mark.req("P16")
def test_a_run_that_nobody_kills_passes_every_point_and_none_that_is_not_listed(grounds: Grounds) -> None:
    content, passed = grounds.reference(alone=True)
    assert set(passed).difference(SOMETIMES) == set(POINTS)
    assert set(content.tries.values()) == {1}
    seen = [row for row in content.rows if row.startswith("observations ")]
    assert {json.loads(row.removeprefix("observations "))["kind"] for row in seen} >= KINDS


@pytest.mark.req("P16")
@pytest.mark.parametrize("points", CHAINS, ids=["planned", "helped"])
def test_killed_at_ten_points_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, points: tuple[str, ...]) -> None:
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
    cases = [
        *firsts(share(POINTS, chain, of=ALONE_CHAINS)),
        *middles(share(POINTS, chain + ALONE_CHAINS // 2, of=ALONE_CHAINS), passed),
        *(Case.named(name) for name in share(HELPED, chain, of=ALONE_CHAINS)),
    ]
    check = partial(assert_same, reference=content)
    sweep(grounds, in_order(cases, passed), tmp_path / "log", alone=True, check=check)


@needs_minutes
@pytest.mark.req("P16")
@pytest.mark.parametrize("chain", range(TOGETHER_CHAINS))
def test_killed_at_every_point_in_turn_while_several_work_a_run_ends_alike(
    grounds: Grounds, tmp_path: Path, chain: int
) -> None:
    content, passed = grounds.reference(alone=False)
    points = share(TOGETHER, chain, of=TOGETHER_CHAINS)
    once = [point for point in points if passed.count(point) == 1]
    cases = [*firsts(once), *middles(points, passed)]
    check = partial(assert_alike, reference=content)
    sweep(grounds, in_order(cases, passed), tmp_path / "log", alone=False, check=check)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize("passage", PASSAGES)
@pytest.mark.parametrize("point", POINTS)
def test_killed_at_any_point_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, point: str, passage: str) -> None:
    drill = killed_at(grounds, point, passage, alone=True)
    assert_same(drill.end(), grounds.reference(alone=True).content)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize("point", HELPED)
def test_killed_around_a_helper_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, point: str) -> None:
    drill = grounds.drill(alone=True)
    assert drill.live(point).is_killed
    assert_same(drill.end(), grounds.reference(alone=True).content)


@needs_hours
@pytest.mark.req("P16")
@pytest.mark.parametrize("point", TOGETHER)
def test_killed_while_several_work_a_run_ends_alike(grounds: Grounds, point: str) -> None:
    drill = killed_at(grounds, point, "middle", alone=False)
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


@pytest.mark.req("P16")
@pytest.mark.parametrize("point", ["ledger.record.inserted", "forge.begun"])
def test_a_demo_that_is_killed_as_it_begins_left_no_run_or_one_that_is_there(tmp_path: Path, point: str) -> None:
    done = fairwitness("demo", "--forge", "--dir", tmp_path / "play", cwd=tmp_path, FAIRWITNESS_KILL_AT=point)
    assert done.returncode == KILLED, done.stderr
    place = tmp_path / "play" / demo.DEMO.repository.folder
    listed = fairwitness("status", cwd=place)
    assert listed.returncode == 0
    assert listed.stdout.startswith("No runs in ") == (point != "forge.begun")
    assert git(place, "status", "--porcelain") == ""
    assert fairwitness("ledger", "verify", cwd=place).returncode == 0
    if point != "forge.begun":
        assert fairwitness("resume", cwd=place).returncode == 2
