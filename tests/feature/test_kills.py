"""A feature run survives `kill -9` after every durable write: same commit, decisions and evidence, no remains."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.runner import assay
from dag.kills import FULL, KILLED
from dag.remains import git
from feature.kills import Drill, Grounds
from feature.remains import TABLES, Content, assert_alike, assert_same, tries_of

pytestmark = pytest.mark.timeout(1200)  # each process that tests makes its own references first

SOMETIMES = frozenset(
    {
        *("engine.lease.beat", "engine.body.beat", "git.pool.displaced", "git.pool.taken"),
    }
)
"""Points that not every run passes: signs of life come every few seconds, and the pool is full or is not."""

POINTS = (
    *("db.migration.applied", "environment.build.begun", "environment.build.unmarked"),
    *("dispatch.started", "dispatch.driven", "dispatch.audited", "dispatch.kept", "dispatch.finished"),
    *("engine.file.made", "engine.tables.made", "engine.queue.made", "engine.lease.joined", "engine.lease.left"),
    *("engine.queued", "engine.taken", "engine.body.entered", "engine.step.recorded", "engine.body.left"),
    "engine.outcome.written",
)
"""Every point that a run passes for sure which nobody kills; a test holds it to that."""

Case = tuple[str, str]
SAMPLE: tuple[Case, ...] = (
    ("dispatch.kept", "middle"),
    ("feature.decided", "middle"),
    ("feature.proven", "middle"),
    ("git.landed", "middle"),
    ("git.switch.written", "first"),
    ("feature.swept", "first"),
)
"""What the ordinary tests take of all cases; one takes about a minute on a busy machine with two cores."""
SAMPLE_TOGETHER: tuple[Case, ...] = (("dispatch.driven", "middle"),)
EVERY: tuple[Case, ...] = tuple((point, passage) for point in POINTS for passage in ("first", "middle"))
EVERY_TOGETHER: tuple[Case, ...] = tuple(
    (point, "middle") for point in POINTS if point.startswith(("dispatch.", "feature.", "git.", "verify."))
)


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
    drill = grounds.drill(alone=alone)
    life = drill.live(f"{point}#{1 if passage == 'first' else passed // 2 + 1}")
    assert life.is_killed or point in SOMETIMES
    return drill


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
@pytest.mark.parametrize(("point", "passage"), EVERY if FULL else SAMPLE)
def test_killed_at_any_point_a_run_ends_as_if_nothing_had_happened(grounds: Grounds, point: str, passage: str) -> None:
    drill = killed_at(grounds, point, passage, alone=True)
    assert_same(drill.end(), grounds.reference(alone=True).content)


@pytest.mark.req("P16")
@pytest.mark.parametrize(("point", "passage"), EVERY_TOGETHER if FULL else SAMPLE_TOGETHER)
def test_killed_while_several_work_a_run_ends_alike(grounds: Grounds, point: str, passage: str) -> None:
    drill = killed_at(grounds, point, passage, alone=False)
    assert_alike(drill.end(), grounds.reference(alone=False).content)


@pytest.mark.req("P16")
@pytest.mark.parametrize("every", range(100, 2100, 100) if FULL else [1100])
def test_killed_again_and_again_a_run_still_ends_as_if_nothing_had_happened(grounds: Grounds, every: int) -> None:
    """Each life comes so many points far; what counts is that each brings the run forward."""
    reference = grounds.reference(alone=True)
    drill = grounds.drill(alone=True)
    while drill.live(f"#{every}").is_killed:
        assert drill.kills <= 2 + 2 * len(reference.passed) // every, "it does not come forward"
    assert drill.kills
    assert_same(drill.end(), reference.content)
