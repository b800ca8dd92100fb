"""Scores that hardly differ: the events that say so, and which phases they are about."""

from collections.abc import Mapping

from fairwitness.contracts.autopilot import events_run as of_run
from fairwitness.contracts.autopilot.event import Event
from fairwitness.rules.integrity import IntegrityVerdict
from fairwitness.rules.scoring import RubberStamp, tenths, uniform_tail
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.log import Told, happened
from fairwitness.runs.autopilot.weighing import Weighed, scores_before


def stamped(context: AutopilotContext, weighed: Weighed, found: IntegrityVerdict) -> tuple[Told, ...]:
    """The event that a row of nearly equal scores calls for, if any."""
    score = weighed.returned.alignment_score
    if found.stamp is None or score is None:
        return ()
    phase = weighed.asked.phase
    row = [*scores_before(context, phase), (phase, score)]
    length = uniform_tail([tenths(known) for _, known in row])
    tail = row[-length:]
    kinds: Mapping[RubberStamp, type[Event]] = {
        RubberStamp.WARNING: of_run.RubberStampWarning,
        RubberStamp.ENHANCED: of_run.RubberStampEnhanced,
        RubberStamp.CRITICAL: of_run.RubberStampCritical,
    }
    event: Event = happened(
        kinds[found.stamp],
        context.log.now(),
        count=length,
        lowest=min(known for _, known in tail),
        highest=max(known for _, known in tail),
        phases=tuple(other for other, _ in tail),
    )
    return (Told(event),)
