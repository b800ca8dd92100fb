"""Drives runs in this process: opens the engine as a worker, shows the run, and closes the engine in order.

What only forge or autopilot needs is imported where it is used: resuming waits for every import.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from fairwitness.app.assembly.engine import FLOWS, EngineCallback, RemarkCallback, RunnerFactory, build_engine
from fairwitness.app.leftovers import remove_leftovers
from fairwitness.app.run_records.feature import ANSWERED, answered_keys, resume_feature
from fairwitness.app.views.detail import (
    LAST,
    RESUMABLE,
    next_command,
    only_unfinished,
    open_database,
    read_detail,
    resolve_run,
)
from fairwitness.app.views.followed_run import POLL_S, FollowedRun, ShowCallback
from fairwitness.app.views.run import CANCELLED, RunView, WatchEnd
from fairwitness.app.views.workers import has_engine
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.engine.base import EngineError, ExecutionStatus, RunOutcome
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.errors import (
    DatabaseAway,
    EventsBroken,
    FairWitnessError,
    Interrupted,
    LedgerTampered,
    NotReady,
    UsageError,
)
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import spell, system_clock

GRACE_S = 5.0
"""How long running work may still take after this process was asked to stop."""
DECIDE = "decide#"
COMPLETED = "completed"
"""The status of a completed graph."""
_ASK_S = 1.0
_WAITING = "waiting: "
"""How the note about a full disk begins."""
LAST_EVENT_S = 15.0
"""How long the final event may follow the end of a flow: cancelling cleans up the folders first."""


class StopRequest:
    """A request to stop this process, and its signal."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._asked = asyncio.Event()

    def ask(self, number: int) -> None:
        """Request the stop; the first signal counts."""
        self.signal = self.signal or number
        self._asked.set()

    async def within(self, seconds: float) -> bool:
        """Wait for `seconds`; return True as soon as a stop is requested."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        return self._asked.is_set()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Turn Ctrl-C, SIGTERM and SIGHUP into a stop request inside the block, so that the process can stop in order.

    A process that was started with `nohup` ignores SIGHUP as before.
    """
    stop, loop = StopRequest(), asyncio.get_running_loop()
    numbers = [signal.SIGINT, signal.SIGTERM]
    numbers += [signal.SIGHUP] if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN else []
    for number in numbers:
        loop.add_signal_handler(number, stop.ask, number)
    try:
        yield stop
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


@asynccontextmanager
async def engine_at(
    root: Path, *, worker: bool, on_event: EngineCallback | None = None, on_remark: RemarkCallback | None = None
) -> AsyncIterator[DbosEngine]:
    """Open the engine of a repository; its errors become `NotReady`."""
    engine = build_engine(root, on_event=on_event, on_remark=on_remark)
    try:
        if worker:
            await asyncio.to_thread(remove_leftovers, Repository.open(root))
        await engine.open(worker=worker)
        try:
            yield engine
        finally:
            await _close(engine)
    except EngineError as error:
        raise NotReady(error.what, next_step=error.next_step) from error


async def _close(engine: DbosEngine) -> None:
    try:
        await engine.close(grace_s=GRACE_S)
    except Exception:
        if engine.disk is None or engine.disk.trouble() is None:
            raise
        # the disk refuses what a worker writes when it leaves; the next worker takes over from a dead one


def refuse_undrivable(root: Path, view: RunView) -> None:
    """Raise `UsageError` if no engine can drive the run."""
    if view.workflow == Workflow.AUTOPILOT:
        from fairwitness.app.run_records.autopilot import open_autopilot_run

        with open_autopilot_run(root, view.run_id):
            return  # it has an order
    if view.workflow not in FLOWS:
        raise UsageError(
            f"{view.run_id} is a run of {view.workflow}, which cannot be driven yet",
            next_step=f"fairwitness events {view.run_id}",
        )


def run_to_resume(root: Path) -> str:
    """Return the run to resume if none is named: the only unfinished run, else the latest run if it can continue."""
    with open_database(root) as database:
        unfinished = only_unfinished(database)
        if unfinished is not None:
            return unfinished
        view = read_detail(database, resolve_run(database, LAST)).view
    if is_final(view):
        why = f"is {view.word}"
    elif can_go_on(root, view):
        return view.run_id
    else:
        why = f"{view.word} and has no attempt left"
    raise UsageError(
        f"there is no run to resume: the latest, {view.run_id}, {why}", next_step=next_command(view, is_worked_on=False)
    )


def is_final(view: RunView) -> bool:
    """Return whether a run ended in a way that resuming does not change."""
    if view.workflow != Workflow.FEATURE or not view.is_over:
        return view.status == COMPLETED
    return view.status not in RESUMABLE and not (view.reason or "").startswith(CANCELLED)


