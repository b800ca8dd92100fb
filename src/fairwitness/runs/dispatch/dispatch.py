"""One dispatch from its reservation to its record.

Two records frame it. The first says that it starts: its reservation and the state of its worktree. The second holds the
outcome, the agent's answer as a claim, telemetry, events and the settled budget, in one transaction. If the process
dies in between, only the first record exists; then the worktree is restored and the dispatch is repeated under the same
reservation.
"""

import asyncio
import time
from typing import NamedTuple

from fairwitness.agents.base import AgentJob, AnswerForm, OnHappening
from fairwitness.agents.driver import BudgetCut, drive
from fairwitness.agents.prompt_text import render
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import (
    Brief,
    Denial,
    DispatchOutcome,
    EnforcementTier,
    Happening,
    Kind,
    OutcomeStatus,
    Usage,
)
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.budgets import OverBudget
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.runs.dispatch.audit import Audit, audit
from fairwitness.runs.dispatch.budget_account import limits_of, sized
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition, ModelConnection
from fairwitness.runs.dispatch.records import adopt, begin, write_cancelled, write_end
from fairwitness.runs.dispatch.transcript import Transcript, clean, keep

_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_NOTHING = Usage(tokens_in=0, tokens_out=0, tokens_cached=0, cost_micros=0, turns=0)
"""Usage is known to be zero, not merely unreported: no model was called."""


class JobParts(NamedTuple):
    """The parts of a job that are known before there is a connection to its model."""

    spec: RoleSpec
    brief: Brief
    prompt: str
    form: AnswerForm
    tools: Toolbox
    transcript: Transcript


def toolbox(brief: Brief, deps: DispatchDeps, transcript: Transcript) -> Toolbox:
    """Return the tools of a role. A refused call is added to the transcript at once."""
    began, told = time.monotonic(), _telling(deps, transcript)

    def denied(denial: Denial) -> None:
        ms = max(0, int((time.monotonic() - began) * 1000))
        text = f"{denial.target}: {denial.reason}"
        told(Happening(kind=Kind.DENIED, ms=ms, text=text, tool=denial.tool, ok=False))

    return Toolbox(
        role=brief.role,
        scope=brief.scope,
        worktree=deps.worktree,
        runner=deps.runner,
        surroundings=deps.surroundings,
        sources=deps.sources,
        git=deps.git,
        denied=denied,
    )


def _telling(deps: DispatchDeps, transcript: Transcript) -> OnHappening:
    """Return a callback that adds to the transcript and informs the watcher, if there is one."""

    def tell(happening: Happening) -> None:
        transcript.tell(happening)
        if deps.watcher is not None:
            deps.watcher(happening)

    return tell


async def driven(
    deps: DispatchDeps, parts: JobParts, connection: ModelConnection, *, stop: asyncio.Event | None, cut: BudgetCut
) -> DispatchOutcome:
    """Run the driver and return its outcome, with the usage that was counted nearest to the model."""
    if deps.probe.tier in _WEAK and deps.runner.tier is not SandboxTier.NAMESPACES:
        problem = (
            f"{deps.probe.name} acts by itself (tier {deps.probe.tier.value}), and the sandbox here "
            f"({deps.runner.tier.value}) cannot hold it to its role"
        )
        return unasked(OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED, problem)
    job = AgentJob(
        spec=parts.spec,
        brief=parts.brief,
        prompt=parts.prompt,
        form=parts.form,
        worktree=deps.worktree,
        limits=limits_of(parts.spec),
        tools=parts.tools,
        runner=deps.runner,
        endpoint=connection.endpoint,
        on_happening=_telling(deps, parts.transcript),
        began=time.monotonic(),
    )
    outcome = await drive(deps.backend, job, stop=stop, cut=cut)
    used = connection.used()
    return outcome if used is None else outcome.model_copy(update={"usage": used})


def unasked(status: OutcomeStatus, cause: ErrorCause | None, problem: str) -> DispatchOutcome:
    """Return the outcome of a dispatch in which no model was called."""
    return DispatchOutcome(
        status=status, raw_text="", problems=(problem,), asked=0, usage=_NOTHING, cause=cause, duration_ms=0
    )


async def dispatch(
    context: DispatchContext,
    spec: RoleSpec,
    brief: Brief,
    position: DispatchPosition,
    deps: DispatchDeps,
    *,
    stop: asyncio.Event | None = None,
) -> Dispatched:
    """Call one agent once, or adopt the result if the dispatch ended before. `stop` ends it early; it can be
    repeated then."""
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
        cut = BudgetCut()
        async with deps.models.connect(brief.dispatch_id, limits_of(spec), cut.make) as connection:
            started = await begin(context, spec, brief, position, deps)
            if isinstance(started, OverBudget):
                return Dispatched(brief.dispatch_id, _never_began(started))
            killpoint("dispatch.started")
            job = JobParts(spec, brief, prompt, form, tools, transcript)
            outcome = await driven(deps, job, connection, stop=stop, cut=cut)
            killpoint("dispatch.driven")
    finally:
        await tools.close()
    found = await asyncio.to_thread(
        audit,
        context.shadow,
        deps.worktree,
        started.snapshot,
        role=brief.role,
        scope=brief.scope,
        base_tree=deps.base_tree,
        stored_contents=context.stored_contents,
    )
    killpoint("dispatch.audited")
    dispatched = Dispatched(
        brief.dispatch_id,
        outcome=_storable(_judged(outcome, found)),
        changed=found.changed,
        byproducts=found.byproducts,
        start_tree=started.snapshot.tree,
        tree=found.tree,
        transcript=keep(context.store, transcript.content()),
    )
    killpoint("dispatch.kept")
    write = write_cancelled if dispatched.outcome.status is OutcomeStatus.CANCELLED else write_end
    write(context, brief, position, started, dispatched, agent=deps.probe.name)
    killpoint("dispatch.finished")
    return dispatched


def _judged(outcome: DispatchOutcome, found: Audit) -> DispatchOutcome:
    """Void the dispatch if it changed something outside its scope, whatever the agent said."""
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


def _storable(outcome: DispatchOutcome) -> DispatchOutcome:
    """Return the outcome as it can be stored. Callers get this one, so that adopting it later gives the same."""
    plain = outcome.plain()
    answer = plain.pop("answer", None)
    cleaned = clean(plain)
    if answer is not None:
        cleaned["answer"] = clean(answer, limit=None, redacted=False)  # it was validated unredacted
    return DispatchOutcome.model_validate(cleaned)


def _never_began(over: OverBudget) -> DispatchOutcome:
    problem = (
        f"the {over.level.value} has {over.cap} {over.what.value}, {over.used} are used or promised, "
        f"and this dispatch asks for {over.asked}"
    )
    return unasked(OutcomeStatus.OVER_BUDGET, None, problem)
