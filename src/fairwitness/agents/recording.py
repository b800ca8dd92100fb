"""Records sessions of any backend as cassettes: one flag, and what a model said and did can be played again.

What is kept of a session is what its model said, every call that went through our toolbox, and what it changed behind
our back. Only sessions that came to their own end are kept, so that a replay counts the same dispatches as a run in
which a provider failed and was asked again.
"""

import functools
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwitness.agents.base import Backend, Job, Session, Turn
from fairwitness.agents.cassettes import Cassette, name_of, spell
from fairwitness.agents.listening import Notes
from fairwitness.agents.redact import Redactor
from fairwitness.agents.toolset.toolbox import Toolbox, ToolResult, ToolSpec
from fairwitness.agents.watching import Watch
from fairwitness.contracts.agents.cassette import CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import Denial, EnforcementTier, Kind, Probe
from fairwitness.contracts.common.tools import Allowed, Refused, ToolCall
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.kit.files import create_file, is_file

_MOST_SESSIONS = 10_000


def recording(backend: Backend, folder: Path) -> Backend:
    """The backend, with each of its sessions written to the folder when it is closed."""
    return _Recorder(backend, folder)


class _Recorder:
    def __init__(self, backend: Backend, folder: Path) -> None:
        self._backend, self._folder = backend, folder

    @property
    def name(self) -> str:
        return self._backend.name

    def probe(self) -> Probe:
        return self._backend.probe()

    def open(self, job: Job) -> AbstractAsyncContextManager[Session]:
        return self._listened(job)

    @functools.cached_property
    def _acts_alone(self) -> bool:
        return self.probe().tier is not EnforcementTier.A

    @asynccontextmanager
    async def _listened(self, job: Job) -> AsyncIterator[Session]:
        watch = Watch(job.worktree) if self._acts_alone else None
        if watch is not None and watch.is_blind:
            job.happened(Kind.NOTE, "the worktree is too large to record what this agent does by itself")
        notes = Notes(job, watch)
        heard = replace(job, tools=_HeardToolbox(job.tools, notes), tell=notes.tell)
        async with self._backend.open(heard) as session:
            yield _HeardSession(session, notes)
        try:
            said = f"recorded as {self._write(job, notes)}"
        except (FairWitnessError, ValidationError) as error:  # a recording that fails is no reason to lose the dispatch
            said = f"not recorded: {error.what if isinstance(error, FairWitnessError) else 'it holds what is no text'}"
        job.happened(Kind.NOTE, said)

    def _write(self, job: Job, notes: Notes) -> str:
        data = _clean(notes.cassette(self._backend.name), job)
        for number in range(1, _MOST_SESSIONS):
            name = name_of(job.spec.role, job.brief.instance, number)
            if not is_file(self._folder, name):
                create_file(self._folder, name, data)
                return name
        raise UsageError(f"{self._folder} is full of recordings", next_step="record into another folder")


def _clean(cassette: Cassette, job: Job) -> bytes:
    """The file, without secrets; if one is left, there is no file."""
    redactor = Redactor([job.endpoint.token] if job.endpoint is not None else [])
    header = CassetteHeader.model_validate(redactor.redact_all(cassette.header.plain()))
    turns: list[CassetteTurn] = []
    for turn in cassette.turns:
        clean = CassetteTurn.model_validate(redactor.redact_all(turn.plain()))
        if any(before.calls != after.calls for before, after in zip(cassette.turns, turns, strict=False)):
            clean = clean.model_copy(
                update={"seen": None}
            )  # a replay will not do quite the same, and not see it either
        turns.append(clean)
    data = spell(Cassette(header, tuple(turns)))
    text = data.decode()
    if redactor.redact(text) != text:
        raise UsageError("a secret is left in it that could not be taken out", next_step="record without secrets")
    return data


class _HeardSession:
    def __init__(self, session: Session, notes: Notes) -> None:
        self._session, self._notes = session, notes

    async def ask(self, prompt: str) -> Turn:
        self._notes.asked(prompt)
        turn = await self._session.ask(prompt)
        self._notes.answered(turn)
        return turn

    async def cancel(self) -> None:
        await self._session.cancel()


class _HeardToolbox(Toolbox):
    """Another's tools, with every call heard; it has no tools of its own."""

    def __init__(self, inner: Toolbox, notes: Notes) -> None:
        self._inner, self._notes = inner, notes
        self.role, self.scope, self.worktree = inner.role, inner.scope, inner.worktree

    @property
    def denials(self) -> tuple[Denial, ...]:
        return self._inner.denials

    def offered(self) -> tuple[ToolSpec, ...]:
        return self._inner.offered()

    def judge(self, call: ToolCall, *, target: str = "") -> Allowed | Refused:
        return self._inner.judge(call, target=target)

    def deny(self, denial: Denial) -> None:
        self._inner.deny(denial)

    async def call(self, tool: str, args: Mapping[str, Any]) -> ToolResult:
        self._notes.calling()
        result = await self._inner.call(tool, args)
        self._notes.called(tool, args, result)
        return result

    async def close(self) -> None:
        await self._inner.close()