def can_go_on(root: Path, view: RunView) -> bool:
    """Return whether an ended run can be resumed; a run without attempts left would only fail again."""
    if is_final(view):
        return not _is_cleared(root, view.run_id)
    if view.workflow in (Workflow.FEATURE, Workflow.AUTOPILOT):
        return True
    from fairwitness.contracts.forge.status import DagStatus
    from fairwitness.rules.schedule import GraphProgress, dag_outcome
    from fairwitness.runs.forge.log import ForgeLog

    run_id = view.run_id
    ledger = RunnerFactory(root).ledger
    try:
        log = ForgeLog(ledger, run_id)
        if not log.course().is_approved:
            return True  # the captain can plan again
        _, dag = log.effective()
        status = DagStatus(runId=run_id, updatedAt=spell(system_clock()), nodes=log.run().nodes)
        if dag_outcome(dag, status).end is not GraphProgress.FAILED:
            return True
    finally:
        ledger.close()
    return not _is_cleared(root, run_id)


def record_resumed(root: Path, view: RunView) -> None:
    """Record that a paused or failed run is resumed, before it continues."""
    if is_final(view):
        return  # only the clean-up after its final event is left
    if view.workflow == Workflow.AUTOPILOT:
        from fairwitness.app.run_records.autopilot import resume_autopilot

        resume_autopilot(root, view.run_id)
        return
    factory = RunnerFactory(root)
    ledger = factory.ledger
    try:
        if view.workflow == Workflow.FEATURE:
            resume_feature(factory.repository, ledger, view.run_id)
        else:
            from fairwitness.app.run_records.forge import resume_forge

            resume_forge(root, view.run_id)
    finally:
        ledger.close()


def _is_cleared(root: Path, run_id: str) -> bool:
    """Return whether the flow of a run has ended, too: it cleans up the folders after the final event."""
    if not has_engine(root):
        return True  # no engine was ever used here

    async def asked() -> bool:
        async with engine_at(root, worker=False) as engine:
            outcome = await engine.outcome(run_id)
            return outcome is not None and outcome.status is ExecutionStatus.DONE

    return asyncio.run(asked())


def drive(root: Path, followed: FollowedRun, show: ShowCallback) -> WatchEnd | int:
    """Drive a run in this process until it ends; return its end, or the number of the signal that stopped it.

    All progress is saved; running agents are stopped within the grace period.
    """
    return asyncio.run(_drive(root, followed, show))


async def _drive(root: Path, followed: FollowedRun, show: ShowCallback) -> WatchEnd | int:
    def remark(text: str) -> None:
        followed.note = f"remark: {text}"

    with stop_on_signals() as stop:
        async with engine_at(root, worker=True, on_remark=remark) as engine:
            await _start(engine, root, followed.view)
            try:
                end = await _follow(engine, followed, show, stop)
            except DatabaseAway as error:
                raise _interrupted(followed.run_id, error) from error
            if end is None:
                followed.note = f"stopping: what is at work has {GRACE_S:g}s to end"
                show(followed, [])
    if followed.view.workflow == Workflow.FORGE:
        from fairwitness.app.run_records.forge import refresh_files

        with suppress(DatabaseAway):  # the process that continues the run writes them
            await asyncio.to_thread(refresh_files, root, followed.run_id)
    followed.note = ""
    show(followed, await asyncio.to_thread(followed.news))
    if end is not None:
        return end
    assert stop.signal is not None
    return stop.signal


async def deliver_answers(engine: DbosEngine, root: Path, run_id: str, workflow: str) -> None:
    """Send recorded answers to the engine: the process that recorded them may have died before sending."""
    for key in await asyncio.to_thread(_answered, root, run_id, workflow):
        await engine.answer(run_id, key, ANSWERED)


def _answered(root: Path, run_id: str, workflow: str) -> Collection[str]:
    """Return the answered questions of a run."""
    if workflow == Workflow.AUTOPILOT:
        from fairwitness.app.run_records.autopilot import settled_verdicts

        return settled_verdicts(root, run_id)
    if workflow == Workflow.FORGE:
        from fairwitness.app.run_records.forge import settled_gates

        return settled_gates(root, run_id)
    return answered_keys(root, run_id)


async def _start(engine: DbosEngine, root: Path, view: RunView) -> None:
    """Start a run in the engine, whether it is new, abandoned by a dead process, ended, or failed."""
    run_id = view.run_id
    await engine.submit(run_id, FLOWS[view.workflow], {"run_id": run_id})
    await deliver_answers(engine, root, run_id, view.workflow)
    outcome = await engine.outcome(run_id)
    if outcome is not None and outcome.status is ExecutionStatus.DONE and is_final(view):
        return  # nothing to do
    if outcome is not None and outcome.status is ExecutionStatus.DONE:
        # it ended without completing: repeat its last decision
        decided = [step.key for step in await engine.steps(run_id) if step.key.startswith(DECIDE)]
        await engine.rerun_from(run_id, decided[-1])
    else:
        await engine.resume(run_id)


async def _follow(engine: DbosEngine, followed: FollowedRun, show: ShowCallback, stop: StopRequest) -> WatchEnd | None:
    """Show the run until it ends; return None if a stop is requested first."""
    # a thread of its own: while the database is away, steps hold every thread of the loop's own pool
    with ThreadPoolExecutor(1, thread_name_prefix="fairwitness-watch") as watching:
        return await _followed(engine, followed, show, stop, watching)


