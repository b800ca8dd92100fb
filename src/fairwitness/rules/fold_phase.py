"""Autopilot's events in envelopes, and their effect on the record of a phase.

An envelope's `data` holds an event's details, its `step`, and under `facts` what else the state file keeps.
`fold_autopilot` handles the rest of the state file.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_quality as of_quality
from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.events import AutopilotEvent
from fairwitness.contracts.autopilot.facts import EventFacts
from fairwitness.contracts.autopilot.rating import ScoreFlag, band_of
from fairwitness.contracts.autopilot.vocabulary import HumanWord, PhaseStatus, PhaseType, StepName
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.rules.fold import UPCASTERS, Data, Upcasters, typed, up_to_date

_SHAPE: TypeAdapter[AutopilotEvent] = TypeAdapter(AutopilotEvent)
_FACTS: TypeAdapter[EventFacts] = TypeAdapter(EventFacts)

BEGUN: Mapping[StepName, str | None] = {
    StepName.PREFLIGHT: "in_progress",
    StepName.TRIAGE: None,
    StepName.RESEARCH: "in_progress",
    StepName.PLAN: "in_progress",
    StepName.PLAN_CHECK: "in_progress",
    StepName.EXECUTE: "in_progress",
    StepName.VERIFY: "in_progress",
    StepName.JUDGE: None,
    StepName.RATE: "in_progress",
    StepName.DEBUG: None,
}
"""The status of a step that has begun, as the state file names it; None if it has no such status."""

FAILED: Mapping[StepName, str | None] = {
    **BEGUN,
    StepName.PREFLIGHT: "fail",
    StepName.RESEARCH: "failed",
    StepName.PLAN: "failed",
    StepName.PLAN_CHECK: "fail",
    StepName.EXECUTE: "failed",
    StepName.VERIFY: None,
    StepName.RATE: None,
}
"""The status of a failed step; None if only the step's own facts decide it."""

Record: TypeAlias = dict[str, Any]
"""A phase's record as plain values while an event is applied; it is validated before it is kept."""


def event_data(event: AutopilotEventBase, facts: EventFacts | None = None) -> Data:
    """Return an event and its facts as the data of an envelope."""
    data = event.details.plain()
    if event.step is not None:
        data["step"] = event.step.value
    if facts is not None:
        data["facts"] = facts.plain()
    return data


def autopilot_event(
    envelope: Envelope, upcasters: Upcasters = UPCASTERS[Workflow.AUTOPILOT]
) -> tuple[AutopilotEvent, EventFacts] | Problem:
    """Return the event of an envelope as the state file writes it, and its facts."""
    data = up_to_date(envelope, upcasters)
    if isinstance(data, Problem):
        return data
    details = {key: value for key, value in data.items() if key not in ("step", "facts")}
    value = {"timestamp": envelope.timestamp, "event": envelope.type, "details": details}
    value |= {"phase": envelope.phase} if envelope.phase is not None else {}
    value |= {"step": data["step"]} if "step" in data else {}
    event = typed(envelope, value, _SHAPE)
    facts = typed(envelope, data.get("facts", {}), _FACTS)
    if isinstance(event, Problem):
        return event
    return facts if isinstance(facts, Problem) else (event, facts)


def fresh(phase_type: PhaseType) -> Record:
    """Return the record of a phase that has not started."""
    return {
        "phase_type": phase_type,
        "status": PhaseStatus.NOT_STARTED,
        "steps": {},
        "debug_attempts": 0,
        "replan_attempts": 0,
        "tokens_used": 0,
        "human_verify_justification": None,
        "human_verdict": None,
        "force_incomplete": False,
        "diagnostic_path": None,
        "remediation_cycles": 0,
    }


