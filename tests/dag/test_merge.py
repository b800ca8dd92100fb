"""One batch on its way into the target: stacked, checked, landed in one move, or backed out without a trace."""

from itertools import product

import pytest

from fairwitness.contracts.graph.orders import MERGE, AttemptOrder, MergeMember, MergeOrder, MergeResult, TargetMove
from fairwitness.engine.base import ExecutionStatus
from support.graph.sim import OPTIONS, GraphWorld
from support.graph.sim_desk import TAKEN_OUT
from support.graph.sim_faults import Blow, Fault, Told
from support.graph.sim_graphs import RUN, dag_of, node
from support.graph.sim_journal import Kept

NAMES = tuple(f"t{place}" for place in range(1, 9))


def _world(*faults: tuple[object, ...], crashes: dict[int, Blow] | None = None) -> GraphWorld:
    return GraphWorld(dag_of(map(node, NAMES)), verdicts=Told(frozenset(faults)), crashes=crashes)


def _member(world: GraphWorld, name: str) -> MergeMember:
    branch = f"fairwitness/{RUN}/{name}/attempt-1"
    order = AttemptOrder(run_id=RUN, node=name, attempt=1, branch=branch, target=OPTIONS.target)
    world.git.begin(order)
    return MergeMember(node=name, attempt=1, commit=world.git.work(order))


def _order(world: GraphWorld, *names: str, batch: int = 1) -> MergeOrder:
    members = tuple(_member(world, name) for name in names)
    return MergeOrder(run_id=RUN, batch=batch, target=OPTIONS.target, members=members)


def _merge(world: GraphWorld, order: MergeOrder) -> Kept:
    id_ = f"m{order.batch}"
    world.engine.submit(id_, MERGE, order.plain())
    kept = world.engine.flows[id_]
    world.ground.timeline.run(lambda: kept.ended)
    assert not world.watch.broken
    return kept


def _result(world: GraphWorld, order: MergeOrder) -> MergeResult:
    kept = _merge(world, order)
    assert kept.status is ExecutionStatus.DONE
    return MergeResult.model_validate_json(kept.value)


def _landed(result: MergeResult) -> list[str]:
    return [each.node for each in result.landed]


@pytest.mark.req("F3")
def test_a_green_batch_is_checked_once_and_lands_whole() -> None:
    world = _world()
    before = world.git.tip
    result = _result(world, _order(world, *NAMES))
    assert _landed(result) == list(NAMES)
    assert (result.checks, result.culprit, result.clashes, result.moved, result.halt) == (1, None, (), None, None)
    assert result.tip == world.git.tip == result.landed[-1].commit
    assert list(world.git.target) == [before, result.tip]


@pytest.mark.req("F3")
@pytest.mark.parametrize("size", range(1, 9))
def test_the_culprit_is_found_wherever_it_stands_and_all_below_it_lands(size: int) -> None:
    for place in range(size):
        world = _world((Fault.RED_MERGED, NAMES[place], 1))
        result = _result(world, _order(world, *NAMES[:size]))
        assert _landed(result) == list(NAMES[:place])
        assert result.culprit is not None
        assert result.culprit.node == NAMES[place]
        assert result.culprit.reasons == (NAMES[place],)
        assert result.checks <= 1 + size.bit_length()
        assert world.git.tip == result.tip


@pytest.mark.req("F3")
def test_of_two_culprits_one_is_found_and_nothing_red_lands() -> None:
    for one, other in product(range(8), repeat=2):
        world = _world((Fault.RED_MERGED, NAMES[one], 1), (Fault.RED_MERGED, NAMES[other], 1))
        result = _result(world, _order(world, *NAMES))
        assert _landed(result) == list(NAMES[: min(one, other)])
        assert result.culprit is not None
        assert result.culprit.node == NAMES[min(one, other)]


def test_of_two_that_are_red_together_the_upper_one_is_at_fault() -> None:
    for one, other in product(range(8), repeat=2):
        world = _world()
        world.git.reddening.add(NAMES[one], NAMES[other])
        result = _result(world, _order(world, *NAMES))
        if one == other:
            assert result.culprit is None
        else:
            assert result.culprit is not None
            assert result.culprit.node == NAMES[max(one, other)]
            assert _landed(result) == list(NAMES[: max(one, other)])


