"""The `cassette` backend: replays recorded turns of a model with real tools in a real worktree, without a model.

Before each turn it compares the results that the model would be shown with those that were recorded. A strict replay
stops at the first turn that differs; a lenient one reports it and goes on.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from fairwitness.agents.backends.turn_loop import (
    SUBMIT,
    CancellableTurn,
    ToolReply,
    ToolRequest,
    limit_problem,
    run_tools,
)
from fairwitness.agents.base import AgentJob, AgentTurn, Session
from fairwitness.agents.cassette_file import (
    NO_PROMPT,
    Cassette,
    load,
    name_of,
    prompt_digest,
    schema_digest,
    seen,
    summary_of_results,
    unpacked,
)
from fairwitness.contracts.agents.cassette import CassetteTurn
from fairwitness.contracts.agents.dispatch import EnforcementTier, Kind, Probe, Stop, Usage, UsageSource
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import NotReady, UsageError

_NONE_DONE: Mapping[tuple[Role, str], int] = {}


class CassetteBackend:
    """Replays cassettes: one file, or from a folder the file for each role, instance and session number."""

    def __init__(
        self,
        place: Path,
        *,
        name: str = "cassette",
        strict: bool = True,
        speed: float = 0.0,
        done: Mapping[tuple[Role, str], int] = _NONE_DONE,
    ) -> None:
        """Set `speed`, the share of the recorded time to wait (0 to 1), and `done`, the number of sessions of each role
        and instance that ended in an earlier process of the same run."""
        self._place, self._name, self._strict, self._speed = place, name, strict, speed
        self._done = Counter(done)

    @property
    def name(self) -> str:
        """The name by which people choose it."""
        return self._name

    def probe(self) -> Probe:
        """Return whether the recordings exist."""
        found = self._place.exists()
        return Probe(
            name=self._name,
            kind="cassette",
            found=found,
            tier=EnforcementTier.A,
            where=str(self._place),
            missing=() if found else (f"recordings in {self._place}",),
            next_step="" if found else "record a run, or name the folder of a recorded one",
        )

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """Open a session of recorded turns; `NotReady` if there is no recording, `BadDocument` if it is invalid."""
        return self._play(job)

    @asynccontextmanager
    async def _play(self, job: AgentJob) -> AsyncIterator[Session]:
        player = _Player(job, self._find(job), strict=self._strict, speed=self._speed)
        try:
            yield player
        finally:
            await player.cancel()
            player.leave()
            if player.is_done:  # only sessions that ended by themselves are recorded
                self._done[job.spec.role, job.brief.instance] += 1

    def _find(self, job: AgentJob) -> Cassette:
        role, instance = job.spec.role, job.brief.instance
        path = self._place
        if not path.is_file():
            path /= name_of(role, instance, self._done[role, instance] + 1)
            if not path.is_file():
                raise NotReady(
                    f"there is no recording {path} of {role.value} {instance}",
                    next_step="record the run again: this dispatch was not part of it",
                )
        cassette = load(path)
        if (cassette.header.role, cassette.header.instance) != (role, instance):
            raise UsageError(
                f"{path} is a recording of {cassette.header.role.value} {cassette.header.instance}, "
                f"and {role.value} {instance} was asked for",
                next_step="name the recording of this dispatch",
            )
        return cassette


class _Player:
    """A session as far as it was replayed."""

    def __init__(self, job: AgentJob, cassette: Cassette, *, strict: bool, speed: float) -> None:
        self._job, self._cassette, self._strict, self._speed = job, cassette, strict, speed
        self._asking = CancellableTurn()
        self.is_done = False
        """Whether the last prompt ended by itself."""
        self._played: list[CassetteTurn] = []
        self._shown: list[tuple[bool, str]] = []
        """Results of calls since the last turn."""
        self._changed: list[str] = []
        """Calls since the last turn that succeeded now and failed then, or the other way round."""

    async def ask(self, prompt: str) -> AgentTurn:
        """Replay up to the end of the recorded answer."""
        self.is_done = False
        end = await self._asking.run(self._answer(prompt), lambda: self._turn(Stop.CANCELLED, error="it was cancelled"))
        self.is_done = end.stop is Stop.DONE
        return end

    async def cancel(self) -> None:
        """End the current wait or tool call."""
        await self._asking.cancel()

    def leave(self) -> None:
        """Report the turns that were not replayed."""
        left = len(self._cassette.turns) - len(self._played)
        if left:
            self._job.report(Kind.NOTE, f"{left} of {len(self._cassette.turns)} recorded turns were not played")

    async def _answer(self, prompt: str) -> AgentTurn:
        if not self._played:
            self._compare_header(prompt)
        while True:
            full = limit_problem(self._job.limits, len(self._played), self._tokens())
            if full is not None:
                return self._turn(Stop.LIMIT, error=full)
            problem = self._problem()
            if problem is not None:
                return self._turn(Stop.FAILED, error=problem, cause=ErrorCause.MISSING_INPUT)
            turn = self._cassette.turns[len(self._played)]
            await asyncio.sleep(turn.ms * self._speed / 1000)
            self._played.append(turn)
            self._report(turn)
            submitted = await self._act(turn)
            if submitted is not None or not turn.calls:
                return self._turn(Stop.DONE, submitted=submitted)

    def _compare_header(self, prompt: str) -> None:
        header, root = self._cassette.header, self._job.worktree
        # a recording written by hand had no prompt
        if header.prompt != NO_PROMPT and header.prompt != prompt_digest(prompt, root):
            self._job.report(Kind.NOTE, "the prompt is not the one this was recorded with")
        if header.schema_digest is not None and header.schema_digest != schema_digest(self._job.form.schema):
            self._job.report(Kind.NOTE, "the answer's schema is not the one this was recorded with")

    def _problem(self) -> str | None:
        """Return why the next turn cannot be replayed; a lenient replay only reports it."""
        number = len(self._played)
        if number >= len(self._cassette.turns):
            return f"diverged at turn {number}: the recording has no more turns"
        recorded = self._cassette.turns[number].seen
        if recorded is None or recorded == seen(self._shown, self._job.worktree):
            return None
        hint = "; ".join(self._changed) or "the results of the last calls are not those that were recorded"
        problem = f"diverged at turn {number}: {hint}; shown now: {summary_of_results(self._shown, self._job.worktree)}"
        if self._strict:
            return problem
        self._job.report(Kind.NOTE, problem)
        return None

    def _report(self, turn: CassetteTurn) -> None:
        if turn.text:
            self._job.report(Kind.TEXT, self._here(turn.text))
        used_in, used_out = turn.usage
        self._job.report(
            Kind.USAGE, f"{used_in} in, {used_out} out", args={"tokens_in": used_in, "tokens_out": used_out}
        )

    async def _act(self, turn: CassetteTurn) -> dict[str, Any] | None:
        calls = [(call.tool, call.args, call.ok) for call in turn.calls]
        if turn.submitted is not None:
            calls.append((SUBMIT, turn.submitted, None))
        asked = [
            ToolRequest(f"call-{turn.turn}-{index}", tool, self._here(args))
            for index, (tool, args, _) in enumerate(calls)
        ]
        acted = await run_tools(self._job, asked)
        self._shown = [(answer.ok, answer.text) for answer in acted.answers[: len(turn.calls)]]
        self._changed = [
            _changed(tool, was, answer)
            for (tool, _, was), answer in zip(calls, acted.answers, strict=True)
            if was is not None and was != answer.ok
        ]
        return acted.submitted

    def _here(self, value: Any) -> Any:
        return unpacked(value, self._job.worktree)

    def _tokens(self) -> int:
        return sum(sum(turn.usage) for turn in self._played)

    def _turn(
        self,
        stop: Stop,
        *,
        error: str = "",
        cause: ErrorCause | None = None,
        submitted: dict[str, Any] | None = None,
    ) -> AgentTurn:
        played = self._played
        return AgentTurn(
            text=self._here(played[-1].text) if played else "",
            stop=stop,
            usage=Usage(
                source=UsageSource.CASSETTE,
                tokens_in=sum(turn.usage[0] for turn in played),
                tokens_out=sum(turn.usage[1] for turn in played),
                turns=len(played),
            ),
            submitted=submitted,
            cause=cause,
            error=error,
            model=self._cassette.header.model,
        )


def _changed(tool: str, was: bool, answer: ToolReply) -> str:
    then, now = ("done", "not done") if was else ("not done", "done")
    return f"{tool} was {then} when this was recorded and is {now} now"
