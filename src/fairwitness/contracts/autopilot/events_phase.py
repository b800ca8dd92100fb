"""Events of a phase, its steps and its tasks, and of the loops that recover it."""

from typing import Literal, Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.event_base import AutopilotEventBase
from fairwitness.contracts.autopilot.rating import ScoreBand
from fairwitness.contracts.autopilot.vocabulary import (
    FailureCategory,
    Grade,
    HumanWord,
    PhaseType,
    Recommendation,
    SkipReason,
    blocked_by,
)
from fairwitness.contracts.common.base import AlignmentScore, Contract, Count, Maybe, Positive, Text, Texts, Timestamp
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId, RelPath, SafeName
from fairwitness.contracts.common.problems import expect


class PhaseStarted(AutopilotEventBase):
    """A phase is in progress."""

    class Details(Contract):
        """What kind of phase it is, and what it may cost."""

        phase_name: Maybe[Text] = None
        phase_type: Maybe[PhaseType] = None
        estimated_tokens: Maybe[Count] = None

    event: Literal["phase_started"]
    details: Details


class PhaseCompleted(AutopilotEventBase):
    """A phase passed its gate."""

    class Details(Contract):
        """How well, at what cost, and where it left the branch."""

        alignment_score: Maybe[AlignmentScore] = None
        score_band: Maybe[ScoreBand] = None
        tokens_used: Maybe[Count] = None
        checkpoint_sha: Maybe[Commit] = None

    event: Literal["phase_completed"]
    details: Details


class PhaseFailed(AutopilotEventBase):
    """A phase used up its retries."""

    class Details(Contract):
        """Why, and where the post-mortem stands."""

        reason: Maybe[Text] = None
        category: Maybe[FailureCategory] = None
        recommendation: Maybe[Recommendation] = None
        postmortem_path: Maybe[RelPath] = None

    event: Literal["phase_failed"]
    details: Details


class PhaseSkipped(AutopilotEventBase):
    """`--complete` did not run a phase."""

    class Details(Contract):
        """Which phase, and why not."""

        phase_id: PhaseId
        reason: SkipReason
        original_run_timestamp: Maybe[Timestamp] = None
        blocking_phase: Maybe[PhaseId] = None

        @model_validator(mode="after")
        def _reason_names_the_blocker(self) -> Self:
            expect(
                self,
                blocked_by(self.reason) == self.blocking_phase,
                "the blocking_phase of the reason",
                "blocking_phase",
            )
            return self

    event: Literal["phase_skipped"]
    details: Details


class PhaseStepStarted(AutopilotEventBase):
    """A step begins."""

    class Details(Contract):
        """The agent and the number of the try."""

        agent: Maybe[Text] = None
        attempt: Maybe[Positive] = None

    event: Literal["step_started"]
    details: Details


class StepCompleted(AutopilotEventBase):
    """A step ended well."""

    class Details(Contract):
        """What it left, and how long it took."""

        output: Maybe[RelPath] = None
        duration_ms: Maybe[Count] = None

    event: Literal["step_completed"]
    details: Details


class StepFailed(AutopilotEventBase):
    """A step ended badly."""

    class Details(Contract):
        """Why."""

        error: Maybe[Text] = None
        category: Maybe[FailureCategory] = None

    event: Literal["step_failed"]
    details: Details


class TaskCompleted(AutopilotEventBase):
    """An executor finished a task."""

    class Details(Contract):
        """Which task; without a commit its work was already there."""

        task: SafeName
        commit: Maybe[Commit] = None

    event: Literal["task_completed"]
    details: Details


class TaskFailed(AutopilotEventBase):
    """An executor could not finish a task."""

    class Details(Contract):
        """Which task, and why."""

        task: Maybe[SafeName] = None
        error: Maybe[Text] = None
        category: Maybe[FailureCategory] = None

    event: Literal["task_failed"]
    details: Details


class TaskRetried(AutopilotEventBase):
    """A failed task is tried again."""

    class Details(Contract):
        """The task and the number of the try."""

        task: Maybe[SafeName] = None
        attempt: Maybe[Positive] = None
        reason: Maybe[Text] = None

    event: Literal["task_retried"]
    details: Details


class DebugAttempt(AutopilotEventBase):
    """The debug loop is entered."""

    class Details(Contract):
        """The number of the try and the issues."""

        attempt: Maybe[Positive] = None
        task: Maybe[SafeName] = None
        issues: Maybe[Texts] = None

    event: Literal["debug_attempt"]
    details: Details


class ReplanAttempt(AutopilotEventBase):
    """The plan is made anew."""

    class Details(Contract):
        """The number of the try and the score before it."""

        attempt: Maybe[Positive] = None
        reason: Maybe[Text] = None
        alignment_score: Maybe[AlignmentScore] = None

    event: Literal["replan_attempt"]
    details: Details


class RollbackInitiated(AutopilotEventBase):
    """The phase's commits are about to be reverted."""

    class Details(Contract):
        """Why, from where, and to where."""

        reason: Maybe[Text] = None
        rollback_from: Maybe[Commit] = None
        rollback_to: Maybe[Commit] = None

    event: Literal["rollback_initiated"]
    details: Details


class RollbackCompleted(AutopilotEventBase):
    """The phase's commits were reverted."""

    class Details(Contract):
        """From where, to where, and the branch that keeps what was reverted."""

        rollback_from: Maybe[Commit] = None
        rollback_to: Maybe[Commit] = None
        diagnostic_branch: Maybe[GitRef] = None

    event: Literal["rollback_completed"]
    details: Details


class HumanVerdictRecorded(AutopilotEventBase):
    """A person judged a deferred phase."""

    class Details(Contract):
        """What they said."""

        verdict: Maybe[HumanWord] = None
        issues: Maybe[Texts] = None

    event: Literal["human_verdict_recorded"]
    details: Details


class UnnecessaryDeferralWarning(AutopilotEventBase):
    """A phase was put to a person although nothing automatic had failed."""

    class Details(Contract):
        """The task that asked for the person."""

        checkpoint_task_id: Maybe[SafeName] = None
        task_description: Maybe[Text] = None

    event: Literal["unnecessary_deferral_warning"]
    details: Details


class AutonomousResolutionSuccess(AutopilotEventBase):
    """A phase with tasks for a person was settled without one."""

    class Details(Contract):
        """How sure the verifier was."""

        autonomous_confidence: Maybe[Grade] = None

    event: Literal["autonomous_resolution_success"]
    details: Details


PhaseEvent = (
    PhaseStarted
    | PhaseCompleted
    | PhaseFailed
    | PhaseSkipped
    | PhaseStepStarted
    | StepCompleted
    | StepFailed
    | TaskCompleted
    | TaskFailed
    | TaskRetried
    | DebugAttempt
    | ReplanAttempt
    | RollbackInitiated
    | RollbackCompleted
    | HumanVerdictRecorded
    | UnnecessaryDeferralWarning
    | AutonomousResolutionSuccess
)
