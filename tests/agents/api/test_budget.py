"""Money and tokens are counted at the gateway: what it refuses is a limit of ours, whatever the dialect makes of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents.api.kit import DIALECTS, PROMPT, behind_gateway, job_in, project, script_mode
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.base import AgentTurn
from fairwitness.agents.gateway.dialects import CODECS
from fairwitness.agents.gateway.meter import CappedMeter
from fairwitness.agents.gateway.metered import MeteredMode
from fairwitness.agents.gateway.modes import Mode, ModelAnswer, ModelRequest, RawAnswer
from fairwitness.contracts.agents.dispatch import DispatchLimits, Stop
from fairwitness.contracts.agents.model import ApiDialect, ModelTurn, ModelUsage
from fairwitness.testing.script_steps import ReadStep, SayStep

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("P12")]


class _Talkative:
    """A provider whose answer is longer than anybody promised it."""

    name = "pass"

    async def answer(self, asked: ModelRequest) -> ModelAnswer:
        codec = CODECS[asked.dialect]
        turn = ModelTurn(text="word " * 60_000, usage=ModelUsage(tokens_in=10, tokens_out=60_000))
        frames = list(codec.frames(turn, asked))

        async def body() -> AsyncIterator[bytes]:
            for frame in frames:
                yield frame

        return RawAnswer(200, {"content-type": codec.stream_type(asked)}, body())


def ask(folder: Path, mode: Mode, dialect: ApiDialect, limits: DispatchLimits) -> tuple[AgentTurn, int]:
    """One ask of a model behind a meter, and how many requests came through."""

    async def run() -> tuple[AgentTurn, int]:
        meter = CappedMeter()
        meter.open("d-1", limits)
        async with behind_gateway(MeteredMode(mode, meter, lambda _asked, _usage: 1000)) as model:
            job = job_in(project(folder), endpoint=model.endpoint(dialect))
            async with ApiBackend().open(job) as session:
                return await session.ask(PROMPT), meter.usage("d-1").turns or 0

    return asyncio.run(run())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_at_the_cap_the_gateway_says_no_and_the_turn_says_limit(tmp_path: Path, dialect: ApiDialect) -> None:
    mode = script_mode([*[ReadStep(path="notes.md")] * 5, SayStep(text="never")])
    turn, calls = ask(tmp_path, mode, dialect, DispatchLimits(wall_s=20, turns=20, cost_micros=3000))
    assert turn.stop is Stop.LIMIT
    assert turn.cause is None
    assert "over budget" in turn.error
    assert (calls, turn.usage.turns) == (3, 3)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_that_is_cut_off_at_the_cap_is_a_limit_and_no_failure(tmp_path: Path, dialect: ApiDialect) -> None:
    turn, _ = ask(tmp_path, _Talkative(), dialect, DispatchLimits(wall_s=20, turns=20, tokens=30_000))
    assert turn.stop is Stop.LIMIT
    assert "over budget" in turn.error
    assert turn.text == ""


def test_tokens_that_the_provider_counted_are_a_limit_here_too(tmp_path: Path) -> None:
    async def run() -> AgentTurn:
        async with behind_gateway(script_mode([*[ReadStep(path="notes.md")] * 9])) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(ApiDialect.ANTHROPIC), tokens=2500)
            async with ApiBackend().open(job) as session:
                return await session.ask(PROMPT)

    turn = asyncio.run(run())
    assert turn.stop is Stop.LIMIT
    assert turn.usage.tokens == 3150
