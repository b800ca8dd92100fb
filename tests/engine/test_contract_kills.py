"""Killed at any moment, a run loses nothing, repeats only what was in flight, and gives the same in the end."""

import asyncio

import pytest

from engine.flows import Scene, chain_value, flows
from engine.grounds import Done, Ground, kill
from engine.judging import assert_family_is_whole, outcome
from fairwitness.engine.base import ExecutionStatus, Json, RunOutcome, StrandedRun
from support.ladder import SWEEP


@pytest.mark.req("P16")
@pytest.mark.timeout(600)
def test_killed_in_the_middle_and_at_the_end_of_and_after_each_step_a_run_repeats_only_that_step(
    ground: Ground,
) -> None:
    steps = 8 if SWEEP else 3
    args: Json = {"steps": steps, "pause_s": 0}
    flow = "chain"
    repeated: dict[str, list[str]] = {}
    for number in range(steps):
        # between its end and its record a step is still in flight
        inside = ["begin", "end"] if SWEEP else [("begin", "end")[number % 2]]
        repeated[f"s{number}"] = inside
        for when in [*inside, "after"]:
            ground.works(run="r", flow=flow, args=args, kill=f"{when} r s{number}")
            flow = ""
    ground.works(run="r")
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(steps))
    assert ground.count("begin") == {("r", key): 1 + len(inside) for key, inside in repeated.items()}
    assert ground.count("end") == {("r", key): 1 + inside.count("end") for key, inside in repeated.items()}


@pytest.mark.req("P16")
@pytest.mark.timeout(600)
def test_a_long_run_killed_from_outside_again_and_again_loses_nothing(ground: Ground) -> None:
    steps, kills = (400, 5) if SWEEP else (60, 2)
    flow = "chain"
    for number in range(1, kills + 1):
        with ground.worker(run="r", flow=flow, args={"steps": steps, "pause_s": 0.002}) as process:
            lines = number * steps // (kills + 1)
            ground.until(lambda done, lines=lines: len(_keys(done)) >= lines, process)  # type: ignore[misc]  # bound now
            kill(process)
        flow = ""
    ground.works(run="r")
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(steps))
    assert ground.count("end").keys() == {("r", f"s{number}") for number in range(steps)}
    assert sum(ground.count("begin").values()) <= steps + kills
    assert max(ground.count("begin").values()) <= 1 + kills


def _keys(done: list[Done]) -> set[str]:
    return {one.key for one in done if one.what == "after"}


@pytest.mark.req("P16")
def test_a_gate_outlives_its_worker_and_takes_an_answer_while_nothing_runs(ground: Ground) -> None:
    with ground.worker(run="r", flow="gated", args=None) as process:
        ground.until(lambda done: any(one.what == "asks" for one in done), process)
        kill(process)

    async def ask() -> tuple[tuple[StrandedRun, ...], bool, bool]:
        engine = ground.make(flows(Scene(ground.log, "")))
        await engine.open(worker=False)
        try:
            return await engine.audit(), await engine.answer("r", "go", "yes"), await engine.answer("r", "go", "no")
        finally:
            await engine.close()

    stranded, first, second = asyncio.run(ask())
    assert [one.run_id for one in stranded] == ["r"]  # its worker is dead, and looking takes nothing over
    assert stranded[0].next_step
    assert (first, second) == (True, False)
    ground.works(run="r")
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, "yes")
    assert ground.count("end") == {("r", "before"): 1, ("r", "last"): 1}


CHILD = {"steps": 2, "pause_s": 0.1}


@pytest.mark.req("P16")
@pytest.mark.timeout(600)
def test_a_parent_killed_while_its_children_run_goes_on_with_them(ground: Ground) -> None:
    children, kills = (24, 6) if SWEEP else (6, 1)
    flow = "parent"
    for number in range(1, kills + 1):
        with ground.worker(run="p", flow=flow, args={"children": children, "child": CHILD}, cap=3) as process:
            ends = number * children // (kills + 1)
            ground.until(lambda done, ends=ends: len(_finished(done)) >= ends, process)  # type: ignore[misc]  # bound now
            kill(process)
        flow = ""
    ground.works(run="p", cap=3)
    assert_family_is_whole(ground, children, repeats=3 * kills)


def _finished(done: list[Done]) -> set[str]:
    return {one.run for one in done if (one.what, one.key) == ("end", "s1")}
