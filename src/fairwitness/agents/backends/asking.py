"""Asks that can be taken back: each runs in a task of its own, which `cancel` ends from anywhere."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fairwitness.agents.base import Turn
from fairwitness.contracts.agents.dispatch import DispatchLimits
from fairwitness.contracts.common.decisions import ErrorCause

Waits = Callable[[ErrorCause], Sequence[float]]
"""The seconds to wait before each further try of what failed so; `rules.retry.retries_inside` gives them."""
GRACE_S = 4.0
"""How long a cancelled ask may take to leave; the driver takes down what is slower."""


def never_again(_cause: ErrorCause) -> tuple[float, ...]:
    """What failed is not tried again."""
    return ()


def room_problem(limits: DispatchLimits, turns: int, tokens: int) -> str | None:
    """Which limit leaves no room for another turn; money is counted at the gateway."""
    if turns >= limits.turns:
        return f"all {limits.turns} turns of this dispatch are used"
    if limits.tokens is not None and tokens >= limits.tokens:
        return f"all {limits.tokens} tokens of this dispatch are used"
    return None


class Asking:
    """One ask at a time; after `cancel` there are no more."""

    def __init__(self) -> None:
        self._task: asyncio.Future[Turn] | None = None
        self._is_cancelled = False

    async def run(self, talk: Coroutine[Any, Any, Turn], cancelled: Callable[[], Turn]) -> Turn:
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
