"""Cassettes written by hand, and one ask of them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Backend, Session
from fairwitness.agents.cassette_file import name_of
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe, Stop, Usage, UsageSource
from fairwitness.contracts.common.tools import Role

ANY = "sha256:" + "0" * 64
HEADER = {"cassette": 1, "role": "implementer", "instance": "implementer", "model": "canned", "prompt": ANY}


def turn(number: int, *calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    """One line; nobody looked at what the model saw, unless it is said."""
    made = [{"tool": tool, "args": args} for tool, args in calls]
    return {"turn": number, "calls": made, "usage": [1000, 50], "ms": 0, "seen": None, **more}


def write(folder: Path, *turns: dict[str, Any], number: int = 1, role: Role = Role.IMPLEMENTER, **header: Any) -> Path:
    """The file of a cassette."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name_of(role, role.value, number)
    first = {**HEADER, "role": role.value, "instance": role.value, **header}
    path.write_text("".join(json.dumps(line) + "\n" for line in (first, *turns)))
    return path


def ask(backend: Backend, job: AgentJob, *prompts: str) -> list[AgentTurn]:
    """A session of some prompts."""

    async def run() -> list[AgentTurn]:
        async with backend.open(job) as session:
            return [await session.ask(prompt) for prompt in prompts or (job.prompt,)]

    return asyncio.run(run())


def play(path: Path, job: AgentJob, *prompts: str, strict: bool = True) -> list[AgentTurn]:
    """A session of some prompts with a cassette."""
    return ask(CassetteBackend(path, strict=strict), job, *prompts)


Doing = Callable[[AgentJob], Awaitable[AgentTurn]]


class Alone:
    """An agent that acts by itself, as most do."""

    name = "alone"

    def __init__(self, *doings: Doing) -> None:
        self._doings = list(doings)

    def probe(self) -> Probe:
        return Probe(name="alone", kind="acp", found=True, tier=EnforcementTier.C)

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._opened(job)

    @asynccontextmanager
    async def _opened(self, job: AgentJob) -> AsyncIterator[Session]:
        doings, outer = self._doings, job

        class _Session:
            async def ask(self, prompt: str) -> AgentTurn:
                return await doings.pop(0)(outer)

            async def cancel(self) -> None:
                return None

        yield _Session()


def ended(text: str, tokens: int = 700) -> AgentTurn:
    """Its last word, with a count of the whole session."""
    used = Usage(source=UsageSource.AGENT, tokens_in=tokens, tokens_out=30)
    return AgentTurn(text=text, stop=Stop.DONE, usage=used, model="alone-1")
