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


class ReadOnlyWorktree:
    """One of them, while somebody has it."""

    def __init__(self, number: int) -> None:
        self.name = f"reader-{number}"
        self.commit: str | None = None
        """The commit whose files stand in it, to the letter; None if nobody knows."""
        self.folder = Path()

    def mark_changed(self) -> None:
        """What stands in it is not what was put there."""
        self.commit = None


class ReadOnlyWorktrees:
    """The lanes of one run."""

    def __init__(self, worktrees: Worktrees, run_id: str, identity: Identity) -> None:
        self._worktrees, self._run_id, self._identity = worktrees, run_id, identity
        self._free: list[ReadOnlyWorktree] = []
        self._made = 0
        self._guard = asyncio.Lock()

    @asynccontextmanager
    async def at(self, commit: str) -> AsyncIterator[ReadOnlyWorktree]:
        """A worktree with the files of a commit, that nobody else has."""
        lane = self._take(commit)
        try:
            if lane.commit != commit:
                async with self._guard:  # one at a time: git's own locks are not made for a crowd
                    await run_blocking(self._bring, lane, commit)
            yield lane
        except BaseException:
            lane.mark_changed()
            raise
        finally:
            self._free.append(lane)

    def _take(self, commit: str) -> ReadOnlyWorktree:
        for lane in self._free:
            if lane.commit == commit:
                self._free.remove(lane)
                return lane
        if self._free:
            return self._free.pop()
        self._made += 1
        return ReadOnlyWorktree(self._made)

    def _bring(self, lane: ReadOnlyWorktree, commit: str) -> None:
        worktree = self._worktrees.named(self._run_id, lane.name, 1)
        if self._worktrees.tip(worktree) is not None:
            self._worktrees.release(worktree, commit, self._identity)
            killpoint("feature.lane.left")
        made = self._worktrees.create(self._run_id, lane.name, 1, commit)
        lane.folder, lane.commit = made.folder, commit
        killpoint("feature.lane.made")
