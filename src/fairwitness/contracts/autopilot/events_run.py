"""Events of a whole run, of its circuit breaker, and of its state file."""

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
    """A new run started."""

    class Details(Contract):
        """The phases to run, the flags, and the score to reach."""

        run_id: Maybe[AutopilotRunId] = None
        phases: Maybe[_Phases] = None
        flags: Maybe[Texts] = None
        pass_threshold: Maybe[Threshold] = None
        spec_hash: Maybe[Sha256] = None

    event: Literal["run_started"]
    details: Details


class AutopilotRunCompleted(AutopilotEventBase):
    """All phases of the run passed."""

    class Details(Contract):
        """The totals of the run."""

        phases_completed: Maybe[Count] = None
        duration_minutes: Maybe[Amount] = None
        total_tokens_used: Maybe[Count] = None

    event: Literal["run_completed"]
    details: Details


class RunHalted(AutopilotEventBase):
    """The run stopped before its end."""

    class Details(Contract):
        """The reason, and the status in which the run was left."""

        reason: Maybe[Text] = None
        status: Maybe[AutopilotRunStatus] = None

    event: Literal["run_halted"]
    details: Details


class AutopilotRunResumed(AutopilotEventBase):
    """A stopped run continues."""

    class Details(Contract):
        """The previous status, and the phase and step to continue from."""

        previous_status: Maybe[AutopilotRunStatus] = None
        from_phase: Maybe[PhaseId] = None
        from_step: Maybe[StepName] = None

    event: Literal["run_resumed"]
    details: Details


class CircuitBreakerOpened(AutopilotEventBase):
    """A limit was exceeded; no further work is started."""

    class Details(Contract):
        """The setting that was exceeded, and its value."""

        setting: Maybe[Text] = None
        value: Maybe[Count] = None
        last_error: Maybe[Text] = None
        cooldown_until: Maybe[Timestamp] = None

    event: Literal["circuit_breaker_opened"]
    details: Details


class CircuitBreakerClosed(AutopilotEventBase):
    """The cause is gone; work may start again."""

    class Details(Contract):
        """The reason why the breaker closed."""

        reason: Maybe[Text] = None

    event: Literal["circuit_breaker_closed"]
    details: Details


class CheckpointWritten(AutopilotEventBase):
    """The state file was written."""

    class Details(Contract):
        """The path of the file, and its hash."""

        path: Maybe[RelPath] = None
        hash: Maybe[Sha256] = None

    event: Literal["checkpoint_written"]
    details: Details


class HighDeferRateWarning(AutopilotEventBase):
    """Too many phases are deferred to a person."""

    class Details(Contract):
        """The number of deferred phases, and their share."""

        human_deferred_count: Maybe[Count] = None
        total_phases_processed: Maybe[Count] = None
        defer_rate: Maybe[Fraction] = None

    event: Literal["high_defer_rate_warning"]
    details: Details


class DeferralThresholdAdjusted(AutopilotEventBase):
    """The confidence from which a phase is not deferred changed, following the human verdicts."""

    class Details(Contract):
        """The old and new confidence, and the verdicts behind the change."""

        old_confidence: Maybe[Grade] = None
        new_confidence: Maybe[Grade] = None
        pass_rate: Maybe[Fraction] = None
        verdicts: Maybe[Count] = None

    event: Literal["deferral_threshold_adjusted"]
    details: Details


class BatchCompletionReport(AutopilotEventBase):
    """The report of a `--complete` run was written."""

    class Details(Contract):
        """The counts of the report, and its path."""

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
        """The phases, and the mode."""

        target_phases: _Phases
        mode: Text

    event: Literal["context_mapping_started"]
    details: Details


class ContextMappingCompleted(AutopilotEventBase):
    """The context of the phases was scored, and its questions were generated."""

    class Details(Contract):
        """The number of phases scored, and of questions generated and answered."""

        phases_scored: Count
        phases_below_threshold: Count
        questions_generated: Count
        questions_answered: Count
        context_map_path: RelPath

    event: Literal["context_mapping_completed"]
    details: Details


class _Uniform(Contract):
    """The consecutive scores that are nearly equal."""

    count: Maybe[Count] = None
    lowest: Maybe[AlignmentScore] = None
    highest: Maybe[AlignmentScore] = None
    phases: Maybe[_Phases] = None


class RubberStampWarning(AutopilotEventBase):
    """Three consecutive scores are nearly equal."""

    class Details(_Uniform):
        """The nearly equal scores."""

    event: Literal["rubber_stamp_warning"]
    details: Details


class RubberStampEnhanced(AutopilotEventBase):
    """Five consecutive scores are nearly equal; the next phase is verified more thoroughly."""

    class Details(_Uniform):
        """The nearly equal scores."""

    event: Literal["rubber_stamp_enhanced"]
    details: Details


class RubberStampCritical(AutopilotEventBase):
    """Seven consecutive scores are nearly equal; their phases are marked as suspect."""

    class Details(_Uniform):
        """The nearly equal scores."""

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
