"""A phase that is put to a person: the events that say so, with the reason, and whether it happens too often."""

from fairwitness.contracts.autopilot import events_phase as of_phase
from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.facts import DeferralFacts, EventFacts
from fairwitness.contracts.autopilot.phase_record import HumanVerifyJustification
from fairwitness.rules.integrity import IntegrityVerdict
from fairwitness.rules.scoring import too_many_deferred
from fairwitness.runs.autopilot.log import AutopilotLog, Told, happened
from fairwitness.runs.autopilot.weighing import Weighed
from fairwitness.store.layout.autopilot import STATE

_NEEDLESS = 14
"""The integrity check that asks whether a person is needed."""


def deferred(log: AutopilotLog, weighed: Weighed, found: IntegrityVerdict) -> tuple[Told, ...]:
    """A phase that is put to a person; the state is written down with the reason."""
    phase, now = weighed.asked.phase, log.now()
    claim = weighed.returned.human_verify_justification
    assert claim is not None  # the contract of a return obliges it
    said = None if weighed.verified is None else weighed.verified.said
    facts = DeferralFacts(
        reason=claim.task_description,
        autonomous_confidence=None if said is None else said.autonomous_confidence,
        justification=HumanVerifyJustification(
            checkpoint_task_id=claim.checkpoint_task_id,
            task_description=claim.task_description,
            auto_tasks_passed=claim.auto_tasks_passed,
            auto_tasks_total=claim.auto_tasks_total,
        ),
    )
    told = [Told(happened(of_run.CheckpointWritten, now, phase=phase, path=STATE), EventFacts(deferral=facts))]
    if any(each.number == _NEEDLESS for each in found.findings):
        needless = happened(
            of_phase.UnnecessaryDeferralWarning,
            now,
            phase=phase,
            checkpoint_task_id=claim.checkpoint_task_id,
            task_description=claim.task_description,
        )
        told.append(Told(needless))
    meta = log.state().state.meta
    deferred, processed = meta.human_deferred_count + 1, meta.total_phases_processed + 1
    if too_many_deferred(deferred, processed, meta.deferral_threshold):
        often = happened(
            of_run.HighDeferRateWarning,
            now,
            human_deferred_count=deferred,
            total_phases_processed=processed,
            defer_rate=round(deferred / processed, 4),
        )
        told.append(Told(often))
    return tuple(told)
