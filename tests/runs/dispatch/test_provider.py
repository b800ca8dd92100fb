"""A provider's bad day on record: a dispatch that was interrupted has not failed, costs what it used, and goes on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents.gateway.fault_kit import Day, Spell, bad_day, error, says
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Session
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import EnforcementTier, OutcomeStatus, Probe, Stop, Usage
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.budgets import Amounts
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.errors import DatabaseUnusable, DiskRefused, ProviderAway
from fairwitness.git.identity import FALLBACK
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import Worktrees
from fairwitness.runs.dispatch import Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.model import DispatchDeps
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from fairwitness.sandbox.scripted import ScriptedRunner
from runs.dispatch.world import REPORT, RUN, World, brief
from runs.dispatch.world import says as spelled

pytestmark = [pytest.mark.enable_socket, pytest.mark.req("P12")]
GOOD = spelled(REPORT)


@dataclass
class Program:
    """An agent program with a model: it asks once, and ends its turn with whatever came, as programs do."""

    name: str = "program"
    asked: list[int] = field(default_factory=list)

    def probe(self) -> Probe:
        return Probe(name=self.name, kind="api", found=True, tier=EnforcementTier.A)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._opened(job)

    @asynccontextmanager
    async def _opened(self, job: AgentJob) -> AsyncIterator[Session]:
        yield _Program(self, job)


@dataclass
class _Program:
    program: Program
    job: AgentJob

    async def ask(self, prompt: str) -> AgentTurn:
        endpoint = self.job.endpoint
        assert endpoint is not None
        body = {"model": endpoint.model, "messages": [{"role": "user", "content": prompt}]}
        headers = {"authorization": f"Bearer {endpoint.token}"}
        async with httpx.AsyncClient(base_url=endpoint.url or "", headers=headers, trust_env=False) as client:
            try:
                answer = await client.post("/v1/chat/completions", json=body, timeout=2.0)
                self.program.asked.append(answer.status_code)
                said: Any = answer.json()
                text = said["choices"][0]["message"]["content"] if answer.is_success else f"API Error: {said}"
            except httpx.TimeoutException:
                self.program.asked.append(0)
                text = "API Error: Request timed out."
        return AgentTurn(text, Stop.DONE, Usage())

    async def cancel(self) -> None:
        """Nothing is left running."""


def deps(world: World, day: Day, backend: Program | ApiBackend) -> DispatchDeps:
    return DispatchDeps(
        backend=backend,
        probe=backend.probe(),
        models=day.models,
        runner=ScriptedRunner(()),
        worktree=world.folder,
        base_tree=world.base_tree,
    )


def run(world: World, *replies: Spell, backend: Program | ApiBackend | None = None, wait_s: float = 900) -> Dispatched:
    """One dispatch of an implementer whose provider has a bad day."""

    async def once() -> Dispatched:
        async with bad_day(ApiDialect.OPENAI_CHAT, *replies, wait_s=wait_s) as day:
            spec, where = ROLES[brief().role], DispatchPosition("step-5", task="task-01", attempt=1)
            ours = deps(world, day, backend or ApiBackend())
            return await dispatch(world.context(), spec, brief(), where, ours)

    return asyncio.run(once())


def spent(world: World) -> Amounts:
    row = world.ledger.observation(RUN, "dispatch:d-1:ended")
    assert row is not None
    return Amounts.model_validate(row.detail["spending"]["used"])


def test_an_interrupted_dispatch_has_not_failed_and_goes_on_under_its_id(world: World) -> None:
    with pytest.raises(ProviderAway, match="the provider acme gave no answer for 15 min: too many requests"):
        run(world, error(429, "slow down"))
    assert world.events() == ["dispatch_started"]
    assert world.ledger.observation(RUN, "dispatch:d-1:ended") is None
    row = world.ledger.observation(RUN, "dispatch:d-1:cancelled-1")
    assert row is not None
    assert row.detail["used"]["tokens"] == 0
    assert "too many requests" in row.detail["outcome"]["problems"][0]
    done = run(world, says(GOOD))
    assert done.outcome.status is OutcomeStatus.OK
    assert spent(world).tokens == 1050  # and nothing for the try before
    assert world.rows("pipeline_telemetry", "retry_count") == [(0,), (0,)]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (error(401, "bad key"), "it does not accept the key"),
        (error(404, "no model"), "it does not have this model"),
    ],
)
def test_a_fault_that_only_a_person_mends_interrupts_an_agent_program_too(
    world: World, fault: Spell, words: str
) -> None:
    program = Program()
    with pytest.raises(ProviderAway, match=words):
        run(world, fault, backend=program)
    assert len(program.asked) <= 1
    assert world.events() == ["dispatch_started"]


def test_the_error_of_a_model_inside_an_agent_program_is_named(world: World) -> None:
    too_long = error(400, "prompt is too long: 210000 tokens > 200000 maximum")
    program = Program()
    done = run(world, too_long, backend=program)
    assert done.outcome.status is OutcomeStatus.AGENT_ERROR
    (problem,) = done.outcome.problems
    assert problem.startswith("its model failed: the conversation is longer than the model's context (400: prompt is")
    assert program.asked == [400]  # it is not asked to put its form right
    assert "API Error" in done.outcome.raw_text


def test_a_program_that_gives_up_while_the_provider_is_waited_for_is_started_again(world: World) -> None:
    async def once() -> tuple[Dispatched, Program, int]:
        limited = error(429, "slow down", retry_after="60")
        program = Program()
        async with bad_day(ApiDialect.OPENAI_CHAT, limited, limited, says(GOOD)) as day:
            day.time.first_s = 3  # longer than the program waits for an answer
            spec, where = ROLES[brief().role], DispatchPosition("step-5", task="task-01", attempt=1)
            done = await dispatch(world.context(), spec, brief(), where, deps(world, day, program))
            return done, program, len(day.provider.asked)

    done, program, requests = asyncio.run(once())
    assert done.outcome.status is OutcomeStatus.OK
    assert program.asked == [0, 200]
    assert requests == 3
    assert world.events().count("dispatch_finished") == 1
    assert spent(world).tokens == 1050
    assert world.ledger.observation(RUN, "dispatch:d-1:cancelled-1") is not None


def test_a_program_whose_provider_always_fails_it_ends_as_interrupted(world: World) -> None:
    program = Program()
    with pytest.raises(ProviderAway, match="an error of its own"):
        run(world, error(500), backend=program, wait_s=3)
    assert world.ledger.observation(RUN, "dispatch:d-1:ended") is None


@pytest.mark.parametrize(
    "error",
    [
        ProviderAway("the provider acme cannot be used"),
        DiskRefused("cannot reserve answers/a: ENOSPC"),
        DatabaseUnusable("evidence.db cannot be used as a database: database or disk is full"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_calls_beside_one_that_fails_end_by_themselves(world: World, tmp_path: Path, error: Exception) -> None:
    ended: list[str] = []

    async def fails() -> None:
        raise error

    async def works() -> None:
        await asyncio.sleep(0.05)
        ended.append("answered")

    repository = Repository.open(world.person.folder)
    readers = ReadOnlyWorktrees(Worktrees(repository, world.shadow, tmp_path / "readers"), RUN, FALLBACK)

    def none(*_position: object) -> DispatchDeps:
        raise AssertionError("nobody is dispatched")

    caller = AgentCaller(world.context(), none, readers, RetryPolicy())
    with pytest.raises(type(error)):
        asyncio.run(caller.together([fails, works]))
    assert ended == ["answered"]
