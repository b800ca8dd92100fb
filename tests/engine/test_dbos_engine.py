"""What the engine on DBOS promises beyond the contract: one worker per process, silence, JSON, and ways out."""

import ast
import asyncio
import contextlib
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from engine.grounds import Ground, Kind
from fairwitness.engine.base import Body, EngineError, ExecutionStatus, Flow, Json, StepError
from fairwitness.engine.dbos_engine import DbosEngine
from support.fixtures import ROOT

on_both = pytest.mark.parametrize("ground", [Kind.DBOS_SQLITE, Kind.DBOS_POSTGRES], indirect=True, ids=str)
on_a_file = pytest.mark.parametrize("ground", [Kind.DBOS_SQLITE], indirect=True, ids=str)


@contextlib.asynccontextmanager
async def opened(
    ground: Ground, flows: Mapping[str, Body], *, worker: bool = True, version: str = "1"
) -> AsyncIterator[DbosEngine]:
    """An engine for as long as the block lasts."""
    engine = DbosEngine(ground.address, flows, version=version)
    await engine.open(worker=worker)
    try:
        yield engine
    finally:
        await engine.close(grace_s=1.0)


async def until(holds: Callable[[], object], patience_s: float = 20.0) -> None:
    """Waits until something is so."""
    end = time.monotonic() + patience_s
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def over(engine: DbosEngine, run_id: str, patience_s: float = 20.0) -> tuple[ExecutionStatus, Json, str]:
    """How a run ended, once it has."""
    end = time.monotonic() + patience_s
    while (outcome := await engine.outcome(run_id)) is None:
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
    return outcome.status, outcome.value, outcome.error


async def give(value: Json) -> Json:
    """The work of a step."""
    return value


async def one_step(flow: Flow, args: Json) -> Json:
    """The least body there is."""
    return await flow.step("only", lambda: give(args))


@on_a_file
def test_a_second_worker_in_one_process_is_refused_until_the_first_is_closed(ground: Ground) -> None:
    async def main() -> None:
        second = DbosEngine(ground.address, {"one": one_step})
        async with opened(ground, {"one": one_step}) as engine:
            with pytest.raises(EngineError, match="another engine works in this process"):
                await second.open(worker=True)
            with pytest.raises(EngineError, match="open already"):
                await engine.open(worker=True)
            await second.open(worker=False)
            await second.submit("r", "one", 1)
            assert await over(second, "r") == (ExecutionStatus.DONE, 1, "")
            await second.close()
        await second.open(worker=True)
        assert await asyncio.to_thread(lambda: 7) == 7, "the loop has its threads back"
        await second.submit("s", "one", 2)
        assert await over(second, "s") == (ExecutionStatus.DONE, 2, "")
        await second.close()
        assert await asyncio.to_thread(lambda: 7) == 7
        with pytest.raises(EngineError, match="not open"):
            await second.runs()

    asyncio.run(main())


