"""A pass through a phase: it is started, does its steps, and returns.

Each step is announced before it runs; its result, trace and events are recorded together with the reaction of the
circuit breaker.
"""

import asyncio
from collections.abc import Awaitable, Callable

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.facts import EventFacts, PathItem, Retries, StepEffect
from fairwitness.contracts.autopilot.metrics import CostEstimation
from fairwitness.contracts.autopilot.order import EarlierPhase
from fairwitness.contracts.autopilot.passes import PassKind, PassMove, PassMoveKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.trace import TraceAction, TraceSpan
from fairwitness.contracts.autopilot.vocabulary import (
    AutopilotRunStatus,
    ImprovementLoop,
    PhaseStatus,
    Recommendation,
    StepName,
)
from fairwitness.contracts.common.base import Contract, instant
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.record import Record
from fairwitness.rules.breaker import cools_until
from fairwitness.rules.cost import estimated_tokens
from fairwitness.rules.next_pass_step import next_step
from fairwitness.rules.run_flags import LoopPlan, run_mode
from fairwitness.rules.scores import tenths, worth_gaps
from fairwitness.runs.autopilot import execution, preflight, rating, research_and_plan, verification
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.cycles import earlier_items, loops_of, started
from fairwitness.runs.autopilot.lineage import lineage
from fairwitness.runs.autopilot.log import (
    BEGUN,
    PASS,
    RETURNED,
    STEP,
    LoggedEvent,
    new_event,
    pass_name,
    put_events,
    step_key,
)
from fairwitness.runs.autopilot.pages_phase import trace_file
from fairwitness.runs.autopilot.post_mortems import learn_repairs
from fairwitness.runs.autopilot.returns import phase_return
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.runs.autopilot.step_result import FinishedStep, Halted, Span
from fairwitness.runs.autopilot.usage import breaker_events, task_retries, untold_tokens
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable

RunGraph = Callable[[int], Awaitable[GraphEnd]]

TRACE = "trace"
FRESH_S = 45.0
"""How often, in seconds, the state file is written at least while a step runs."""
_AGENTS = {
    StepName.RESEARCH: "phase-researcher",
    StepName.PLAN: "phase-planner",
    StepName.PLAN_CHECK: "plan-checker",
    StepName.EXECUTE: "executor",
    StepName.VERIFY: "phase-verifier",
    StepName.JUDGE: "judge",
    StepName.RATE: "rater",
    StepName.DEBUG: "debugger",
}


class Spans(Contract):
    """The trace of one step."""

    spans: tuple[TraceSpan, ...]


