"""One dispatch from its reservation to its record.

Two records frame it. The first says that it starts: its reservation and the state of its worktree. The second holds the
outcome, the agent's answer as a claim, telemetry, events and the settled budget, in one transaction. If the process
dies in between, only the first record exists. An answer that had arrived is in the dispatch's slot and is adopted;
otherwise the worktree is restored and the dispatch is repeated under the same reservation.

A try that ended because of the model's provider is recorded as cancelled with what it used. It is repeated if the fault
passes by itself, and otherwise interrupts the run.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from fairwitness.agents.base import AgentJob, AnswerForm, OnHappening
from fairwitness.agents.driver import DispatchCut, drive
from fairwitness.agents.prompt_text import render
from fairwitness.agents.schema_text import form_of, unasked_fields
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
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.budgets import OverBudget
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import DiskRefused, ProviderAway, UsageError
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.budgets import sized, spelled_refusal
from fairwitness.rules.review import UNREAD, is_unread, shows_files
from fairwitness.runs.dispatch.answer_slot import AnswerSlot
from fairwitness.runs.dispatch.audit import Audit, audit
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.dispatch.budget_account import limits_of
from fairwitness.runs.dispatch.model import DispatchContext, DispatchDeps, Dispatched, DispatchPosition, ModelConnection
from fairwitness.runs.dispatch.records import (
    StartedDispatch,
    adopt,
    begin,
    begun,
    write_cancelled,
    write_end,
)
from fairwitness.runs.dispatch.transcript import Transcript, clean, keep
from fairwitness.runs.dispatch.worktree_snapshot import stat_mark

_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_REPEATS = 4
"""How often a dispatch is repeated whose agent gave up because of its provider; the gateway waits in between."""
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
        scope=brief.scope.model_copy(update={"checks": deps.checks}),
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
            deps.watcher(Happening.model_validate(clean(happening.plain())))

    return tell


class _Stopwatch:
    """The seconds spent inside it, up to now; what the harness does meanwhile is not the agent's time."""

    def __init__(self) -> None:
        self._spent, self._since = 0.0, float("inf")

    @property
    def seconds(self) -> float:
        return self._spent + max(0.0, time.monotonic() - self._since)

    def __enter__(self) -> None:
        self._since = time.monotonic()

    def __exit__(self, *_error: object) -> None:
        self._spent, self._since = self.seconds, float("inf")


async def driven(
    deps: DispatchDeps,
    parts: JobParts,
    connection: ModelConnection,
    disk: DiskWatch,
    *,
    stop: asyncio.Event | None,
    cut: DispatchCut,
) -> DispatchOutcome:
    """Run the driver and return its outcome, with the usage that was counted nearest to the model."""
    if deps.probe.tier in _WEAK and deps.runner.tier is not SandboxTier.NAMESPACES:
        problem = (
            f"{deps.probe.name} acts by itself (tier {deps.probe.tier.value}), and the sandbox here "
            f"({deps.runner.tier.value}) cannot hold it to its role"
        )
        return unasked(OutcomeStatus.REFUSED, ErrorCause.PERMISSION_DENIED, problem)
    opened, tell = 0, _telling(deps, parts.transcript)

    def on_happening(happening: Happening) -> None:
        nonlocal opened
        opened += happening.kind is Kind.RESULT and happening.ok is True and shows_files(happening.tool or "")
        tell(happening)

    def objections(answer: Contract) -> tuple[str, ...]:
        unread = (UNREAD,) if is_unread(parts.spec.role, opened, deps.probe.tier) else ()
        return (*unread, *deps.check(answer), *deps.claims(answer, parts.tools.ran))

    checking = _Stopwatch()

    async def check(answer: Contract) -> tuple[str, ...]:
        with checking:  # it may read files and run git: the answer is paid, so a full disk is waited for
            return await _outlast_disk(disk, partial(run_blocking, objections, answer))

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
        on_happening=on_happening,
        began=time.monotonic(),
        check=check,
        waited=lambda: connection.waited() + checking.seconds,
        trouble=connection.trouble,
    )
    outcome = await drive(deps.backend, job, stop=stop, cut=cut)
    used = connection.used()
    return outcome.model_copy(update={"usage": used or outcome.usage, "opened": opened})


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
    known = await run_blocking(adopt, context, brief)
    if known is not None:
        return known
    slot = await asyncio.to_thread(AnswerSlot.take, context.store.root, brief)
    is_recorded = False
    try:
        is_adopted = await asyncio.to_thread(_is_adoptable, context, brief, deps, slot)
        for repeated in range(_REPEATS + 1):
            cut = DispatchCut()
            if is_adopted:
                started: StartedDispatch | OverBudget | None = await run_blocking(begun, context, brief)
            else:
                started = await _called(context, spec, answer, brief, position, deps, slot, stop, cut)
            assert started is not None
            if isinstance(started, OverBudget):
                return Dispatched(brief.dispatch_id, _never_began(started, brief))
            dispatched = await _recorded(context, brief, position, deps, started, slot, is_adopted=is_adopted)
            is_recorded = True
            killpoint("dispatch.finished")
            if dispatched.outcome.status is not OutcomeStatus.CANCELLED or (cut.away is None and cut.trouble is None):
                return dispatched
            if cut.away is not None or cut.trouble is None or repeated == _REPEATS:
                raise cut.away or _gave_up(cut)
            is_recorded, deps = False, replace(deps, is_fresh=False)
        raise AssertionError("the last repetition returns or raises")
    finally:
        slot.close(recorded=is_recorded)


