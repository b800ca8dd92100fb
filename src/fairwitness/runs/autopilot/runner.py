"""The runner of an autopilot run: the implementation of what the workflow asks for."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from fairwitness.contracts.autopilot.passes import PassMove, PhasePass
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus
from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.errors import InternalError
from fairwitness.git.run_cleanup import sweep
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.next_run_move import RunFacts, RunMove, RunMoveKind, next_move
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.decisions import PassDecisions
from fairwitness.runs.autopilot.graph_runner import AutopilotGraphRunner
from fairwitness.runs.autopilot.initial_files import write_initial_files
from fairwitness.runs.autopilot.log import RETURNED
from fairwitness.runs.autopilot.own_files import OWN_FOLDERS
from fairwitness.runs.autopilot.phase_pass import PhasePasses, begin_pass, skip_phase
from fairwitness.runs.autopilot.run_end import RunCloser
from fairwitness.runs.autopilot.self_audit import audit_run
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.runs.dispatch.blocking import run_blocking

Carry: TypeAlias = Callable[[int], Awaitable[GraphEnd]]

REPORTED = "reported"
_PROCESSED = ("phase_completed", "phase_failed")
_BEGUN = ("run_started", "run_resumed")


class AutopilotRunner:
    """Runs one autopilot run."""

    def __init__(self, context: AutopilotContext, graph_of: Callable[[int], AutopilotGraphRunner]) -> None:
        """`graph_of` makes the runner of a graph."""
        self.context, self._graph_of = context, graph_of
        self._state_file = StateFile(context.log, context.files)
        self._passes = PhasePasses(context, self._state_file)
        self._decisions = PassDecisions(context)
        self._end = RunCloser(context.log, context.files, self._state_file, context.changed)
        self._graphs: dict[int, AutopilotGraphRunner] = {}

    async def next(self) -> RunMove:
        """Return what the run does next."""
        return await run_blocking(self._next)

    def _next(self) -> RunMove:
        context = self.context
        if not context.log.passes():
            write_initial_files(context.log, context.files, context.repository)
        return next_move(context.order, self._facts())

    def _facts(self) -> RunFacts:
        log = self.context.log
        state = log.state().state
        processed, failed, to_retry = 0, set[str](), set[str]()
        for envelope in log.ledger.events(log.run_id):
            if envelope.type in _BEGUN:
                processed, to_retry = 0, to_retry | failed
            if envelope.type == "phase_started":
                failed, to_retry = failed - {envelope.phase or ""}, to_retry - {envelope.phase or ""}
            if envelope.type == "phase_failed":
                failed.add(envelope.phase or "")
            processed += envelope.type in _PROCESSED
        statuses = {phase: record.status for phase, record in state.phases.items()}
        for phase in to_retry & statuses.keys():  # a resumed run retries its failed phases
            statuses[phase] = PhaseStatus.NOT_STARTED
        ended = [row.subject for row in log.ledger.observations(log.run_id, RETURNED)]
        verdicts = log.verdicts()
        reported = log.ledger.observation(log.run_id, f"{REPORTED}:{len(verdicts)}") is not None
        return RunFacts(
            status=state.meta.status,
            statuses=statuses,
            begun=log.passes(),
            returned=tuple((name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in ended),
            verdicts=verdicts,
            processed=processed,
            reported=reported,
        )

    async def act(self, move: RunMove, run_graph: Carry) -> None:
        """Make a move; repeating it changes nothing."""
        if move.kind is RunMoveKind.FINISH:
            await self._finish(run_graph)
        else:
            await run_blocking(self._act, move)

    def _act(self, move: RunMove) -> None:
        context = self.context
        match move.kind:
            case RunMoveKind.BEGIN:
                begin_pass(context, _named(move.phase), move.number or 1)
            case RunMoveKind.DECIDE:
                self._decisions.decide(_named(move.phase), move.number or 1)
            case RunMoveKind.SKIP:
                skip_phase(context, _named(move.phase), _named(move.reason))
            case RunMoveKind.PAUSE:
                self._end.pause(f"{context.order.pause_after} phases have ended, and the run pauses after so many")
            case RunMoveKind.REPORT:
                self._report()
            case _:
                raise InternalError(f"a run cannot {move.kind.value} by itself")
        killpoint("autopilot.moved")
        self._state_file.refresh()

    def _report(self) -> None:
        log = self.context.log
        self._end.report()
        key, now = f"{REPORTED}:{len(log.verdicts())}", log.now()
        if log.ledger.observation(log.run_id, key) is None:
            row = log.observation(key, REPORTED, log.run_id, {}, now)
            log.ledger.record(log.run_id, lambda record: record.observation(row))

    async def _finish(self, run_graph: Carry) -> None:
        """End the run after its last phase: audit it against the specification, then complete or fail it."""
        found = await audit_run(self.context, run_graph)
        state = (await run_blocking(self.context.log.state)).state
        statuses = {phase: record.status for phase, record in state.phases.items()}
        bad = [phase for phase, status in statuses.items() if status is PhaseStatus.FAILED]
        blocked = [
            phase
            for phase, status in statuses.items()
            if status is PhaseStatus.SKIPPED and phase not in self.context.order.earlier
        ]
        if bad or blocked:
            reason = f"failed: phase {', '.join(bad)}" if bad else "not every phase was run"
            reason += f"; blocked by that: phase {', '.join(blocked)}" if blocked else ""
            await run_blocking(self._end.fail, reason, found)
        else:
            await run_blocking(self._end.complete, found)

    async def finish(self) -> None:
        """Clean up everything that only a running run needs."""
        await run_blocking(self._leave)

    def _leave(self) -> None:
        context, repo = self.context, self.context.repo
        self._end.finish_files()
        sweep(repo.worktrees, context.log.run_id, context.tip(), repo.identity)
        repo.worktrees.pool.drain()
        for folder in OWN_FOLDERS:
            context.files.sweep(folder)
        killpoint("autopilot.swept")
        self._state_file.refresh()

    async def asked(self, phase: str, number: int) -> PhasePass:
        """Return a pass as it was started."""
        for each in await run_blocking(self.context.log.passes):
            if (each.phase, each.number) == (phase, number):
                return each
        raise InternalError(f"phase {phase} has no pass {number}")

    async def next_in(self, phase_pass: PhasePass) -> PassMove:
        """Return what a pass does next."""
        return await self._passes.next_in(phase_pass)

    async def step(self, phase_pass: PhasePass, move: PassMove, run_graph: Carry) -> None:
        """Do a step of a pass."""
        await self._passes.step(phase_pass, move, run_graph)

    async def give_back(self, phase_pass: PhasePass, move: PassMove) -> None:
        """Record what a pass returns."""
        await self._passes.give_back(phase_pass, move)

    def graph(self, number: int) -> AutopilotGraphRunner:
        """Return the runner of one of the run's graphs."""
        if number not in self._graphs:
            self._graphs[number] = self._graph_of(number)
        return self._graphs[number]

    async def options(self, number: int) -> GraphOptions:
        """Return the options of a graph."""
        return await self.graph(number).options()


def _named(said: str | None) -> str:
    assert said is not None  # a move of this kind has it
    return said
