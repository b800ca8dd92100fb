"""A worker: executes runs until it is stopped, or until no work is left."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from fairwitness.agents.gateway.patience import WATCHES
from fairwitness.app.assembly.engine import FLOWS, EngineCallback
from fairwitness.app.repository import read_database
from fairwitness.app.runs.drive import deliver_answers, engine_at, stop_on_signals
from fairwitness.app.views.detail import read_detail
from fairwitness.app.views.run import RunView, WatchEnd
from fairwitness.engine.base import JOURNAL_VERSION, ExecutionStatus
from fairwitness.engine.base import StrandedRun as StrandedRun  # for the command line, which may not import the engine
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.engine.leases import DEAD_AFTER_S, HEARTBEAT_S
from fairwitness.errors import DatabaseAway, NotReady
from fairwitness.ledger import summary as ledger

_LOOK_S = 0.5
_HELD_S = 15.0
"""How long a worker waits before it tries again after a fault of this machine."""
_TAKEN_OVER_S = DEAD_AFTER_S + 3 * HEARTBEAT_S
_WORKFLOWS = {flow: workflow for workflow, flow in FLOWS.items()}
_GOING = (ExecutionStatus.QUEUED, ExecutionStatus.RUNNING)


def run_label(id_: str) -> str:
    """Return a readable name of a run or one of its children.

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
NoteCallback = Callable[[str], None]
"""Called with what keeps a worker from working, and when it works again."""


def run_worker(
    root: Path, *, once: bool, on_event: EngineCallback, audit: AuditCallback, note: NoteCallback
) -> int | None:
    """Execute runs until a signal, and return its number; with `once`, return None when no work is left."""
    return asyncio.run(_run_worker(root, once=once, on_event=on_event, audit=audit, note=note))


async def _run_worker(
    root: Path, *, once: bool, on_event: EngineCallback, audit: AuditCallback, note: NoteCallback
) -> int | None:
    with stop_on_signals() as stop:
        # Audit first: the worker repairs what a dead one left, after which nothing would be reported.
        async with engine_at(root, worker=False) as engine:
            audit(await _needs(engine, root))
        async with engine_at(root, worker=True, on_event=on_event, on_remark=note) as engine:
            for run in await engine.runs():
                if run.flow in _WORKFLOWS and run.status in _GOING:
                    await deliver_answers(engine, root, run.id, _WORKFLOWS[run.flow])
            left, held = _RemainingRuns(engine, root), _HeldWorker(engine, note)
            looking: asyncio.Task[bool] | None = None  # a task: it waits while the database does not answer
            while not await stop.within(_LOOK_S):
                held.look(asyncio.get_running_loop().time(), once=once)
                if once and looking is None:
                    looking = asyncio.create_task(left.is_anything())
                elif looking is not None and looking.done():
                    with suppress(DatabaseAway):
                        if not looking.result():
                            return None
                    looking = None
            if looking is not None:
                looking.cancel()
        return stop.signal


class _HeldWorker:
    """Says what keeps a worker from working, and lets it try again after a while."""

    def __init__(self, engine: DbosEngine, note: NoteCallback) -> None:
        self._engine, self._note = engine, note
        self._said = ""
        self._since: float | None = None

    def look(self, now: float, *, once: bool) -> None:
        """Look once; raise the fault if the worker cannot wait for its end."""
        error = self._engine.interruption
        if error is None:
            lost, disk = self._engine.lost_since, self._engine.disk
            trouble = None if disk is None else disk.trouble()
            waits = f"waiting for the database since {lost}" if lost is not None else WATCHES.note()
            self._say(f"waiting: {trouble}" if trouble is not None else waits)
            self._since = None
            return
        if self._engine.is_idle and (once or isinstance(error, DatabaseAway)):
            raise NotReady(f"interrupted: {error.what}", next_step=error.next_step or "mend that, then: start again")
        self._say(f"interrupted: {error.what}")
        self._since = self._since or now
        if self._engine.is_idle and now - self._since >= _HELD_S:
            self._since = None
            self._engine.go_on()

    def _say(self, text: str) -> None:
        if text != self._said:
            self._note(text or "working again")
            self._said = text


async def _needs(engine: DbosEngine, root: Path) -> tuple[StrandedRun, ...]:
    """Return the runs that the engine calls stranded, and recorded runs that the engine does not know."""
    found = [stranded for stranded in await engine.audit() if "/" not in stranded.run_id]
    known = {run.id for run in await engine.runs()}
    for run_id in await asyncio.to_thread(_unfinished, root):
        if run_id not in known:
            found.append(StrandedRun(run_id, "it was recorded but never started", f"fairwitness resume {run_id}"))
    return tuple(found)


def _unfinished(root: Path) -> list[str]:
    """Return the unfinished runs that do not wait for a person, by the ledger."""
    with read_database(root) as database:
        if database is None:
            return []
        views = [
            read_detail(database, run.run_id).view
            for run in ledger.run_summaries(database, RunView)
            if run.workflow in FLOWS
        ]
    return [view.run_id for view in views if not view.is_over and view.ended() is not WatchEnd.PERSON]


class _RemainingRuns:
    """Tells a worker with `once` whether work is left."""

    def __init__(self, engine: DbosEngine, root: Path) -> None:
        self._engine, self._root = engine, root
        self._alone_since: float | None = None

    async def is_anything(self) -> bool:
        """Return whether a run of this version is queued or running and does not wait for a person.

        Runs of a dead worker are taken over after a while; only runs that remain stranded longer do not count.
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
