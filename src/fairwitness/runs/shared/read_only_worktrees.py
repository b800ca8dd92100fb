"""Worktrees for agents that only read: a few, used again and again, since most dispatches leave them as they were.

One that was changed is given back and made anew; so is one that a killed process may have left in any state.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairwitness.git.identity import Identity
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.shared.blocking import run_blocking


class Lane:
    """One of them, while somebody has it."""

    def __init__(self, number: int) -> None:
        self.name = f"reader-{number}"
        self.stands_at: str | None = None
        """The commit whose files stand in it, to the letter; None if nobody knows."""
        self.folder = Path()

    def is_spoilt(self) -> None:
        """What stands in it is not what was put there."""
        self.stands_at = None


class ReadOnlyWorktrees:
    """The lanes of one run."""

    def __init__(self, worktrees: Worktrees, run_id: str, identity: Identity) -> None:
        self._worktrees, self._run_id, self._identity = worktrees, run_id, identity
        self._free: list[Lane] = []
        self._made = 0
        self._guard = asyncio.Lock()

    @asynccontextmanager
    async def at(self, commit: str) -> AsyncIterator[Lane]:
        """A worktree with the files of a commit, that nobody else has."""
        lane = self._take(commit)
        try:
            if lane.stands_at != commit:
                async with self._guard:  # one at a time: git's own locks are not made for a crowd
                    await run_blocking(self._bring, lane, commit)
            yield lane
        except BaseException:
            lane.is_spoilt()
            raise
        finally:
            self._free.append(lane)

    def _take(self, commit: str) -> Lane:
        for lane in self._free:
            if lane.stands_at == commit:
                self._free.remove(lane)
                return lane
        if self._free:
            return self._free.pop()
        self._made += 1
        return Lane(self._made)

    def _bring(self, lane: Lane, commit: str) -> None:
        worktree = self._worktrees.named(self._run_id, lane.name, 1)
        if self._worktrees.tip(worktree) is not None:
            self._worktrees.release(worktree, commit, self._identity)
            killpoint("feature.lane.left")
        made = self._worktrees.create(self._run_id, lane.name, 1, commit)
        lane.folder, lane.stands_at = made.folder, commit
        killpoint("feature.lane.made")
