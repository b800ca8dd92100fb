"""The engine on DBOS: runs and children from queues, with Fair Witness's own ids, keys, leases and gates.

A process can have one worker, since the library keeps itself in a global variable. It can have any number of engines
that only control. `stranded` finds the runs that cannot continue on their own, with the reason and the repair.
"""

import asyncio
import secrets
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fairwitness.db.postgres import WAIT_S, Outage
from fairwitness.engine.base import (
    JOURNAL_VERSION,
    Body,
    ChangedOrder,
    EngineError,
    ExecutionStatus,
    Json,
    RunInfo,
    RunOutcome,
    StepInfo,
    StrandedRun,
)
from fairwitness.engine.database import ENDED, EngineDatabase, error_text, set_up_lock
from fairwitness.engine.json_values import check_name, encode
from fairwitness.engine.leases import FenceHolder
from fairwitness.engine.locks import this_process
from fairwitness.engine.run_row import RunRow
from fairwitness.engine.worker import EngineWorker
from fairwitness.errors import FairWitnessError
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint


def stranded(
    runs: Iterable[RunInfo], misfits: Collection[str], living: Collection[str], flows: Collection[str], version: str
) -> tuple[StrandedRun, ...]:
    """Return the runs that cannot continue, given the living workers and the known flows."""
    found = []
    for run in runs:
        reason = _reason(run, run.id in misfits, living, flows, version)
        if reason is not None:
            found.append(StrandedRun(run.id, *reason))
    return tuple(found)


def _reason(
    run: RunInfo, is_misfit: bool, living: Collection[str], flows: Collection[str], version: str
) -> tuple[str, str] | None:
    if is_misfit:
        return (
            run.error or "its steps no longer fit",
            f"put its steps back as they were, then: fairwitness resume {run.id}",
        )
    if run.status not in (ExecutionStatus.QUEUED, ExecutionStatus.RUNNING):
        return None
    if run.version != version:
        return (
            f"it is of version {run.version}, and this engine of version {version}",
            f"start a worker of version {run.version}, or: fairwitness cancel {run.id}",
        )
    if run.flow not in flows:
        return f"there is no flow {run.flow}", f"use a Fair Witness that has it, or: fairwitness cancel {run.id}"
    if run.status is ExecutionStatus.RUNNING and run.executor not in living:
        return f"its worker {run.executor} is dead", f"fairwitness resume {run.id}"
    return None


_SET_UP_S = 60.0
_THREADS = 4

_at_work: "DbosEngine | None" = None