@pytest.mark.req("F3")
def test_what_does_not_fit_is_left_out_and_the_others_land() -> None:
    world = _world((Fault.CLASH, "t2", 1))
    world.git.clashing.add("t3", "t4")
    result = _result(world, _order(world, "t1", "t2", "t3", "t4"))
    assert _landed(result) == ["t1", "t3"]
    assert [(clash.node, clash.paths) for clash in result.clashes] == [
        ("t2", ("src/shared.py",)),
        ("t4", ("src/t3.py",)),
    ]


def test_a_batch_of_which_nothing_fits_leaves_the_target_alone_and_checks_nothing() -> None:
    world = _world((Fault.CLASH, "t1", 1))
    before = world.git.tip
    result = _result(world, _order(world, "t1"))
    assert (result.tip, result.landed, result.checks) == (before, (), 0)
    assert [clash.node for clash in result.clashes] == ["t1"]


@pytest.mark.parametrize("fault", [Fault.RED_MERGED, Fault.CLASH])
def test_when_somebody_moves_the_target_meanwhile_nobody_is_at_fault(fault: Fault) -> None:
    world = _world((fault, "t2", 1))
    order = _order(world, "t1", "t2")
    onto = world.git.tip
    world.at(0.15, lambda: world.git.push("ada"))  # after the stack, before the landing
    result = _result(world, order)
    assert result.landed == ()
    assert result.culprit is None
    assert result.clashes == ()
    assert result.tip == onto
    assert result.moved == TargetMove(expected=onto, found=world.git.tip)


def test_a_target_that_was_moved_before_is_told_of_and_does_not_hinder() -> None:
    world = _world()
    order, left = _order(world, "t1"), world.git.tip
    world.git.push("ada")
    result = _result(world, order)
    assert _landed(result) == ["t1"]
    assert result.moved is not None
    assert result.moved.expected == left


def test_when_merged_work_was_taken_out_nothing_is_checked_or_landed() -> None:
    world = _world()
    first = _result(world, _order(world, "t1"))
    second = _order(world, "t2", batch=2)
    world.runner.run.tip = first.tip
    world.git.rewind(1)
    result = _result(world, second)
    assert (result.landed, result.checks, result.halt) == ((), 0, TAKEN_OUT)
    assert result.tip == first.tip
    assert result.moved == TargetMove(expected=first.tip, found=world.git.tip)
    assert [step.key for step in world.engine.flows["m2"].journal] == ["stack"]


def test_merged_work_that_is_taken_out_before_the_landing_is_not_taken_for_where_the_target_should_be() -> None:
    world = _world((Fault.CLASH, "t3", 1))
    first = _result(world, _order(world, "t1"))
    world.runner.run.tip = first.tip
    now = world.ground.timeline.now
    for batch, names in ((2, ("t2",)), (3, ("t3",))):
        order = _order(world, *names, batch=batch)
        world.at(0.11, lambda: world.git.rewind(1))
        result = _result(world, order)
        world.git.restore()
        assert result.tip == first.tip, names
    assert world.ground.timeline.now > now


def test_a_batch_that_landed_before_it_was_told_lands_again_without_a_move() -> None:
    world = _world()
    order = _order(world, "t1", "t2")
    first = _result(world, order)
    again = _result(world, order.model_copy(update={"batch": 2}))
    assert _landed(again) == ["t1", "t2"]
    assert again.tip == first.tip == world.git.tip


@pytest.mark.parametrize("step", ["stack", "check", "land"])
def test_a_step_that_raises_fails_the_flow(step: str) -> None:
    world = _world((Fault.MERGE_RAISES, 1, step))
    before = world.git.tip
    kept = _merge(world, _order(world, "t1"))
    assert kept.status is ExecutionStatus.FAILED
    assert f"{step} of batch 1" in kept.error
    assert world.git.tip == before


@pytest.mark.req("F3", "P12")
@pytest.mark.parametrize("blow", list(Blow))
def test_a_process_that_dies_at_any_await_lands_the_same(blow: Blow) -> None:
    whole = _world((Fault.RED_MERGED, "t3", 1), (Fault.CLASH, "t1", 1))
    expected = _result(whole, _order(whole, "t1", "t2", "t3", "t4"))
    for place in range(1, whole.ground.weather.awaits + 1):
        world = _world((Fault.RED_MERGED, "t3", 1), (Fault.CLASH, "t1", 1), crashes={place: blow})
        result = _result(world, _order(world, "t1", "t2", "t3", "t4"))
        assert _landed(result) == _landed(expected), place
        assert (result.culprit, result.clashes) == (expected.culprit, expected.clashes), place
        assert len(world.git.target) == len(whole.git.target), place
