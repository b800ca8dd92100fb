"""Records sessions of any backend as cassettes, which the cassette backend replays.

A recording holds the text of the model, every call that went through our toolbox, and the files that the agent changed
itself. Only sessions that ended by themselves are kept, so that a replay counts the same dispatches as a run in which a
provider failed and was called again.
"""

import functools
import shlex
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwitness.agents.base import AgentJob, AgentTurn, Backend, Session
from fairwitness.agents.cassette_file import Cassette, name_of, packed, prompt_digest, schema_digest, seen, spell
from fairwitness.agents.toolset.model import ToolResult, ToolSpec
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.agents.worktree_watch import WorktreeChange, WorktreeWatch
from fairwitness.contracts.agents.cassette import CassetteCall, CassetteHeader, CassetteTurn
from fairwitness.contracts.agents.dispatch import Denial, EnforcementTier, Happening, Kind, Probe, Stop
from fairwitness.contracts.common.tools import Allowed, Tool, ToolCall, ToolRefusal
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.kit.files import create_file, is_file
from fairwitness.kit.redaction import knowing
from fairwitness.rules.tool_policy import may_call

_NAMED = 5


_Call = tuple[str, Mapping[str, Any], bool | None]
"""A tool, its arguments, and whether it succeeded; None if that is unknown."""


@dataclass(slots=True)
class HeardTurn:
    """A turn as far as it was recorded."""

    text: str = ""
    calls: list[_Call] = field(default_factory=list)
    results: list[tuple[bool, str]] | None = field(default_factory=list)
    """The results that the model was shown; None if they are unknown."""
    tokens_in: int = 0
    tokens_out: int = 0
    ms: int = 0
    submitted: dict[str, Any] | None = None


class SessionNotes:
    """The recording of one session, turn by turn."""

    def __init__(self, job: AgentJob, watch: WorktreeWatch | None) -> None:
        self._job, self._watch = job, watch
        self._turns: list[HeardTurn] = []
        self._since = 0.0
        self._asked: list[str] = []
        self._ends: list[AgentTurn] = []
        self._first = 0
        """Index of the first turn of the current prompt."""

    def on_happening(self, happening: Happening) -> None:
        """Record text and usage; calls are recorded at the toolbox."""
        if happening.kind in (Kind.TEXT, Kind.THOUGHT, Kind.USAGE):
            turn = self._speaking()
            turn.ms = self._waited()
            if happening.kind is Kind.TEXT:
                turn.text += happening.text
            if happening.kind is Kind.USAGE and happening.args is not None:
                turn.tokens_in += _count(happening.args.get("tokens_in"))
                turn.tokens_out += _count(happening.args.get("tokens_out"))
        self._job.on_happening(happening)

    def asked(self, prompt: str) -> None:
        """Record that a prompt was sent."""
        self._asked.append(prompt)
        self._since, self._first = time.monotonic(), len(self._turns)
        self._turns.append(HeardTurn())

    def answered(self, end: AgentTurn) -> None:
        """Record the result of a prompt."""
        last = self._turns[-1]
        self._act_alone(last)
        if last.calls and end.submitted is None:
            last = HeardTurn()  # a prompt ends with a turn without calls
            self._turns.append(last)
        if not last.calls:
            last.text = end.text
        last.submitted = end.submitted
        self._count_up(end)
        self._ends.append(end)

    def calling(self) -> None:
        """Note that a call of ours begins: earlier changes of files are not its doing."""
        turn = self._turns[-1]
        turn.ms = turn.ms or self._waited()
        self._act_alone(turn)

    def called(self, tool: str, args: Mapping[str, Any], result: ToolResult) -> None:
        """Record a call of ours and its result."""
        turn = self._turns[-1]
        turn.calls.append((tool, dict(args), result.ok))
        if turn.results is not None:
            turn.results.append((result.ok, result.text))
        self._since = time.monotonic()
        if self._watch is not None:
            self._watch.settle()

    def cassette(self, backend: str) -> Cassette:
        """Return the recording as a cassette."""
        ends = [end.stop for end in self._ends]
        if not ends or len(ends) != len(self._asked) or set(ends) != {Stop.DONE}:
            raise UsageError("the session did not come to its own end", next_step="record it again")
        job, root = self._job, self._job.worktree
        header = CassetteHeader(
            cassette=1,
            role=job.spec.role,
            instance=job.brief.instance,
            model=next((end.model for end in reversed(self._ends) if end.model), None) or backend,
            prompt=prompt_digest(self._asked[0], root),
            answer=job.form.name,
            schema_digest=schema_digest(job.form.schema),
        )
        shown: list[tuple[bool, str]] | None = []
        turns = []
        for number, turn in enumerate(self._turns):
            turns.append(
                CassetteTurn(
                    turn=number,
                    text=packed(turn.text, root),
                    calls=tuple(
                        CassetteCall(tool=tool.strip() or "(nothing)", args=packed(dict(args), root), ok=ok)
                        for tool, args, ok in turn.calls
                    ),
                    submitted=packed(turn.submitted, root),
                    usage=(turn.tokens_in, turn.tokens_out),
                    ms=turn.ms,
                    seen=seen(shown, root) if shown is not None else None,
                )
            )
            shown = turn.results
        return Cassette(header, tuple(turns))

    def _speaking(self) -> HeardTurn:
        """Return the current turn; text after calls begins another one."""
        if not self._turns or self._turns[-1].calls:
            self._turns.append(HeardTurn())
        return self._turns[-1]

    def _waited(self) -> int:
        return max(0, int((time.monotonic() - self._since) * 1000))

    def _count_up(self, end: AgentTurn) -> None:
        """Correct the counts of the turns by the session's: some agents report only a sum, some report twice."""
        for side in ("tokens_in", "tokens_out"):
            whole = getattr(end.usage, side)
            heard = sum(getattr(turn, side) for turn in self._turns)
            if whole is None or heard == whole:
                continue
            if heard > whole:
                for turn in self._turns[self._first :]:
                    setattr(turn, side, 0)
                heard = sum(getattr(turn, side) for turn in self._turns)
            last = self._turns[-1]
            setattr(last, side, getattr(last, side) + max(0, whole - heard))

    def _act_alone(self, turn: HeardTurn) -> None:
        """Record what the agent changed itself before what it does next."""
        if self._watch is None:
            return
        found = [(change, self._as_call(change)) for change in self._watch.changes()]
        calls = [call for _, call in found if call is not None]
        lost = [change.path for change, call in found if call is None]
        if lost:
            more = f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
            named = ", ".join(lost[:_NAMED])
            self._job.report(Kind.NOTE, f"changed, and no part of the recording: {named}{more}")
        if calls and turn.text and not turn.calls:
            # the changes came before this text
            self._turns.insert(len(self._turns) - 1, HeardTurn(calls=calls, results=None))
        elif calls:
            turn.calls += calls
            turn.results = None

    def _as_call(self, change: WorktreeChange) -> _Call | None:
        """Return a call of ours with the same effect; None if there is none, or the role may not make it."""
        if change.text is not None:
            return self._allowed(Tool.CREATE_FILE, {"path": change.path, "content": change.text}, paths=(change.path,))
        if not change.is_gone:
            return None
        argv = ("rm", "-f", change.path)
        return self._allowed(Tool.RUN_IN_TERMINAL, {"command": shlex.join(argv)}, argv=argv)

    def _allowed(self, tool: Tool, args: dict[str, Any], **judged: Any) -> _Call | None:
        call = ToolCall(tool=tool.value, **judged)
        answer = may_call(self._job.spec.role, call, self._job.brief.scope)
        return (tool.value, args, None) if isinstance(answer, Allowed) else None


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


