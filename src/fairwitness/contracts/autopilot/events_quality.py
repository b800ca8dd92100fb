"""Events of the confidence threshold and of the quality flags."""

from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, Threshold
from fairwitness.contracts.common.base import AlignmentScore, Contract, Count, Flag, Maybe, Text, Texts
from fairwitness.contracts.common.ids import PhaseId, RelPath
from fairwitness.contracts.common.problems import expect

_Cycle = Annotated[int, Strict(), Field(ge=1, le=2)]
_QualityCycle = Annotated[int, Strict(), Field(ge=1, le=3)]
_Iteration = Annotated[int, Strict(), Field(ge=1, le=5)]


class RemediationStarted(AutopilotEventBase):
    """A remediation cycle starts for a phase below the threshold."""

    class Details(Contract):
        """The cycle, the current score, and the number of deficiencies."""

        phase_id: PhaseId
        cycle: _Cycle
        current_score: AlignmentScore
        pass_threshold: Threshold
        feedback_items: Count

    event: Literal["remediation_started"]
    details: Details


class RemediationCompleted(AutopilotEventBase):
    """A remediation cycle ended."""

    class Details(Contract):
        """The scores before and after the cycle; a cycle whose work was not rated has none after it."""

        phase_id: PhaseId
        cycle: _Cycle
        old_score: AlignmentScore
        new_score: Maybe[AlignmentScore] = None
        improved: Flag
        reached_threshold: Flag

        @model_validator(mode="after")
        def _improved_means_higher(self) -> Self:
            is_higher = self.new_score is not None and self.new_score > self.old_score
            expect(self, self.improved == is_higher, "improved as the two scores say", "improved")
            return self

    event: Literal["remediation_completed"]
    details: Details


class ConfidenceDiagnosticWritten(AutopilotEventBase):
    """The diagnostic of a phase with a score below nine was written."""

    class Details(Contract):
        """The path of the diagnostic, and the number of improvements it names."""

        phase_id: PhaseId
        alignment_score: AlignmentScore
        pass_threshold: Threshold
        diagnostic_path: RelPath
        path_to_9_items: Count

    event: Literal["confidence_diagnostic_written"]
    details: Details


class ForceIncompleteMarked(AutopilotEventBase):
    """A phase is accepted below the threshold because its remediation cycles are used up."""

    class Details(Contract):
        """The final score, and the number of cycles."""

        phase_id: PhaseId
        final_score: AlignmentScore
        pass_threshold: Threshold
        remediation_cycles: _Cycle
        diagnostic_path: RelPath

    event: Literal["force_incomplete_marked"]
    details: Details


class ForceReexecutionStarted(AutopilotEventBase):
    """`--force` runs a finished phase again."""

    class Details(Contract):
        """The previous score and status; a phase that a person passed may have no score."""

        previous_score: AlignmentScore | None
        previous_status: PhaseStatus

    event: Literal["force_reexecution_started"]
    details: Details


class QualityRemediationStarted(AutopilotEventBase):
    """A `--quality` cycle starts."""

    class Details(Contract):
        """The cycle, the current score, and the target."""

        cycle: Maybe[_QualityCycle] = None
        current_score: Maybe[AlignmentScore] = None
        target: Maybe[Threshold] = None

    event: Literal["quality_remediation_started"]
    details: Details


class QualityRemediationCompleted(AutopilotEventBase):
    """A `--quality` cycle ended."""

    class Details(Contract):
        """The scores before and after the cycle, and the target."""

        cycle: _QualityCycle
        old_score: AlignmentScore
        new_score: Maybe[AlignmentScore] = None
        target: Threshold

    event: Literal["quality_remediation_completed"]
    details: Details


class QualityExhausted(AutopilotEventBase):
    """All `--quality` cycles are used up and the target is not reached."""

    class Details(Contract):
        """The number of cycles, the final score, and the target."""

        cycles: Maybe[_QualityCycle] = None
        final_score: Maybe[AlignmentScore] = None
        target: Maybe[Threshold] = None

    event: Literal["quality_exhausted"]
    details: Details


class GapsIterationStarted(AutopilotEventBase):
    """A `--gaps` iteration starts to work on one deficiency."""

    class Details(Contract):
        """The deficiency, and the current score."""

        iteration: Maybe[_Iteration] = None
        deficiency: Maybe[Text] = None
        current_score: Maybe[AlignmentScore] = None

    event: Literal["gaps_iteration_started"]
    details: Details


class GapsIterationCompleted(AutopilotEventBase):
    """A `--gaps` iteration ended."""

    class Details(Contract):
        """The scores before and after the iteration, and the number of remaining deficiencies."""

        iteration: _Iteration
        deficiency_addressed: Text
        old_score: AlignmentScore
        new_score: Maybe[AlignmentScore] = None
        remaining_deficiencies: Count

    event: Literal["gaps_iteration_completed"]
    details: Details


class GapsExhausted(AutopilotEventBase):
    """All `--gaps` iterations are used up and the target is not reached."""

    class Details(Contract):
        """The number of iterations, the final score, and the target."""

        iterations: Maybe[_Iteration] = None
        final_score: Maybe[AlignmentScore] = None
        target: Maybe[Threshold] = None

    event: Literal["gaps_exhausted"]
    details: Details


class DiscussSessionStarted(AutopilotEventBase):
    """A `--discuss` session starts."""

    class Details(Contract):
        """The phases to discuss."""

        target_phases: Maybe[tuple[PhaseId, ...]] = None

    event: Literal["discuss_session_started"]
    details: Details


class DiscussAnswersRecorded(AutopilotEventBase):
    """A person's answers about a phase were stored."""

    class Details(Contract):
        """The number of questions asked and answered."""

        questions_asked: Count
        questions_answered: Count

        @model_validator(mode="after")
        def _answered_were_asked(self) -> Self:
            expect(
                self,
                self.questions_answered <= self.questions_asked,
                "no more answers than questions",
                "questions_answered",
            )
            return self

    event: Literal["discuss_answers_recorded"]
    details: Details


class FlagMutualExclusivityError(AutopilotEventBase):
    """Mutually exclusive flags were given together."""

    class Details(Contract):
        """The flags."""

        flags: Maybe[Annotated[Texts, Field(min_length=2)]] = None

    event: Literal["flag_mutual_exclusivity_error"]
    details: Details


QualityEvent = (
    RemediationStarted
    | RemediationCompleted
    | ConfidenceDiagnosticWritten
    | ForceIncompleteMarked
    | ForceReexecutionStarted
    | QualityRemediationStarted
    | QualityRemediationCompleted
    | QualityExhausted
    | GapsIterationStarted
    | GapsIterationCompleted
    | GapsExhausted
    | DiscussSessionStarted
    | DiscussAnswersRecorded
    | FlagMutualExclusivityError
)
