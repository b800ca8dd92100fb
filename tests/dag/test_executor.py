"""The executor, case by case, in a simulated world in which exactly what is told goes wrong."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from fairwitness.contracts.common.events import Envelope, EventData
from fairwitness.contracts.forge.dag import AddedEdge, Dag, DagOverlay, NodeState
from fairwitness.contracts.forge.events import ForgeRunStarted, MergeStarted, NodeChanged, TaskVerified
from fairwitness.contracts.graph.orders import MERGE, AttemptOrder, GraphEnd, GraphOptions
from fairwitness.dag.executor import STALLED
from fairwitness.engine.base import ExecutionStatus
from fairwitness.errors import EventsBroken
from support.graph.sim import OPTIONS, GraphWorld
from support.graph.sim_desk import BUDGET_USED_UP, TAKEN_OUT
from support.graph.sim_faults import Climate, Fault, Told
from support.graph.sim_graphs import RUN, dag_of, node, simple_dag
from support.graph.sim_journal import Kept

_SHORT = {"work": 1.0, "prove": 0.5, "check": 0.5}


def _fixed(step: str, _rng: object) -> float:
    return 0.0 if step == "begin" else _SHORT.get(step, 0.01)


def _world(dag: Dag, *faults: tuple[object, ...], climate: Climate | None = None, **options: Any) -> GraphWorld:
    """A world in which every step takes its fixed time, and exactly these faults happen."""
    chosen = GraphOptions.model_validate({**OPTIONS.plain(), **options})
    return GraphWorld(dag, verdicts=Told(frozenset(faults)), options=chosen, takes=_fixed, climate=climate)


def _told(world: GraphWorld, *kinds: str) -> list[Envelope]:
    return [envelope for envelope in world.runner.written if envelope.type in kinds]


def _states(world: GraphWorld, name: str) -> list[str]:
    return [each.data["newStatus"] for each in _told(world, "node.changed") if each.data["nodeId"] == name]


def _starts(world: GraphWorld) -> list[tuple[str, int]]:
    return [(each.data["nodeId"], each.data["attemptId"]) for each in _told(world, "task.started")]


LANDS = ["RUNNING", "DONE", "MERGE_READY", "MERGED"]


@pytest.mark.req("F3")
def test_a_node_runs_and_is_merged_and_its_dependents_begin_with_it() -> None:
    world = _world(simple_dag(t1="", t2="t1", t3="t1", t4="t2 t3"))
    end = world.run()
    assert end.completed
    assert end.merged == 4
    assert end.tip == world.git.tip
    assert [_states(world, name) for name in ("t1", "t2", "t3", "t4")] == [LANDS] * 4
    branches = [each.data["branch"] for each in _told(world, "task.started")]
    assert branches == [f"fairwitness/{RUN}/{name}/attempt-1" for name in ("t1", "t2", "t3", "t4")]


@pytest.mark.req("X7")
def test_those_with_the_longest_way_to_the_end_start_first() -> None:
    dag = dag_of([node("t1"), node("t2", estimate=9), node("t3"), node("t4", ["t3"]), node("t5", ["t4"])])
    world = _world(dag, cap=1)
    assert world.run().completed
    assert [name for name, _ in _starts(world)] == ["t2", "t3", "t1", "t4", "t5"]


@pytest.mark.req("P12", "X7")
@pytest.mark.parametrize("cap", [1, 3])
def test_at_most_so_many_attempts_work_at_a_time(cap: int) -> None:
    world = _world(dag_of(node(f"t{place}") for place in range(8)), cap=cap)
    assert world.run().completed
    assert world.watch.most_at_work == cap


def test_an_attempt_that_waits_to_be_merged_takes_no_place_under_the_cap() -> None:
    world = _world(simple_dag(t1="", t2="", t3=""), cap=1, batch=1)
    assert world.run().completed
    seqs = {(each.type, each.data.get("nodeId")): each.seq for each in world.runner.written}
    assert seqs["task.started", "t2"] < seqs["branch.merged", "t1"]


@pytest.mark.req("F3")
def test_two_writers_of_one_file_do_not_run_side_by_side() -> None:
    dag = dag_of([node("t1", writes=["src/a.py"]), node("t2", writes=["src/"]), node("t3", writes=["docs/b.md"])])
    world = _world(dag)
    assert world.run().completed
    assert [name for name, _ in _starts(world)] == ["t1", "t3", "t2"]


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize("fault", [Fault.AGENT, Fault.RED, Fault.IDLE])
def test_an_attempt_that_failed_is_made_again_through_pending(fault: Fault) -> None:
    world = _world(simple_dag(t1=""), (fault, "t1", 1, False))
    assert world.run().completed
    assert _states(world, "t1") == ["RUNNING", "FAILED", "PENDING", *LANDS]
    assert _starts(world) == [("t1", 1), ("t1", 2)]


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize("step", ["prepare", "work", "commit", "prove", "leave"])
def test_a_step_that_raises_ends_the_attempt_and_nothing_else(step: str) -> None:
    world = _world(simple_dag(t1="", t2=""), (Fault.RAISES, "t1", 1, False, step))
    assert world.run().completed
    (retried,) = _told(world, "task.retried")
    assert step in retried.data["reason"]
    assert _starts(world)[-1] == ("t1", 2)


@pytest.mark.req("F10", "P12")
def test_a_node_without_an_attempt_left_ends_the_run_and_what_waits_for_it_stays_pending() -> None:
    faults = [(Fault.RED, "t1", attempt, False) for attempt in (1, 2, 3)]
    world = _world(simple_dag(t1="", t2="t1", t3="", r1="t2"), *faults)
    end = world.run()
    assert not end.completed
    assert (end.exhausted, end.stranded, end.merged, end.reason) == (("t1",), ("t2", "r1"), 1, None)
    assert [each.data["attempts"] for each in _told(world, "task.exhausted")] == [3]
    assert _states(world, "t2") == []


@pytest.mark.req("F10", "P12")
def test_when_the_budget_is_used_up_what_is_proven_is_merged_and_nothing_is_started() -> None:
    world = _world(simple_dag(t1="", t2="", t3="t1"), cap=1, climate=Climate(budget=1))
    end = world.run()
    assert not end.completed
    assert (end.reason, end.halt) == (BUDGET_USED_UP.reason, BUDGET_USED_UP)
    assert world.merged == {"t1"}
    assert _starts(world) == [("t1", 1), ("t3", 1)] or _starts(world) == [("t1", 1), ("t2", 1)]


@pytest.mark.req("F10")
def test_a_run_that_stopped_for_its_budget_goes_on_when_it_is_resumed() -> None:
    world = _world(simple_dag(t1="", t2="", t3="t1"), cap=1, climate=Climate(budget=1, resumes=5))
    assert world.run().completed


@pytest.mark.req("F10")
def test_while_a_run_is_paused_what_runs_is_finished_and_merged_and_nothing_is_started() -> None:
    world = _world(simple_dag(t1="", t2="t1"))
    world.at(0.5, world.runner.pause)
    world.at(50.0, world.runner.resume)
    assert world.run().completed
    (paused,), (resumed,) = _told(world, "run.paused"), _told(world, "run.resumed")
    starts = [each.seq for each in _told(world, "task.started")]
    assert starts[0] < paused.seq < _told(world, "branch.merged")[0].seq < resumed.seq < starts[1]


@pytest.mark.req("F10")
def test_a_run_that_is_paused_before_anything_began_waits() -> None:
    world = _world(simple_dag(t1=""))
    world.runner.append((ForgeRunStarted(),))
    world.runner.pause()
    world.at(100.0, world.runner.resume)
    assert world.run().completed
    assert world.ground.timeline.now > 100


@pytest.mark.req("F10")
def test_a_paused_run_whose_last_node_is_merged_completes() -> None:
    world = _world(simple_dag(t1=""))
    world.at(0.5, world.runner.pause)
    assert world.run().completed


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize("is_late", [False, True])
def test_a_worker_without_a_sign_of_life_is_given_up_as_stale(is_late: bool) -> None:
    late = [(Fault.LATE, f"{RUN}/t/t1/1")] if is_late else []
    world = _world(simple_dag(t1=""), (Fault.HANGS, "t1", 1, False), *late)
    assert world.run().completed
    assert _states(world, "t1") == ["RUNNING", "STALE", "PENDING", *LANDS]
    (stale,) = _told(world, "task.stale")
    assert stale.data["attemptId"] == 1
    assert stale.data["lastHeartbeat"] < stale.timestamp


@pytest.mark.req("F10")
def test_a_helper_without_a_sign_of_life_ends_the_attempt_it_helps() -> None:
    world = _world(simple_dag(t1=""), (Fault.CLASH, "t1", 1), (Fault.HANGS, "t1", 1, True))
    assert world.run().completed
    assert _states(world, "t1") == ["RUNNING", "STALE", "PENDING", *LANDS]


@pytest.mark.parametrize("step", ["stack", "check", "land"])
@pytest.mark.parametrize("is_late", [False, True])
def test_a_merge_without_a_sign_of_life_is_followed_by_another(step: str, is_late: bool) -> None:
    late = [(Fault.LATE, f"{RUN}/m/1")] if is_late else []
    world = _world(simple_dag(t1="", t2=""), (Fault.MERGE_HANGS, 1, step), *late)
    assert world.run().completed
    first, second, *_ = _told(world, "merge.finished")
    assert first.data["left"] == _told(world, "merge.started")[0].data["nodes"]
    assert second.data["batch"] == 2


@pytest.mark.req("P12")
def test_merging_that_is_lost_again_and_again_stops_the_run() -> None:
    world = _world(simple_dag(t1="", t2="t1"), *((Fault.MERGE_HANGS, batch, "check") for batch in range(1, 9)))
    end = world.run()
    assert end.reason == "merging was lost 3 times in a row"
    assert world.runner.run.batches == 3
    assert world.merged == frozenset()


@pytest.mark.req("F10")
def test_a_merge_that_fails_stops_the_run_after_what_works_has_ended_and_a_resumed_run_merges_it() -> None:
    world = _world(simple_dag(t1="", t2="", t3="t1"), (Fault.MERGE_RAISES, 1, "check"), cap=2)
    end = world.run()
    assert end.reason is not None
    assert end.reason.startswith("merging failed: ")
    assert "check of batch 1" in end.reason
    assert set(world.runner.run.queue) == {"t1", "t2"}
    again = _world(
        simple_dag(t1="", t2="", t3="t1"), (Fault.MERGE_RAISES, 1, "check"), cap=2, climate=Climate(resumes=1)
    )
    assert again.run().completed
    assert _starts(again) == [("t1", 1), ("t2", 1), ("t3", 1)]


@pytest.mark.req("F10")
def test_when_nothing_can_be_merged_nothing_is_started_either() -> None:
    world = _world(simple_dag(t1="", t2="", t3=""), (Fault.MERGE_RAISES, 1, "stack"), cap=1)
    assert world.run().reason is not None
    assert _starts(world) == [("t1", 1), ("t2", 1)]
    assert list(world.runner.run.queue) == ["t1", "t2"]


def _merging(world: GraphWorld, status: ExecutionStatus) -> None:
    """The world as a killed executor left it: t1 is proven, its first batch was submitted, and ended like this."""
    order = AttemptOrder(run_id=RUN, node="t1", attempt=1, branch="b", target=OPTIONS.target)
    world.git.begin(order)
    commit = world.git.work(order)
    now = world.ground.moment()
    began = NodeChanged(
        nodeId="t1",
        previousStatus=NodeState.PENDING,
        newStatus=NodeState.RUNNING,
        timestamp=now,
        attemptId=1,
    )
    verified = TaskVerified(nodeId="t1", attemptId=1, commit=commit, tree=commit)
    world.runner.append((ForgeRunStarted(), began, verified, MergeStarted(batch=1, nodes=("t1",))))
    world.engine.flows[f"{RUN}/m/1"] = Kept(f"{RUN}/m/1", MERGE, "null", RUN, status, error="it broke")


@pytest.mark.parametrize("status", [ExecutionStatus.FAILED, ExecutionStatus.CANCELLED])
def test_a_merge_that_failed_before_this_life_is_no_reason_to_stop(status: ExecutionStatus) -> None:
    world = _world(simple_dag(t1=""))
    _merging(world, status)
    assert world.run().completed
    first, second = _told(world, "merge.finished")
    assert (first.data["left"], second.data["landed"]) == (["t1"], ["t1"])


@pytest.mark.req("F3")
def test_a_target_that_somebody_moves_is_merged_into_where_it_is_then() -> None:
    world = _world(simple_dag(t1="", t2=""))
    world.at(1.9, lambda: world.git.push("ada"))  # while the first batch is checked
    assert world.run().completed
    (moved, *_) = _told(world, "target.moved")
    first, second, *_ = _told(world, "merge.finished")
    assert first.data["landed"] == []
    assert first.data["left"] == _told(world, "merge.started")[0].data["nodes"]
    assert first.data["tip"] == moved.data["expected"]
    assert second.data["landed"] == first.data["left"]
    assert [work.node for commit, work in world.git.works.items() if commit in world.git.landed] == ["t1", "t2", "ada"]


def test_a_target_that_was_moved_before_a_batch_is_told_of_and_used() -> None:
    world = _world(simple_dag(t1=""))
    world.at(0.5, lambda: world.git.push("ada"))
    assert world.run().completed
    assert len(_told(world, "target.moved")) == 1
    assert len(_told(world, "merge.finished")) == 1


@pytest.mark.parametrize("when", [1.9, 2.2])
def test_when_merged_work_is_taken_out_of_the_target_the_run_stops_and_goes_on_when_it_is_back(when: float) -> None:
    dag = simple_dag(t0="", t1="t0", t2="t0")
    world = _world(dag, climate=Climate(resumes=0))
    world.at(when + 1.6, lambda: world.git.rewind(1))
    end = world.run()
    assert end.reason == TAKEN_OUT
    assert world.merged == {"t0"}
    again = _world(dag, climate=Climate(resumes=20))
    again.at(when + 1.6, lambda: again.git.rewind(1))
    again.at(40.0, again.git.restore)
    assert again.run().completed
    assert again.git.holds(again.git.tip, again.watch.verified["t0"])


def test_merged_work_that_is_taken_out_while_merging_fails_is_missed_all_the_same() -> None:
    world = _world(simple_dag(t0="", t1="t0"), (Fault.MERGE_RAISES, 2, "check"), climate=Climate(resumes=1))
    world.at(4.0, lambda: world.git.rewind(1))
    end = world.run()
    assert [each.data["reason"] for each in _told(world, "run.failed")][-1] == end.reason == TAKEN_OUT


@pytest.mark.req("F3")
def test_a_conflict_goes_to_a_helper_whose_work_is_proven_and_merged() -> None:
    world = _world(simple_dag(t1="", t2=""), (Fault.CLASH, "t2", 1))
    assert world.run().completed
    (conflict,) = _told(world, "conflict.found")
    assert (conflict.data["nodeId"], conflict.data["attemptId"]) == ("t2", 1)
    assert _states(world, "t2") == LANDS
    assert _starts(world) == [("t1", 1), ("t2", 1)]
    assert world.watch.paid == {
        f"fairwitness/{RUN}/{name}": 1 for name in ("t1/attempt-1", "t2/attempt-1", "t2/attempt-1--help")
    }
    (helped,) = [each for each in _told(world, "task.verified") if each.seq > conflict.seq]
    assert world.git.works[helped.data["commit"]].is_helper


@pytest.mark.req("F3")
def test_a_helper_begins_at_the_target_and_with_the_work_it_helps() -> None:
    world = _world(simple_dag(t1="", t2=""), (Fault.CLASH, "t2", 1))
    world.run()
    (conflict,) = _told(world, "conflict.found")
    helped = world.git.starts[f"fairwitness/{RUN}/t2/attempt-1--help"]
    first = next(each for each in _told(world, "task.verified") if each.data["nodeId"] == "t2")
    assert world.git.holds(helped, first.data["commit"])
    assert world.git.holds(helped, world.watch.verified["t1"])
    assert conflict.data["onto"] in world.git.target


@pytest.mark.req("F3")
@pytest.mark.parametrize("fault", [(Fault.CLASH_AGAIN, "t1", 1), (Fault.RED, "t1", 1, True)])
def test_a_conflict_that_no_helper_solves_is_a_new_attempt(fault: tuple[object, ...]) -> None:
    world = _world(simple_dag(t1=""), (Fault.CLASH, "t1", 1), fault)
    assert world.run().completed
    assert _states(world, "t1") == ["RUNNING", "FAILED", "PENDING", *LANDS]
    assert len(_told(world, "conflict.found")) == 1
    assert _starts(world) == [("t1", 1), ("t1", 2)]


def test_each_attempt_may_be_helped_once() -> None:
    faults = [(Fault.CLASH, "t1", 1), (Fault.CLASH_AGAIN, "t1", 1), (Fault.CLASH, "t1", 2)]
    world = _world(simple_dag(t1=""), *faults)
    assert world.run().completed
    assert [each.data["attemptId"] for each in _told(world, "conflict.found")] == [1, 2]


@pytest.mark.req("P12")
def test_helpers_take_a_place_under_the_cap_and_come_before_new_attempts() -> None:
    names = [f"t{place}" for place in range(6)]
    world = _world(dag_of(map(node, names)), *((Fault.CLASH, name, 1) for name in names[:4]), cap=2)
    assert world.run().completed
    assert world.watch.most_at_work == 2


@pytest.mark.req("F3")
@pytest.mark.parametrize(("culprit", "checks"), [("t1", 4), ("t3", 4), ("t4", 4), ("t8", 4)])
def test_a_red_batch_is_searched_for_its_culprit_and_the_rest_is_merged(culprit: str, checks: int) -> None:
    names = [f"t{place}" for place in range(1, 9)]
    world = _world(dag_of(map(node, names)), (Fault.RED_MERGED, culprit, 1), cap=8)
    assert world.run().completed
    first, second, *_ = _told(world, "merge.finished")
    at = names.index(culprit)
    assert first.data["landed"] == names[:at]
    assert first.data["culprit"] == culprit
    assert first.data["left"] == names[at + 1 :]
    assert first.data["checks"] == checks
    assert _starts(world)[-1] == (culprit, 2)
    assert _states(world, culprit) == ["RUNNING", "FAILED", "PENDING", *LANDS]
    assert second.data["landed"] == (names[at + 1 :] or [culprit])
    (again,) = _told(world, "task.retried")
    assert again.data["reason"].startswith("red on the merged tree: ")


def test_two_that_are_red_only_together_cost_the_later_one_an_attempt() -> None:
    world = _world(simple_dag(t1="", t2="", t3=""))
    world.git.reddening.add("t1", "t3")
    assert world.run().completed
    assert _starts(world) == [("t1", 1), ("t2", 1), ("t3", 1), ("t3", 2)]


@pytest.mark.req("F3")
def test_a_task_that_a_refinery_collects_waits_on_its_branch_and_is_merged_with_it() -> None:
    world = _world(simple_dag(t1="", t2="t1", t3="", r1="t1 t2 t3"))
    assert world.run().completed
    assert [_states(world, name) for name in ("t1", "t2", "t3", "r1")] == [LANDS] * 4
    merged = {each.data["nodeId"]: each.data.get("refineryId") for each in _told(world, "branch.merged")}
    assert merged == {"t1": "r1", "t2": "r1", "t3": "r1", "r1": None}
    (batch,) = _told(world, "merge.started")
    assert batch.data["nodes"] == ["r1"]
    ready = [each.seq for each in _told(world, "node.changed") if each.data["newStatus"] == "MERGE_READY"]
    (started,) = [each.seq for each in _told(world, "task.started") if each.data["nodeId"] == "r1"]
    assert ready[2] < started < ready[3]


@pytest.mark.req("F3")
def test_a_task_built_on_collected_ones_takes_them_into_the_target() -> None:
    faults = [(Fault.RED, "r1", attempt, False) for attempt in (1, 2, 3)]
    world = _world(simple_dag(t1="", t2="t1", t3="t2", r1="t1 t2"), *faults)
    end = world.run()
    assert (end.completed, end.exhausted) == (False, ("r1",))
    assert world.merged == {"t1", "t2", "t3"}


def _grow(world: GraphWorld, number: int, nodes: Sequence[Any] = (), edges: Sequence[tuple[str, str]] = ()) -> None:
    added = tuple(AddedEdge.model_validate({"from": one, "to": other}) for one, other in edges)
    now = world.ground.moment()
    overlay = DagOverlay(crId=f"cr-{number:03}", appliedAt=now, addedNodes=tuple(nodes), addedEdges=added)
    assert world.runner.grow(overlay) == ()


@pytest.mark.req("F5")
def test_a_graph_that_grows_while_it_runs_is_carried_out_whole() -> None:
    world = _world(simple_dag(t1="", t2="t1"))
    world.at(1.2, lambda: _grow(world, 1, [node("n1", ["t1"]), node("n2", ["n1"])], [("n2", "t2")]))
    assert world.run().completed
    assert world.merged == {"t1", "n1", "n2", "t2"}
    assert [name for name, _ in _starts(world)] == ["t1", "n1", "n2", "t2"]


@pytest.mark.req("F5")
def test_an_overlay_that_brings_an_edge_only_is_heeded_too() -> None:
    world = _world(simple_dag(t1="", t2="", t3=""), cap=1)
    world.at(0.5, lambda: _grow(world, 1, edges=[("t3", "t2")]))
    assert world.run().completed
    assert [name for name, _ in _starts(world)] == ["t1", "t3", "t2"]


@pytest.mark.req("F5")
def test_what_an_overlay_says_about_its_nodes_counts() -> None:
    world = _world(simple_dag(t1="", t2="", t3=""), cap=1)
    world.at(0.5, lambda: _grow(world, 1, [node("n1", estimate=50, writes=["src/a.py"])]))
    assert world.run().completed
    assert [name for name, _ in _starts(world)] == ["t1", "n1", "t2", "t3"]
    lone = _world(simple_dag(t1="", t2="", t3=""), cap=4)
    lone.at(0.5, lambda: _grow(lone, 1, [node("n1", writes=["src/a.py"])]))
    assert lone.run().completed  # t1 to t3 do not say what they write, so n1 waits until they are merged
    assert _starts(lone)[-1] == ("n1", 1)


@pytest.mark.req("F5")
def test_two_overlays_at_once_are_taken_in_one_after_the_other() -> None:
    world = _world(simple_dag(t1="", t2="t1"))

    def both() -> None:
        _grow(world, 1, [node("n1")])
        _grow(world, 2, [node("n2", ["n1"])], [("n2", "t2")])

    world.at(1.2, both)
    assert world.run().completed
    assert world.merged == {"t1", "t2", "n1", "n2"}


def _ends(world: GraphWorld) -> list[GraphEnd]:
    """How each life of the loop ended."""
    steps = world.engine.flows[RUN].journal
    return [GraphEnd.model_validate(json.loads(step.text)) for step in steps if step.key.startswith("carry-out-")]


def _answers(world: GraphWorld) -> list[int]:
    return [each.seq for each in _told(world, "overlay.applied", "cr.rejected")]


@pytest.mark.req("F4", "F5")
def test_while_a_change_request_has_no_answer_what_runs_is_merged_and_nothing_is_started() -> None:
    world = _world(simple_dag(t1="", t2="", t3="", t4="t1"), cap=2)
    world.at(0.5, lambda: world.runner.ask("cr-500"))
    assert world.run().completed
    (asked,), (answered,) = _told(world, "cr.emitted"), _answers(world)
    starts = {name: each.seq for each in _told(world, "task.started") if (name := each.data["nodeId"])}
    assert starts["t1"] < starts["t2"] < asked.seq
    assert answered < min(starts["t3"], starts["t4"])
    assert all(asked.seq < each.seq < answered for each in _told(world, "branch.merged")[:2])
    held, last = _ends(world)
    assert (held.requests, held.completed, held.merged, held.reason) == (("cr-500",), False, 2, None)
    assert (held.exhausted, held.stranded) == ((), ())
    assert (last.requests, last.completed) == ((), True)
    assert "run.paused" not in {each.type for each in world.runner.written}


@pytest.mark.req("F4", "F5")
def test_a_graph_whose_last_node_asked_for_more_has_not_ended() -> None:
    world = _world(simple_dag(t1=""))
    world.at(0.5, lambda: world.runner.ask("cr-500"))
    world.at(0.6, lambda: world.runner.ask("cr-501"))
    assert world.run().completed
    held, *_, last = _ends(world)
    assert (held.requests, held.completed, held.merged) == (("cr-500", "cr-501"), False, 1)
    assert last.completed
    assert len(_answers(world)) == 2
    (completed,) = _told(world, "run.completed")
    assert max(_answers(world)) < completed.seq


@pytest.mark.req("F4", "F10")
def test_an_attempt_that_fails_while_a_request_waits_is_made_again_after_the_answer() -> None:
    world = _world(simple_dag(t1=""), (Fault.RED, "t1", 1, False))
    world.at(0.5, lambda: world.runner.ask("cr-500"))
    assert world.run().completed
    (answered,) = _answers(world)
    assert [each.seq > answered for each in _told(world, "task.started") if each.data["nodeId"] == "t1"] == [
        False,
        True,
    ]


@pytest.mark.req("F4", "F10")
def test_a_request_is_answered_though_the_run_is_paused_and_nothing_starts_before_it_is_resumed() -> None:
    world = _world(simple_dag(t1="", t2="t1"))
    world.at(0.4, world.runner.pause)
    world.at(0.5, lambda: world.runner.ask("cr-500"))
    world.at(50.0, world.runner.resume)
    assert world.run().completed
    (answered,), (resumed,) = _answers(world), _told(world, "run.resumed")
    assert answered < resumed.seq < _told(world, "task.started")[1].seq


@pytest.mark.req("F4", "F10")
def test_a_request_beside_a_node_that_failed_for_good_is_answered_before_the_run_fails() -> None:
    faults = [(Fault.RED, "t1", attempt, False) for attempt in (1, 2, 3)]
    world = _world(simple_dag(t1="", t2="t1"), *faults, max_attempts=1)
    world.at(0.5, lambda: world.runner.ask("cr-500"))
    end = world.run()
    assert (end.completed, end.exhausted, end.requests) == (False, ("t1",), ())
    held = _ends(world)[0]
    assert (held.requests, held.exhausted) == (("cr-500",), ("t1",))
    assert _answers(world)[0] < _told(world, "run.failed")[0].seq


@pytest.mark.req("F10")
def test_a_node_that_is_given_another_attempt_while_others_run_is_tried_again() -> None:
    world = _world(simple_dag(t1="", t2="t1", t3="", t4="t3", t5="t4"), (Fault.RED, "t1", 1, False), max_attempts=1)
    world.at(4.0, world.runner.reopen)
    assert world.run().completed
    assert _states(world, "t1") == ["RUNNING", "FAILED", "PENDING", *LANDS]
    assert [each.data["maxAttempts"] for each in _told(world, "task.reopened")] == [2]
    assert world.merged == {"t1", "t2", "t3", "t4", "t5"}


@pytest.mark.req("F10")
@pytest.mark.parametrize("call", ["record", "tip"])
def test_a_node_that_is_given_another_attempt_when_the_graph_is_about_to_fail_is_tried_again(call: str) -> None:
    world = _world(simple_dag(t1="", t2="t1"), (Fault.RED, "t1", 1, False), max_attempts=1)
    _Hooked(world, call, world.runner.reopen)
    assert world.run().completed
    assert _starts(world) == [("t1", 1), ("t1", 2), ("t2", 1)]


@pytest.mark.req("F10")
def test_an_executor_that_begins_after_a_node_was_given_another_attempt_knows_of_it() -> None:
    world = _world(simple_dag(t1="", t2="t1"), max_attempts=1)
    running, failed = _changes(world, NodeState.RUNNING, NodeState.FAILED)
    world.runner.append((ForgeRunStarted(), running, failed))
    world.runner.reopen()
    assert world.run().completed
    assert _starts(world) == [("t1", 2), ("t2", 1)]


class _Hooked:
    """The desk of a world on which something happens just after a call has been answered."""

    def __init__(self, world: GraphWorld, call: str, then: Callable[[], None]) -> None:
        self._runner, self._call, self._then = world.runner, call, then
        world.runner = self  # type: ignore[assignment]  # it is one, as far as anybody asks

    def __getattr__(self, name: str) -> Any:
        answer = getattr(self._runner, name)
        if name != self._call:
            return answer

        async def hooked(*args: Any, **kwargs: Any) -> Any:
            answered = await answer(*args, **kwargs)
            self._then()
            return answered

        return hooked


@pytest.mark.req("F5")
@pytest.mark.parametrize("call", ["record", "tip"])
def test_an_overlay_that_comes_when_the_last_node_is_merged_is_carried_out_before_the_end(call: str) -> None:
    world = _world(simple_dag(t1=""))

    def late() -> None:
        if world.merged == {"t1"} and len(world.watch.nodes) == 1:
            _grow(world, 1, [node("n1", ["t1"])])

    _Hooked(world, call, late)
    assert world.run().completed
    assert world.merged == {"t1", "n1"}


@pytest.mark.req("F5")
def test_an_overlay_that_comes_while_the_state_is_derived_is_not_missed() -> None:
    world = _world(simple_dag(t1="", t2=""))
    world.runner.append((ForgeRunStarted(),))

    def grow() -> None:
        if len(world.watch.nodes) == 2:
            _grow(world, 1, [node("n1")], [("n1", "t1"), ("n1", "t2")])

    _Hooked(world, "plan", grow)
    assert world.run().completed
    assert [name for name, _ in _starts(world)] == ["n1", "t1", "t2"]


def test_what_another_executor_has_written_down_meanwhile_is_not_written_again() -> None:
    """One that was taken for dead and wakes up knows how two children ended; it writes the first, the other both."""
    world = _world(simple_dag(t1="", t2=""))

    def other() -> None:
        verified = {each.data["nodeId"] for each in _told(world, "task.verified")}
        if verified == {"t1"}:
            commit = world.git.branches[f"fairwitness/{RUN}/t2/attempt-1"]
            world.runner.append((TaskVerified(nodeId="t2", attemptId=1, commit=commit, tree=commit),))

    _Hooked(world, "record", other)
    assert world.run().completed
    assert len(_told(world, "task.verified")) == 2


def test_what_is_decided_on_a_state_that_has_changed_is_not_written() -> None:
    world = _world(simple_dag(t1="", t2="t1"))
    world.runner.append((ForgeRunStarted(),))
    made: list[int] = []

    def pause() -> None:
        made.append(len(world.runner.written))
        if len(made) == 2:  # the executor has looked, and is about to start t1
            world.runner.pause()

    _Hooked(world, "events", pause)
    world.at(5.0, world.runner.resume)
    assert world.run().completed
    (resumed,) = _told(world, "run.resumed")
    assert all(each.seq > resumed.seq for each in _told(world, "task.started"))


def _changes(world: GraphWorld, *states: NodeState) -> list[EventData]:
    now = world.ground.moment()
    steps = zip((NodeState.PENDING, *states), states, strict=False)
    return [
        NodeChanged(nodeId="t1", previousStatus=before, newStatus=after, timestamp=now, attemptId=1)
        for before, after in steps
    ]


def test_a_graph_in_which_nothing_can_move_though_it_should_is_an_error() -> None:
    world = _world(simple_dag(t1=""))
    running, done = _changes(world, NodeState.RUNNING, NodeState.DONE)
    verified = TaskVerified(nodeId="t1", attemptId=1, commit="abcd", tree="abcd")
    world.runner.append((ForgeRunStarted(), running, verified, done))
    with pytest.raises(EventsBroken, match=STALLED) as caught:
        world.run()
    assert caught.value.next_step == f"fairwitness dag show {RUN}"


def test_events_that_cannot_have_happened_are_an_error() -> None:
    world = _world(simple_dag(t1=""))
    world.runner.append((ForgeRunStarted(), *_changes(world, NodeState.RUNNING, NodeState.MERGED)))
    world.watch.broken.clear()
    with pytest.raises(EventsBroken, match=r"newStatus: expected DONE or FAILED or STALE; found RUNNING → MERGED"):
        world.run()
