"""Cancels runs: stops the engine, removes the worktrees, and keeps their content."""

import asyncio
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from fairwitness.app.assembly.engine import RunnerFactory
from fairwitness.app.run_records.autopilot import AutopilotRunRecord, open_autopilot_run
from fairwitness.app.run_records.feature import feature_context, order_of
from fairwitness.app.run_records.forge import open_forge_run
from fairwitness.app.runs.drive import engine_at
from fairwitness.app.views.run import CANCELLED, RunView
from fairwitness.app.views.workers import bodies_of, has_engine, worker_on
from fairwitness.contracts.autopilot.events_run import RunHalted
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus as AutopilotStatus
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature.events import FeatureRunOutcome, RunFinished
from fairwitness.contracts.forge.events import RunFailed
from fairwitness.contracts.graph.orders import PREFIX
from fairwitness.engine.base import EngineError
from fairwitness.errors import NotReady
from fairwitness.git import quarantine
from fairwitness.git.identity import read_identity
from fairwitness.git.run_cleanup import sweep
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules import graph_events
from fairwitness.rules.graph_run import GraphRun
from fairwitness.rules.next_forge_move import forge_progress
from fairwitness.runs.autopilot.log import LoggedEvent, new_event
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.graph.log import GraphLog

PATIENCE_S = 60.0
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The remains of a cancelled run."""

    reason: str
    target: str | None
    """The branch with the merged work; None if nothing was merged."""
    kept: tuple[str, ...]
    """The refs with the work that was not merged."""
    left: tuple[str, ...]
    """Branches that were kept because they are checked out."""


def cancel(root: Path, view: RunView) -> Cancelled | None:
    """Cancel a run; return None if it ended by itself. After a crash, calling again continues the cancellation.

    The final event is written last: until then the run is not over and can be cancelled again.
    """
    if view.workflow == Workflow.AUTOPILOT:
        with open_autopilot_run(root, view.run_id) as context:
            return _cancel_autopilot(context, root)
    factory = RunnerFactory(root)
    ledger = factory.ledger
    if view.workflow == Workflow.FEATURE:
        try:
            return _cancel_feature(factory, root, view.run_id)
        finally:
            ledger.close()
    try:
        log = ForgeLog(ledger, view.run_id)
        if log.order() is None:
            log.begun()  # raises for other runs before anything is stopped
        if has_engine(root):
            asyncio.run(_stop(root, view.run_id))
        _wait_until_left(root, view.run_id)
        killpoint("cancel.stopped")
        done = _ended(factory, log, is_carried=view.started is not None)
    finally:
        ledger.close()
    with open_forge_run(root, view.run_id) as context:
        context.refresh()
        context.files.sweep(context.layout.folder)
    return done


def _ended(factory: RunnerFactory, log: ForgeLog, *, is_carried: bool) -> Cancelled | None:
    """Clean up after all workers have stopped; only now it is certain whether there is a graph."""
    repository, order = factory.repository, log.order()
    is_planned = order is None or log.course().is_approved
    if is_planned:
        options, base = log.begun().options, log.begun().base_commit
    else:
        assert order is not None
        options, base = order.options, order.base_commit
    tip = repository.ref(f"refs/heads/{options.target}")
    identity = read_identity(repository)
    left: tuple[str, ...] = ()
    if is_carried or order is not None:  # the captain also has a worktree
        left = sweep(factory.worktrees(options.prefix), log.run_id, tip or base, identity).left
    killpoint("cancel.swept")
    reason = f"{CANCELLED} {identity.author}"
    if not (_tell(log, reason, tip or base) if is_planned else _tell_unplanned(log, reason)):
        return None
    has_target = repository.ref(f"refs/heads/{options.target}") is not None
    kept = tuple(held.ref for held in quarantine.kept(repository, log.run_id))
    return Cancelled(reason, options.target if has_target else None, kept, left)


def _cancel_feature(factory: RunnerFactory, root: Path, run_id: str) -> Cancelled | None:
    """Clean up a feature run and record its final event with an outcome."""
    repository = factory.repository
    order, _ = order_of(factory.ledger, run_id)
    context = feature_context(repository, factory.ledger, run_id, order)
    if has_engine(root):
        asyncio.run(_stop(root, run_id))
    _wait_until_left(root, run_id)
    killpoint("cancel.stopped")
    target, identity = repository.ref(f"refs/heads/{order.target}"), read_identity(repository)
    left = sweep(factory.worktrees(PREFIX), run_id, target or order.base_commit, identity).left
    context.files.sweep(context.layout.folder)
    killpoint("cancel.swept")
    if context.state().ending is not None:
        return None
    reason = f"{CANCELLED} {identity.author}"
    context.write_event(RunFinished(outcome=FeatureRunOutcome.ABANDONED, confidence=None, reason=reason))
    kept = tuple(held.ref for held in quarantine.kept(repository, run_id))
    return Cancelled(reason, None if target is None else order.target, kept, left)


def _cancel_autopilot(context: AutopilotRunRecord, root: Path) -> Cancelled | None:
    """Clean up an autopilot run and record it as failed; only a person can resume it."""
    log, repository = context.log, context.repository
    order, run_id = log.order(), log.run_id
    if has_engine(root):
        asyncio.run(_stop(root, run_id))
    _wait_until_left(root, run_id)
    killpoint("cancel.stopped")
    tip, identity = repository.ref(f"refs/heads/{order.target}"), read_identity(repository)
    left = sweep(RunnerFactory(root).worktrees(PREFIX), run_id, tip or order.base_commit, identity).left
    killpoint("cancel.swept")
    if log.state().state.meta.status in (AutopilotStatus.COMPLETED, AutopilotStatus.FAILED):
        return None
    reason = f"{CANCELLED} {identity.author}"
    log.append(LoggedEvent(new_event(RunHalted, log.now(), reason=reason, status=AutopilotStatus.FAILED)))
    killpoint("cancel.told")
    context.refresh()
    kept = tuple(held.ref for held in quarantine.kept(repository, run_id))
    return Cancelled(reason, None if tip is None else order.target, kept, left)


async def _stop(root: Path, run_id: str) -> None:
    async with engine_at(root, worker=False) as engine:
        try:
            await engine.cancel(run_id)
        except EngineError:  # the engine may not know the run
            if any(run.id == run_id for run in await engine.runs()):
                raise


def _wait_until_left(root: Path, run_id: str) -> None:
    """Wait until no process works in the run's folders."""
    give_up = time.monotonic() + PATIENCE_S
    while bodies_of(root, run_id):
        if time.monotonic() > give_up:
            worker = worker_on(root, run_id)
            who = f"process {worker.pid} on {worker.host}" if worker is not None else "its worker"
            raise NotReady(
                f"{who} has not stopped after {PATIENCE_S:g} s", next_step=f"stop it, then: fairwitness cancel {run_id}"
            )
        time.sleep(_LOOK_S)


def _tell(log: GraphLog, reason: str, tip: str) -> bool:
    """Record the final events unless the run has them; retry if other events were written meanwhile."""
    while True:
        run = log.run()
        if run.is_over:
            return False
        # the recorded target, even if the branch was moved
        if log.write(partial(_last, run, reason, run.tip or tip), after=run.seq):
            return True


def _tell_unplanned(log: ForgeLog, reason: str) -> bool:
    """Record the final event of a run without a graph."""
    while True:
        events = tuple(log.ledger.events(log.run_id))
        if forge_progress(events).is_over:
            return False
        if log.write(lambda _now: (RunFailed(reason=reason),), after=events[-1].seq):
            return True


def _last(run: GraphRun, reason: str, tip: str, now: str) -> tuple[EventData, ...]:
    return (*graph_events.abandoned(run, reason, tip, now), RunFailed(reason=reason))
