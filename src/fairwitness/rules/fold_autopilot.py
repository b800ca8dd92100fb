"""Fold the events of an autopilot run into its state file; `fold_phase` handles the record of a single phase."""

from collections.abc import Iterable, Mapping
from typing import get_args

from pydantic import TypeAdapter

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.breaker import BreakerPosition, BreakerState
from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.events import AutopilotEvent
from fairwitness.contracts.autopilot.facts import AutopilotState, EventFacts, FailureCount, RunSetup
from fairwitness.contracts.autopilot.phase_record import PhaseRecord
from fairwitness.contracts.autopilot.state import Meta, RunTotals, State
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, FailureCategory, PhaseStatus
from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.rules.breaker import CLOSED, after_resume, count_step
from fairwitness.rules.fold import UPCASTERS, Data, Upcasters, at, fold, order_problem, typed
from fairwitness.rules.fold_phase import add_facts, autopilot_event, fresh, tell
from fairwitness.rules.scores import (
    DEFERRAL_START,
    PASS_TENTHS,
    autonomous_resolution_rate,
)

_META: TypeAdapter[Meta] = TypeAdapter(Meta)
_RECORD: TypeAdapter[PhaseRecord] = TypeAdapter(PhaseRecord)
_STATE: TypeAdapter[State] = TypeAdapter(State)

_PROCESSED = (PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.NEEDS_HUMAN_VERIFICATION)
_WITHOUT_PHASE = (of_quality.DiscussSessionStarted, of_quality.FlagMutualExclusivityError)
_OF_A_PHASE: tuple[type[AutopilotEventBase], ...] = (
    *get_args(of_phase.PhaseEvent),
    *(kind for kind in get_args(of_quality.QualityEvent) if kind not in _WITHOUT_PHASE),
)


def fold_autopilot(
    envelopes: Iterable[Envelope],
    setup: RunSetup,
    *,
    onto: AutopilotState | None = None,
    upcasters: Upcasters = UPCASTERS[Workflow.AUTOPILOT],
) -> AutopilotState | Problem:
    """Return the run after these events, from its beginning or from an earlier state."""
    return fold(envelopes, onto, lambda state, envelope: _apply(state, envelope, setup, upcasters))


def _apply(
    folded: AutopilotState | None, envelope: Envelope, setup: RunSetup, upcasters: Upcasters
) -> AutopilotState | Problem:
    misplaced = order_problem(
        envelope,
        Workflow.AUTOPILOT,
        last_seq=folded.seq if folded is not None else 0,
        run_id=folded.state.meta.run_id if folded is not None else None,
    )
    if misplaced is None and folded is not None and envelope.type in FORGE_EVENT_TYPES:
        # an event of the graph that executes a phase's tasks; the phase's own events record what it means for the phase
        return folded.model_copy(update={"seq": envelope.seq, "last_event_id": envelope.event_id})
    opened = misplaced or autopilot_event(envelope, upcasters)
    if isinstance(opened, Problem):
        return opened
    event, facts = opened
    if folded is None:
        return _begun(envelope, event, setup)
    refused = _refused(folded, envelope, event)
    phases = refused or _phases(folded, envelope, event, facts)
    if isinstance(phases, Problem):
        return phases
    return _kept(folded, envelope, event, facts, phases, setup)


def _begun(envelope: Envelope, event: AutopilotEvent, setup: RunSetup) -> AutopilotState | Problem:
    if not isinstance(event, of_run.AutopilotRunStarted):
        return at(envelope, ("type",), "run_started as the first event", envelope.type)
    types = {phase.id: phase.type for phase in setup.phases}
    wanted = tuple(types) if event.details.phases is None else event.details.phases
    unknown = [phase for phase in wanted if phase not in types]
    if unknown:
        return at(envelope, ("data", "phases"), "phases of the roadmap", ", ".join(unknown))
    threshold = event.details.pass_threshold
    meta = {
        "version": "1.1",
        "run_id": envelope.run_id,
        "started_at": envelope.timestamp,
        "last_checkpoint": envelope.timestamp,
        "status": AutopilotRunStatus.RUNNING,
        "total_phases": len(set(wanted)),
        "current_phase": None,
        "current_step": None,
        "orchestrator_context_pct": 0,
        "human_deferred_count": 0,
        "total_phases_processed": 0,
        "pass_threshold": PASS_TENTHS / 10 if threshold is None else threshold,
        "autonomous_resolution_rate": 0.0,
        "deferral_threshold": setup.deferral_threshold,
        "deferral_confidence": DEFERRAL_START,
        "deferral_history": (),
    }
    state = typed(
        envelope,
        {
            "_meta": meta,
            "spec": setup.spec,
            "specs": setup.specs,
            "roadmap_path": setup.roadmap_path,
            "phases": {phase: fresh(types[phase]) for phase in wanted},
            "circuit_breaker": CLOSED,
            "event_log": (event,),
            "metrics": {
                "total_tokens_used": 0,
                "total_duration_minutes": 0,
                "phases_completed": 0,
                "phases_failed": 0,
                "debug_loops_total": 0,
                "replan_count": 0,
            },
        },
        _STATE,
    )
    if isinstance(state, Problem):
        return state
    return AutopilotState(
        state=state, seq=envelope.seq, last_event_id=envelope.event_id, failures=(), forced=(), scored=()
    )


