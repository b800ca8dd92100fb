"""The promise of the engine in asyncio and one SQLite commit per step: the second opinion of the contract tests.

It is for one machine, its calls block the loop for the length of a commit, and a queue is a table that is looked at.
"""

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from fairwitness.engine.base import (
    DEEPEST_GENERATION,
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
from fairwitness.engine.json_values import decode, encode, tellable
from fairwitness.errors import DatabaseBusy, is_machine_fault
from fairwitness.kit.clock import system_clock
from support.engine.raw_flow import Desk, RawFlow, check_name, outcomes_of, unknown_flow
from support.engine.raw_gates import Gates
from support.engine.raw_journal import Claimed, Ending, Journal, NotOurs
from support.engine.raw_leases import Leases, Worker, this_process

_POLL_S = 0.02
_BEAT_S = 5.0
_NUMBERS = itertools.count(1)


class RawEngine:
    """One engine in one process, on one file."""

    flow_type: ClassVar[type[RawFlow]] = RawFlow

    def __init__(
        self,
        path: Path | str,
        flows: Mapping[str, Body],
        *,
        executor: str | None = None,
        version: str = JOURNAL_VERSION,
        cap: int = 4,
    ) -> None:
        if cap < 1:
            raise EngineError(f"a cap of {cap} lets no child run", next_step="give one of 1 or more")
        self._path = Path(path)
        self._flows = dict(flows)
        self._named = executor
        self._version = version
        self._cap = cap
        self._opened: tuple[Journal, Leases] | None = None
        self._worker: Worker | None = None
        self._runner: Desk | None = None
        self._looking: asyncio.Task[None] | None = None
        self._bodies: dict[str, asyncio.Task[None]] = {}
        self._children: dict[str, int] = {}
        """Those that run here, with their generation."""
        self._stopped: set[str] = set()

    async def open(self, *, worker: bool) -> None:
        """As a worker it takes runs from the queue and recovers those of the dead; otherwise it only controls."""
        if self._opened is not None:
            raise EngineError("the engine is open already", next_step="close it first")
        journal = Journal(self._path)
        self._opened = journal, Leases(journal.database)
        if not worker:
            return
        try:
            self._begin()
        except EngineError:
            journal.close()
            self._opened = None
            raise
        assert self._worker is not None
        self._runner = Desk(
            journal, frozenset(self._flows), self._worker.executor, self._version, _POLL_S, asyncio.Event()
        )
        self._looking = asyncio.create_task(self._look())

    def _begin(self) -> None:
        """A row for this worker; a dead one of the same name is buried first."""
        me = this_process("")
        number = next(_NUMBERS)
        self._worker = this_process(self._named or f"{me.host}-{me.pid}-{me.started}-{number}")
        self._bury()
        self._leases.begin(self._worker, _now())

    async def close(self, *, grace_s: float = 5.0) -> None:
        """Ends: no further step begins, steps that run may end in time, and what is left is cancelled."""
        if self._opened is None:
            return
        if self._runner is not None and self._looking is not None and self._worker is not None:
            looking, self._looking = self._looking, None
            self._runner.closing.set()
            looking.cancel()
            await asyncio.wait([looking])
            if self._bodies:
                await asyncio.wait(self._bodies.values(), timeout=grace_s)
            bodies = tuple(self._bodies.values())
            self._stop(self._bodies.keys())
            await asyncio.gather(*bodies, return_exceptions=True)
            self._leases.end(self._worker)
            self._runner = self._worker = None
            self._journal.close()
            self._opened = None
            if not looking.cancelled():
                looking.result()  # what ended the looking before its time
        else:
            self._journal.close()
            self._opened = None

    async def submit(self, run_id: str, flow: str, args: Json) -> None:
        """Starts a run under an id of the caller's choice; again it changes nothing."""
        check_name(run_id)
        if flow not in self._flows:
            raise unknown_flow(flow)
        self._journal.submit(run_id, flow, encode(args), self._version)

    async def answer(self, run_id: str, gate: str, value: Json) -> bool:
        """Answers a gate; only the first answer counts."""
        check_name(gate)
        return Gates(self._journal.database).answer(run_id, gate, encode(value))

    async def cancel(self, run_id: str) -> None:
        """Ends a run and its children; whoever works on them finds out at its next look."""
        self._journal.cancel(run_id)

    async def rerun_from(self, run_id: str, key: str) -> None:
        """Forgets the steps of an ended run from a key on, and goes on from there."""
        self._journal.rewind(run_id, key, self._version)

    async def resume(self, run_id: str) -> None:
        """Goes on with a run that failed or was cancelled, with all it recorded but the failure of its last step."""
        self._journal.resume(run_id, self._version, self._leases.all())

    async def outcome(self, run_id: str) -> RunOutcome | None:
        """How a run ended; None while it has not."""
        return outcomes_of(self._journal, [run_id]).get(run_id)

    async def runs(self) -> tuple[RunInfo, ...]:
        """Every run, oldest first."""
        return tuple(run for run, _ in self._journal.runs())

    async def steps(self, run_id: str) -> tuple[StepInfo, ...]:
        """The recorded steps of a run."""
        return tuple(StepInfo(step.key, step.failed) for step in self._journal.recorded(run_id).values())

    async def audit(self) -> tuple[StrandedRun, ...]:
        """Runs that go on by themselves no more."""
        dead = {worker.executor for worker in self._leases.dead(_now())}
        found = []
        for run, fits in self._journal.runs():
            waits = run.status in (ExecutionStatus.QUEUED, ExecutionStatus.RUNNING)
            if not fits:
                found.append(StrandedRun(run.id, run.error or "", f"rerun {run.id} from a step that still fits"))
            elif waits and run.version != self._version:
                reason = f"it is of version {run.version}, and this engine of version {self._version}"
                found.append(
                    StrandedRun(run.id, reason, f"start a worker of version {run.version}, or cancel {run.id}")
                )
            elif waits and run.executor in dead:
                found.append(StrandedRun(run.id, f"its worker {run.executor} is dead", "start a worker"))
        return tuple(found)

    @property
    def _journal(self) -> Journal:
        return self._open_parts[0]

    @property
    def _leases(self) -> Leases:
        return self._open_parts[1]

    @property
    def _open_parts(self) -> tuple[Journal, Leases]:
        if self._opened is None:
            raise EngineError("the engine is not open", next_step="open it first")
        return self._opened

    def _bury(self) -> None:
        for worker in self._leases.dead(_now()):
            self._leases.end(worker)

    async def _look(self) -> None:
        """What a worker does all the time."""
        last_beat = _now()
        while True:
            with contextlib.suppress(DatabaseBusy):  # the next look may find it free
                if _now() - last_beat > _BEAT_S:
                    last_beat = _now()
                    self._beat(last_beat)
                self._look_once()
            await asyncio.sleep(_POLL_S)

    def _beat(self, now: float) -> None:
        assert self._worker is not None
        self._journal.beat(self._worker.executor)
        if not self._leases.beat(self._worker, now):
            self._leases.begin(self._worker, now)  # taken for dead: what it had is somebody else's

    def _look_once(self) -> None:
        """Buries the dead, stops what is no longer its own, and takes what waits."""
        assert self._runner is not None
        self._bury()
        self._stop(self._bodies.keys() - self._journal.owned(self._runner.executor))
        known, busy_now = frozenset(self._flows), Counter(self._children.values())
        context = {generation: self._cap - busy_now[generation] for generation in range(1, DEEPEST_GENERATION + 1)}
        busy = frozenset(self._bodies)  # a run that was cancelled and begun anew waits for its old body to end
        for claimed in self._journal.claim(self._runner.executor, self._version, known, context, busy):
            if claimed.generation:
                self._children[claimed.id] = claimed.generation
            body = asyncio.create_task(self._work_on(self._runner, claimed), name=claimed.id)
            self._bodies[claimed.id] = body
            body.add_done_callback(self._forget)

    def _stop(self, runs: Iterable[str]) -> None:
        """Cancels bodies, each once: a second time would strike what they do to leave in order."""
        for run in set(runs) - self._stopped:
            self._stopped.add(run)
            self._bodies[run].cancel()

    def _forget(self, body: "asyncio.Task[None]") -> None:
        """Also of a body that was cancelled before it began."""
        run = body.get_name()
        del self._bodies[run]
        self._children.pop(run, None)
        self._stopped.discard(run)

    async def _work_on(self, runner: Desk, claimed: Claimed) -> None:
        """One run, from its first step or from where it was, to its end."""
        flow = self.flow_type(runner, claimed.id, runner.journal.recorded(claimed.id))
        value, error = None, None
        try:
            value = encode(await self._flows[claimed.flow](flow, decode(claimed.args)))
            flow.finish()
        except asyncio.CancelledError as cancelled:
            task = asyncio.current_task()
            if flow.is_interrupted or runner.closing.is_set() or (task is not None and task.cancelling()):
                return
            error = f"CancelledError: {tellable(cancelled)}"
        except Exception as raised:  # noqa: BLE001  # whatever a body raises is how its run ended
            if is_machine_fault(raised):
                return
            error = (
                tellable(raised) if isinstance(raised, EngineError) else f"{type(raised).__name__}: {tellable(raised)}"
            )
        if flow.misfit is not None:  # also when the body caught it
            value, error = None, tellable(flow.misfit)
        fits = not isinstance(flow.misfit, ChangedOrder)
        status = ExecutionStatus.DONE if error is None else ExecutionStatus.FAILED
        with contextlib.suppress(NotOurs):
            runner.journal.finish(claimed.id, runner.executor, Ending(status, value, error, fits))


def _now() -> float:
    return system_clock().timestamp()
