"""One try at a node, as a flow: whatever fails is told and not raised, and what is recorded is not done again."""

from typing import Any

import pytest

from fairwitness.contracts.graph.orders import (
    ATTEMPT,
    HELPER,
    AttemptOrder,
    AttemptResult,
    AttemptStart,
    Candidate,
    Collision,
    Proof,
    Worked,
)
from fairwitness.dag.executor import graph_flows
from fairwitness.engine.base import ExecutionStatus
from fairwitness.git.call import GitFailed
from support.graph.sim import OPTIONS, GraphWorld
from support.graph.sim_desk import BUDGET_USED_UP
from support.graph.sim_faults import Blow, Climate, Fault, Told
from support.graph.sim_graphs import RUN, simple_dag
from support.graph.sim_journal import Kept, Trouble

BRANCH = f"fairwitness/{RUN}/t1/attempt-1"
ORDER = AttemptOrder(run_id=RUN, node="t1", attempt=1, branch=BRANCH, target=OPTIONS.target)


def _world(
    *faults: tuple[object, ...], crashes: dict[int, Blow] | None = None, budget: int | None = None
) -> GraphWorld:
    verdicts = Told(frozenset(faults))
    return GraphWorld(simple_dag(t1=""), verdicts=verdicts, crashes=crashes, climate=Climate(budget=budget))


def _attempt(world: GraphWorld, order: AttemptOrder = ORDER) -> Kept:
    """The flow of an attempt after its end."""
    world.engine.submit("a", ATTEMPT if order.conflict is None else HELPER, order.plain())
    kept = world.engine.flows["a"]
    world.ground.timeline.run(lambda: kept.ended)
    return kept


def _result(world: GraphWorld, order: AttemptOrder = ORDER) -> AttemptResult:
    kept = _attempt(world, order)
    assert kept.status is ExecutionStatus.DONE
    return AttemptResult.model_validate_json(kept.value)


def _steps(world: GraphWorld) -> list[str]:
    return [step.key for step in world.engine.flows["a"].journal]


@pytest.mark.req("F3")
def test_an_attempt_is_prepared_worked_at_committed_and_proven_and_then_left() -> None:
    world = _world()
    result = _result(world)
    assert result == AttemptResult(verified=True, commit=result.commit, tree=result.tree)
    assert result.commit == world.git.branches[BRANCH]
    assert _steps(world) == ["prepare", "work", "commit", "prove", "leave"]
    assert not world.git.worktrees


@pytest.mark.req("F3", "F10")
@pytest.mark.parametrize(
    ("fault", "reason", "steps"),
    [
        (Fault.AGENT, f"the agent gave up on {BRANCH}", ["prepare", "work", "leave"]),
        (Fault.IDLE, "nothing was changed", ["prepare", "work", "commit", "leave"]),
        (Fault.RED, f"{BRANCH} is red", ["prepare", "work", "commit", "prove", "leave"]),
    ],
)
def test_what_keeps_an_attempt_from_being_verified_is_told(fault: Fault, reason: str, steps: list[str]) -> None:
    world = _world((fault, "t1", 1, False))
    assert _result(world) == AttemptResult(verified=False, reason=reason)
    assert _steps(world) == steps
    assert not world.git.worktrees


@pytest.mark.parametrize("step", ["prepare", "work", "commit", "prove"])
def test_a_step_that_raises_is_told_with_its_name_and_the_worktree_is_left(step: str) -> None:
    world = _world((Fault.RAISES, "t1", 1, False, step))
    assert _result(world) == AttemptResult(verified=False, reason=f"{step}: {step} of {BRANCH}")
    assert _steps(world)[-2:] == [step, "leave"]
    assert not world.git.worktrees


def test_when_the_worktree_cannot_be_left_the_flow_fails() -> None:
    kept = _attempt(_world((Fault.RAISES, "t1", 1, False, "leave")))
    assert kept.status is ExecutionStatus.FAILED
    assert "leave" in kept.error


@pytest.mark.req("P12")
def test_a_budget_that_is_used_up_is_told_as_a_reason_to_halt() -> None:
    world = _world(budget=0)
    assert _result(world) == AttemptResult(verified=False, reason=BUDGET_USED_UP.reason, halt=BUDGET_USED_UP)
    assert not world.watch.paid


def test_a_helper_is_the_same_flow_with_a_conflict() -> None:
    world = _world((Fault.AGENT, "t1", 1, False))
    first = world.git.begin(ORDER)
    commit = world.git.work(ORDER)
    conflict = Collision(commit=commit, onto=first, paths=("src/a.py",))
    order = ORDER.model_copy(update={"branch": f"{BRANCH}--help", "conflict": conflict})
    result = _result(world, order)
    assert result.verified
    assert result.commit is not None
    assert world.git.holds(result.commit, commit)


@pytest.mark.req("P12")
@pytest.mark.parametrize("blow", list(Blow))
def test_a_process_that_dies_at_any_await_repeats_the_step_in_flight_and_no_other(blow: Blow) -> None:
    whole = _world()
    expected = _result(whole)
    for place in range(1, whole.ground.weather.awaits + 1):
        world = _world(crashes={place: blow})
        assert _result(world) == expected, place
        assert world.watch.paid[BRANCH] <= 2, place
        assert _steps(world) == _steps(whole), place


class _Terse:
    """A bench whose agents and checks say as little, or as much, as they may."""

    def __init__(self, worked: Worked, proof: Proof, trouble: Exception | None = None) -> None:
        self._worked, self._proof, self._trouble = worked, proof, trouble
        self.kept: list[bool] = []

    async def prepare(self, order: AttemptOrder) -> AttemptStart:
        if self._trouble is not None:
            raise Trouble from self._trouble
        return AttemptStart(base="abcd", start="abcd", conflicts=())

    async def work(self, order: AttemptOrder, prepared: AttemptStart) -> Worked:
        return self._worked

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        return Candidate(node=order.node, commit="a" * 40, tree="b" * 40)

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        return self._proof

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        self.kept.append(keep)


DONE = Worked(done=True, changed=None)
GREEN = Proof(holds=True, reasons=())


def _on(bench: Any) -> AttemptResult:
    world = _world()
    world.engine.bodies = graph_flows(lambda _run_id: bench)
    return _result(world)


def test_an_agent_that_does_not_say_why_it_did_not_finish_gets_a_reason() -> None:
    bench = _Terse(Worked(done=False, changed=None), GREEN)
    assert _on(bench).reason == "the agent did not finish"
    assert bench.kept == [False]


def test_the_branch_is_kept_exactly_when_the_attempt_is_verified() -> None:
    bench = _Terse(DONE, GREEN)
    assert _on(bench).verified
    assert bench.kept == [True]


def test_of_many_reasons_the_first_are_told() -> None:
    bench = _Terse(DONE, Proof(holds=False, reasons=tuple(f"check {number}" for number in range(9))))
    assert _on(bench).reason == "check 0; check 1; check 2; check 3; check 4"
    assert bench.kept == [False]


@pytest.mark.req("P12", "F10")
@pytest.mark.parametrize("trouble", [GitFailed("the branch was moved"), ValueError()])
def test_what_a_step_raises_ends_the_attempt_and_nothing_else(trouble: Exception) -> None:
    result = _on(_Terse(DONE, GREEN, trouble))
    assert result.reason == f"prepare: {str(trouble) or type(trouble).__name__}"
    assert result.halt is None
