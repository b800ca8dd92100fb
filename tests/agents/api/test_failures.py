"""What goes wrong on the wire, in every dialect: errors, broken and endless answers, hanging, and being cancelled."""

import asyncio
import time
from pathlib import Path

import pytest

from agents.api.kit import DIALECTS, PROMPT, TOKEN, asked, job_in, play, project, scripted
from agents.jobs import Kept
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.backends.api_session import MOST_SIGNS
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import Kind, Stop
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.testing.script_steps import BreakStep, ErrorStep, FloodStep, HangStep, ReadStep, RunStep, SayStep

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("P12")]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.mark.parametrize(
    ("status", "stop", "cause"),
    [
        (529, Stop.FAILED, ErrorCause.SERVER_ERROR),
        (500, Stop.FAILED, ErrorCause.SERVER_ERROR),
        (429, Stop.FAILED, ErrorCause.RATE_LIMITED),
        (401, Stop.FAILED, ErrorCause.PERMISSION_DENIED),
        (403, Stop.FAILED, ErrorCause.PERMISSION_DENIED),
        (404, Stop.FAILED, ErrorCause.NOT_FOUND),
        (400, Stop.FAILED, ErrorCause.AGENT_ERROR),
        (402, Stop.LIMIT, None),
    ],
)
@every_dialect
def test_an_error_of_the_provider_is_a_turn_that_says_which(
    tmp_path: Path, dialect: ApiDialect, status: int, stop: Stop, cause: ErrorCause | None
) -> None:
    async def run() -> None:
        async with scripted(ReadStep(path="notes.md"), ErrorStep(status=status, message="the words of it")) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(dialect))
            (turn,) = await asked(job)
            assert [one.status for one in model.log.requests] == [200, status]  # and it was not asked again
        assert (turn.stop, turn.cause) == (stop, cause)
        assert "the words of it" in turn.error
        assert turn.usage.turns == 1

    asyncio.run(run())


def test_a_request_is_made_again_only_as_often_as_the_rule_says(tmp_path: Path) -> None:
    kept = Kept()
    causes = []

    def waits(cause: ErrorCause) -> tuple[float, ...]:
        causes.append(cause)
        return (0.01, 0.02)

    async def run() -> None:
        async with scripted(ErrorStep(status=529)) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.OPENAI_CHAT), kept=kept)
            (turn,) = await asked(job, backend=ApiBackend(waits=waits))
            assert len(model.log.requests) == 3
        assert turn.cause is ErrorCause.SERVER_ERROR

    asyncio.run(run())
    assert set(causes) == {ErrorCause.SERVER_ERROR}
    assert [text.rsplit("; ", 1)[1] for text in kept.texts(Kind.NOTE)] == [
        "asking again in 0.01 s",
        "asking again in 0.02 s",
    ]


@every_dialect
def test_an_answer_that_breaks_off_is_a_failure_and_no_answer(tmp_path: Path, dialect: ApiDialect) -> None:
    turn, _ = play(tmp_path, dialect, BreakStep(step=SayStep(text="This is a long sentence. " * 40)))
    assert turn.stop is Stop.FAILED
    assert turn.cause is ErrorCause.NETWORK
    assert turn.text == ""


@every_dialect
def test_a_flood_is_not_listened_to(tmp_path: Path, dialect: ApiDialect) -> None:
    turn, _ = play(tmp_path, dialect, FloodStep(characters=8 * MOST_SIGNS))
    assert turn.stop is Stop.FAILED
    assert turn.cause is ErrorCause.AGENT_ERROR
    assert str(MOST_SIGNS) in turn.error
    assert len(turn.text) <= MOST_SIGNS


def test_turns_are_counted_over_the_whole_session(tmp_path: Path) -> None:
    async def run() -> None:
        async with scripted(*[ReadStep(path="notes.md")] * 9) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.OPENAI_RESPONSES), turns=4)
            first, second = await asked(job, PROMPT, "once more")
            assert len(model.log.requests) == 4
        assert (first.stop, second.stop) == (Stop.LIMIT, Stop.LIMIT)
        assert "4 turns" in first.error
        assert first.usage.turns == 4

    asyncio.run(run())


@every_dialect
def test_a_model_that_hangs_is_left_at_once(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        async with scripted(HangStep()) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(dialect))
            async with ApiBackend().open(job) as session:
                asking = asyncio.ensure_future(session.ask(PROMPT))
                await asyncio.sleep(0.5)
                began = time.monotonic()
                await session.cancel()
                turn = await asking
                assert time.monotonic() - began < 2
                assert turn.stop is Stop.CANCELLED
                assert (await session.ask("and now?")).stop is Stop.CANCELLED

    asyncio.run(run())


@every_dialect
def test_a_model_that_says_nothing_for_too_long_is_a_time_out(tmp_path: Path, dialect: ApiDialect) -> None:
    async def run() -> None:
        async with scripted(HangStep()) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(dialect))
            (turn,) = await asked(job, backend=ApiBackend(quiet_s=0.4))
        assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.TIMEOUT), turn

    asyncio.run(run())


def _is_running(marker: str) -> bool:
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if marker.encode() in entry.read_bytes():
                return True
        except OSError:
            continue
    return False


@pytest.mark.parametrize("way", ["cancel", "leave"])
def test_a_command_under_way_is_gone_when_the_session_is(tmp_path: Path, way: str) -> None:
    marker = f"98{time.monotonic_ns() % 10**9:09d}.25"

    async def run() -> None:
        async with scripted(RunStep(command=f"sleep {marker}"), SayStep(text="never")) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.ANTHROPIC), runner=backends.runner())
            async with ApiBackend().open(job) as session:
                asking = asyncio.ensure_future(session.ask(PROMPT))
                for _ in range(400):
                    if _is_running(marker):
                        break
                    await asyncio.sleep(0.05)
                assert _is_running(marker)
                if way == "cancel":
                    await session.cancel()
                    assert not _is_running(marker)
            assert not _is_running(marker)
            assert (await asking).stop is Stop.CANCELLED

    asyncio.run(run())


def test_an_ask_whose_caller_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    async def run() -> None:
        async with scripted(HangStep()) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.ANTHROPIC))
            async with ApiBackend().open(job) as session:
                before = asyncio.all_tasks()
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(session.ask(PROMPT), 0.5)
                left = {task for task in asyncio.all_tasks() - before if not task.done()}
                assert not [task for task in left if "_talk" in repr(task.get_coro())]

    asyncio.run(run())


def test_a_token_that_is_not_good_is_said_so(tmp_path: Path) -> None:
    async def run() -> None:
        async with scripted(SayStep(text="never")) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.GEMINI, token="stale-token"))
            (turn,) = await asked(job)
        assert turn.cause is ErrorCause.PERMISSION_DENIED
        assert TOKEN not in turn.error
        assert "stale-token" not in turn.error

    asyncio.run(run())


def test_a_gateway_that_is_gone_is_a_failure_of_the_network(tmp_path: Path) -> None:
    async def run() -> None:
        async with scripted(SayStep(text="never")) as model:
            endpoint = model.endpoint(ApiDialect.ANTHROPIC)
        (turn,) = await asked(job_in(project(tmp_path), endpoint=endpoint))
        assert (turn.stop, turn.cause) == (Stop.FAILED, ErrorCause.NETWORK)

    asyncio.run(run())
