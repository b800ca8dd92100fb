"""The record of one phase and of its steps in the state file."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.autopilot.rating import ScoreBand, ScoreEntry, band_of
from fairwitness.contracts.autopilot.vocabulary import (
    CheckState,
    CheckWord,
    Grade,
    HumanWord,
    PhaseStatus,
    PhaseType,
    Recommendation,
    TriageRoute,
    WorkState,
)
from fairwitness.contracts.common.base import (
    AlignmentScore,
    Contract,
    Count,
    Flag,
    Fraction,
    Maybe,
    Text,
    Texts,
    Timestamp,
)
from fairwitness.contracts.common.ids import Commit, RelPath, SafeName, Sha256
from fairwitness.contracts.common.problems import expect


class TaskStatus(StrEnum):
    """The status of a task of the plan."""

    NOT_STARTED = "not_started"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_REVIEW = "needs_review"


class PreflightStep(Contract):
    """The result of the preflight."""

    status: CheckState
    timestamp: Timestamp


class TriageStep(Contract):
    """The route that triage chose for the phase."""

    status: TriageRoute
    pass_ratio: Fraction


class DocumentStep(Contract):
    """A step that writes a document; a completed step has the path and the hash of the document."""

    status: WorkState
    output: Maybe[RelPath] = None
    hash: Maybe[Sha256] = None

    @model_validator(mode="after")
    def _completed_left_a_document(self) -> Self:
        left = self.output is not None and self.hash is not None
        expect(self, left or self.status is not WorkState.COMPLETED, "output and hash of a completed step")
        return self


class PlanStep(DocumentStep):
    """The plan, and how many times the plan checker reviewed it."""

    validation_rounds: Maybe[Count] = None


class PlanCheckStep(Contract):
    """The result of the plan checker."""

    status: CheckState
    confidence: Maybe[Grade] = None


class TaskRecord(Contract):
    """One task; a completed task has no commit if its work already existed."""

    status: TaskStatus
    commit: Maybe[Commit] = None
    retries: Count


class ExecuteStep(Contract):
    """The tasks of the plan by id."""

    status: WorkState
    tasks: Mapping[SafeName, TaskRecord]


class AutomatedChecks(Contract):
    """The results of the project's own commands."""

    compile: CheckWord
    tests: CheckWord
    lint: CheckWord
    build: Maybe[CheckWord] = None


class VerifyStep(Contract):
    """The result of the verification; a verdict comes with checks and scope."""

    status: CheckState
    automated: Maybe[AutomatedChecks] = None
    scope_creep: Maybe[Texts] = None

    @model_validator(mode="after")
    def _verdict_has_checks(self) -> Self:
        judged = self.status in (CheckState.PASS, CheckState.FAIL)
        said = self.automated is not None and self.scope_creep is not None
        expect(self, said or not judged, "automated and scope_creep beside a verdict")
        return self


class JudgeStep(Contract):
    """The judge's recommendation and concerns."""

    recommendation: Recommendation
    concerns: Texts


class RateStep(Contract):
    """The alignment score and its band; a verdict comes with both."""

    status: CheckState
    alignment_score: Maybe[AlignmentScore] = None
    score_band: Maybe[ScoreBand] = None

    @model_validator(mode="after")
    def _scored(self) -> Self:
        if self.alignment_score is None:
            judged = self.status in (CheckState.PASS, CheckState.FAIL)
            expect(self, not judged, "an alignment_score beside a verdict", "alignment_score")
            expect(self, self.score_band is None, "no score_band without an alignment_score", "score_band")
        else:
            expect(self, self.score_band is band_of(self.alignment_score), "the score_band of the score", "score_band")
        return self


class PhaseSteps(Contract):
    """The steps that a phase has started; other steps are left out."""

    preflight: Maybe[PreflightStep] = None
    triage: Maybe[TriageStep] = None
    research: Maybe[DocumentStep] = None
    plan: Maybe[PlanStep] = None
    plan_check: Maybe[PlanCheckStep] = None
    execute: Maybe[ExecuteStep] = None
    verify: Maybe[VerifyStep] = None
    judge: Maybe[JudgeStep] = None
    rate: Maybe[RateStep] = None


class HumanVerifyJustification(Contract):
    """The task of the plan because of which the phase is deferred to a person."""

    checkpoint_task_id: SafeName
    task_description: Text
    auto_tasks_passed: Count
    auto_tasks_total: Count

    @model_validator(mode="after")
    def _no_more_than_all(self) -> Self:
        expect(
            self,
            self.auto_tasks_passed <= self.auto_tasks_total,
            "auto_tasks_passed up to the total",
            "auto_tasks_passed",
        )
        return self


class HumanVerdict(Contract):
    """A person's verdict on a deferred phase."""

    verdict: HumanWord
    timestamp: Timestamp
    issues: Texts

    @model_validator(mode="after")
    def _issues_are_named(self) -> Self:
        named = bool(self.issues) or self.verdict is not HumanWord.ISSUES_FOUND
        expect(self, named, "at least one issue with the verdict issues_found", "issues")
        return self


class PhaseRecord(Contract):
    """One phase of the run.

    This contract does not check whether a score is sufficient; `rules` does. The specification's own example is
    completed with 8.2 at a threshold of 9, without remediation, and must be readable.
    """

    phase_type: PhaseType
    status: PhaseStatus
    started_at: Maybe[Timestamp] = None
    completed_at: Maybe[Timestamp] = None
    steps: PhaseSteps
    debug_attempts: Count
    replan_attempts: Count
    tokens_used: Count
    estimated_tokens: Maybe[Count] = None
    human_verify_justification: HumanVerifyJustification | None
    human_verdict: HumanVerdict | None
    force_incomplete: Flag  # passed below the threshold because remediation was exhausted
    diagnostic_path: RelPath | None
    remediation_cycles: Annotated[int, Strict(), Field(ge=0, le=3)]  # at most 2, and 3 with --quality
    score_history: tuple[ScoreEntry, ...] = ()
    quality_exhausted: Flag = False
    gaps_exhausted: Flag = False
    rubber_stamp_suspect: Maybe[Flag] = None

    @model_validator(mode="after")
    def _times_follow_the_status(self) -> Self:
        begun = self.status in (PhaseStatus.IN_PROGRESS, PhaseStatus.COMPLETED)
        expect(self, self.started_at is not None or not begun, "started_at of a phase that has begun", "started_at")
        ended = self.completed_at is not None or self.status is not PhaseStatus.COMPLETED
        expect(self, ended, "completed_at of a completed phase", "completed_at")
        return self

    @model_validator(mode="after")
    def _exceptions_are_explained(self) -> Self:
        justified = self.human_verify_justification is not None
        deferred = self.status is PhaseStatus.NEEDS_HUMAN_VERIFICATION or self.human_verdict is not None
        expect(
            self,
            justified or not deferred,
            "human_verify_justification of a phase put to a person",
            "human_verify_justification",
        )
        diagnosed = self.diagnostic_path is not None and self.remediation_cycles > 0
        expect(
            self,
            diagnosed or not self.force_incomplete,
            "diagnostic_path and remediation_cycles beside force_incomplete",
            "force_incomplete",
        )
        return self