_MOST_SESSIONS = 10_000


def recorded_backend(backend: Backend, folder: Path) -> Backend:
    """Return the backend with each session written to the folder when it is closed."""
    return _Recorder(backend, folder)


class _Recorder:
    def __init__(self, backend: Backend, folder: Path) -> None:
        self._backend, self._folder = backend, folder

    @property
    def name(self) -> str:
        return self._backend.name

    def probe(self) -> Probe:
        return self._backend.probe()

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        return self._listened(job)

    @functools.cached_property
    def _acts_alone(self) -> bool:
        return self.probe().tier is not EnforcementTier.A

    @asynccontextmanager
    async def _listened(self, job: AgentJob) -> AsyncIterator[Session]:
        watch = WorktreeWatch(job.worktree) if self._acts_alone else None
        if watch is not None and watch.is_blind:
            job.report(Kind.NOTE, "the worktree is too large to record what this agent does by itself")
        notes = SessionNotes(job, watch)
        heard = replace(job, tools=_HeardToolbox(job.tools, notes), on_happening=notes.on_happening)
        async with self._backend.open(heard) as session:
            yield _HeardSession(session, notes)
        try:
            said = f"recorded as {self._write(job, notes)}"
        except (
            FairWitnessError,
            ValidationError,
        ) as error:  # a failed recording must not lose the dispatch
            said = f"not recorded: {error.what if isinstance(error, FairWitnessError) else 'it holds what is no text'}"
        job.report(Kind.NOTE, said)

    def _write(self, job: AgentJob, notes: SessionNotes) -> str:
        data = _clean(notes.cassette(self._backend.name), job)
        for number in range(1, _MOST_SESSIONS):
            name = name_of(job.spec.role, job.brief.instance, number)
            if not is_file(self._folder, name):
                create_file(self._folder, name, data)
                return name
        raise UsageError(f"{self._folder} is full of recordings", next_step="record into another folder")


def _clean(cassette: Cassette, job: AgentJob) -> bytes:
    """Return the file without secrets; if one cannot be removed, there is no file."""
    redactor = knowing(*([job.endpoint.token] if job.endpoint is not None else []))
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
    def __init__(self, session: Session, notes: SessionNotes) -> None:
        self._session, self._notes = session, notes

    async def ask(self, prompt: str) -> AgentTurn:
        self._notes.asked(prompt)
        turn = await self._session.ask(prompt)
        self._notes.answered(turn)
        return turn

    async def cancel(self) -> None:
        await self._session.cancel()


class _HeardToolbox(Toolbox):
    """A toolbox that records every call of another one."""

    def __init__(self, inner: Toolbox, notes: SessionNotes) -> None:
        self._inner, self._notes = inner, notes
        self.role, self.scope, self.worktree = inner.role, inner.scope, inner.worktree

    @property
    def denials(self) -> tuple[Denial, ...]:
        return self._inner.denials

    @property
    def ran(self) -> tuple[str, ...]:
        return self._inner.ran

    def offered(self) -> tuple[ToolSpec, ...]:
        return self._inner.offered()

    def judge(self, call: ToolCall, *, target: str = "") -> Allowed | ToolRefusal:
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
