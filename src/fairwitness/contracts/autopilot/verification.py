"""The returns of the two verifiers: one for a task, one for a phase."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.autopilot.returns import ClassifiedFailure
from fairwitness.contracts.autopilot.visual import IssueSeverity, IssueType
from fairwitness.contracts.autopilot.vocabulary import CheckWord, CommandsRun, Grade, Snippet, never_null
from fairwitness.contracts.common.base import AgentDocument, Amount, Count, Flag, Integer, Maybe, Prose, Text, Texts
from fairwitness.contracts.common.ids import RelPath, SafeName
from fairwitness.contracts.common.problems import expect
from fairwitness.contracts.common.vocabulary import Assessment


class TaskCriterionStatus(StrEnum):
    """The result of a task's criterion."""

    PASS = "pass"
    FAIL = "fail"


class TaskCriterion(AgentDocument):
    """One acceptance criterion of a task, and the command behind its status."""

    criterion: Text
    status: TaskCriterionStatus
    evidence: Text
    command: Text
    command_output: Snippet


class MiniVerifierReturn(AgentDocument):
    """The independent check of a single task."""

    task_id: SafeName
    pass_: Flag = Field(alias="pass")
    criteria_results: Annotated[tuple[TaskCriterion, ...], Field(min_length=1)]
    concerns: Texts
    commands_run: CommandsRun

    @model_validator(mode="after")
    def _pass_means_all(self) -> Self:
        failed = any(result.status is TaskCriterionStatus.FAIL for result in self.criteria_results)
        expect(self, not (self.pass_ and failed), "pass only when every criterion passes", "pass")
        return self


class CheckReport(AgentDocument):
    """The result of one of the project's own commands."""

    status: CheckWord
    detail: Prose


class CheckReports(AgentDocument):
    """The results of the project's own commands."""

    compile: CheckReport
    lint: CheckReport
    build: CheckReport
    tests: Maybe[CheckReport] = None


class PhaseCriterionStatus(StrEnum):
    """The result of a phase's criterion."""

    VERIFIED = "verified"
    FAILED = "failed"


class PhaseCriterion(AgentDocument):
    """One acceptance criterion of a phase."""

    criterion: Text
    status: PhaseCriterionStatus
    evidence: Text


class CriterionExecution(AgentDocument):
    """A criterion decided by a command; it has no exit code if the command did not end by itself."""

    criterion: Text
    command: Text
    exit_code: Integer | None
    output: Snippet
    assessment: Assessment


_Executions = tuple[CriterionExecution, ...]


class DeferralEvidence(AgentDocument):
    """Why a criterion needs a person's decision."""

    criterion: Text
    methods_attempted: Annotated[Texts, Field(min_length=1)]
    why_insufficient: Text


class RouteIssue(AgentDocument):
    """One visual issue on a route."""

    route: Text
    type: IssueType
    severity: IssueSeverity
    description: Text


class VisualTestResults(AgentDocument):
    """The results of the screenshots."""

    routes_tested: Count
    routes_passed: Count
    issues_found: tuple[RouteIssue, ...]
    screenshots: tuple[RelPath, ...]
    infrastructure_available: Flag

    @model_validator(mode="after")
    def _passed_were_tested(self) -> Self:
        expect(self, self.routes_passed <= self.routes_tested, "routes_passed up to routes_tested", "routes_passed")
        return self


class VerifierReturn(AgentDocument):
    """The verification of a phase, made without access to its executor's claims."""

    pass_: Flag = Field(alias="pass")
    automated_checks: CheckReports
    criteria_results: Annotated[tuple[PhaseCriterion, ...], Field(min_length=1)]
    verification_duration_seconds: Amount
    commands_run: CommandsRun
    failures: Texts
    failure_categories: tuple[ClassifiedFailure, ...]
    scope_creep: Texts
    execution_results: Annotated[Maybe[_Executions], never_null(_Executions)] = None
    visual_test_results: Annotated[Maybe[VisualTestResults], never_null(VisualTestResults)] = None
    autonomous_resolution_attempted: Maybe[Flag] = None
    autonomous_confidence: Maybe[Grade] = None
    deferral_evidence: Maybe[tuple[DeferralEvidence, ...]] = None

    @model_validator(mode="after")
    def _pass_means_nothing_failed(self) -> Self:
        checks = self.automated_checks
        reports = (checks.compile, checks.lint, checks.build, checks.tests)
        failed = (
            bool(self.failures)
            or any(result.status is PhaseCriterionStatus.FAILED for result in self.criteria_results)
            or any(report is not None and report.status is False for report in reports)
        )
        expect(self, not (self.pass_ and failed), "pass only when no check and no criterion failed", "pass")
        return self
