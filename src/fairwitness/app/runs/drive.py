"""Carrying runs in this process: the engine opened as a worker, shown while it works, and closed in order."""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from fairwitness.app.assembly.engine import FLOWS, EngineCallback, RunnerFactory, build_engine
from fairwitness.app.run_records.autopilot import open_autopilot_run, resume_autopilot, settled_verdicts
from fairwitness.app.run_records.feature import ANSWERED, answered_keys, resume_feature
from fairwitness.app.run_records.forge import refresh_files, resume_forge, settled_gates
from fairwitness.app.views.detail import RESUMABLE
from fairwitness.app.views.followed_run import POLL_S, FollowedRun, ShowCallback
from fairwitness.app.views.run import RunView, WatchEnd
from fairwitness.app.views.workers import has_engine
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.engine.base import EngineError, ExecutionStatus, RunOutcome
from fairwitness.engine.dbos_engine import DbosEngine
from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.clock import spell, system_clock
from fairwitness.rules.schedule import RunEnd, dag_outcome
from fairwitness.runs.forge.log import ForgeLog

GRACE_S = 5.0
"""How long work that runs may still take when somebody wants this process to end."""
DECIDE = "decide#"
COMPLETED = "completed"
"""The status of a graph that came to its end."""
CANCELLED = "cancelled by"
"""How the reason of a run begins that somebody cancelled, and may go on with after all."""
_ASK_S = 1.0
_LAST_EVENT_S = 15.0
"""How long after the end of a flow its last event may take: whoever cancels a run clears its folders first."""
_SETTLED_S = 1.0
"""How long nothing may happen in an autopilot run before it counts as waiting: it says how it stands before it does."""
_ANSWERED_IN = {
    Workflow.FEATURE.value: answered_keys,
    Workflow.FORGE.value: settled_gates,
    Workflow.AUTOPILOT.value: settled_verdicts,
}
"""Who knows what people have answered, by workflow."""


