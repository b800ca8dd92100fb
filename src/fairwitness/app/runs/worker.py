"""A worker: takes whatever runs there are until it is told to stop, or until nothing is left to do."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.assembly.engine import FLOWS, EngineCallback
from fairwitness.app.repository import read_database
from fairwitness.app.runs.drive import deliver_answers, engine_at, stop_on_signals
from fairwitness.app.views.detail import read_detail
from fairwitness.app.views.run import WatchEnd
from fairwitness.engine.base import JOURNAL_VERSION, ExecutionStatus
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.engine.leases import DEAD_AFTER_S, HEARTBEAT_S
from fairwitness.ledger import glance as ledger

_LOOK_S = 0.5
_TAKEN_OVER_S = DEAD_AFTER_S + 3 * HEARTBEAT_S
_WORKFLOWS = {flow: workflow for workflow, flow in FLOWS.items()}
_GOING = (ExecutionStatus.QUEUED, ExecutionStatus.RUNNING)


@dataclass(frozen=True, slots=True)
class StrandedRun:
    """A run that goes on by itself no more, why, and what repairs it."""

    run_id: str
    reason: str
    next_step: str


def run_label(id_: str) -> str:
    """A run or one of its children, as a person would call it.

    >>> [run_label(id_) for id_ in ("run-7", "run-7/t/task-01/2", "run-7/t/task-01/2/help", "run-7/m/3")]
    ['run-7', 'run-7: task-01, attempt 2', 'run-7: task-01, attempt 2, helper', 'run-7: merge 3']
    """
    match id_.split("/"):
        case [run, "t", node, attempt]:
            return f"{run}: {node}, attempt {attempt}"
        case [run, "t", node, attempt, _]:
            return f"{run}: {node}, attempt {attempt}, helper"
        case [run, "m", batch]:
            return f"{run}: merge {batch}"
        case [run, "p", name, _]:
            phase, _, number = name.rpartition("-")
            return f"{run}: phase {phase}, pass {number}"
        case _:
            return id_


AuditCallback = Callable[[tuple[StrandedRun, ...]], None]


def run_worker(root: Path, *, once: bool, on_event: EngineCallback, audit: AuditCallback) -> int | None:
    """Works until a signal, whose number it gives, or with `once` until nothing is left: None."""
    return asyncio.run(_run_worker(root, once=once, on_event=on_event, audit=audit))


async def _run_worker(root: Path, *, once: bool, on_event: EngineCallback, audit: AuditCallback) -> int | None:
    with stop_on_signals() as stop:
        # Looked at before anything is taken: a worker mends what a dead one left, and then nobody would hear of it.
        async with engine_at(root, worker=False) as engine:
            audit(await _needs(engine, root))
        async with engine_at(root, worker=True, on_event=on_event) as engine:
            for run in await engine.runs():
                if run.flow in _WORKFLOWS and run.status in _GOING:
                    await deliver_answers(engine, root, run.id, _WORKFLOWS[run.flow])
            left = _RemainingRuns(engine, root)
            while not await stop.within(_LOOK_S):
                if once and not await left.is_anything():
                    return None
        return stop.signal


async def _needs(engine: DbosEngine, root: Path) -> tuple[StrandedRun, ...]:
    """What the engine calls stranded, and runs that the ledger holds and nobody gave to the engine."""
    found = [
        StrandedRun(one.run_id, one.reason, one.next_step) for one in await engine.audit() if "/" not in one.run_id
    ]
    known = {run.id for run in await engine.runs()}
    for run_id in await asyncio.to_thread(_unfinished, root):
        if run_id not in known:
            found.append(
                StrandedRun(run_id, "it was begun and never given to a worker", f"fairwitness resume {run_id}")
            )
    return tuple(found)


def _unfinished(root: Path) -> list[str]:
    """The runs that may go on and have not ended, by the ledger."""
    with read_database(root) as database:
        if database is None:
            return []
        views = [read_detail(database, run.run_id).view for run in ledger.glance(database) if run.workflow in FLOWS]
    return [view.run_id for view in views if not view.is_over and view.ended() is not WatchEnd.PERSON]


class _RemainingRuns:
    """Whether a worker that is to end when nothing is left may end."""

    def __init__(self, engine: DbosEngine, root: Path) -> None:
        self._engine, self._root = engine, root
        self._alone_since: float | None = None

    async def is_anything(self) -> bool:
        """A run that is queued or under way, of our version, and that does not wait for a person.

        What a dead worker had is taken over after a while; only what nobody has taken by then is nobody's.
        """
        runs = await self._engine.runs()
        ours = {run.id for run in runs if run.version == JOURNAL_VERSION and run.flow in _WORKFLOWS}
        going = ours & {run.id for run in runs if run.status in _GOING}
        going &= set(await asyncio.to_thread(_unfinished, self._root))
        stranded = {one.run_id for one in await self._engine.audit()}
        if not going or going - stranded:
            self._alone_since = None
            return bool(going)
        now = asyncio.get_running_loop().time()
        self._alone_since = self._alone_since or now
        return now - self._alone_since < _TAKEN_OVER_S