class PhasePasses:
    """The passes of one run."""

    def __init__(self, context: AutopilotContext, state_file: StateFile) -> None:
        self._context, self._log, self._state_file = context, context.log, state_file

    async def next_in(self, phase_pass: PhasePass) -> PassMove:
        """Return what a pass does next; in a halted run it returns."""
        return await run_blocking(self._next, phase_pass)

    def _next(self, phase_pass: PhasePass) -> PassMove:
        status = self._log.state().state.meta.status
        if status is not AutopilotRunStatus.RUNNING:
            halted = f"the run is {status.value}"
            return PassMove(
                kind=PassMoveKind.RETURN,
                outcome=PhaseOutcome.FAILED,
                recommendation=Recommendation.HALT,
                because=halted,
                halt=halted,
            )
        settings = self._context.order.limits.breaker
        repeated = [result for each in lineage(self._log, phase_pass)[:-1] for result in self._log.results(each)]
        return next_step(
            phase_pass, self._log.results(phase_pass), self._before(phase_pass), settings, repeated=repeated
        )

    def _before(self, phase_pass: PhasePass) -> Retries:
        """Return the retries that other passes used: of this phase, and of the whole run."""
        rows = self._log.ledger.observations(self._log.run_id, STEP)
        others = [row for row in rows if row.subject != pass_name(phase_pass)]
        everywhere: dict[str, list[str]] = {}
        for row in others:
            everywhere.setdefault(row.subject, []).append(row.detail["document"]["step"])
        spent = {name: _retried(steps) for name, steps in everywhere.items()}
        own = [each for name, each in spent.items() if name.rpartition("-")[0] == phase_pass.phase]
        return Retries(
            debug_in_phase=sum(debugged for debugged, _ in own),
            replan_in_phase=sum(replanned for _, replanned in own),
            total=sum(map(sum, spent.values())) + task_retries(self._log.state().state),
        )

    async def step(self, phase_pass: PhasePass, move: PassMove, run_graph: RunGraph) -> None:
        """Do a step, unless it was done before."""
        assert move.step is not None
        assert move.number is not None
        key = step_key(phase_pass, move.step, move.number)
        if await run_blocking(self._log.kept, key, StepResult) is not None:
            return
        await run_blocking(self._begin, phase_pass, move.step, move.number, key)
        try:
            done = await self._while_fresh(self._do(phase_pass, move.step, move.number, run_graph))
        except Halted as halt:
            await run_blocking(self._halt, phase_pass, halt)
            return
        await run_blocking(self._record, phase_pass, done, key)

    def _begin(self, phase_pass: PhasePass, step: StepName, number: int, key: str) -> None:
        log = self._log
        name = f"{BEGUN}:{key}"
        if log.ledger.observation(log.run_id, name) is not None:
            return
        now, phase = log.now(), phase_pass.phase
        events = [
            LoggedEvent(
                new_event(
                    of_phase.PhaseStepStarted, now, phase=phase, step=step, agent=_AGENTS.get(step), attempt=number
                )
            )
        ]
        results = log.results(phase_pass)
        if step is StepName.DEBUG:
            issues = tuple(dict.fromkeys(issue for result in results[-2:] for issue in result.issues))
            events.insert(
                0,
                LoggedEvent(
                    new_event(of_phase.DebugAttempt, now, phase=phase, step=step, attempt=number, issues=issues)
                ),
            )
        if step is StepName.RESEARCH and number > 1:
            score = results[-1].score_tenths
            replan = new_event(
                of_phase.ReplanAttempt,
                now,
                phase=phase,
                step=step,
                attempt=number - 1,
                reason="its score is below 7.0",
                alignment_score=None if score is None else score / 10,
            )
            events.insert(0, LoggedEvent(replan))
        row = log.observation(name, BEGUN, pass_name(phase_pass), {"step": step.value, "number": number}, now)

        def write(record: Record) -> None:
            record.observation(row)
            put_events(record, events, now)

        log.ledger.record(log.run_id, write)
        killpoint("autopilot.step.begun")
        self._state_file.refresh()

    async def _while_fresh(self, work: Awaitable[FinishedStep]) -> FinishedStep:
        """Await the work, and write the state file regularly so that readers see that the run is alive."""

        async def refresh() -> None:
            while True:
                await asyncio.sleep(FRESH_S)
                await run_blocking(lambda: self._state_file.refresh(is_sign_of_life=True))

        ticking = asyncio.create_task(refresh())
        try:
            return await work
        finally:
            ticking.cancel()
            await asyncio.wait({ticking})

    async def _do(self, phase_pass: PhasePass, step: StepName, number: int, run_graph: RunGraph) -> FinishedStep:
        context = self._context
        match step:
            case StepName.PREFLIGHT:
                return await run_blocking(preflight.preflight, context, phase_pass, number)
            case StepName.TRIAGE:
                return await run_blocking_stoppable(lambda stop: preflight.triage(context, phase_pass, number, stop))
            case StepName.RESEARCH:
                return await research_and_plan.research(context, phase_pass, number)
            case StepName.PLAN:
                return await research_and_plan.plan(context, phase_pass, number)
            case StepName.PLAN_CHECK:
                return await research_and_plan.plan_check(context, phase_pass, number)
            case StepName.EXECUTE:
                return await execution.execute(context, phase_pass, number, run_graph)
            case StepName.VERIFY:
                return await verification.verify(context, phase_pass, number)
            case StepName.JUDGE:
                return await verification.judge(context, phase_pass, number)
            case StepName.RATE:
                return await rating.rate(context, phase_pass, number)
            case StepName.DEBUG:
                return await execution.debug(context, phase_pass, number, run_graph)

    def _record(self, phase_pass: PhasePass, done: FinishedStep, key: str) -> None:
        """Record the result, its trace, its events and the breaker's reaction in one record."""
        log, result, now = self._log, done.result, self._log.now()
        began = log.ledger.observation(log.run_id, f"{BEGUN}:{key}")
        assert began is not None
        took = max(0, round((instant(now) - instant(began.observed_at)).total_seconds() * 1000))
        outcome = StepEffect(
            step=result.step,
            new_commits=done.new_commits,
            newly_passing=done.newly_passing,
            score_gained=done.score_gained,
            error=done.error,
        )
        facts = EventFacts(
            steps=done.steps,
            outcome=outcome,
            tokens=untold_tokens(log) or None,
        )
        ended: LoggedEvent
        if result.good:
            event = new_event(
                of_phase.StepCompleted,
                now,
                phase=phase_pass.phase,
                step=result.step,
                output=done.output,
                duration_ms=took,
            )
            ended = LoggedEvent(event, facts)
        else:
            error = done.error.first_line if done.error is not None else result.issues[0] if result.issues else None
            category = done.error.category if done.error is not None else None
            failed = new_event(
                of_phase.StepFailed, now, phase=phase_pass.phase, step=result.step, error=error, category=category
            )
            ended = LoggedEvent(failed, facts)
        events = (*done.events, ended, *breaker_events(log, phase_pass.phase, outcome, facts.tokens or 0, took, now))
        said = "done" if result.good else (result.issues[0] if result.issues else "failed")
        own = Span(TraceAction.DECISION, f"{result.step.value} {result.number}", said, took, result.good)
        spans = Spans(spans=tuple(span.at(now, phase_pass.phase, result.step) for span in (*done.spans, own)))
        rows = (
            log.observation(key, STEP, pass_name(phase_pass), {"document": result.plain()}, now, holds=result.good),
            log.observation(f"{TRACE}:{key}", TRACE, phase_pass.phase, {"document": spans.plain()}, now),
        )

        def write(record: Record) -> None:
            for row in rows:
                record.observation(row)
            put_events(record, events, now)

        log.ledger.record(log.run_id, write)
        killpoint("autopilot.step.recorded")
        self.write_traces(phase_pass.phase)
        self._state_file.refresh()

    def _halt(self, phase_pass: PhasePass, halt: Halted) -> None:
        """Record that a step could not run: the breaker opens, and the step leaves no result."""
        log, now = self._log, self._log.now()
        if log.state().state.meta.status is not AutopilotRunStatus.RUNNING:
            return
        settings = self._context.order.limits.breaker
        opened = new_event(
            of_run.CircuitBreakerOpened,
            now,
            setting=halt.setting,
            value=halt.value,
            last_error=halt.reason,
            # a budget that a person raises needs no cooldown
            cooldown_until=cools_until(now, settings) if halt.status is AutopilotRunStatus.PAUSED else None,
        )
        halted = new_event(of_run.RunHalted, now, phase=phase_pass.phase, reason=halt.reason, status=halt.status)
        log.append(LoggedEvent(opened), LoggedEvent(halted))
        killpoint("autopilot.halted")
        self._state_file.refresh()

    def write_traces(self, phase: str) -> None:
        """Write the traces of a phase, one file per step and one for all."""
        log, layout = self._log, self._context.layout(phase)
        rows = [row for row in log.ledger.observations(log.run_id, TRACE) if row.subject == phase]
        spans = [span for row in rows for span in recorded(Spans, row, "document").spans]
        for step in dict.fromkeys(span.step for span in spans):
            self._context.put(
                layout.step_trace(step.value), trace_file(tuple(span for span in spans if span.step is step))
            )
        self._context.put(layout.trace, trace_file(tuple(spans)))

    async def give_back(self, phase_pass: PhasePass, move: PassMove) -> None:
        """Record what a pass returns; a halted pass returns nothing and continues when the run is resumed."""
        if move.halt is not None:
            return
        await run_blocking(self._give_back, phase_pass, move)

    def _give_back(self, phase_pass: PhasePass, move: PassMove) -> None:
        log = self._log
        key = f"{RETURNED}:{pass_name(phase_pass)}"
        log.keep(key, RETURNED, pass_name(phase_pass), phase_return(self._context, phase_pass, move))
        learn_repairs(log, self._context.files, phase_pass.phase)
        killpoint("autopilot.returned")


