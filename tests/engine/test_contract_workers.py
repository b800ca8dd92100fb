"""Several workers on one database: each leaves the others' work alone, until one dies."""

import asyncio
import signal
import subprocess
from contextlib import ExitStack

import pytest

from engine.flows import Scene, chain_value, flows
from engine.grounds import Done, Ground, Kind, ended, kill
from engine.judging import assert_family_is_whole, outcome
from fairwitness.engine.base import ExecutionStatus, Json, RunOutcome
from support.ladder import widened


def family(children: int) -> Json:
    """A parent whose children's steps are held until they are released."""
    return {"children": children, "child": {"steps": 2, "pause_s": -1}}


@pytest.mark.req("P16")
@pytest.mark.req("X4")
def test_a_second_worker_leaves_running_work_alone_and_every_child_is_done_once(ground: Ground) -> None:
    with ground.worker(run="p", flow="parent", args=family(8), cap=3) as one:
        ground.until(lambda _: len(ground.in_flight(one.pid)) == 3, one)
        with ground.worker(run="p", cap=2) as two:
            ground.until(lambda _: len(ground.in_flight(two.pid)) == 2, one, two)
            ground.release()
            assert ended(one) == ended(two) == 0
    assert_family_is_whole(ground, 8, repeats=0)
    assert set(ground.count("begin").values()) == {1}
    most = most_at_once(ground.done())
    assert most == {one.pid: 3, two.pid: 2}


def most_at_once(done: list[Done]) -> dict[int, int]:
    """How many children each process had in a step at the same time."""
    now: dict[int, set[str]] = {}
    most: dict[int, int] = {}
    for line in done:
        if "/" in line.run and line.what in ("begin", "end"):
            open_now = now.setdefault(line.pid, set())
            (open_now.add if line.what == "begin" else open_now.discard)(line.run)
            most[line.pid] = max(most.get(line.pid, 0), len(open_now))
    return most


@pytest.mark.req("P16")
@pytest.mark.req("X4")
def test_of_two_workers_that_see_a_third_die_one_takes_each_of_its_runs_over(ground: Ground) -> None:
    with ground.worker(run="p", flow="parent", args=family(8), cap=4) as first:
        ground.until(lambda _: len(ground.in_flight(first.pid)) == 4, first)
        with ground.worker(run="p", cap=2) as second, ground.worker(run="p", cap=2) as third:
            heirs = (second, third)
            ground.until(lambda _: all(len(ground.in_flight(heir.pid)) == 2 for heir in heirs), first, *heirs)
            lost = ground.in_flight(first.pid)
            first.send_signal(signal.SIGKILL)  # and not waited for: who is dead but not buried is dead
            ground.release()
            assert ended(second) == ended(third) == 0
    assert_family_is_whole(ground, 8, repeats=4)
    assert {step for step, times in ground.count("begin").items() if times > 1} == lost
    assert ground.count("end") == dict.fromkeys(ground.count("begin"), 1)


@pytest.mark.req("P16")
@pytest.mark.req("X4")
def test_workers_that_open_a_new_database_at_the_same_time_make_it_once_and_share_its_work(new_ground: Ground) -> None:
    args: Json = {"children": 4, "child": {"steps": 2, "pause_s": 0.05}}
    with ExitStack() as workers:
        started = [workers.enter_context(new_ground.worker(run="p", flow="parent", args=args)) for _ in range(4)]
        assert [ended(worker) for worker in started] == [0] * 4
    assert_family_is_whole(new_ground, 4, repeats=0)


@pytest.mark.req("P16")
@pytest.mark.req("X4")
def test_a_database_whose_maker_was_killed_is_made_whole_by_the_next(new_ground: Ground) -> None:
    with new_ground.worker(run="r", flow="chain", args={"steps": 2, "pause_s": 0}) as maker:
        new_ground.until(lambda _: new_ground.is_begun(), maker)
        kill(maker)
    new_ground.works(run="r", flow="chain", args={"steps": 2, "pause_s": 0})
    assert outcome(new_ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(2))


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.parametrize("ground", widened(Kind, [Kind.DBOS_SQLITE]), indirect=True, ids=str)
def test_a_worker_whose_loop_hangs_is_missed_while_its_process_lives(ground: Ground) -> None:
    with ground.worker(run="p", flow="watches", args={"missed_s": 7.5}, cap=1) as watcher:
        ground.until(lambda _: ground.in_flight(watcher.pid) == {("p/well", "s0")}, watcher)
        with ground.worker(cap=1) as hung:
            ground.until(lambda _: ("p/hung", "hang") in ground.in_flight(hung.pid), watcher, hung)
            assert ended(watcher) == 0
            assert hung.poll() is None
            assert _stranded(ground) == set(), "its process lives, and its lease with it"
    silent = outcome(ground, "p").value
    assert isinstance(silent, dict)
    assert silent["p/hung"] > 7.5 > silent["p/well"]


def _stranded(ground: Ground) -> set[str]:
    async def ask() -> set[str]:
        engine = ground.make(flows(Scene(ground.log, "")))
        await engine.open(worker=False)
        try:
            return {one.run_id for one in await engine.audit()}
        finally:
            await engine.close()

    return asyncio.run(ask())


@pytest.mark.req("P16")
@pytest.mark.req("X4")
def test_a_client_in_another_process_submits_answers_and_cancels(ground: Ground) -> None:
    async def control(worker: "subprocess.Popen[str]") -> tuple[RunOutcome, bool, bool]:
        engine = ground.make(flows(Scene(ground.log, "")))
        await engine.open(worker=False)
        try:
            await engine.submit("p", "parent", family(4))
            await asyncio.to_thread(ground.until, lambda _: len(ground.in_flight(worker.pid)) == 2, worker)
            await engine.cancel("p")
            await asyncio.to_thread(ground.until, lambda _: len(ground.count("left")) == 2, worker)
            outcome = await engine.outcome("p")
            assert outcome is not None
            return outcome, await engine.answer("g", "go", "yes"), await engine.answer("g", "go", "no")
        finally:
            await engine.close()

    with ground.worker(run="g", flow="gated", cap=2) as worker:
        cancelled, first, second = asyncio.run(control(worker))
        assert ended(worker) == 0
    assert cancelled == RunOutcome(ExecutionStatus.CANCELLED, error=cancelled.error)
    assert (first, second) == (True, False)
    assert outcome(ground, "g") == RunOutcome(ExecutionStatus.DONE, "yes")
    assert {outcome(ground, f"p/{number}").status for number in range(4)} == {ExecutionStatus.CANCELLED}
    assert ground.count("begin") == {("g", "before"): 1, ("g", "last"): 1, ("p", "plan"): 1} | ground.count("left")
    assert {line.pid for line in ground.done() if line.what == "begin"} == {worker.pid}