def test_dbos_is_imported_by_one_module_and_only_when_it_is_needed() -> None:
    importing: dict[str, set[str]] = {"dbos": set(), "sqlalchemy": set()}
    for path in sorted((ROOT / "src").rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "dbos" in text or "sqlalchemy" in text else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in {name.split(".")[0] for name in names} & importing.keys():
                importing[name].add(path.name)
                assert isinstance(node, ast.stmt)
                assert node.col_offset > 0, "only inside functions"
    assert importing == {"dbos": {"dbos_library.py"}, "sqlalchemy": {"connections.py", "dbos_library.py"}}
    program = "import sys, fairwitness.engine.dbos_engine; print({'dbos', 'sqlalchemy', 'psycopg'} & set(sys.modules))"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


@on_both
def test_nothing_is_printed_whatever_happens(ground: Ground, capfd: pytest.CaptureFixture[str]) -> None:
    async def bad(flow: Flow, _args: Json) -> Json:
        raise ValueError("this run fails")

    async def hangs(flow: Flow, _args: Json) -> Json:
        async def work() -> Json:
            await asyncio.sleep(60)
            return None

        return await flow.step("long", work)

    async def main() -> None:
        async with opened(ground, {"bad": bad, "hangs": hangs}) as engine:
            for run in ("bad", "hangs"):
                await engine.submit(run, run, None)
            assert await over(engine, "bad") == (ExecutionStatus.FAILED, None, "ValueError: this run fails")
            await engine.cancel("hangs")
            assert (await over(engine, "hangs"))[0] is ExecutionStatus.CANCELLED
        async with opened(ground, {}, worker=False) as engine:
            assert len(await engine.runs()) == 2

    asyncio.run(main())
    assert capfd.readouterr() == ("", "")


@on_a_file
def test_a_file_is_logged_ahead_and_synced_and_holds_json_alone(ground: Ground) -> None:
    async def body(flow: Flow, args: Json) -> Json:
        with contextlib.suppress(StepError):
            await flow.step("bad", lambda: give({1, 2}))  # type: ignore[arg-type]  # no JSON, on purpose
        return await flow.step("good", lambda: give({"sign": "\u2713 \ud800 \0"}))

    async def main() -> None:
        async with opened(ground, {"body": body}) as engine:
            await engine.submit("r", "body", [1.5])
            assert await over(engine, "r") == (ExecutionStatus.DONE, {"sign": "\u2713 \ud800 \0"}, "")
            assert engine._opened is not None
            assert engine._opened.store.engine is not None
            with engine._opened.store.engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
                assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"

    asyncio.run(main())
    with contextlib.closing(sqlite3.connect(ground.address)) as connection:
        texts = connection.execute(
            "SELECT output FROM operation_outputs UNION SELECT inputs FROM workflow_input "
            "UNION SELECT output FROM workflow_output"
        ).fetchall()
        formats = connection.execute(
            "SELECT serialization FROM operation_outputs UNION SELECT serialization FROM workflow_status"
        ).fetchall()
    assert all(text[0] in "{[" for (text,) in texts)
    assert formats == [("fairwitness-json-1",)]


@on_a_file
def test_a_file_of_something_else_is_refused_and_not_touched(ground: Ground) -> None:
    with contextlib.closing(sqlite3.connect(ground.address)) as connection:
        connection.execute("CREATE TABLE theirs (value TEXT)")
        connection.commit()
    before = _tables(ground)

    async def main() -> None:
        engine = DbosEngine(ground.address, {})
        with pytest.raises(EngineError, match="not an engine's database"):
            await engine.open(worker=True)
        await engine.close()

    asyncio.run(main())
    assert _tables(ground) == before == [("theirs",)]


def _tables(ground: Ground) -> list[tuple[str]]:
    with contextlib.closing(sqlite3.connect(ground.address)) as connection:
        return connection.execute("SELECT name FROM sqlite_master ORDER BY name").fetchall()


@on_a_file
def test_what_a_kill_left_of_a_file_being_made_is_no_hindrance(ground: Ground) -> None:
    Path(f"{ground.address}.partial").write_bytes(b"SQLite format 3\0 and then the power failed")

    async def main() -> None:
        async with opened(ground, {"one": one_step}) as engine:
            await engine.submit("r", "one", 1)
            assert await over(engine, "r") == (ExecutionStatus.DONE, 1, "")

    asyncio.run(main())
    assert not Path(f"{ground.address}.partial").exists()


@on_a_file
def test_a_path_may_hold_signs_that_mean_something_in_an_address(ground: Ground) -> None:
    folder = ground.folder / "50% of ? & #"
    folder.mkdir()

    async def main() -> None:
        engine = DbosEngine(folder / "engine.db", {"one": one_step})
        await engine.open(worker=True)
        await engine.submit("r", "one", 1)
        assert await over(engine, "r") == (ExecutionStatus.DONE, 1, "")
        await engine.close()

    asyncio.run(main())
    assert (folder / "engine.db").exists()


@on_both
def test_a_run_whose_steps_do_not_fit_is_named_and_goes_on_when_they_do_again(ground: Ground) -> None:
    ran: list[str] = []

    def work(key: str) -> Callable[[], "asyncio.Future[Json]"]:
        async def run() -> Json:
            ran.append(key)
            return key

        return run  # type: ignore[return-value]  # an awaitable is an awaitable

    def body(*keys: str) -> Body:
        async def steps(flow: Flow, _args: Json) -> Json:
            for key in keys:
                if key == "wait":
                    await flow.gate(key)
                else:
                    await flow.step(key, work(key))
            return list(keys)

        return steps

    async def main() -> None:
        async with opened(ground, {"body": body("a", "b", "wait", "c")}) as engine:
            await engine.submit("r", "body", None)
            await until(lambda: ran == ["a", "b"])
            await engine.answer("r", "wait", None)
            assert (await over(engine, "r"))[0] is ExecutionStatus.DONE
            await engine.rerun_from("r", "wait")
            await asyncio.sleep(0.2)
        async with opened(ground, {"body": body("b", "a", "wait", "c")}) as engine:
            status, _, error = await over(engine, "r")
            assert status is ExecutionStatus.FAILED
            assert "asks for step b at 1, but in its journal a is there" in error
            (stranded,) = await engine.audit()
            assert (stranded.run_id, stranded.reason) == ("r", error)
            assert stranded.next_step.endswith("fairwitness resume r")
        async with opened(ground, {"body": body("a", "b", "wait", "c")}) as engine:
            await engine.resume("r")
            assert await engine.answer("r", "wait", None)
            assert await over(engine, "r") == (ExecutionStatus.DONE, ["a", "b", "wait", "c"], "")
            assert await engine.audit() == ()
        assert ran == ["a", "b", "c", "c"]

    asyncio.run(main())


@on_a_file
def test_a_step_inside_a_step_is_refused(ground: Ground) -> None:
    async def body(flow: Flow, _args: Json) -> Json:
        async def outer() -> Json:
            return await flow.step("inner", lambda: give(1))

        try:
            return await flow.step("outer", outer)
        except StepError as failed:
            return failed.kind, failed.message

    async def main() -> None:
        async with opened(ground, {"body": body}) as engine:
            await engine.submit("r", "body", None)
            assert await over(engine, "r") == (
                ExecutionStatus.DONE,
                ["EngineError", "run r asks for step inner inside step outer"],
                "",
            )

    asyncio.run(main())


@on_a_file
def test_one_id_names_one_flow_and_a_cap_lets_something_run(ground: Ground) -> None:
    async def main() -> None:
        async with opened(ground, {"one": one_step, "other": one_step}, worker=False) as engine:
            await engine.submit("r", "one", 1)
            await engine.submit("r", "one", 2)
            with pytest.raises(EngineError, match="different function name"):
                await engine.submit("r", "other", 1)
            with pytest.raises(EngineError, match="there is no flow none"):
                await engine.submit("s", "none", 1)

    asyncio.run(main())
    with pytest.raises(EngineError, match="a cap of 0"):
        DbosEngine(ground.address, {}, cap=0)


@on_a_file
def test_work_that_will_not_end_is_named_and_what_it_had_is_not_handed_over(ground: Ground) -> None:
    async def stubborn(flow: Flow, _args: Json) -> Json:
        async def work() -> Json:
            begun.append(1)
            while not enough:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.02)
            return None

        return await flow.step("long", work)

    begun: list[int] = []
    enough: list[int] = []

    async def main() -> None:
        engine = DbosEngine(ground.address, {"stubborn": stubborn})
        await engine.open(worker=True)
        await engine.submit("r", "stubborn", None)
        await until(lambda: begun)
        with pytest.raises(EngineError, match="work of r does not end"):
            await engine.close(grace_s=0.1)
        async with opened(ground, {"stubborn": stubborn}) as engine:
            await asyncio.sleep(0.5)
            assert begun == [1], "it is not run beside itself"
            (run,) = await engine.runs()
            assert run.status is ExecutionStatus.RUNNING
        enough.append(1)
        await asyncio.sleep(0.1)

    asyncio.run(main())