class DbosEngine:
    """One engine in one process, on a file or on a Postgres server."""

    def __init__(
        self,
        url_or_path: str | Path,
        flows: Mapping[str, Body],
        *,
        executor: str | None = None,
        version: str = JOURNAL_VERSION,
        cap: int = 4,
        disk: DiskWatch | None = None,
        outage: Outage | None = None,
        fences: FenceHolder | None = None,
    ) -> None:
        """Make an engine; what it waits for and writes with is shared with the other databases of its bodies.

        `disk` are the disks that a worker waits for when they are full or read-only, `outage` is its wait for a server.
        """
        if cap < 1:
            raise EngineError(f"a cap of {cap} lets no child run", next_step="give one of 1 or more")
        self._where = _place(url_or_path)
        self._flows = dict(flows)
        self._executor = executor
        self._version = version
        self._cap = cap
        self.disk = disk
        self._outage = outage or Outage(WAIT_S)
        self._fences = fences or FenceHolder()
        self._threads: ThreadPoolExecutor | None = None
        self._opened: EngineDatabase | None = None
        self._worker: EngineWorker | None = None

    async def open(self, *, worker: bool) -> None:
        """Open the engine.

        A worker takes runs from the queue and recovers those of dead workers; other engines only control.
        """
        if self._threads is not None:
            raise EngineError("the engine is open already", next_step="close it first")
        if worker:
            self._claim_process()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="fairwitness-engine")
        lock = set_up_lock(self._where)
        loop = asyncio.get_running_loop()
        try:
            if lock is not None:
                await lock.acquire(_SET_UP_S)
            self._opened = await loop.run_in_executor(
                self._threads,
                EngineDatabase,
                self._where,
                self._flows,
                self._version,
                self._threads,
                self._outage,
                self._fences,
                self.disk,
            )
            if self._opened.is_new:  # a launched library looks for new queues only now and then
                await self._opened.control.make_queues(self._cap)
            if worker:
                started = EngineWorker(self._opened, self._flows, self._executor or _name(), self._cap)
                await started.begin()
                self._worker = started
        except BaseException:
            self._let_go()
            raise
        finally:
            if lock is not None:
                lock.release()

    @property
    def interruption(self) -> FairWitnessError | None:
        """The fault of this machine that keeps the worker of this process from going on, or None.

        The runs that it met have not failed: the worker starts nothing more, and they continue after `go_on`, or in
        another process.
        """
        return None if self._worker is None else self._worker.interruption

    @property
    def lost_since(self) -> str | None:
        """The local time since which the database server does not answer, as `12:03`; None while it does."""
        return self._outage.since

    @property
    def is_idle(self) -> bool:
        """Whether no body runs in this process."""
        return self._worker is None or self._worker.is_idle

    def go_on(self) -> None:
        """Continue after an interruption; runs that were interrupted are queued again after a moment."""
        if self._worker is not None:
            self._worker.go_on()

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Close the engine; runs that have not ended continue when a worker opens again."""
        if self._threads is None:
            return
        try:
            if self._worker is not None:
                await self._worker.end(grace_s)
        finally:
            self._let_go()

    def _claim_process(self) -> None:
        global _at_work
        if _at_work is not None:
            raise EngineError(
                "another engine works in this process, and the library behind them can be at work only once in each",
                next_step="close the other one, or open this one with worker=False",
            )
        _at_work = self

    def _let_go(self) -> None:
        global _at_work
        if _at_work is self:
            _at_work = None
            # The library had set its own threads as the loop's default executor; they ended with it.
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(thread_name_prefix="asyncio"))
        self._worker = None
        if self._opened is not None:
            self._opened.close()
            self._opened = None
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None

    @property
    def _database(self) -> EngineDatabase:
        if self._opened is None:
            raise EngineError("the engine is not open", next_step="open it first")
        return self._opened

    async def submit(self, run_id: str, flow: str, args: Json) -> None:
        """Start a run with an id chosen by the caller; a repeated call changes nothing."""
        await self._database.submit(run_id, flow, args)

    async def answer(self, run_id: str, gate: str, value: Json) -> bool:
        """Answer a gate; return whether this is the first answer, the only one that counts."""
        text = encode(value)
        check_name(gate)
        await self._database.known(run_id)
        is_first = await self._database.call(self._database.gates.answer, run_id, gate, text)
        killpoint("engine.gate.answered")
        self._look()
        return is_first

    async def cancel(self, run_id: str) -> None:
        """Cancel a run and its children; their workers notice it within a moment."""
        await self._database.known(run_id)
        await self._database.cancel(run_id)
        self._look()

    async def rerun_from(self, run_id: str, key: str) -> None:
        """Delete the steps of an ended run from a key on, with the answers of its gates, and continue from there."""
        run = await self._ended(run_id)
        steps = await self._database.control.steps(run_id, whole=False)
        position = next((position for position, name, _ in steps if name == key), None)
        if position is None:
            raise EngineError(f"run {run_id} has no step {key}", next_step="take one of its recorded steps")
        forgotten = [name for at, name, _ in steps if at >= position]
        await self._database.call(self._database.gates.forget, run_id, forgotten)
        await self._database.control.rewind(run, position, self._version)

    async def resume(self, run_id: str) -> None:
        """Continue a failed or cancelled run with everything it recorded, except a failure of its last step."""
        run = await self._database.known(run_id)
        if run.status in (ExecutionStatus.FAILED, ExecutionStatus.CANCELLED):
            steps = await self._database.control.steps(run_id)
            last, _, failed = steps[-1] if steps else (0, "", False)
            try:
                await self._database.control.rewind(run, last if failed else last + 1, self._version)
            except EngineError:
                if (await self._database.known(run_id)).status in ENDED:  # not resumed by another process meanwhile
                    raise
        elif run.status is ExecutionStatus.RUNNING:
            await self._database.call(self._database.leases.adopt, run_id)

    async def _ended(self, run_id: str) -> RunRow:
        run = await self._database.known(run_id)
        if run.status not in ENDED:
            raise EngineError(f"run {run_id} has not ended", next_step=f"cancel {run_id} first")
        return run

    async def outcome(self, run_id: str) -> RunOutcome | None:
        """Return the result of a run, or None if it has not ended."""
        return await self._database.outcome(run_id)

    async def is_waiting(self, run_id: str) -> bool:
        """Return whether a run waits at a gate; between two moves of its body it does not."""
        return await self._database.call(self._database.gates.is_waiting, run_id)

    async def runs(self) -> tuple[RunInfo, ...]:
        """Return all runs, oldest first, including children."""
        return tuple(_info(run) for run in await self._database.control.all())

    async def steps(self, run_id: str) -> tuple[StepInfo, ...]:
        """Return the recorded steps of a run, in order."""
        return tuple(StepInfo(key, failed) for _, key, failed in await self._database.control.steps(run_id))

    async def audit(self) -> tuple[StrandedRun, ...]:
        """Return the runs that cannot continue on their own."""
        leases = await self._database.call(self._database.leases.all)
        living = {lease.executor for lease in leases if not lease.is_dead}
        runs = await self._database.control.all()
        misfits = {run.id for run in runs if run.error is not None and run.error.kind == ChangedOrder.__name__}
        return stranded(map(_info, runs), misfits, living, self._database.flows, self._version)

    def _look(self) -> None:
        """Let a worker in this process check the database now instead of at its next poll."""
        if _at_work is not None and _at_work._worker is not None:
            _at_work._worker.look()


def _place(url_or_path: str | Path) -> Path | str:
    text = str(url_or_path)
    if isinstance(url_or_path, str) and text.startswith(("postgresql://", "postgres://")):
        return "postgresql://" + text.partition("://")[2]
    return Path(url_or_path).absolute()


def _name() -> str:
    """Return a name that is unique to this process, even if its process id is reused."""
    me = this_process()
    return f"{me.host.partition('/')[0]}-{me.pid}-{me.started}-{secrets.token_hex(4)}"


def _info(run: RunRow) -> RunInfo:
    executor = run.executor if run.status is ExecutionStatus.RUNNING else None
    return RunInfo(run.id, run.flow, run.status, run.version, executor, error_text(run.error), run.parent)
