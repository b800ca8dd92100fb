"""One dispatch from its reservation to its record: nobody is asked twice, nothing is paid twice, nobody is believed.

Two records frame it. The first says that it begins: what it was promised, and what stood in its worktree. The second
says what came of it: the outcome, the agent's answer as a claim, telemetry, events and the settled budget, all in one
transaction. Whoever is killed in between leaves the first alone; then the worktree is put back to its start and the
dispatch is made again under the same promise.
"""

import asyncio

from fairwitness.agents.driver import Cut
from fairwitness.agents.prompting import render
from fairwitness.agents.schema_text import form_of
from fairwitness.contracts.agents.dispatch import Brief, Outcome, OutcomeStatus
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import OverBudget
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.errors import UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.dispatch.account import limits_of, sized
from fairwitness.runs.dispatch.audit import Audit, audit
from fairwitness.runs.dispatch.beginning import begin
from fairwitness.runs.dispatch.driving import JobParts, driven, toolbox, unasked
from fairwitness.runs.dispatch.model import Context, DispatchDeps, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.recording import adopt, write_cancelled, write_end
from fairwitness.runs.dispatch.transcript import Transcript, clean, keep


async def dispatch(
    context: Context,
    spec: RoleSpec,
    brief: Brief,
    position: DispatchPosition,
    deps: DispatchDeps,
    *,
    stop: asyncio.Event | None = None,
) -> Dispatched:
    """Asks one agent, once; what had ended before is adopted. `stop` ends it early, and leaves it to be made again."""
    if brief.role is not spec.role or spec.answer is None:
        raise UsageError(f"{brief.role.value} cannot be dispatched as {spec.role.value}", next_step="fix the brief")
    answer, spec = spec.answer, sized(spec, deps.probe.kind)
    known = adopt(context, brief)
    if known is not None:
        return known
    transcript = Transcript()
    tools = toolbox(brief, deps, transcript)
    try:
        prompt, form = (
            render(spec, brief, tools=[tool.name for tool in tools.offered()]),
            form_of(answer, brief.known),
        )
        cut = Cut()
        async with deps.models.connect(brief.dispatch_id, limits_of(spec), cut.make) as connection:
            begun = await begin(context, spec, brief, position, deps)
            if isinstance(begun, OverBudget):
                return Dispatched(outcome=_never_began(begun))
            killpoint("dispatch.started")
            parts = JobParts(spec, brief, prompt, form, tools, transcript)
            outcome = await driven(deps, parts, connection, stop=stop, cut=cut)
            killpoint("dispatch.driven")
    finally:
        await tools.close()
    found = await asyncio.to_thread(
        audit,
        context.shadow,
        deps.worktree,
        begun.seen,
        role=brief.role,
        scope=brief.scope,
        base_tree=deps.base_tree,
        known=context.known,
    )
    killpoint("dispatch.audited")
    dispatched = Dispatched(
        outcome=_storable(_judged(outcome, found)),
        changed=found.changed,
        byproducts=found.byproducts,
        start_tree=begun.seen.tree,
        tree=found.tree,
        transcript=keep(context.store, transcript.content()),
    )
    killpoint("dispatch.kept")
    write = write_cancelled if dispatched.outcome.status is OutcomeStatus.CANCELLED else write_end
    write(context, brief, position, begun, dispatched, agent=deps.probe.name)
    killpoint("dispatch.finished")
    return dispatched


def _judged(outcome: Outcome, found: Audit) -> Outcome:
    """A change outside the allowance voids the dispatch, whatever was said."""
    if not found.denials:
        return outcome
    first = found.denials[0]
    problem = f"{first.target}: {first.reason}"
    more = f" (and {len(found.denials) - 1} more)" if len(found.denials) > 1 else ""
    return outcome.model_copy(
        update={
            "status": OutcomeStatus.REFUSED,
            "answer": None,
            "problems": (f"{problem}{more}", *outcome.problems),
            "denials": (*outcome.denials, *found.denials),
            "cause": ErrorCause.OUT_OF_SCOPE,
        }
    )


def _storable(outcome: Outcome) -> Outcome:
    """The outcome as it can stand on record; this is what is handed on, so that adopting it gives the same."""
    plain = outcome.plain()
    answer = plain.pop("answer", None)
    cleaned = clean(plain)
    if answer is not None:
        cleaned["answer"] = clean(answer, limit=None, redacted=False)  # it was validated as it is
    return Outcome.model_validate(cleaned)


def _never_began(over: OverBudget) -> Outcome:
    problem = (
        f"the {over.level.value} has {over.cap} {over.what.value}, {over.used} are used or promised, "
        f"and this dispatch asks for {over.asked}"
    )
    return unasked(OutcomeStatus.OVER_BUDGET, None, problem)
