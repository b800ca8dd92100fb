"""Asks that can be taken back: each runs in a task of its own, which `cancel` ends from anywhere."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from fairwitness.agents.base import AgentJob, AgentTurn
from fairwitness.contracts.agents.dispatch import DispatchLimits, Kind
from fairwitness.contracts.common.decisions import ErrorCause

RetryWaits = Callable[[ErrorCause], Sequence[float]]
"""The seconds to wait before each further try of what failed so; `rules.retry.retries_inside` gives them."""
GRACE_S = 4.0
"""How long a cancelled ask may take to leave; the driver takes down what is slower."""


def no_retries(_cause: ErrorCause) -> tuple[float, ...]:
    """What failed is not tried again."""
    return ()


def limit_problem(limits: DispatchLimits, turns: int, tokens: int) -> str | None:
    """Which limit leaves no room for another turn; money is counted at the gateway."""
    if turns >= limits.turns:
        return f"all {limits.turns} turns of this dispatch are used"
    if limits.tokens is not None and tokens >= limits.tokens:
        return f"all {limits.tokens} tokens of this dispatch are used"
    return None


class CancellableTurn:
    """One ask at a time; after `cancel` there are no more."""

    def __init__(self) -> None:
        self._task: asyncio.Future[AgentTurn] | None = None
        self._is_cancelled = False

    async def run(self, talk: Coroutine[Any, Any, AgentTurn], cancelled: Callable[[], AgentTurn]) -> AgentTurn:
        """What came of the talk, or the turn that says it was cancelled; nothing of it runs on afterwards."""
        if self._is_cancelled:
            talk.close()
            return cancelled()
        task = self._task = asyncio.ensure_future(talk)
        try:
            await asyncio.wait({task})
        finally:
            if not task.done():  # whoever awaits us was cancelled, and the talk is no task of theirs
                task.cancel()
                await asyncio.wait({task}, timeout=GRACE_S)
        return cancelled() if task.cancelled() else task.result()

    async def cancel(self) -> None:
        """Ends the ask that is under way, if there is one; returns when it has left."""
        self._is_cancelled = True
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task}, timeout=GRACE_S)


SUBMIT = "submit_result"
"""The tool that takes the answer; every other one is the toolbox's."""
SUBMIT_DESCRIPTION = "Hands in the answer. Call it once, when everything is done; the session ends with it."
UNPARSED = "unparsed_arguments"
"""Arguments that are no JSON object are kept as `{UNPARSED: the text of them}`, which fits no tool."""


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool that the model asked for."""

    id: str
    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What the model is shown of one call."""

    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class TurnReplies:
    """What came of a turn's calls."""

    answers: tuple[ToolReply, ...]
    """One for each call, in order: a model must be told of all of them."""
    submitted: dict[str, Any] | None
    """The answer, if it was handed in; the last one if it was handed in twice."""


async def run_tools(job: AgentJob, calls: Sequence[ToolRequest]) -> TurnReplies:
    """Carries out a turn's calls, one after the other; refused and impossible ones are answered with a text."""
    answers, submitted = [], None
    for call in calls:
        named: dict[str, Any] = {"tool": call.tool.strip() or "(nothing)", "call": call.id.strip() or None}
        job.happened(Kind.CALL, args=call.args, **named)
        answer = await _answer(job, call)
        if call.tool == SUBMIT and answer.ok:
            submitted = call.args
        answers.append(answer)
        job.happened(Kind.RESULT, answer.text, ok=answer.ok, **named)
    return TurnReplies(tuple(answers), submitted)


async def _answer(job: AgentJob, call: ToolRequest) -> ToolReply:
    if call.tool != SUBMIT:
        result = await job.tools.call(call.tool, call.args)
        return ToolReply(result.ok, result.text)
    if UNPARSED in call.args:
        return ToolReply(False, "not taken: the arguments are not a JSON object")
    return ToolReply(True, "taken")