def _refused(folded: AutopilotState, envelope: Envelope, event: AutopilotEvent) -> Problem | None:
    if isinstance(event, of_run.AutopilotRunStarted):
        return at(envelope, ("type",), "run_started once", "a second one")
    if isinstance(event, _OF_A_PHASE) and event.phase is None:
        return at(envelope, ("phase",), "the phase it happened in", "none")
    if (
        isinstance(event, of_phase.PhaseStepStarted | of_phase.StepCompleted | of_phase.StepFailed)
        and event.step is None
    ):
        return at(envelope, ("data", "step"), "the step it happened to", "none")
    if isinstance(event, of_run.RunHalted) and event.details.status in (
        AutopilotRunStatus.RUNNING,
        AutopilotRunStatus.COMPLETED,
    ):
        return at(envelope, ("data", "status"), "paused or failed", event.details.status.value)
    waiting = [
        phase for phase, record in folded.state.phases.items() if record.status is PhaseStatus.NEEDS_HUMAN_VERIFICATION
    ]
    if isinstance(event, of_run.AutopilotRunCompleted) and waiting:
        return at(envelope, ("type",), "no phase that waits for a person", ", ".join(waiting))
    if isinstance(event, of_phase.HumanVerdictRecorded) and event.phase not in waiting:
        return at(envelope, ("phase",), "a phase that waits for a person", event.phase or "none")
    return None


def _phases(
    folded: AutopilotState, envelope: Envelope, event: AutopilotEvent, facts: EventFacts
) -> Mapping[str, PhaseRecord] | Problem:
    phases = dict(folded.state.phases)
    if isinstance(event, of_run.RubberStampCritical):
        for suspect in event.details.phases or ():
            if suspect in phases:
                phases[suspect] = phases[suspect].model_copy(update={"rubber_stamp_suspect": True})
    if event.phase is None:
        if facts.steps is not None or facts.tokens is not None or facts.deferral is not None:
            return at(envelope, ("phase",), "the phase its facts are about", "none")
        return phases
    parent = phases.get(event.phase[:-1]) if event.phase[-1].isalpha() else None
    before = phases.get(event.phase)
    if before is None and parent is None:
        return at(envelope, ("phase",), "a phase of the run", event.phase)
    record = fresh(parent.phase_type) if before is None and parent is not None else phases[event.phase].plain()
    tell(
        record,
        event,
        forced=event.phase in folded.forced,
        scored=event.phase in folded.scored,
        threshold=folded.state.meta.pass_threshold,
    )
    add_facts(record, facts)
    after = typed(envelope, record, _RECORD)
    return after if isinstance(after, Problem) else {**phases, event.phase: after}


def _kept(
    folded: AutopilotState,
    envelope: Envelope,
    event: AutopilotEvent,
    facts: EventFacts,
    phases: Mapping[str, PhaseRecord],
    setup: RunSetup,
) -> AutopilotState | Problem:
    state = folded.state
    log = (*state.event_log, event)
    meta = typed(envelope, _meta(state, event, facts, phases), _META)
    if isinstance(meta, Problem):
        return meta
    changes = {
        "meta": meta,
        "phases": phases,
        "circuit_breaker": _breaker(state.circuit_breaker, event, facts),
        "event_log": log if setup.kept_events is None else log[-setup.kept_events :],
        "metrics": _totals(state, event, phases),
    }
    return AutopilotState(
        state=state.model_copy(update=changes),
        seq=envelope.seq,
        last_event_id=envelope.event_id,
        failures=_failures(folded, event),
        forced=_marked(folded.forced, event, on=_FORCES, off=_ENDS),
        scored=_marked(folded.scored, event, on=_SCORES, off=(of_phase.PhaseStarted,)),
    )


_FORCES = (of_quality.ForceReexecutionStarted,)
_ENDS = (of_phase.PhaseCompleted, of_phase.PhaseFailed)
_SCORES = (
    of_quality.RemediationStarted,
    of_quality.RemediationCompleted,
    of_quality.QualityRemediationStarted,
    of_quality.GapsIterationStarted,
    of_phase.PhaseCompleted,
)


def _marked(
    marked: tuple[str, ...],
    event: AutopilotEvent,
    *,
    on: tuple[type[AutopilotEventBase], ...],
    off: tuple[type[AutopilotEventBase], ...],
) -> tuple[str, ...]:
    if event.phase is None or not isinstance(event, (*on, *off)):
        return marked
    others = tuple(phase for phase in marked if phase != event.phase)
    return (*others, event.phase) if isinstance(event, on) else others


