"""The self-audit of a run as it is really done: its agent at the tip, and gaps closed like any other task."""

from collections.abc import Awaitable, Callable

from fairwitness.contracts.autopilot.audit import AuditOutcome, GapDetail, SelfAuditReturn
from fairwitness.contracts.autopilot.facts import StepError
from fairwitness.contracts.autopilot.words import PhaseStatus
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.runs.autopilot.auditing import SelfAudit
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.done import answer
from fairwitness.runs.autopilot.tasks import PlannedNode, begin_graph, commit_of, graph_of
from fairwitness.runs.dispatch import DispatchPosition
from fairwitness.runs.graph.repo_context import run_blocking

Carry = Callable[[int], Awaitable[GraphEnd]]


async def audit(context: AutopilotContext, carry: Carry) -> AuditOutcome | None:
    """Holds what the run completed against its specification; None if it is switched off or nothing was completed."""
    state = (await run_blocking(context.log.state)).state
    phases = tuple(
        phase
        for phase in context.order.phases
        if phase in state.phases and state.phases[phase].status is PhaseStatus.COMPLETED
    )
    if not phases or not context.order.limits.audit:
        return None

    async def look(number: int, phases: tuple[str, ...]) -> SelfAuditReturn | str:
        about = [context.phase(phase) for phase in phases]
        brief = context.briefs.self_audit(number, about, await run_blocking(_specs, context))
        done = await context.asker.ask_at(
            brief, DispatchPosition("self-audit", dispatch_count=number), await run_blocking(context.tip)
        )
        found = answer(done, SelfAuditReturn)
        return found.first_line if isinstance(found, StepError) else found

    async def fix(number: int, gap: GapDetail) -> str | None:
        node = PlannedNode(id=f"audit-{number}", role=Role.EXECUTOR, gap=gap, writes=context.briefs.anywhere())
        graph = await run_blocking(
            begin_graph, context.log, None, f"audit-{number}", (node,), await run_blocking(context.tip)
        )
        end = await carry(graph)
        if not end.completed:
            return None
        attempt = (await run_blocking(graph_of, context.log, graph)).attempt
        return await run_blocking(commit_of, context.log, node.id, attempt)

    return await SelfAudit(context.log, look, fix, phases).run()


def _specs(context: AutopilotContext) -> dict[str, str]:
    """The texts of the specifications; they are as they were locked, or no phase would have begun."""
    return {lock.path: context.files.get(lock.path).decode(errors="replace") for lock in context.order.specs}