class StopRequest:
    """Whether somebody wants this process to end, and by which signal."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._asked = asyncio.Event()

    def ask(self, number: int) -> None:
        """The first one counts."""
        self.signal = self.signal or number
        self._asked.set()

    async def within(self, seconds: float) -> bool:
        """Waits so long; True at once if it is asked for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        return self._asked.is_set()


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Ctrl-C and SIGTERM are heard as a wish, not as an end, so that everything can be left in order."""
    stop, loop = StopRequest(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.ask, number)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def engine_at(root: Path, *, worker: bool, on_event: EngineCallback | None = None) -> AsyncIterator[DbosEngine]:
    """The engine of a repository, open; what keeps it from opening or closing is told in its own words."""
    engine = build_engine(root, on_event=on_event)
    try:
        await engine.open(worker=worker)
        try:
            yield engine
        finally:
            await engine.close(grace_s=GRACE_S)
    except EngineError as error:
        raise NotReady(error.what, next_step=error.next_step) from error


def refuse_undrivable(root: Path, view: RunView) -> None:
    """A run that no engine of today can drive."""
    if view.workflow == Workflow.AUTOPILOT:
        with open_autopilot_run(root, view.run_id):
            return  # it has an order to go by
    if view.workflow not in FLOWS:
        raise UsageError(
            f"{view.run_id} is a run of {view.workflow}, and cannot be carried yet",
            next_step=f"fairwitness events {view.run_id}",
        )


def is_final(view: RunView) -> bool:
    """Whether a run ended in a way that no resuming changes."""
    if view.workflow != Workflow.FEATURE or not view.is_over:
        return view.status == COMPLETED
    return view.status not in RESUMABLE and not (view.reason or "").startswith(CANCELLED)


def can_go_on(root: Path, view: RunView) -> bool:
    """Whether a run that has ended may go on: one that failed for good would only fail again."""
    if is_final(view):
        return not _is_cleared(root, view.run_id)
    if view.workflow in (Workflow.FEATURE, Workflow.AUTOPILOT):
        return True
    run_id = view.run_id
    ledger = RunnerFactory(root).ledger
    try:
        log = ForgeLog(ledger, run_id)
        if not log.course().is_approved:
            return True  # its captain may plan once more
        _, dag = log.effective()
        status = DagStatus(runId=run_id, updatedAt=spell(system_clock()), nodes=log.run().nodes)
        if dag_outcome(dag, status).end is not RunEnd.FAILED:
            return True
    finally:
        ledger.close()
    return not _is_cleared(root, run_id)


def record_resumed(root: Path, view: RunView) -> None:
    """Writes down that a paused or failed run goes on, before anything does."""
    if is_final(view):
        return  # it stays so; only what comes after its last event is left to be done
    if view.workflow == Workflow.AUTOPILOT:
        resume_autopilot(root, view.run_id)
        return
    factory = RunnerFactory(root)
    ledger = factory.ledger
    try:
        if view.workflow == Workflow.FEATURE:
            resume_feature(factory.repository, ledger, view.run_id)
        else:
            resume_forge(root, view.run_id)
    finally:
        ledger.close()


def _is_cleared(root: Path, run_id: str) -> bool:
    """Whether a run's flow came to its end, too: after the last event it clears the run's folders."""
    if not has_engine(root):
        return True  # nobody ever worked here

    async def asked() -> bool:
        async with engine_at(root, worker=False) as engine:
            outcome = await engine.outcome(run_id)
            return outcome is not None and outcome.status is ExecutionStatus.DONE

    return asyncio.run(asked())


def drive(root: Path, followed: FollowedRun, show: ShowCallback) -> WatchEnd | int:
    """Carries a run in this process until it ends, or gives the number of the signal that ended this before.

    Whatever was begun is saved; agents that were at work are stopped within the grace.
    """
    return asyncio.run(_drive(root, followed, show))


async def _drive(root: Path, followed: FollowedRun, show: ShowCallback) -> WatchEnd | int:
    with stop_on_signals() as stop:
        async with engine_at(root, worker=True) as engine:
            await _start(engine, root, followed.view)
            end = await _follow(engine, followed, show, stop)
            if end is None:
                followed.note = f"stopping: what is at work has {GRACE_S:g}s to end"
                show(followed, [])
    if followed.view.workflow == Workflow.FORGE:
        await asyncio.to_thread(refresh_files, root, followed.run_id)
    followed.note = ""
    show(followed, await asyncio.to_thread(followed.news))
    if end is not None:
        return end
    assert stop.signal is not None
    return stop.signal


async def deliver_answers(engine: DbosEngine, root: Path, run_id: str, workflow: str) -> None:
    """Tells the engine what people answered: whoever did may have been killed before it heard of it."""
    for key in await asyncio.to_thread(_ANSWERED_IN[workflow], root, run_id):
        await engine.answer(run_id, key, ANSWERED)


async def _start(engine: DbosEngine, root: Path, view: RunView) -> None:
    """Gives a run to the engine, however far it came: never given, left by a dead process, ended, or failed."""
    run_id = view.run_id
    await engine.submit(run_id, FLOWS[view.workflow], {"run_id": run_id})
    await deliver_answers(engine, root, run_id, view.workflow)
    outcome = await engine.outcome(run_id)
    if outcome is not None and outcome.status is ExecutionStatus.DONE and is_final(view):
        return  # nothing is left to be done
    if outcome is not None and outcome.status is ExecutionStatus.DONE:
        # it has ended, but not as it should: its last decision is taken again
        decided = [step.key for step in await engine.steps(run_id) if step.key.startswith(DECIDE)]
        await engine.rerun_from(run_id, decided[-1])
    else:
        await engine.resume(run_id)


async def _follow(engine: DbosEngine, followed: FollowedRun, show: ShowCallback, stop: StopRequest) -> WatchEnd | None:
    """Shows the run until it ends; None if somebody wants this process to end first."""
    show(followed, [])
    asked, ended_at = 0.0, None
    loop = asyncio.get_running_loop()
    last_news = loop.time()
    while True:
        news = await asyncio.to_thread(followed.news)
        show(followed, news)
        last_news = loop.time() if news else last_news
        end = None if news else followed.view.ended()
        if end == "person" and loop.time() - last_news >= _patience(followed.view):
            return end
        if end is not None or loop.time() - asked > _ASK_S:
            asked = loop.time()
            outcome = await engine.outcome(followed.run_id)
            if outcome is not None and end is not None and outcome.status is not ExecutionStatus.FAILED:
                return end  # a run clears its folders after its last event
            if outcome is not None:
                ended_at = ended_at or loop.time()
                _refuse_lost(followed.run_id, outcome, loop.time() - ended_at)
        if await stop.within(POLL_S):
            return None


def _patience(view: RunView) -> float:
    """How long nothing must have happened before a run is left to a person.

    One that was paused has a flow that ends by itself, and clears up before it does.
    """
    if view.workflow != Workflow.AUTOPILOT:
        return 0.0
    return _LAST_EVENT_S if view.status == "paused" else _SETTLED_S


def _refuse_lost(run_id: str, outcome: RunOutcome, seconds: float) -> None:
    """A flow that ended without a last event in the ledger: nobody will write one any more."""
    if outcome.status is ExecutionStatus.FAILED or seconds > _LAST_EVENT_S:
        why = outcome.error or f"its flow is {outcome.status.value}"
        raise NotReady(
            f"run {run_id} cannot go on here: {why}", next_step=f"mend that, then: fairwitness resume {run_id}"
        )
