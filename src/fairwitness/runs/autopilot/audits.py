"""The self-audit of a run as it is really done: its agent at the tip, and gaps closed like any other task."""

from collections.abc import Awaitable, Callable

from fairwitness.contracts.autopilot.audit import AuditOutcome, GapDetail, SelfAuditReturn
from fairwitness.contracts.autopilot.facts import StepError
from fairwitness.contracts.autopilot.words import PhaseStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.runs.autopilot.auditing import SelfAudit
from fairwitness.runs.autopilot.done import answer
from fairwitness.runs.autopilot.room import Room
from fairwitness.runs.autopilot.tasks import PlannedNode, begin_graph, commit_of, graph_of
from fairwitness.runs.dispatch import Occasion
from fairwitness.runs.graph.world import to_end

Carry = Callable[[int], Awaitable[GraphEnd]]


async def audit(room: Room, carry: Carry) -> AuditOutcome | None:
    """Holds what the run completed against its specification; None if it is switched off or nothing was completed."""
    state = (await to_end(room.book.state)).state
    phases = tuple(
        phase
        for phase in room.order.phases
        if phase in state.phases and state.phases[phase].status is PhaseStatus.COMPLETED
    )
    if not phases or not room.order.limits.audit:
        return None

    async def look(number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        about = [room.phase(phase) for phase in phases]
        brief = room.briefs.self_audit(number, about, await to_end(_specs, room))
        done = await room.asker.ask_at(brief, Occasion("self-audit", dispatch_count=number), await to_end(room.tip))
        found = answer(done, SelfAuditReturn)
        return found.first_line if isinstance(found, StepError) else found

    async def fix(number: int, gap: GapDetail) -> str | None:
        node = PlannedNode(id=f"audit-{number}", role=Role.EXECUTOR, gap=gap, writes=room.briefs.anywhere())
        graph = await to_end(begin_graph, room.book, None, f"audit-{number}", (node,), await to_end(room.tip))
        end = await carry(graph)
        if not end.completed:
            return None
        attempt = (await to_end(graph_of, room.book, graph)).attempt
        return await to_end(commit_of, room.book, node.id, attempt)

    return await SelfAudit(room.book, look, fix, phases).run()


def _specs(room: Room) -> dict[str, str]:
    """The texts of the specifications; they are as they were locked, or no phase would have begun."""
    return {lock.path: room.files.get(lock.path).decode(errors="replace") for lock in room.order.specs}