def _retried(steps: list[str]) -> tuple[int, int]:
    """Return how often the steps of one pass include a debug step and a repeated plan."""
    return steps.count(StepName.DEBUG.value), max(0, steps.count(StepName.RESEARCH.value) - 1)


def begin_pass(context: AutopilotContext, phase: str, number: int) -> None:
    """Record a pass: one that a verdict asked for, or the first of a phase; repeating it changes nothing."""
    log = context.log
    if any((each.phase, each.number) == (phase, number) for each in log.passes()):
        return
    for verdict in log.verdicts():
        for wanted in (*verdict.parts, *(() if verdict.next is None else (verdict.next,))):
            if (wanted.phase, wanted.number) == (phase, number):
                _begin_wanted(context, wanted)
                return
    earlier = context.order.earlier.get(phase)
    is_finished = earlier is not None and earlier.status is PhaseStatus.COMPLETED
    if earlier is not None and is_finished and not run_mode(frozenset(context.order.flags)).fresh:
        _begin_finished(context, phase, number, earlier)
        return
    events = _started(context, phase)
    if earlier is not None and is_finished:
        again = new_event(
            of_quality.ForceReexecutionStarted,
            log.now(),
            phase=phase,
            previous_score=earlier.alignment_score,
            previous_status=earlier.status,
        )
        events = (LoggedEvent(again), *events)
    tip = context.tip()
    _write(context, PhasePass(phase=phase, number=number, kind=PassKind.WHOLE, start=tip, checkpoint=tip), events)