def tell(record: Record, event: AutopilotEvent, *, forced: bool, scored: bool, threshold: float) -> None:
    """Apply an event to the record of its phase; events that do not concern it change nothing.

    `forced` and `scored` say whether `--force` runs the phase again, and whether it has a score since it started;
    `threshold` is the score that passes.
    """
    first = ScoreFlag.FORCE if forced else ScoreFlag.INITIAL
    match event:
        case of_phase.PhaseStarted(details=said):
            if record["status"] != PhaseStatus.IN_PROGRESS:
                record |= fresh(record["phase_type"] if said.phase_type is None else said.phase_type)
                record |= {"completed_at": None, "quality_exhausted": False, "gaps_exhausted": False}
                record |= {"status": PhaseStatus.IN_PROGRESS, "started_at": event.timestamp}
            record |= {} if said.estimated_tokens is None else {"estimated_tokens": said.estimated_tokens}
        case of_phase.PhaseCompleted(details=said):
            record |= {"status": PhaseStatus.COMPLETED, "completed_at": event.timestamp}
            if said.tokens_used is not None:
                record["tokens_used"] = said.tokens_used
            if said.alignment_score is not None:
                _rate(record, said.alignment_score, threshold)
                if not scored:
                    _score(record, event.timestamp, said.alignment_score, first, 0)
        case of_phase.PhaseFailed():
            record |= {"status": PhaseStatus.FAILED, "completed_at": event.timestamp}
        case of_phase.PhaseSkipped() if record["status"] == PhaseStatus.NOT_STARTED:
            record["status"] = PhaseStatus.SKIPPED
        case of_phase.PhaseStepStarted(step=StepName() as step):
            _step(record, event.timestamp, step, BEGUN[step])
        case of_phase.StepFailed(step=StepName() as step):
            _step(record, event.timestamp, step, FAILED[step])
        case of_phase.TaskCompleted(details=said):
            _task(record, said.task, {"status": "completed", "commit": said.commit})
        case of_phase.TaskFailed(details=said) if said.task is not None:
            _task(record, said.task, {"status": "failed"})
        case of_phase.TaskRetried(details=said) if said.task is not None:
            _task(record, said.task, {"status": "in_progress"})
            record["steps"]["execute"]["tasks"][said.task]["retries"] += 1
        case of_phase.DebugAttempt():
            record["debug_attempts"] += 1
        case of_phase.ReplanAttempt():
            record["replan_attempts"] += 1
        case of_phase.HumanVerdictRecorded(details=said) if said.verdict is not None:
            passed = said.verdict is HumanWord.PASS
            record |= {
                "human_verdict": {
                    "verdict": said.verdict,
                    "timestamp": event.timestamp,
                    "issues": said.issues or (),
                },
                "status": PhaseStatus.COMPLETED if passed else PhaseStatus.FAILED,
                "completed_at": event.timestamp,
            }
        case (
            of_quality.RemediationStarted(details=said)
            | of_quality.QualityRemediationStarted(details=said)
            | of_quality.GapsIterationStarted(details=said)
        ):
            if not scored and said.current_score is not None:
                _score(record, event.timestamp, said.current_score, first, 0)
        case of_quality.ForceReexecutionStarted(details=said) if not record.get("score_history"):
            if said.previous_score is not None:  # belongs to an earlier run, whose history is separate
                _score(record, event.timestamp, said.previous_score, ScoreFlag.INITIAL, 0)
        case of_quality.RemediationCompleted(details=said):
            record["remediation_cycles"] = said.cycle
            _cycle(record, event.timestamp, said, ScoreFlag.REMEDIATION, said.cycle, threshold)
        case of_quality.QualityRemediationCompleted(details=said):
            record["remediation_cycles"] = said.cycle
            _cycle(record, event.timestamp, said, ScoreFlag.QUALITY, said.cycle, threshold)
        case of_quality.GapsIterationCompleted(details=said):
            _cycle(record, event.timestamp, said, ScoreFlag.GAPS, said.iteration, threshold)
        case of_quality.ConfidenceDiagnosticWritten(details=said):
            record["diagnostic_path"] = said.diagnostic_path
        case of_quality.ForceIncompleteMarked(details=said):
            record |= {"force_incomplete": True, "diagnostic_path": said.diagnostic_path}
        case of_quality.QualityExhausted():
            record["quality_exhausted"] = True
        case of_quality.GapsExhausted():
            record["gaps_exhausted"] = True
        case _:
            pass


def _step(record: Record, timestamp: str, step: StepName, word: str | None) -> None:
    if word is None:
        return
    entry = record["steps"].setdefault(step.value, {"tasks": {}} if step is StepName.EXECUTE else {})
    entry["status"] = word
    if step is StepName.PREFLIGHT:
        entry["timestamp"] = timestamp


def _task(record: Record, task: str, told: Record) -> None:
    execute = record["steps"].setdefault("execute", {"status": "in_progress", "tasks": {}})
    execute["tasks"][task] = {"retries": 0, **execute["tasks"].get(task, {}), **told}


def _score(record: Record, timestamp: str, score: float, flag: ScoreFlag, cycle: int) -> None:
    entry = {"score": score, "timestamp": timestamp, "flag": flag, "cycle": cycle}
    record["score_history"] = [*record.get("score_history", ()), entry]


_Ended: TypeAlias = (
    of_quality.RemediationCompleted.Details
    | of_quality.QualityRemediationCompleted.Details
    | of_quality.GapsIterationCompleted.Details
)


def _cycle(record: Record, timestamp: str, said: _Ended, flag: ScoreFlag, cycle: int, threshold: float) -> None:
    """Add the score of a cycle that was rated. The better score is current: a cycle that lowers it is reverted."""
    if said.new_score is not None:
        _score(record, timestamp, said.new_score, flag, cycle)
    _rate(record, max(said.old_score, said.new_score or 0.0), threshold)


def _rate(record: Record, score: float, threshold: float) -> None:
    status = "pass" if score >= threshold else "fail"
    record["steps"]["rate"] = {"status": status, "alignment_score": score, "score_band": band_of(score)}


def add_facts(record: Record, facts: EventFacts) -> None:
    """Apply the facts of an event to the record of its phase."""
    if facts.steps is not None:
        record["steps"] |= facts.steps.plain()
    if facts.tokens is not None:
        record["tokens_used"] += facts.tokens
    if facts.deferral is not None:
        record["status"] = PhaseStatus.NEEDS_HUMAN_VERIFICATION
        record["human_verify_justification"] = facts.deferral.justification.plain()