async def _followed(
    engine: DbosEngine, followed: FollowedRun, show: ShowCallback, stop: StopRequest, watching: ThreadPoolExecutor
) -> WatchEnd | None:
    show(followed, [])
    asked, ended_at = 0.0, None
    asking: asyncio.Task[_EngineAnswer] | None = None  # a task: it waits while the database does not answer
    loop = asyncio.get_running_loop()
    last_news = loop.time()
    while True:
        trouble = _trouble(engine, followed)
        _show_provider_wait(followed)
        try:
            news = await loop.run_in_executor(watching, followed.news)
        except FairWitnessError:
            if trouble is None:
                raise
            news = []
        show(followed, news)
        if trouble is not None:
            if await stop.within(POLL_S):
                return None
            continue
        last_news = loop.time() if news else last_news
        end = None if news else followed.view.ended()
        silent_s = needed_silence_s(followed.view)
        if end == "person" and silent_s is not None and loop.time() - last_news >= silent_s:
            return end
        _refuse_interrupted(engine, followed)
        if asking is None and (end is not None or loop.time() - asked > _ASK_S):
            asked = loop.time()
            asking = asyncio.create_task(_ask(engine, followed.run_id))
            asking.add_done_callback(lambda task: task.cancelled() or task.exception())  # it may outlast this loop
            await asyncio.wait({asking}, timeout=POLL_S)
        if asking is not None and asking.done():
            (outcome, is_waiting), asking = asking.result(), None
            if end == "person" and is_waiting:
                return end
            if outcome is not None and end is not None and outcome.status is not ExecutionStatus.FAILED:
                return end  # the clean-up follows the final event
            if outcome is not None:
                ended_at = ended_at or loop.time()
                _refuse_lost(followed.run_id, outcome, loop.time() - ended_at)
        if await stop.within(POLL_S):
            return None


def _trouble(engine: DbosEngine, followed: FollowedRun) -> str | None:
    """Return why nothing can be written now, and show it; raise `Interrupted` after the run has waited long enough."""
    trouble = None if engine.disk is None else engine.disk.trouble()
    if trouble is not None and engine.disk is not None and engine.disk.is_over:
        raise Interrupted(
            f"run {followed.run_id} was interrupted: {trouble}; everything so far is saved",
            next_step=f"mend that, then: fairwitness resume {followed.run_id}",
        )
    if trouble is not None:
        followed.note = f"{_WAITING}{trouble}; nothing more is started until that has passed"
    elif followed.note.startswith(_WAITING):
        followed.note = ""
    return trouble


def _show_provider_wait(followed: FollowedRun) -> None:
    """Show until when the run waits for the provider of its models."""
    from fairwitness.agents.gateway.patience import WAITS, WATCHES

    note = WATCHES.note()
    if note or followed.note.startswith(WAITS):
        followed.note = note


def _refuse_interrupted(engine: DbosEngine, followed: FollowedRun) -> None:
    """Raise the fault of this machine that interrupted the run, as soon as what is at work has ended."""
    error = engine.interruption
    if error is not None and engine.is_idle:
        raise _interrupted(followed.run_id, error)
    if error is not None:
        followed.note = f"interrupted: {error.what}; waiting for what is at work"


def _interrupted(run_id: str, error: FairWitnessError) -> FairWitnessError:
    """Return the error that tells a person that the run has not failed and how to continue it."""
    if isinstance(error, EventsBroken | LedgerTampered):
        return error
    first = error.next_step if error.next_step and "resume" not in error.next_step else "mend that"
    return Interrupted(
        f"run {run_id} was interrupted: {error.what}", next_step=f"{first}, then: fairwitness resume {run_id}"
    )


class _EngineAnswer(NamedTuple):
    """What the engine knows about a run."""

    outcome: RunOutcome | None
    is_waiting: bool
    """Whether it waits at a gate."""


async def _ask(engine: DbosEngine, run_id: str) -> _EngineAnswer:
    return _EngineAnswer(await engine.outcome(run_id), await engine.is_waiting(run_id))


def needed_silence_s(view: RunView) -> float | None:
    """Return how long a run must be silent before it is left to a person; None if the engine has to say so.

    The flow of a paused run ends by itself after cleaning up. An autopilot run that has deferred a phase still writes
    its report before it waits, and a process that takes it up after a kill is silent meanwhile.
    """
    if view.workflow != Workflow.AUTOPILOT:
        return 0.0
    return LAST_EVENT_S if view.status == "paused" else None


def _refuse_lost(run_id: str, outcome: RunOutcome, seconds: float) -> None:
    """Raise `NotReady` if the flow ended without a final event: no process will write one any more."""
    if outcome.status is ExecutionStatus.FAILED or seconds > LAST_EVENT_S:
        why = outcome.error or f"its flow is {outcome.status.value}"
        raise NotReady(
            f"run {run_id} cannot continue here: {why}", next_step=f"fix that, then: fairwitness resume {run_id}"
        )
