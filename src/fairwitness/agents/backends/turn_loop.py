"""What the api and cassette backends share: tool calls of a turn, the limits of a dispatch, and cancellation.

Both run tools here, so that a replay does and reports exactly what the recorded session did and reported.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from fairwitness.agents.base import AgentJob, AgentTurn
from fairwitness.contracts.agents.dispatch import DispatchLimits, Kind
from fairwitness.contracts.common.decisions import ErrorCause

RetryWaits = Callable[[ErrorCause], Sequence[float]]
"""Returns the seconds to wait before each retry after a cause; see `rules.feature_retry.retries_inside`."""
GRACE_S = 4.0
"""Seconds that a cancelled turn may take to end; the driver kills what is slower."""


def no_retries(_cause: ErrorCause) -> tuple[float, ...]:
    """Return no waits: nothing is retried."""
    return ()


def limit_problem(limits: DispatchLimits, turns: int, tokens: int) -> str | None:
    """Return which limit forbids another turn, or None; the gateway counts money."""
    if turns >= limits.turns:
        return f"all {limits.turns} turns of this dispatch are used"
    if limits.tokens is not None and tokens >= limits.tokens:
        return f"all {limits.tokens} tokens of this dispatch are used"
    return None


class CancellableTurn:
    """Runs one turn at a time in a task of its own; after `cancel` it runs none."""

    def __init__(self) -> None:
        self._task: asyncio.Future[AgentTurn] | None = None
        self._is_cancelled = False

    async def run(self, talk: Coroutine[Any, Any, AgentTurn], cancelled: Callable[[], AgentTurn]) -> AgentTurn:
        """Return the turn, or the one that says it was cancelled; nothing of it runs afterwards."""
        if self._is_cancelled:
            talk.close()
            return cancelled()
        task = self._task = asyncio.ensure_future(talk)
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():  # our caller was cancelled, which does not cancel this task
                task.cancel()
                await asyncio.wait({task}, timeout=GRACE_S)
        return cancelled() if task.cancelled() else task.result()

    async def cancel(self) -> None:
        """End the current turn, if there is one, and wait until it has ended."""
        self._is_cancelled = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=GRACE_S)


SUBMIT = "submit_result"
"""The tool that takes the answer; all others belong to the toolbox."""
SUBMIT_DESCRIPTION = "Hands in the answer. Call it once, when everything is done; the session ends with it."
UNPARSED = "unparsed_arguments"
"""Arguments that are not a JSON object are kept as `{UNPARSED: their text}`, which no tool accepts."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool call of a model."""

    id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The result of a call that the model is shown."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class TurnReplies:
    """The results of the calls of a turn."""

    answers: tuple[ToolReply, ...]
    """One for each call, in order: a model needs the result of every call."""
    submitted: dict[str, Any] | None
    """The submitted answer, if there is one; the last of several."""


async def run_tools(job: AgentJob, calls: Sequence[ToolRequest]) -> TurnReplies:
    """Run the calls of a turn in order; a refused or impossible call gets a text that says why."""
    answers, submitted = [], None
    for call in calls:
        named: dict[str, Any] = {"tool": call.tool.strip() or "(nothing)", "call": call.id.strip() or None}
        job.report(Kind.CALL, args=call.args, **named)
        answer = await _answer(job, call)
        if call.tool == SUBMIT and answer.ok:
            submitted = call.args
        answers.append(answer)
        job.report(Kind.RESULT, answer.text, ok=answer.ok, **named)
    return TurnReplies(tuple(answers), submitted)


async def _answer(job: AgentJob, call: ToolRequest) -> ToolReply:
    if call.tool != SUBMIT:
        result = await job.tools.call(call.tool, call.args)
        return ToolReply(result.ok, result.text)
    if UNPARSED in call.args:
        return ToolReply(False, "not taken: the arguments are not a JSON object")
    return ToolReply(True, "received; it is checked now")
