"""The return of a whole phase to the run."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.rating import ScoreBand, band_of
from fairwitness.contracts.autopilot.vocabulary import CheckWord, Complexity, Grade, Recommendation, Tally, tally
from fairwitness.contracts.common.base import (
    AgentDocument,
    AlignmentScore,
    Amount,
    Count,
    Flag,
    Fraction,
    Maybe,
    Positive,
    Prose,
    Text,
    Texts,
)
from fairwitness.contracts.common.ids import Commit, GitRef, PhaseId, SafeName
from fairwitness.contracts.common.problems import expect


class PhaseOutcome(StrEnum):
    """How a phase ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    NEEDS_HUMAN_VERIFICATION = "needs_human_verification"
    SPLIT_REQUEST = "split_request"


class JudgedStatus(StrEnum):
    """The result of a step that judges."""

    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


class WorkedStatus(StrEnum):
    """The result of a step that produces something."""

    COMPLETED = "completed"
    PARTIAL = "partial"
    FAILED = "failed"
    SKIPPED = "skipped"


class TriagedStatus(StrEnum):
    """The route that triage chose, or that triage was skipped."""

    FULL_PIPELINE = "full_pipeline"
    VERIFY_ONLY = "verify_only"
    SKIPPED = "skipped"


class AutomatedWords(AgentDocument):
    """The results of the project's own commands."""

    compile: CheckWord
    build: CheckWord
    lint: CheckWord


class PhaseEvidence(AgentDocument):
    """The files inspected and the commands run."""

    files_checked: Texts
    commands_run: Texts
    git_diff_summary: Prose


class HumanVerifyClaim(AgentDocument):
    """The task of the plan that requires a person."""

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


class SubPhase(AgentDocument):
    """One part of a phase that is too large."""

    sub_phase_id: PhaseId
    name: Text
    scope: Text
    issues: Texts
    estimated_complexity: Complexity


class SplitDetails(AgentDocument):
    """The parts into which a phase should be split, and the reason."""

    reason: Text
    recommended_sub_phases: Annotated[tuple[SubPhase, ...], Field(min_length=2)]
    total_sub_phases: Positive
    original_issue_count: Count

    @model_validator(mode="after")
    def _total_counts_the_parts(self) -> Self:
        counted = self.total_sub_phases == len(self.recommended_sub_phases)
        expect(self, counted, "a total_sub_phases equal to the parts listed", "total_sub_phases")
        return self


class JudgedStep(AgentDocument):
    """A step that judges, and whether a separate agent did it."""

    status: JudgedStatus
    agent_spawned: Flag


class PlanCheckedStep(JudgedStep):
    """The plan check and its confidence."""

    confidence: Maybe[Grade] = None


class RatedStep(JudgedStep):
    """The rating with its score and band."""

    alignment_score: Maybe[AlignmentScore] = None
    score_band: Maybe[ScoreBand] = None

    @model_validator(mode="after")
    def _band_of_the_score(self) -> Self:
        band = None if self.alignment_score is None else band_of(self.alignment_score)
        expect(self, self.score_band in (None, band), "the score_band of the score", "score_band")
        return self


class WorkedStep(AgentDocument):
    """A step that produces something, and the reason if it was skipped."""

    status: WorkedStatus
    agent_spawned: Flag
    skip_reason: Maybe[Text] = None


class TriagedStep(AgentDocument):
    """Triage, with the share of criteria that already hold."""

    status: TriagedStatus
    agent_spawned: Flag
    pass_ratio: Maybe[Fraction] = None


class PipelineSteps(AgentDocument):
    """All nine steps, including the skipped ones."""

    preflight: JudgedStep
    triage: TriagedStep
    research: WorkedStep
    plan: WorkedStep
    plan_check: PlanCheckedStep
    execute: WorkedStep
    verify: JudgedStep
    judge: JudgedStep
    rate: RatedStep


class PhaseReturn(AgentDocument):
    """The document that a phase returns to the run.

    `rules` decides whether the phase passes. This contract only checks that the document has the fields that its status
    requires.
    """

    phase: PhaseId
    status: PhaseOutcome
    alignment_score: AlignmentScore | None
    tasks_completed: Tally
    tasks_failed: Tally
    commit_shas: tuple[Commit, ...]
    automated_checks: AutomatedWords
    issues: Texts
    debug_attempts: Count
    replan_attempts: Count
    recommendation: Recommendation
    summary: Text
    checkpoint_sha: Commit | None
    verification_duration_seconds: Amount | None
    evidence: PhaseEvidence
    human_verify_justification: Maybe[HumanVerifyClaim] = None
    split_details: Maybe[SplitDetails] = None
    pipeline_steps: PipelineSteps
    rollback_performed: Maybe[Flag] = None
    rollback_from: Maybe[Commit] = None
    rollback_to: Maybe[Commit] = None
    diagnostic_branch: Maybe[GitRef] = None

    @model_validator(mode="after")
    def _status_obliges(self) -> Self:
        deferred = self.status is PhaseOutcome.NEEDS_HUMAN_VERIFICATION
        justified = self.human_verify_justification is not None
        expect(
            self,
            justified or not deferred,
            "human_verify_justification of a phase put to a person",
            "human_verify_justification",
        )
        split = self.status is PhaseOutcome.SPLIT_REQUEST
        expect(self, self.split_details is not None or not split, "split_details of a split_request", "split_details")
        ends = self.rollback_from is not None and self.rollback_to is not None
        expect(
            self,
            ends or not self.rollback_performed,
            "rollback_from and rollback_to of a rollback",
            "rollback_performed",
        )
        return self

    @model_validator(mode="after")
    def _one_total(self) -> Self:
        completed, total = tally(self.tasks_completed)
        failed, same = tally(self.tasks_failed)
        expect(self, total == same and completed + failed <= total, "tallies of the same tasks", "tasks_failed")
        return self