def _failures(folded: AutopilotState, event: AutopilotEvent) -> tuple[FailureCount, ...]:
    if not isinstance(event, of_phase.PhaseFailed | of_phase.StepFailed | of_phase.TaskFailed):
        return folded.failures
    counts: dict[FailureCategory, int] = {one.category: one.count for one in folded.failures}
    if event.details.category is not None:
        counts[event.details.category] = counts.get(event.details.category, 0) + 1
    return tuple(FailureCount(category=category, count=count) for category, count in counts.items())


def _breaker(breaker: BreakerState, event: AutopilotEvent, facts: EventFacts) -> BreakerState:
    counted = breaker if facts.outcome is None else count_step(breaker, facts.outcome)
    match event:
        case of_run.CircuitBreakerOpened(details=said):
            opened = {"state": BreakerPosition.OPEN, "cooldown_until": said.cooldown_until}
            return counted.model_copy(
                update=opened | ({} if said.last_error is None else {"last_error": said.last_error})
            )
        case of_run.CircuitBreakerClosed():
            return CLOSED
        case of_run.AutopilotRunResumed():
            return after_resume(counted, now=event.timestamp)
        case _:
            return counted


def _totals(state: State, event: AutopilotEvent, phases: Mapping[str, PhaseRecord]) -> RunTotals:
    minutes = (instant(event.timestamp) - instant(state.meta.started_at)).total_seconds() / 60
    statuses = [record.status for record in phases.values()]
    before, after = (sum(record.tokens_used for record in known.values()) for known in (state.phases, phases))
    return RunTotals(
        # a phase that runs again counts its tokens from zero; the run's total keeps them
        total_tokens_used=state.metrics.total_tokens_used + max(0, after - before),
        total_duration_minutes=max(0.0, round(minutes, 2)),
        phases_completed=statuses.count(PhaseStatus.COMPLETED),
        phases_failed=statuses.count(PhaseStatus.FAILED),
        debug_loops_total=state.metrics.debug_loops_total + isinstance(event, of_phase.DebugAttempt),
        replan_count=state.metrics.replan_count + isinstance(event, of_phase.ReplanAttempt),
    )


def _meta(state: State, event: AutopilotEvent, facts: EventFacts, phases: Mapping[str, PhaseRecord]) -> Data:
    meta = state.meta.model_dump()
    processed = sum(record.status in _PROCESSED for record in phases.values())
    deferred = sum(_was_deferred(record) for record in phases.values())
    meta |= {
        "last_checkpoint": event.timestamp,
        "total_phases": len(phases),
        "total_phases_processed": processed,
        "human_deferred_count": deferred,
        "autonomous_resolution_rate": autonomous_resolution_rate(processed, deferred),
        "deferral_history": _deferrals(state, event, facts),
    }
    if facts.context_pct is not None:
        meta["orchestrator_context_pct"] = facts.context_pct
    if facts.deferral is not None:  # it is a person's now
        meta |= {"current_phase": None, "current_step": None}
    match event:
        case of_run.AutopilotRunCompleted():
            meta |= {"status": AutopilotRunStatus.COMPLETED, "current_phase": None, "current_step": None}
        case of_run.RunHalted(details=said):
            meta["status"] = AutopilotRunStatus.FAILED if said.status is None else said.status
        case of_run.AutopilotRunResumed():
            meta["status"] = AutopilotRunStatus.RUNNING
        case of_run.DeferralThresholdAdjusted(details=said) if said.new_confidence is not None:
            meta["deferral_confidence"] = said.new_confidence
        case of_phase.PhaseStarted():
            meta |= {"current_phase": event.phase, "current_step": None}
        case of_phase.PhaseStepStarted():
            meta |= {"current_phase": event.phase, "current_step": event.step}
        case of_phase.PhaseCompleted() | of_phase.PhaseFailed():
            meta |= {"current_phase": None, "current_step": None}
        case _:
            pass
    return meta


def _was_deferred(record: PhaseRecord) -> bool:
    return record.status is PhaseStatus.NEEDS_HUMAN_VERIFICATION or record.human_verdict is not None


def _deferrals(state: State, event: AutopilotEvent, facts: EventFacts) -> list[Data]:
    history = [deferral.plain() for deferral in state.meta.deferral_history]
    if facts.deferral is not None:
        history.append(
            {
                "phase_id": event.phase,
                "reason": facts.deferral.reason,
                "autonomous_confidence": facts.deferral.autonomous_confidence,
                "human_verdict": None,
                "timestamp": event.timestamp,
            }
        )
    if isinstance(event, of_phase.HumanVerdictRecorded):
        for deferral in history:
            if deferral["phase_id"] == event.phase and deferral["human_verdict"] is None:
                deferral["human_verdict"] = event.details.verdict
    return history
