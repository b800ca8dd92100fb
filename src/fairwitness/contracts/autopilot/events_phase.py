"""Events of a phase, its steps and its tasks, and of the debug, replan and rollback loops."""

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
    """A phase started."""

    class Details(Contract):
        """The type of the phase, and its estimated cost."""

        phase_name: Maybe[Text] = None
        phase_type: Maybe[PhaseType] = None
        estimated_tokens: Maybe[Count] = None

    event: Literal["phase_started"]
    details: Details


class PhaseCompleted(AutopilotEventBase):
    """A phase passed its gate."""

    class Details(Contract):
        """The score, the cost, and the commit at the end of the phase."""

        alignment_score: Maybe[AlignmentScore] = None
        score_band: Maybe[ScoreBand] = None
        tokens_used: Maybe[Count] = None
        checkpoint_sha: Maybe[Commit] = None

    event: Literal["phase_completed"]
    details: Details


class PhaseFailed(AutopilotEventBase):
    """A phase failed and has no retries left."""

    class Details(Contract):
        """The reason, and the path of the post-mortem."""

        reason: Maybe[Text] = None
        category: Maybe[FailureCategory] = None
        recommendation: Maybe[Recommendation] = None
        postmortem_path: Maybe[RelPath] = None

    event: Literal["phase_failed"]
    details: Details


class PhaseSkipped(AutopilotEventBase):
    """A `--complete` run skipped a phase."""

    class Details(Contract):
        """The phase, and the reason."""

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
    """A step started."""

    class Details(Contract):
        """The agent, and the number of the attempt."""

        agent: Maybe[Text] = None
        attempt: Maybe[Positive] = None

    event: Literal["step_started"]
    details: Details


class StepCompleted(AutopilotEventBase):
    """A step succeeded."""

    class Details(Contract):
        """The output of the step, and its duration."""

        output: Maybe[RelPath] = None
        duration_ms: Maybe[Count] = None

    event: Literal["step_completed"]
    details: Details


class StepFailed(AutopilotEventBase):
    """A step failed."""

    class Details(Contract):
        """The reason."""

        error: Maybe[Text] = None
        category: Maybe[FailureCategory] = None

    event: Literal["step_failed"]
    details: Details


class TaskCompleted(AutopilotEventBase):
    """An executor finished a task."""

    class Details(Contract):
        """The task; it has no commit if its work already existed."""

        task: SafeName
        commit: Maybe[Commit] = None

    event: Literal["task_completed"]
    details: Details


class TaskFailed(AutopilotEventBase):
    """An executor could not finish a task."""

    class Details(Contract):
        """The task, and the reason."""

        task: Maybe[SafeName] = None
        error: Maybe[Text] = None
        category: Maybe[FailureCategory] = None

    event: Literal["task_failed"]
    details: Details


class TaskRetried(AutopilotEventBase):
    """A failed task is attempted again."""

    class Details(Contract):
        """The task, and the number of the attempt."""

        task: Maybe[SafeName] = None
        attempt: Maybe[Positive] = None
        reason: Maybe[Text] = None

    event: Literal["task_retried"]
    details: Details


class DebugAttempt(AutopilotEventBase):
    """A debug attempt starts."""

    class Details(Contract):
        """The number of the attempt, and the issues."""

        attempt: Maybe[Positive] = None
        task: Maybe[SafeName] = None
        issues: Maybe[Texts] = None

    event: Literal["debug_attempt"]
    details: Details


class ReplanAttempt(AutopilotEventBase):
    """The phase is planned again."""

    class Details(Contract):
        """The number of the attempt, and the score before it."""

        attempt: Maybe[Positive] = None
        reason: Maybe[Text] = None
        alignment_score: Maybe[AlignmentScore] = None

    event: Literal["replan_attempt"]
    details: Details


class RollbackInitiated(AutopilotEventBase):
    """The phase's commits are about to be reverted."""

    class Details(Contract):
        """The reason, the current commit, and the commit to return to."""

        reason: Maybe[Text] = None
        rollback_from: Maybe[Commit] = None
        rollback_to: Maybe[Commit] = None

    event: Literal["rollback_initiated"]
    details: Details


class RollbackCompleted(AutopilotEventBase):
    """The phase's commits were reverted."""

    class Details(Contract):
        """The commits before and after, and the branch that keeps the reverted commits."""

        rollback_from: Maybe[Commit] = None
        rollback_to: Maybe[Commit] = None
        diagnostic_branch: Maybe[GitRef] = None

    event: Literal["rollback_completed"]
    details: Details


class HumanVerdictRecorded(AutopilotEventBase):
    """A person gave a verdict on a deferred phase."""

    class Details(Contract):
        """The person's verdict."""

        verdict: Maybe[HumanWord] = None
        issues: Maybe[Texts] = None

    event: Literal["human_verdict_recorded"]
    details: Details


class UnnecessaryDeferralWarning(AutopilotEventBase):
    """A phase was deferred to a person although no automatic check had failed."""

    class Details(Contract):
        """The task that requested a person."""

        checkpoint_task_id: Maybe[SafeName] = None
        task_description: Maybe[Text] = None

    event: Literal["unnecessary_deferral_warning"]
    details: Details


class AutonomousResolutionSuccess(AutopilotEventBase):
    """A phase with tasks for a person was completed without one."""

    class Details(Contract):
        """The verifier's confidence."""

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
