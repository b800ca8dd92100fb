"""A server that goes away in the middle of everything: runs go on when it is back, and repeat what was in flight."""

import asyncio
import os
import pwd
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
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
from support import postgres
from support.ladder import SWEEP


@dataclass(frozen=True, slots=True)
class Server:
    """One that may be stopped without harm to other tests."""

    ground: Ground
    home: Path

    def stop(self) -> None:
        """As if its power had failed."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """It repairs itself from its log."""
        options = f"-k {self.home} -c listen_addresses='' -c max_connections=60 -c log_min_messages=fatal"
        self._control("-w", "-t", "60", "-l", str(self.home / "log"), "-o", options, "start")

    def _control(self, *words: str) -> None:
        tools = postgres.binaries()
        assert tools is not None
        user = "nobody" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
        command = [str(tools / "pg_ctl"), "-D", str(self.home / "data"), *words]
        subprocess.run(command, check=True, capture_output=True, cwd=self.home, user=user if os.getuid() == 0 else None)


@pytest.fixture
def server(postgres_url: str, tmp_path: Path) -> Iterator[Server]:
    """A server for one test; without Postgres it is skipped or fails as all others."""
    with postgres.server(tmp_path) as url:
        yield Server(Ground(Kind.DBOS_POSTGRES, url, tmp_path), Path(url.partition("host=")[2]))


@pytest.mark.req("P16")
@pytest.mark.timeout(400)
def test_a_server_that_fails_in_the_middle_of_runs_and_comes_back_costs_nothing_but_time(server: Server) -> None:
    ground, away_s = server.ground, 35.0 if SWEEP else 1.0
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
def test_a_gate_and_a_wait_for_children_outlive_their_server(server: Server) -> None:
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
        async with opened(server.ground, {"child": child, "parent": parent}) as engine:
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
