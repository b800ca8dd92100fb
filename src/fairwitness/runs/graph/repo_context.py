"""The repository of a run, and the functions that work on it."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Proof, Worked
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import Identity
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import Worktrees


@dataclass(frozen=True, slots=True)
class RepoContext:
    """The repository of a run with its worktrees and merge candidates."""

    repository: Repository
    worktrees: Worktrees
    candidates: Candidates
    locks: Path
    """The folder of the locks that serialize processes which merge into the same branch."""
    identity: Identity


class Prove(Protocol):
    """Runs the checks on a change. It blocks, and `stop` ends it early."""

    def __call__(
        self, task: str, round_: int, *, base: str, head: str, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> Proof:
        """Check the change from commit `base` to commit `head`; `task` and `round_` identify it in the ledger."""
        ...


class AgentWork(Protocol):
    """Lets the agents of a workflow work on a node in a folder."""

    async def __call__(self, order: AttemptOrder, prepared: AttemptStart, folder: Path) -> Worked:
        """Let the agents work, or adopt the result if they worked before."""
        ...
