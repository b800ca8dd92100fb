"""A server that goes away in the middle of everything: runs go on when it is back, and repeat what was in flight."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.flows import chain_value
from engine.grounds import Ground, Kind, ended
from engine.judging import outcome
from engine.test_dbos_engine import on_both, one_step, opened, over, until
from engine.test_dbos_leases import database_of, give_to, status_of
from fairwitness.engine.base import ExecutionStatus, Flow, Json, RunOutcome
from fairwitness.engine.leases import Leases
from fairwitness.engine.locks import this_process
from support.ladder import SWEEP
from support.postgres import Server, own_server


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    """A server for one test; without Postgres it is skipped or fails as all others."""
    with own_server() as made:
        yield made


def ground_of(server: Server, folder: Path) -> Ground:
    """The place of an engine on a server."""
    return Ground(Kind.DBOS_POSTGRES, server.url, folder)


@pytest.mark.req("P16")
@pytest.mark.timeout(400)
def test_a_server_that_fails_in_the_middle_of_runs_and_comes_back_costs_nothing_but_time(
    server: Server, tmp_path: Path
) -> None:
    ground, away_s = ground_of(server, tmp_path), 35.0 if SWEEP else 1.0
    args: Json = {"children": 8, "child": {"steps": 2, "pause_s": -1}}
    with ground.worker(run="p", flow="parent", args=args, cap=3) as family:
        ground.until(lambda _: len(ground.in_flight(family.pid)) == 3, family)
        with ground.worker(run="r", flow="chain", args={"steps": 40, "pause_s": 0.05}) as chain:
            ground.until(lambda done: any((one.run, one.key) == ("r", "s3") for one in done), family, chain)
            server.stop()
            ground.release()  # what was in flight ends while there is nobody to tell
            time.sleep(away_s)
            server.start()
            # who has waited in vain for long looks again only after as long a time
            patience_s = 60 + 3 * away_s
            assert ended(chain, patience_s=patience_s) == ended(family, patience_s=patience_s) == 0
    assert outcome(ground, "p") == RunOutcome(ExecutionStatus.DONE, [chain_value(2)] * 8)
    assert outcome(ground, "r") == RunOutcome(ExecutionStatus.DONE, chain_value(40))
    begun = ground.count("begin")
    assert len(begun) == 2 + 8 * 2 + 40
    in_flight = 3 + 4 + 1  # children of both workers, and a step of the chain
    assert sum(begun.values()) - len(begun) <= in_flight
    assert max(begun.values()) <= 2


@pytest.mark.req("P16")
def test_a_gate_and_a_wait_for_children_outlive_their_server(server: Server, tmp_path: Path) -> None:
    asked: list[str] = []

    async def child(flow: Flow, _args: Json) -> Json:
        asked.append(flow.run_id)
        return await flow.gate("go")

    async def parent(flow: Flow, _args: Json) -> Json:
        async def graph() -> Json:
            await flow.submit("p/1", "child", None)
            while not (found := await flow.wait(["p/1"], timeout_s=5)):
                pass
            return found["p/1"].value

        return await flow.step("graph", graph)

    async def main() -> None:
        async with opened(ground_of(server, tmp_path), {"child": child, "parent": parent}) as engine:
            await engine.submit("p", "parent", None)
            while not asked:  # noqa: ASYNC110 -- the test's own list
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            await asyncio.to_thread(server.stop)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(server.start)
            assert await engine.answer("p/1", "go", "still here")
            assert await over(engine, "p") == (ExecutionStatus.DONE, "still here", "")
            assert asked == ["p/1"], "nobody began it again"

    asyncio.run(main())


@on_both
def test_a_run_that_its_worker_has_and_does_nothing_for_is_queued_again(ground: Ground) -> None:
    async def held(flow: Flow, _args: Json) -> Json:
        return await flow.gate("go")

    async def main() -> None:
        async with opened(ground, {"one": one_step}, worker=False, version="2") as client:
            await client.submit("lost", "one", 1)
            await client.submit("other", "one", 1)
        async with opened(ground, {"one": one_step, "held": held}) as engine:
            worker = engine._worker
            assert worker is not None
            await engine.submit("held", "held", None)
            with database_of(ground) as (database, tables):
                Leases(database, tables).join("somebody", this_process(), 4)
                give_to(database, tables, worker._executor, "lost")
                give_to(database, tables, "somebody", "other")
                await until(lambda: "held" in worker._bodies)
                for moment, status in {1000.0: "PENDING", 1014.0: "PENDING", 1016.0: "ENQUEUED"}.items():
                    await worker._watch.tidy(moment)
                    assert status_of(database, tables, "lost") == status, "it is given its time, and no more"
                assert status_of(database, tables, "other") == "PENDING", "another worker's is none of our business"
                assert status_of(database, tables, "held") == "PENDING", "nor is one that only waits"
            await engine.answer("held", "go", "on")
            assert await over(engine, "held") == (ExecutionStatus.DONE, "on", "")

    asyncio.run(main())
