"""What the steps of a graph meet: a repository with its worktrees and candidates, and threads that are seen to end."""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, Protocol, TypeVar

from fairwitness.contracts.graph.orders import AttemptOrder, Prepared, Proof, Worked
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import Identity
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import Worktrees

P = ParamSpec("P")
T = TypeVar("T")


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


class Work(Protocol):
    """Lets the agents of a workflow work on a node in a folder."""

    async def __call__(self, order: AttemptOrder, prepared: Prepared, folder: Path) -> Worked:
        """What had been done before is adopted."""
        ...


async def run_blocking(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Calls a function that waits, off the loop. Whoever is cancelled meanwhile still sees it end: a step that is over
    leaves nothing running behind."""
    thread = asyncio.create_task(asyncio.to_thread(function, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not thread.done():
        try:
            await asyncio.shield(thread)
        except asyncio.CancelledError as error:
            cancelled = error
        except Exception:  # noqa: BLE001  # raised below, once
            break
    if cancelled is not None:
        thread.exception()
        raise cancelled
    return thread.result()


async def run_blocking_stoppable(function: Callable[[threading.Event], T]) -> T:
    """The same for a function that can be told to stop; whoever is cancelled tells it."""
    stop = threading.Event()
    ending = asyncio.create_task(run_blocking(function, stop))
    try:
        return await asyncio.shield(ending)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait({ending})
        if not ending.cancelled():
            ending.exception()
        raise
