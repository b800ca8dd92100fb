"""Worktrees for agents that only read. A few are reused, since most dispatches leave them unchanged.

A worktree that was changed is released and made again; so is one that a killed process may have left in any state.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fairwitness.git.identity import Identity
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.dispatch.blocking import run_blocking


class ReadOnlyWorktree:
    """A worktree while one agent uses it."""

    def __init__(self, number: int) -> None:
        self.name = f"reader-{number}"
        self.commit: str | None = None
        """The commit whose files the worktree holds exactly; None if that is unknown."""
        self.folder = Path()

    def mark_changed(self) -> None:
        """Note that the files are no longer those of the commit."""
        self.commit = None


class ReadOnlyWorktrees:
    """The read-only worktrees of one run."""

    def __init__(self, worktrees: Worktrees, run_id: str, identity: Identity) -> None:
        self._worktrees, self._run_id, self._identity = worktrees, run_id, identity
        self._free: list[ReadOnlyWorktree] = []
        self._made = 0
        self._guard = asyncio.Lock()

    @asynccontextmanager
    async def at(self, commit: str) -> AsyncIterator[ReadOnlyWorktree]:
        """Yield a worktree with the files of a commit, for exclusive use."""
        reader = self._take(commit)
        try:
            if reader.commit != commit:
                async with self._guard:  # one at a time: git's locks fail under contention instead of waiting
                    await run_blocking(self._bring, reader, commit)
            yield reader
        except BaseException:
            reader.mark_changed()
            raise
        finally:
            self._free.append(reader)

    def _take(self, commit: str) -> ReadOnlyWorktree:
        for reader in self._free:
            if reader.commit == commit:
                self._free.remove(reader)
                return reader
        if self._free:
            return self._free.pop()
        self._made += 1
        return ReadOnlyWorktree(self._made)

    def _bring(self, reader: ReadOnlyWorktree, commit: str) -> None:
        worktree = self._worktrees.named(self._run_id, reader.name, 1)
        if self._worktrees.tip(worktree) is not None:
            self._worktrees.release(worktree, commit, self._identity)
            killpoint("reader.left")
        made = self._worktrees.create(self._run_id, reader.name, 1, commit)
        reader.folder, reader.commit = made.folder, commit
        killpoint("reader.made")
