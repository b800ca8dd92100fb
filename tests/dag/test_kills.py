"""A run of a graph survives `kill -9` after every durable write: same target, decisions and evidence, no remains."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dag import program
from dag.kills import KILLED, POINTS, SOMETIMES, TESTS, Drill, Grounds
from dag.program import FIVE, FIVE_ALONE, ONE, TWELVE_ALONE
from dag.remains import TABLES, Content, assert_alike, assert_clean, assert_same, content_of, git
from fairwitness.errors import UsageError
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.budget_account import STARTED
from support.graph.team import RUN, TWELVE, Task
from support.ladder import SWEEP, widened

pytestmark = pytest.mark.timeout(600)  # each process that tests lays its own references first

CONTESTED = frozenset({"newest"})
"""Two tasks write it; who was second may have been helped, or have begun after the first."""
SLOW = "sleep 2.125"

Case = tuple[str, str]
FEW_ALONE: tuple[Case, ...] = (
    ("dispatch.driven", "middle"),
    ("engine.outcome.written", "first"),
    ("git.worktree.unmarked", "first"),
    ("ledger.anchor.line", "last"),
    ("verify.recorded.after", "middle"),
)
FEW: tuple[Case, ...] = (
    ("dispatch.started", "middle"),
    ("git.landed", "middle"),
    ("ledger.record.committed", "middle"),
)
EVERY: tuple[Case, ...] = tuple((point, passage) for point in (*POINTS, *SOMETIMES) for passage in ("first", "middle"))
EVERY_ALONE: tuple[Case, ...] = (*EVERY, *((point, "last") for point in POINTS))


def killed_at(grounds: Grounds, tasks: tuple[Task, ...], point: str, passage: str) -> Drill:
    """A run that was killed once, when a point was passed for the first or last time, or for a time in the middle."""
    passed = grounds.reference(tasks).passed.count(point)
    if not passed:
        assert point in SOMETIMES
        pytest.skip("this run does not pass it")
    drill = grounds.drill(tasks)
    life = drill.live(f"{point}#{ {'first': 1, 'middle': passed // 2 + 1, 'last': passed}[passage] }")
    assert life.is_killed or point in SOMETIMES
    return drill


def assert_nothing_repeated(found: Content, kills: int) -> None:
    """A dispatch that ended is never made again; one that had not may be begun again by each life but the first."""
    assert sum(found.tries.values()) - len(found.tries) <= kills * 4  # as many as may be under way at a time
    assert max(found.tries.values()) <= 1 + kills


@pytest.mark.req("F10")
@pytest.mark.parametrize("tasks", [FIVE_ALONE, FIVE], ids=["one-after-the-other", "at-the-same-time"])
def test_a_run_that_nobody_kills_passes_every_point_and_none_that_is_not_listed(
    grounds: Grounds, tasks: tuple[Task, ...]
) -> None:
    content, passed = grounds.reference(tasks)
    assert set(passed).difference(SOMETIMES) == set(POINTS)
    assert content.courses["task-04"][:4] == ["1 RUNNING", "1 FAILED", "2 PENDING", "2 RUNNING"]
    assert any('"conflict.found"' in decision for decision in content.decisions) == (tasks is FIVE)
    assert {row.partition(" ")[0] for row in content.rows} == set(TABLES) - {"approvals"}  # so all are compared
    assert all(course[-1].endswith("MERGED") for course in content.courses.values())


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.req("F10")
@pytest.mark.parametrize(("point", "passage"), widened(EVERY_ALONE, FEW_ALONE))
def test_killed_at_any_point_a_run_of_settled_order_ends_as_if_nothing_had_happened(
    grounds: Grounds, point: str, passage: str
) -> None:
    tasks = TWELVE_ALONE if SWEEP and passage == "middle" else FIVE_ALONE
    drill = killed_at(grounds, tasks, point, passage)
    found = drill.end()
    assert_same(found, grounds.reference(tasks).content)
    assert sum(found.tries.values()) - len(found.tries) <= drill.kills


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.req("F10")
@pytest.mark.parametrize(("point", "passage"), widened(EVERY, FEW))
def test_killed_at_any_point_while_four_work_a_run_ends_with_the_same_files_and_courses(
    grounds: Grounds, point: str, passage: str
) -> None:
    tasks = TWELVE if SWEEP and passage == "middle" else FIVE
    drill = killed_at(grounds, tasks, point, passage)
    found = drill.end()
    assert_alike(found, grounds.reference(tasks).content, contested=CONTESTED)
    assert_nothing_repeated(found, drill.kills)


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.req("F10")
@pytest.mark.timeout(3600)
def test_a_run_of_settled_order_that_dies_again_and_again_ends_as_if_nothing_had_happened(grounds: Grounds) -> None:
    tasks = TWELVE_ALONE if SWEEP else FIVE_ALONE
    reference = grounds.reference(tasks).content
    drill = grounds.drill(tasks)
    found = die_often(drill)
    assert_same(found, reference)
    assert sum(found.tries.values()) - len(found.tries) <= drill.kills


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.req("F10")
@pytest.mark.timeout(3600)
def test_a_run_of_four_at_a_time_that_dies_again_and_again_ends_with_the_same_files_and_courses(
    grounds: Grounds,
) -> None:
    tasks = TWELVE if SWEEP else FIVE
    reference = grounds.reference(tasks).content
    drill = grounds.drill(tasks)
    found = die_often(drill)
    assert_alike(found, reference, contested=CONTESTED)
    assert_nothing_repeated(found, drill.kills)


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.req("F10")
def test_killed_while_it_makes_good_a_kill_a_run_ends_as_if_nothing_had_happened(grounds: Grounds) -> None:
    drill = grounds.drill(FIVE_ALONE)
    for point in ("dispatch.driven#2", "dispatch.restored", "engine.lease.taken-over", "dispatch.restored"):
        assert drill.live(point).is_killed
    found = drill.end()
    assert_same(found, grounds.reference(FIVE_ALONE).content)
    assert sorted(found.tries.values()) == [1, 1, 1, 1, 1, 2]  # whoever dies before it is begun again has not begun it


def die_often(drill: Drill) -> Content:
    """Hundreds of lives that do a little each; in the ordinary tests a dozen that do more."""
    if SWEEP:
        assert len(list(drill.die_often(1))) > 100
    else:
        assert all(drill.live(f"#{60 + number}").is_killed for number in range(12))
    return drill.end()


@pytest.mark.req("P16")
@pytest.mark.req("F10")
def test_killed_while_an_agents_command_runs_the_attempt_goes_on_from_its_start(grounds: Grounds) -> None:
    drill = grounds.drill(ONE, check=f"test ! -e parts/task-01 || {SLOW}", runs="sh check.sh")
    life = drill.live(kill_when=SLOW)
    assert life.is_seen
    assert life.is_killed  # and `live` has seen to it that the command went with it
    found = drill.end()
    assert found.tries == {"task-01-1": 2}
    assert found.courses["task-01"] == ["1 RUNNING", "1 DONE", "1 MERGE_READY", "1 MERGED"]
    kept = git(drill.state / "git", "ls-tree", "-r", "--name-only", found.left["task-01-1"]).split()
    assert "parts/task-01" in kept  # what the killed try left
    started, again = _begun(drill, "task-01-1")
    assert started == again
    assert "parts/task-01" not in git(drill.state / "git", "ls-tree", "-r", "--name-only", started).split()


@pytest.mark.req("P16")
@pytest.mark.req("F10")
def test_killed_while_a_check_runs_only_the_check_is_made_again(grounds: Grounds) -> None:
    drill = grounds.drill(ONE, check=f"test ! -e parts/task-01 || {SLOW}")
    life = drill.live(kill_when=SLOW)
    assert life.is_seen
    assert life.is_killed
    found = drill.end()
    assert found.tries == {"task-01-1": 1}
    assert found.courses["task-01"] == ["1 RUNNING", "1 DONE", "1 MERGE_READY", "1 MERGED"]


def _begun(drill: Drill, dispatch: str) -> list[str]:
    """The trees from which the tries of a dispatch began."""
    ledger = Ledger.read_only(drill.state / "evidence.db")
    try:
        rows = ledger.observations(RUN, STARTED)
        return [row.tree for row in rows if row.subject == dispatch and row.tree is not None]
    finally:
        ledger.close()


@pytest.mark.req("P16")
@pytest.mark.parametrize(("point", "is_there"), [("ledger.record.linked", False), ("graph.begun", True)])
def test_a_run_killed_while_it_is_begun_is_there_whole_or_not_at_all(
    tmp_path: Path, point: str, is_there: bool
) -> None:
    program.lay(tmp_path, ONE)
    assert _cold("begin", tmp_path, "one", FAIRWITNESS_KILL_AT=point).returncode == KILLED
    if not is_there:
        program.begin(tmp_path, ONE)
        return
    with pytest.raises(UsageError, match="already"):
        program.begin(tmp_path, ONE)
    assert _cold("run", tmp_path, FAIRWITNESS_KILL_AT="dispatch.finished").returncode == KILLED
    ended = _cold("run", tmp_path)
    assert json.loads(ended.stdout)["value"]["completed"]
    assert_clean(tmp_path)
    assert content_of(tmp_path).tries == {"task-01-1": 1}


def _cold(*arguments: str | Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    """A process that has loaded nothing beforehand."""
    return subprocess.run(
        [sys.executable, "-m", "dag.program", *map(str, arguments)],
        cwd=TESTS,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
