"""What a step costs beside a bare step of the library and a bare commit, how soon a killed run goes on, and how near
several workers on one server come to what they could do at the most."""

import asyncio
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

from bench.measure import report
from fairwitness.engine.base import Body, Flow, Json
from fairwitness.engine.dbos_engine import DbosEngine

STEPS = 600
WARM_UP = 50
RESTARTS = 5
RESTART_GOAL_S = 1.0
KEPT = 20
"""Steps that stand in the journal when the run is killed."""

CAP = 4
TASK_S = 1.0
TASKS = {2: 64, 4: 128}
"""Workers, and the tasks they share."""
SHARE_GOAL = 0.9

RESULT: dict[str, Json] = {"step": "step-6", "task": "task-03", "ok": True}
BARE = "bare step of DBOS"


def run() -> bool:
    """Prints the ratios of a step and the seconds of a restart."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        root = Path(folder)
        return all([asyncio.run(_steps(root)), _restart(root), _workers()])


async def _steps(root: Path) -> bool:
    """Every candidate in turn, in one body on one database, so that all meet the same machine."""
    from dbos import DBOS

    taken: dict[str, list[float]] = {}
    commits = sqlite3.connect(root / "commits.db", isolation_level=None, check_same_thread=False)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE step (key TEXT, value TEXT)"):
        commits.execute(statement)

    async def work() -> Json:
        return RESULT

    async def commit() -> None:
        commits.execute("BEGIN IMMEDIATE")
        commits.execute("INSERT INTO step VALUES (?, ?)", ("key", str(RESULT)))
        commits.execute("COMMIT")

    async def body(flow: Flow, _args: Json) -> Json:
        for number in range(STEPS):
            candidates: dict[str, Callable[[], Awaitable[object]]] = {
                BARE: lambda number=number: DBOS.run_step_async({"name": f"bare-{number}"}, work),  # type: ignore[misc]  # bound here
                "the same, which a cancellation can reach": lambda number=number: DBOS.run_step_async(  # type: ignore[misc]  # bound here
                    {"name": f"preemptible-{number}", "preemptible": True}, work
                ),
                "step through our layer": lambda number=number: flow.step(f"step-{number}", work),  # type: ignore[misc]  # bound here
                "bare SQLite commit": commit,
            }
            for name, take in candidates.items():
                began = time.perf_counter()
                await take()
                if number >= WARM_UP:
                    taken.setdefault(name, []).append(time.perf_counter() - began)
        return None

    with closing(commits):
        engine = DbosEngine(root / "steps.db", {"body": body})
        await engine.open(worker=True)
        try:
            await engine.submit("bench", "body", None)
            while (outcome := await engine.outcome("bench")) is None:  # noqa: ASYNC110 -- it is looked up
                await asyncio.sleep(0.5)
            assert not outcome.error, outcome
        finally:
            await engine.close()
    measured = {name: statistics.median(times) for name, times in taken.items()}
    return report("one durable step", measured, BARE, {"step through our layer": 1.2})


def _restart(root: Path) -> bool:
    """From the start of a process to the first step that was not done before, after a kill in the middle of one."""
    taken = []
    for number in range(RESTARTS):
        database = root / f"restart-{number}.db"
        began, killed = _worker(database)
        assert killed == "begun"
        began, went_on = _worker(database)
        assert went_on == "begun"
        taken.append(began)
    seconds = statistics.median(taken)
    is_met = seconds <= RESTART_GOAL_S
    print(f"\nrestart to the first new step, {KEPT} recorded  ({RESTARTS} kills)")
    print(f"  {seconds:6.2f} s  median, worst {max(taken):.2f} s{'':<21} goal <= {RESTART_GOAL_S:.2f} s: ", end="")
    print("met" if is_met else "MISSED")
    return is_met


def _worker(database: Path) -> tuple[float, str]:
    """Seconds until a worker's first step beyond those that are kept; it is killed there."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.engine", "restart", str(database)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        taken = time.perf_counter() - began
        process.send_signal(signal.SIGKILL)
    return taken, said


async def _work(database: str) -> None:
    async def kept() -> Json:
        return RESULT

    async def new() -> Json:
        os.write(1, b"begun\n")
        await asyncio.sleep(60)
        return None

    async def body(flow: Flow, _args: Json) -> Json:
        for number in range(KEPT):
            await flow.step(f"kept-{number}", kept)
        return await flow.step("new", new)

    engine = DbosEngine(database, {"body": body})
    await engine.open(worker=True)
    await engine.submit("bench", "body", None)
    await asyncio.Event().wait()


def _workers() -> bool:
    """Tasks of one run, shared by several processes on one server, from its submission to its end."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support import postgres

    if postgres.binaries() is None:
        print("\nseveral workers: not measured, there is no Postgres on this machine")
        return False
    print(f"\ntasks of {TASK_S:g} s on Postgres, {CAP} at a time in each worker")
    met = []
    with postgres.server() as url:
        for workers, tasks in TASKS.items():
            address = url.replace("/postgres?", f"/bench_{workers}?")
            _make_database(url, f"bench_{workers}")
            seconds = _shared(address, workers, tasks)
            ideal = workers * CAP / TASK_S
            share = tasks / seconds / ideal
            met.append(share >= SHARE_GOAL)
            what = f"of {ideal:g}/s: {workers} workers, {tasks} tasks, {tasks / seconds:.2f}/s"
            print(f"  {share:6.2f}   {what:<44} goal >= {SHARE_GOAL:.2f}: {'met' if met[-1] else 'MISSED'}")
    return all(met)


def _make_database(url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")


def _shared(address: str, workers: int, tasks: int) -> float:
    program = [sys.executable, "-m", "bench.engine", "share", address]
    processes = []
    try:
        for _ in range(workers):
            process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True)
            processes.append(process)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        return asyncio.run(_share(address, tasks))
    finally:
        for process in processes:
            process.kill()
            process.wait()


async def _share(address: str, tasks: int) -> float:
    """Seconds from the submission of a run to its end, both seen from outside of the workers."""
    engine = DbosEngine(address, _family())
    await engine.open(worker=False)
    try:
        began = time.perf_counter()
        await engine.submit("bench", "parent", tasks)
        while (outcome := await engine.outcome("bench")) is None:  # noqa: ASYNC110 -- it is looked up
            await asyncio.sleep(0.02)
        taken = time.perf_counter() - began
    finally:
        await engine.close()
    assert outcome.value == tasks, outcome
    return taken


def _family() -> dict[str, Body]:
    async def task(flow: Flow, _args: Json) -> Json:
        async def work() -> Json:
            await asyncio.sleep(TASK_S)
            return RESULT

        return await flow.step("work", work)

    async def parent(flow: Flow, tasks: Json) -> Json:
        assert isinstance(tasks, int)

        async def graph() -> Json:
            left = {f"bench/{number}" for number in range(tasks)}
            for child_id in sorted(left):
                await flow.submit(child_id, "task", None)
            while left:
                left -= (await flow.wait(left, timeout_s=30)).keys()
            return tasks

        return await flow.step("graph", graph)

    return {"parent": parent, "task": task}


async def _take_part(address: str) -> None:
    engine = DbosEngine(address, _family(), cap=CAP)
    await engine.open(worker=True)
    os.write(1, b"ready\n")
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run({"restart": _work, "share": _take_part}[sys.argv[1]](sys.argv[2]))