def _begin_wanted(context: AutopilotContext, wanted: PhasePass) -> None:
    """Record a pass that a verdict asked for; a part starts where the part before it left the branch."""
    if wanted.kind is not PassKind.PART:
        _write(context, wanted, ())
        return
    tip = context.tip()
    _write(context, wanted.model_copy(update={"start": tip, "checkpoint": tip}), _started(context, wanted.phase))


def _started(context: AutopilotContext, phase: str) -> tuple[LoggedEvent, ...]:
    about = context.phase(phase)
    plan = context.plan(phase)
    tasks = None if plan is None else [task.complexity for task in plan.tasks]
    event = new_event(
        of_phase.PhaseStarted,
        context.log.now(),
        phase=phase,
        phase_name=about.name,
        phase_type=about.type,
        estimated_tokens=estimated_tokens(CostEstimation(), about.type, tasks),
    )
    return (LoggedEvent(event),)


def _begin_finished(context: AutopilotContext, phase: str, number: int, earlier: EarlierPhase) -> None:
    """Start a cycle over a phase that an earlier run completed, or skip the phase if no loop applies."""
    chosen = _loop_for(context, earlier)
    if chosen is None:
        skip_phase(context, phase, "already_completed")
        return
    plan, items, score = chosen
    tip = context.tip()
    cycle = PhasePass(
        phase=phase,
        number=number,
        kind=PassKind.CYCLE,
        start=tip,
        checkpoint=tip,
        loop=plan.loop,
        before_tenths=score,
        items=items,
    )
    _write(context, cycle, (*_started(context, phase), *started(context, cycle, plan, 1)))


def _loop_for(context: AutopilotContext, earlier: EarlierPhase) -> tuple[LoopPlan, tuple[PathItem, ...], int] | None:
    if earlier.alignment_score is None:
        return None
    score = tenths(earlier.alignment_score)
    items = earlier_items(earlier)
    for plan in loops_of(context):
        if score >= plan.target_tenths or not items or (plan.loop is ImprovementLoop.GAPS and not worth_gaps(score)):
            continue
        return plan, items[:1] if plan.loop is ImprovementLoop.GAPS else items, score
    return None


def skip_phase(context: AutopilotContext, phase: str, reason: str) -> None:
    """Record once that a phase is skipped, and why."""
    record = context.log.state().state.phases.get(phase)
    if record is None or record.status is not PhaseStatus.NOT_STARTED:
        return
    earlier = context.order.earlier.get(phase)
    blocker = reason.removeprefix("blocked_by_phase_") if reason.startswith("blocked_by_phase_") else None
    event = new_event(
        of_phase.PhaseSkipped,
        context.log.now(),
        phase=phase,
        phase_id=phase,
        reason=reason,
        original_run_timestamp=None if earlier is None or blocker is not None else earlier.completed_at,
        blocking_phase=blocker,
    )
    context.log.append(LoggedEvent(event))


def _write(context: AutopilotContext, phase_pass: PhasePass, events: tuple[LoggedEvent, ...]) -> None:
    context.log.keep(f"{PASS}:{pass_name(phase_pass)}", PASS, phase_pass.phase, phase_pass, lambda _now: events)
