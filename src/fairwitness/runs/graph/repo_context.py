"""What the steps of a graph meet: a repository with its worktrees and candidates, and threads that are seen to end."""

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fairwitness.contracts.graph.orders import AttemptOrder, Prepared, Proof, Worked
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import Identity
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import Worktrees


@dataclass(frozen=True, slots=True)
class RepoContext:
    """The repository of a run."""

    repository: Repository
    worktrees: Worktrees
    candidates: Candidates
    locks: Path
    """Where processes that merge into the same branch wait for each other."""
    identity: Identity


class Prove(Protocol):
    """Runs the checks on a change; blocking, and ended by `stop`."""

    def __call__(
        self, task: str, round_: int, *, base: str, head: str, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> Proof:
        """From the commit `base` to the commit `head`; `task` and `round_` name it in the ledger, once and for all."""
        ...


class AgentWork(Protocol):
    """Lets the agents of a workflow work on a node in a folder."""

    async def __call__(self, order: AttemptOrder, prepared: Prepared, folder: Path) -> Worked:
        """What had been done before is adopted."""
        ...
