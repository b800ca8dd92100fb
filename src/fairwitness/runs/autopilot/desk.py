"""Everything the bodies of autopilot ask for, for one run: where it goes, what it does there, and how it is left."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from fairwitness.contracts.autopilot.passes import PassMove, PhasePass
from fairwitness.contracts.autopilot.words import PhaseStatus
from fairwitness.contracts.graph.orders import GraphEnd, GraphOptions
from fairwitness.errors import UsageError
from fairwitness.git.sweeping import sweep
from fairwitness.kit.killpoints import reach
from fairwitness.rules.run_moves import RunFacts, RunMove, RunMoveKind, next_move
from fairwitness.runs.autopilot.audits import audit
from fairwitness.runs.autopilot.beginning import begin, skip
from fairwitness.runs.autopilot.book import RETURNED
from fairwitness.runs.autopilot.deciding import Deciding
from fairwitness.runs.autopilot.ending import Ending
from fairwitness.runs.autopilot.graph_desk import AutopilotGraphDesk
from fairwitness.runs.autopilot.groundwork import lay_groundwork
from fairwitness.runs.autopilot.ignored import OWN_FOLDERS
from fairwitness.runs.autopilot.passing import Passing
from fairwitness.runs.autopilot.room import Room
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.runs.graph.world import to_end

Carry: TypeAlias = Callable[[int], Awaitable[GraphEnd]]

REPORTED = "reported"
_PROCESSED = ("phase_completed", "phase_failed")
_BEGUN = ("run_started", "run_resumed")


class AutopilotRunDesk:
    """The desk of one run."""

    def __init__(self, room: Room, graph_of: Callable[[int], AutopilotGraphDesk]) -> None:
        """`graph_of` makes the desk of a graph."""
        self.room, self._graph_of = room, graph_of
        self._state_file = StateFile(room.book, room.files)
        self._passing = Passing(room, self._state_file)
        self._deciding = Deciding(room)
        self._ending = Ending(room.book, room.files, self._state_file)
        self._graphs: dict[int, AutopilotGraphDesk] = {}

    async def next(self) -> RunMove:
        """What the run does next."""
        return await to_end(self._next)

    def _next(self) -> RunMove:
        room = self.room
        if not room.book.passes():
            lay_groundwork(room.book, room.files, room.repository)
        return next_move(room.order, self._facts())

    def _facts(self) -> RunFacts:
        book = self.room.book
        state = book.state().state
        processed, failed, to_retry = 0, set[str](), set[str]()
        for envelope in book.ledger.events(book.run_id):
            if envelope.type in _BEGUN:
                processed, to_retry = 0, to_retry | failed
            if envelope.type == "phase_started":
                failed, to_retry = failed - {envelope.phase or ""}, to_retry - {envelope.phase or ""}
            if envelope.type == "phase_failed":
                failed.add(envelope.phase or "")
            processed += envelope.type in _PROCESSED
        statuses = {phase: record.status for phase, record in state.phases.items()}
        for phase in to_retry & statuses.keys():  # a person said that the run goes on, and so does what had failed
            statuses[phase] = PhaseStatus.NOT_STARTED
        ended = [row.subject for row in book.ledger.observations(book.run_id, RETURNED)]
        verdicts = book.verdicts()
        reported = book.ledger.observation(book.run_id, f"{REPORTED}:{len(verdicts)}") is not None
        return RunFacts(
            status=state.meta.status,
            statuses=statuses,
            begun=book.passes(),
            returned=tuple((name.rpartition("-")[0], int(name.rpartition("-")[2])) for name in ended),
            verdicts=verdicts,
            processed=processed,
            reported=reported,
        )

    async def act(self, move: RunMove, carry: Carry) -> None:
        """Makes a move; made again it changes nothing."""
        if move.kind is RunMoveKind.FINISH:
            await self._finish(carry)
        else:
            await to_end(self._act, move)

    def _act(self, move: RunMove) -> None:
        room = self.room
        match move.kind:
            case RunMoveKind.BEGIN:
                begin(room, _named(move.phase), move.number or 1)
            case RunMoveKind.DECIDE:
                self._deciding.decide(_named(move.phase), move.number or 1)
            case RunMoveKind.SKIP:
                skip(room, _named(move.phase), _named(move.reason))
            case RunMoveKind.PAUSE:
                self._ending.pause(f"{room.order.pause_after} phases have ended, and the run pauses after so many")
            case RunMoveKind.REPORT:
                self._report()
            case _:
                raise UsageError(f"a run cannot {move.kind.value} by itself", next_step="report this")
        reach("autopilot.moved")
        self._state_file.refresh()

    def _report(self) -> None:
        book = self.room.book
        self._ending.report()
        key, now = f"{REPORTED}:{len(book.verdicts())}", book.now()
        if book.ledger.observation(book.run_id, key) is None:
            row = book.seen(key, REPORTED, book.run_id, {}, now)
            book.ledger.record(book.run_id, lambda record: record.observation(row))

    async def _finish(self, carry: Carry) -> None:
        """The roadmap's end: what was built is held against the specification, and the run is closed."""
        found = await audit(self.room, carry)
        state = (await to_end(self.room.book.state)).state
        statuses = {phase: record.status for phase, record in state.phases.items()}
        bad = [phase for phase, status in statuses.items() if status is PhaseStatus.FAILED]
        blocked = [
            phase
            for phase, status in statuses.items()
            if status is PhaseStatus.SKIPPED and phase not in self.room.order.earlier
        ]
        if bad or blocked:
            reason = f"failed: phase {', '.join(bad)}" if bad else "not every phase was run"
            reason += f"; blocked by that: phase {', '.join(blocked)}" if blocked else ""
            await to_end(self._ending.fail, reason, found)
        else:
            await to_end(self._ending.complete, found)

    async def finish(self) -> None:
        """Leaves nothing behind that only a run at work needs."""
        await to_end(self._leave)

    def _leave(self) -> None:
        room, world = self.room, self.room.world
        self._ending.mend()
        sweep(world.worktrees, room.book.run_id, room.tip(), world.identity)
        world.worktrees.pool.drain()
        for folder in OWN_FOLDERS:
            room.files.sweep(folder)
        reach("autopilot.swept")
        self._state_file.refresh()

    async def asked(self, phase: str, number: int) -> PhasePass:
        """A pass, as it was begun."""
        for each in await to_end(self.room.book.passes):
            if (each.phase, each.number) == (phase, number):
                return each
        raise UsageError(f"phase {phase} has no pass {number}", next_step="report this")

    async def next_in(self, asked: PhasePass) -> PassMove:
        """What a pass does next."""
        return await self._passing.next_in(asked)

    async def step(self, asked: PhasePass, move: PassMove, carry: Carry) -> None:
        """Does a step of a pass."""
        await self._passing.step(asked, move, carry)

    async def give_back(self, asked: PhasePass, move: PassMove) -> None:
        """Writes down what a pass returns."""
        await self._passing.give_back(asked, move)

    def graph(self, number: int) -> AutopilotGraphDesk:
        """The desk of one of the run's graphs."""
        if number not in self._graphs:
            self._graphs[number] = self._graph_of(number)
        return self._graphs[number]

    async def options(self, number: int) -> GraphOptions:
        """How a graph is to be carried out."""
        return await self.graph(number).options()


def _named(said: str | None) -> str:
    assert said is not None  # a move of this kind says it
    return said
