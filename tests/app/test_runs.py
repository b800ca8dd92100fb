"""Runs as people look at them say what the folds say, whatever happened and however much of it was read."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from app.graph_walk import Walk, dag_of, random_walk
from fairwitness.app.views.detail import open_database, plain_detail, read_detail, resolve_run, run_lines
from fairwitness.app.views.event_lines import any_event_text, event_text
from fairwitness.app.views.followed_run import follow_run
from fairwitness.app.views.run import NodeStage, RunView, WatchEnd
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.documents import SubtaskStatus
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.errors import DatabaseUnusable, EventsBroken, UsageError
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.run_summary import NODE_TYPES, RUN_TYPES
from fairwitness.ledger.summary import events_after, graph_of, last_events, run_summaries
from fairwitness.ledger.summary_event import EVENT_VERSION, SummaryEvent
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.fold import UPCASTERS, current_version
from fairwitness.rules.fold_forge import fold_forge


def _agree(walk: Walk, view: RunView) -> None:
    """Everything that is shown is what the executor's own view and the run's own files say."""
    run = walk.run
    begun = walk.log.begun()
    folded = fold_forge(walk.ledger.events(walk.run_id), begun.dag, max_attempts=begun.options.max_attempts)
    assert not isinstance(folded, Problem), folded
    for name, status in run.nodes.items():
        node = view.nodes.get(name)
        if node is None:
            assert status.status is NodeState.PENDING
            assert status.currentAttempt == 1
            continue
        assert (node.state, node.attempt) == (status.status.value, status.currentAttempt)
        assert node.is_exhausted == is_exhausted(status)
        assert node.error == folded.dag.nodes[name].lastError
        stage = view.stage(node)
        assert stage.value == (run.work[name].stage.value if name in run.work else NodeStage.RESTING)
        if status.startedAt is not None and status.status is NodeState.RUNNING:
            assert node.since == status.startedAt
    assert [node.name for node in view.at(NodeStage.QUEUED)] == list(run.queue)
    assert set(view.batch) == set(run.batch.nodes if run.batch else ())
    assert (view.seq, view.status) == (run.seq, folded.run.status.value)
    counts = view.counts()
    assert (counts["total"], counts["merged"], counts["failed"], counts["running"]) == (
        folded.run.totalTasks,
        folded.run.completedTasks,
        folded.run.failedTasks,
        folded.run.runningTasks,
    )


@pytest.mark.req("F5")
@pytest.mark.parametrize("seed", range(16))
def test_what_is_shown_of_a_run_is_what_its_events_fold_to(tmp_path: Path, seed: int) -> None:
    walk = random_walk(tmp_path, seed, steps=10 + 5 * seed)
    try:
        with open_database(tmp_path) as database:
            _agree(walk, read_detail(database, walk.run_id).view)
            whole = RunView(walk.run_id)
            for event in events_after(database, walk.run_id, 0):
                whole.apply_event(event)
            _agree(walk, whole)
            (line,), left = run_lines(tmp_path)
            counts = whole.counts()
            assert left == 0
            assert (line.total, line.merged, line.failed, line.running) == (
                counts["total"],
                counts["merged"],
                counts["failed"],
                counts["running"],
            )
            assert line.status == whole.status
    finally:
        walk.close()


@pytest.mark.req("X4")
def test_a_look_at_any_database_shows_the_same(ledger: Ledger) -> None:
    walk = random_walk(ledger, 7, steps=45)
    _agree(walk, read_detail(ledger.database, walk.run_id).view)
    (run,) = run_summaries(ledger.database, RunView)
    counted = Counter(node.status for node in walk.run.nodes.values())
    assert run.counted == {
        "merged": counted[NodeState.MERGED],
        "running": counted[NodeState.RUNNING],
        "failed": sum(map(is_exhausted, walk.run.nodes.values())),
    }
    assert [run.run_id for run in run_summaries(ledger.database, RunView)] == [walk.run_id]
    assert graph_of(ledger.database, walk.run_id) is not None
    assert len(last_events(ledger.database, walk.run_id, 5)) == 5


def test_whoever_watches_keeps_up_event_by_event(tmp_path: Path) -> None:
    import random

    walk, rng = random_walk(tmp_path, 3, steps=20), random.Random(99)
    with follow_run(tmp_path, walk.run_id) as followed:
        seen = followed.view.seq
        for _ in range(40):
            walk.step(rng)
            news = followed.news()
            assert [event.seq for event in news] == list(range(seen + 1, walk.run.seq + 1))
            seen = walk.run.seq
            _agree(walk, followed.view)
    walk.close()


def test_every_event_that_is_looked_at_is_one_that_can_happen() -> None:
    forge = {name for name in (*RUN_TYPES, *NODE_TYPES) if "." in name}
    assert forge <= set(FORGE_EVENT_TYPES)
    assert {current_version(name, UPCASTERS[Workflow.FORGE]) for name in forge} == {EVENT_VERSION}


def _event(type_: str, data: dict[str, Any], *, seq: int = 1, version: int = 1) -> SummaryEvent:
    return SummaryEvent("e", seq, "2026-02-26T14:30:00Z", "forge", "run-1", None, None, None, type_, version, data)


@pytest.mark.parametrize(
    "event",
    [
        _event("node.changed", {"newStatus": "RUNNING"}),
        _event("plan.proposed", {"tasks": "many", "refineries": 0}),
        _event("merge.started", {"nodes": 7}),
        _event("run.started", {}, version=2),
    ],
)
def test_an_event_that_cannot_be_is_an_error_and_not_a_guess(event: SummaryEvent) -> None:
    with pytest.raises(EventsBroken):
        RunView("run-1").apply_event(event)


def test_an_event_of_a_kind_nobody_knows_is_passed_over(tmp_path: Path) -> None:
    view = RunView("run-1")
    view.apply_event(_event("weather.changed", {"to": "rain"}, version=7))
    assert view.seq == 1


@pytest.mark.parametrize(
    ("events", "end"),
    [
        ([happened.ForgeRunStarted()], None),
        ([happened.ForgeRunStarted(), happened.RunPaused(reason="lunch")], WatchEnd.PERSON),
        ([happened.RunFailed(reason="no attempt left for the-budget")], WatchEnd.FAILED),
        ([happened.RunFailed(reason="cancelled by Ada")], WatchEnd.FAILED),
        ([happened.RunFailed(reason="over budget: the run has used 9 of 8 tokens")], WatchEnd.BUDGET),
        ([happened.RunFailed(reason="the budget is used up: tokens")], WatchEnd.BUDGET),
        ([happened.RunFailed(reason="over budget: 1"), happened.ForgeRunResumed()], None),
    ],
)
def test_why_there_is_nothing_more_to_watch(
    tmp_path: Path, events: list[happened.ForgeEvent], end: WatchEnd | None
) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": ()}))
    walk.tell(*events)
    with open_database(tmp_path) as database:
        assert read_detail(database, "run-1").view.ended() == end
    walk.close()


def test_a_paused_run_waits_for_a_person_only_once_what_ran_has_come_to_rest(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": ()}))
    walk.tell(happened.ForgeRunStarted())
    walk.start("a")
    walk.tell(happened.RunPaused(reason="lunch"))
    with open_database(tmp_path) as database:
        assert read_detail(database, "run-1").view.ended() is None
        walk.fail("a")
        assert read_detail(database, "run-1").view.ended() is WatchEnd.PERSON
    walk.close()


@pytest.mark.req("F10")
def test_a_node_that_was_given_more_attempts_is_no_failure_until_they_are_used_up(ledger: Ledger) -> None:
    walk = Walk(ledger, dag_of("run-1", {"a": (), "b": ()}), max_attempts=1)
    walk.tell(happened.ForgeRunStarted())
    failed = []
    for move in (walk.start, walk.fail, walk.reopen, walk.start, walk.fail, walk.reopen, walk.finish):
        move("a")
        view = read_detail(ledger.database, "run-1").view
        _agree(walk, view)
        assert view.counted["failed"] == view.counts()["failed"]
        failed.append(view.counts()["failed"])
    assert failed == [0, 1, 0, 0, 1, 0, 0]


@pytest.mark.req("F6", "F10")
@pytest.mark.parametrize("started", [[], [happened.ForgeRunStarted()]])
def test_a_run_that_failed_and_goes_on_is_shown_where_it_is(tmp_path: Path, started: list[happened.ForgeEvent]) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": ()}))
    walk.tell(*started, happened.RunFailed(reason="no"), happened.ForgeRunResumed())
    with open_database(tmp_path) as database:
        view = read_detail(database, "run-1").view
        _agree(walk, view)
        assert view.status == ("executing" if started else "plan_review")
    walk.close()


def test_the_run_a_person_means(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run:alpha", {"a": ()}))
    with open_database(tmp_path) as database:
        for spelled in ("run:alpha", "run-alpha", "last", None):
            assert resolve_run(database, spelled) == "run:alpha"
        with pytest.raises(UsageError) as near:
            resolve_run(database, "run:alpa")
        assert "did you mean run:alpha?" in near.value.next_step
        with pytest.raises(UsageError) as begins:
            resolve_run(database, "run:")
        assert "did you mean run:alpha?" in begins.value.next_step
        with pytest.raises(UsageError) as far:
            resolve_run(database, "\x1b[2J")
        assert "\x1b" not in far.value.what
        walk.tell(happened.RunFailed(reason="no"))
        with pytest.raises(UsageError, match="there is no unfinished run"):
            resolve_run(database, None)
    walk.close()
    with pytest.raises(DatabaseUnusable), open_database(tmp_path / "elsewhere"):
        pass


def test_of_runs_that_ended_a_list_shows_only_the_newest_and_of_others_all(tmp_path: Path) -> None:
    for number in range(6):
        walk = Walk(tmp_path, dag_of(f"run-{number}", {"a": ()}))
        if number != 2:
            walk.tell(happened.RunFailed(reason="no"))
        walk.close()
    lines, left = run_lines(tmp_path, most=2)
    assert (left, len(lines)) == (3, 3)
    assert "run-2" in {line.run_id for line in lines}
    assert len(run_lines(tmp_path)[0]) == 6


def test_a_run_in_detail_as_plain_values(tmp_path: Path) -> None:
    walk = Walk(tmp_path, dag_of("run-1", {"a": (), "b": (), "c": ("a",)}))
    walk.tell(happened.ForgeRunStarted())
    walk.start("a")
    walk.start("b")
    walk.verify("a")
    with open_database(tmp_path) as database:
        plain = plain_detail(read_detail(database, "run-1"))
    walk.close()
    assert [(node["node"], node["stage"], node["attempt"]) for node in plain["at_work"]] == [("b", "working", 1)]
    assert [node["node"] for node in plain["to_be_merged"]] == ["a"]
    assert (plain["status"], plain["waits_for"]) == ("executing", "1 at work, 1 to be merged")
    assert len(plain["last_events"]) == 5
    assert plain["last_events"][-1]["type"] == "task.verified"


@pytest.mark.parametrize("type_", FORGE_EVENT_TYPES)
def test_every_event_has_words_even_if_its_data_is_nonsense(type_: str) -> None:
    for data in ({}, {"nodeId": "\x1b]0;x\x07", "nodes": None, "reason": 7}):
        words = any_event_text(_event(type_, data))
        assert words.isprintable()
        assert words
        assert event_text(_event(type_, data)) in (None, words)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            happened.TaskReopened(nodeId="t1", maxAttempts=4, actor="Ada"),
            "task      t1             retried  Ada allows 4 attempts",
        ),
        (
            happened.HelperStarted(nodeId="t1", attemptId=1, agent="worker-1", dispatch="t1.1.h1", task="look it up"),
            "task      t1             helped   by worker-1: look it up",
        ),
        (
            happened.SubtaskWritten(nodeId="t1", subtaskId="subtask-001", agentType=2, title="the page"),
            "task      t1             split    subtask-001: the page",
        ),
        (
            happened.SubtaskChanged(nodeId="t1", subtaskId="subtask-001", status=SubtaskStatus.FAILED),
            "task      t1             failed   subtask-001",
        ),
        (
            happened.WalkthroughDisputed(nodeId="t1", attemptId=1, differences=("a", "b")),
            "task      t1             refuted  a; b",
        ),
        (
            happened.ChangeRequestEmitted(crId="cr-001", emittedBy="r1", affectedTasks=(), title="a page is missing"),
            "request   cr-001         asked    by r1: a page is missing",
        ),
        (
            happened.NodeRetried(nodeId="t1", nextAttempt=2, reason="tests (regressed)"),
            "task      t1             failed   attempt 1, retrying: tests (regressed)",
        ),
        (
            happened.TaskExhausted(nodeId="t1", attempts=2, lastError="tests (regressed)"),
            "task      t1             failed   attempt 2, no retry left: tests (regressed)",
        ),
        (
            happened.MergeFinished(
                batch=3, tip="a" * 40, landed=("t1",), culprit="t2", conflicting=(), left=("t3",), checks=2
            ),
            "merge     batch 3        blocked  t2 makes the checks of the merged tree fail; 1 merged; "
            "1 back in the queue",
        ),
        (
            happened.ChangeRequestRejected(crId="cr-001", actor="Ada", reason="out of scope"),
            "request   cr-001         refused  by Ada: out of scope",
        ),
        (
            happened.OverlayRefused(crId="cr-001", problems=("a cycle",)),
            "request   cr-001         refused  a cycle",
        ),
        (
            happened.ChangeRequestEmitted(crId="cr-001", emittedBy="r1", affectedTasks=()),
            "request   cr-001         asked    by r1",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, EventData) else "",
)
def test_what_workers_and_people_do_is_told_in_words(event: EventData, words: str) -> None:
    data = event.plain()
    assert event_text(_event(data.pop("type"), data)) == words
