"""Events of a whole run, of its breaker, and of its state file."""

from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, Grade, StepName, Threshold
from fairwitness.contracts.common.base import (
    AlignmentScore,
    Amount,
    Contract,
    Count,
    Fraction,
    Maybe,
    Text,
    Texts,
    Timestamp,
)
from fairwitness.contracts.common.ids import AutopilotRunId, PhaseId, RelPath, Sha256

_Phases = tuple[PhaseId, ...]


class AutopilotRunStarted(AutopilotEventBase):
    """A new run begins."""

    class Details(Contract):
        """What is to be run, and how strictly."""

        run_id: Maybe[AutopilotRunId] = None
        phases: Maybe[_Phases] = None
        flags: Maybe[Texts] = None
        pass_threshold: Maybe[Threshold] = None
        spec_hash: Maybe[Sha256] = None

    event: Literal["run_started"]
    details: Details


class AutopilotRunCompleted(AutopilotEventBase):
    """Every phase passed."""

    class Details(Contract):
        """What the run came to."""

        phases_completed: Maybe[Count] = None
        duration_minutes: Maybe[Amount] = None
        total_tokens_used: Maybe[Count] = None

    event: Literal["run_completed"]
    details: Details


class RunHalted(AutopilotEventBase):
    """The run stopped before its end."""

    class Details(Contract):
        """Why, and in which status it was left."""

        reason: Maybe[Text] = None
        status: Maybe[AutopilotRunStatus] = None

    event: Literal["run_halted"]
    details: Details


class AutopilotRunResumed(AutopilotEventBase):
    """A run that had stopped goes on."""

    class Details(Contract):
        """From where, and after which status."""

        previous_status: Maybe[AutopilotRunStatus] = None
        from_phase: Maybe[PhaseId] = None
        from_step: Maybe[StepName] = None

    event: Literal["run_resumed"]
    details: Details


class CircuitBreakerOpened(AutopilotEventBase):
    """A limit was exceeded; nothing more is started."""

    class Details(Contract):
        """Which setting tripped, at what value."""

        setting: Maybe[Text] = None
        value: Maybe[Count] = None
        last_error: Maybe[Text] = None
        cooldown_until: Maybe[Timestamp] = None

    event: Literal["circuit_breaker_opened"]
    details: Details


class CircuitBreakerClosed(AutopilotEventBase):
    """The cause is gone; work may be started again."""

    class Details(Contract):
        """What made it close."""

        reason: Maybe[Text] = None

    event: Literal["circuit_breaker_closed"]
    details: Details


class CheckpointWritten(AutopilotEventBase):
    """The state file was written."""

    class Details(Contract):
        """Which file, and its hash."""

        path: Maybe[RelPath] = None
        hash: Maybe[Sha256] = None

    event: Literal["checkpoint_written"]
    details: Details


class HighDeferRateWarning(AutopilotEventBase):
    """Too many phases are put to a person."""

    class Details(Contract):
        """The count, and the share it makes."""

        human_deferred_count: Maybe[Count] = None
        total_phases_processed: Maybe[Count] = None
        defer_rate: Maybe[Fraction] = None

    event: Literal["high_defer_rate_warning"]
    details: Details


class DeferralThresholdAdjusted(AutopilotEventBase):
    """The confidence that avoids a deferral moved, following the human verdicts."""

    class Details(Contract):
        """From where to where, and why."""

        old_confidence: Maybe[Grade] = None
        new_confidence: Maybe[Grade] = None
        pass_rate: Maybe[Fraction] = None
        verdicts: Maybe[Count] = None

    event: Literal["deferral_threshold_adjusted"]
    details: Details


class BatchCompletionReport(AutopilotEventBase):
    """The report of a `--complete` run was written."""

    class Details(Contract):
        """The report's counts, and where it stands."""

        phases_attempted: Count
        phases_succeeded: Count
        phases_failed: Count
        phases_skipped: Count
        completion_percentage: Annotated[Amount, Field(le=100)]
        report_path: RelPath

    event: Literal["batch_completion_report"]
    details: Details


class ContextMappingStarted(AutopilotEventBase):
    """The context of some phases is about to be scored."""

    class Details(Contract):
        """Which phases, and by what command."""

        target_phases: _Phases
        mode: Text

    event: Literal["context_mapping_started"]
    details: Details


class ContextMappingCompleted(AutopilotEventBase):
    """The context of the phases was scored, and questions were asked."""

    class Details(Contract):
        """How much was scored, asked and answered."""

        phases_scored: Count
        phases_below_threshold: Count
        questions_generated: Count
        questions_answered: Count
        context_map_path: RelPath

    event: Literal["context_mapping_completed"]
    details: Details


class _Uniform(Contract):
    """The row of nearly equal scores that raised the suspicion."""

    count: Maybe[Count] = None
    lowest: Maybe[AlignmentScore] = None
    highest: Maybe[AlignmentScore] = None
    phases: Maybe[_Phases] = None


class RubberStampWarning(AutopilotEventBase):
    """Three scores in a row hardly differ."""

    class Details(_Uniform):
        """The uniform scores."""

    event: Literal["rubber_stamp_warning"]
    details: Details


class RubberStampEnhanced(AutopilotEventBase):
    """Five scores in a row hardly differ: the next phase is verified harder."""

    class Details(_Uniform):
        """The uniform scores."""

    event: Literal["rubber_stamp_enhanced"]
    details: Details


class RubberStampCritical(AutopilotEventBase):
    """Seven scores in a row hardly differ: their phases are marked."""

    class Details(_Uniform):
        """The uniform scores."""

    event: Literal["rubber_stamp_critical"]
    details: Details


RunEvent = (
    AutopilotRunStarted
    | AutopilotRunCompleted
    | RunHalted
    | AutopilotRunResumed
    | CircuitBreakerOpened
    | CircuitBreakerClosed
    | CheckpointWritten
    | HighDeferRateWarning
    | DeferralThresholdAdjusted
    | BatchCompletionReport
    | ContextMappingStarted
    | ContextMappingCompleted
    | RubberStampWarning
    | RubberStampEnhanced
    | RubberStampCritical
)