def _gave_up(cut: DispatchCut) -> ProviderAway:
    assert cut.trouble is not None
    return ProviderAway(
        f"the agent gave up {_REPEATS + 1} times because of its provider: {cut.trouble.text}",
        next_step=cut.trouble.meaning.next_step,
    )


def _is_adoptable(context: DispatchContext, brief: Brief, deps: DispatchDeps, slot: AnswerSlot) -> bool:
    """Return whether the slot holds an answer to the last try of this call that need not be asked for again.

    If its worktree was not audited, it must be as the agent left it: otherwise nobody knows what the agent changed.
    """
    if slot.outcome is None or slot.outcome.status is OutcomeStatus.CANCELLED:
        return False
    started = begun(context, brief)
    if started is None or started.history.tries != slot.tries:
        return False
    return slot.audit is not None or (not deps.is_fresh and stat_mark(deps.worktree) == slot.mark)


async def _called(
    context: DispatchContext,
    spec: RoleSpec,
    answer: str,
    brief: Brief,
    position: DispatchPosition,
    deps: DispatchDeps,
    slot: AnswerSlot,
    stop: asyncio.Event | None,
    cut: DispatchCut,
) -> StartedDispatch | OverBudget:
    """Call the agent and keep its answer in the slot."""
    if slot.outcome is not None:
        slot.forget()
    transcript = Transcript()
    tools = toolbox(brief, deps, transcript)
    try:
        offered = [tool.name for tool in tools.offered()]
        submits = deps.probe.kind == "api"
        prompt = render(spec, brief, tools=offered, submits=submits)
        form = form_of(answer, unasked_fields(spec, brief.known, offered if submits else ()))
        async with deps.models.connect(brief.dispatch_id, limits_of(spec), cut) as connection:
            begins = await begin(context, spec, brief, position, deps)
            if isinstance(begins, OverBudget):
                return begins
            killpoint("dispatch.started")
            job = JobParts(spec, brief, prompt, form, tools, transcript)
            outcome = await driven(deps, job, connection, context.disk, stop=stop, cut=cut)
            killpoint("dispatch.driven")
    finally:
        await tools.close()
    said = _storable(outcome)

    async def arrived() -> None:
        mark = await asyncio.to_thread(stat_mark, deps.worktree)
        await asyncio.to_thread(slot.arrived, said, transcript.content(), begins.history.tries, mark)

    await _outlast_disk(context.disk, arrived)
    killpoint("dispatch.answered")
    return begins


async def _recorded(
    context: DispatchContext,
    brief: Brief,
    position: DispatchPosition,
    deps: DispatchDeps,
    started: StartedDispatch,
    slot: AnswerSlot,
    *,
    is_adopted: bool,
) -> Dispatched:
    """Audit the worktree and record the answer in the slot; a disk that is full or read-only is waited for."""
    assert slot.outcome is not None
    outcome = slot.outcome

    async def audited() -> Audit:
        seen = await asyncio.to_thread(
            audit,
            context.shadow,
            deps.worktree,
            started.snapshot,
            role=brief.role,
            scope=brief.scope,
            base_tree=deps.base_tree,
            stored_contents=context.stored_contents,
        )
        trouble = None if seen.tree is not None else context.disk.trouble()
        if trouble is not None:
            raise DiskRefused(f"the worktree cannot be compared with its start: {trouble}")
        return seen

    async def kept() -> str:
        return keep(context.store, slot.transcript)

    found = slot.audit
    if found is None:
        found = await _outlast_disk(context.disk, audited)
        killpoint("dispatch.audited")
        slot.audited(found)
    dispatched = Dispatched(
        brief.dispatch_id,
        outcome=_storable(_judged(outcome, found)),
        changed=found.changed,
        byproducts=found.byproducts,
        start_tree=started.snapshot.tree,
        tree=found.tree,
        transcript=await _outlast_disk(context.disk, kept),
        adopted=is_adopted,
    )
    killpoint("dispatch.kept")
    write = write_cancelled if dispatched.outcome.status is OutcomeStatus.CANCELLED else write_end

    async def written() -> None:
        await run_blocking(write, context, brief, position, started, dispatched, agent=deps.probe.name)

    await _outlast_disk(context.disk, written)
    return dispatched


T = TypeVar("T")


async def _outlast_disk(disk: DiskWatch, work: Callable[[], Awaitable[T]]) -> T:
    """Do work that can be repeated, again after a disk refused it and is well again."""
    unexplained = 0
    while True:
        try:
            return await work()
        except Exception as error:
            if not disk.excuses(error, unexplained):
                raise
            unexplained += disk.trouble() is None
        await disk.wait()


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
        cleaned["answer"] = clean(answer, limit=None, redacted=False)  # it was validated, without secrets, as it is
    return DispatchOutcome.model_validate(cleaned)


def _never_began(over: OverBudget, brief: Brief) -> DispatchOutcome:
    outcome = unasked(OutcomeStatus.OVER_BUDGET, None, spelled_refusal(over, brief.role.value))
    return outcome.model_copy(update={"refused": over})
