"""Ending a run for good: the engine stops it, its worktrees go, and what they held is kept."""

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from assay.app.carrying import CANCELLED, engine_at
from assay.app.feature import PREFIX, order_of, room_of
from assay.app.graphs import Factory
from assay.app.runs import RunLook
from assay.app.workers import bodies_of, has_engine, worker_on
from assay.contracts.common.events import EventData
from assay.contracts.common.words import Workflow
from assay.contracts.feature.events import RunFinished, RunOutcome
from assay.contracts.forge.events import RunFailed
from assay.engine.base import EngineError
from assay.errors import NotReady
from assay.git import quarantine
from assay.git.identity import read_identity
from assay.git.sweeping import sweep
from assay.kit.killpoints import reach
from assay.rules import graph_moves
from assay.rules.graph_run import GraphRun
from assay.steps.graph.book import Begun, GraphBook

PATIENCE_S = 60.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Cancelled:
    """What is left of a run that was ended."""

    reason: str
    target: str | None
    """The branch with what was merged; None if nothing ever was."""
    kept: tuple[str, ...]
    """The refs that hold what was not."""
    left: tuple[str, ...]
    """Branches that a person has checked out, and that stay."""


def cancel(root: Path, look: RunLook) -> Cancelled | None:
    """Ends a run; None if it ended by itself meanwhile. Asked again after a crash, it goes on where it was.

    The last event is written last: until it stands, the run is not over, and can be cancelled again.
    """
    factory = Factory(root)
    ledger = factory.ledger
    if look.workflow == Workflow.FEATURE:
        try:
            return _cancel_feature(factory, root, look.run_id)
        finally:
            ledger.close()
    try:
        book = GraphBook(ledger, look.run_id)
        begun = book.begun()
        if has_engine(root):
            asyncio.run(_stop(root, look.run_id))
        _wait_until_left(root, look.run_id)
        reach("cancel.stopped")
        left = _sweep(factory, look.run_id, begun) if look.started is not None else ()
        reach("cancel.swept")
        identity = read_identity(factory.repository)
        reason = f"cancelled by {identity.author_name} <{identity.author_email}>"
        target = begun.options.target
        if not _tell(book, reason, factory.repository.ref(f"refs/heads/{target}") or begun.base_commit):
            return None
        has_target = factory.repository.ref(f"refs/heads/{target}") is not None
        kept = tuple(held.ref for held in quarantine.kept(factory.repository, look.run_id))
        return Cancelled(reason, target if has_target else None, kept, left)
    finally:
        ledger.close()


def _cancel_feature(factory: Factory, root: Path, run_id: str) -> Cancelled | None:
    """The same for a feature run, whose last event has an outcome."""
    repository = factory.repository
    order, _ = order_of(factory.ledger, run_id)
    room = room_of(repository, factory.ledger, run_id, order)
    if has_engine(root):
        asyncio.run(_stop(root, run_id))
    _wait_until_left(root, run_id)
    reach("cancel.stopped")
    target = repository.ref(f"refs/heads/{order.target}")
    left = sweep(factory.worktrees(PREFIX), run_id, target or order.base_commit, read_identity(repository)).left
    reach("cancel.swept")
    if room.state().ending is not None:
        return None
    identity = read_identity(repository)
    reason = f"{CANCELLED} {identity.author_name} <{identity.author_email}>"
    room.tell(RunFinished(outcome=RunOutcome.ABANDONED, confidence=None, reason=reason))
    kept = tuple(held.ref for held in quarantine.kept(repository, run_id))
    return Cancelled(reason, None if target is None else order.target, kept, left)


async def _stop(root: Path, run_id: str) -> None:
    async with engine_at(root, worker=False) as engine:
        try:
            await engine.cancel(run_id)
        except EngineError:  # it may never have been given to the engine
            if any(run.id == run_id for run in await engine.runs()):
                raise


def _wait_until_left(root: Path, run_id: str) -> None:
    """Until nobody works in the run's folders any more."""
    give_up = time.monotonic() + PATIENCE_S
    while bodies_of(root, run_id):
        if time.monotonic() > give_up:
            worker = worker_on(root, run_id)
            who = f"process {worker.pid} on {worker.host}" if worker is not None else "its worker"
            raise NotReady(
                f"{who} has not stopped after {PATIENCE_S:g} s", next_step=f"end it, then: assay cancel {run_id}"
            )
        time.sleep(_LOOK_S)


def _sweep(factory: Factory, run_id: str, begun: Begun) -> tuple[str, ...]:
    """Takes away the run's worktrees and branches; whatever the target does not hold goes to quarantine first.

    The answer is what had to stay, since a person has it checked out.
    """
    repository, worktrees = factory.repository, factory.worktrees(begun.options.prefix)
    tip = repository.ref(f"refs/heads/{begun.options.target}") or begun.base_commit
    return sweep(worktrees, run_id, tip, read_identity(repository)).left


def _tell(book: GraphBook, reason: str, tip: str) -> bool:
    """Writes the last events, unless the run has one; looks again if something happened meanwhile."""
    while True:
        run = book.run()
        if run.is_over:
            return False
        # where it should be, and not where somebody may have moved it
        if book.write(partial(_last, run, reason, run.tip or tip), after=run.seq):
            return True


def _last(run: GraphRun, reason: str, tip: str, now: str) -> tuple[EventData, ...]:
    return (*graph_moves.abandoned(run, reason, tip, now), RunFailed(reason=reason))
