"""The returns of the agents that research, plan, execute, judge and debug, and the debug session file."""

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from fairwitness.contracts.autopilot.vocabulary import Complexity, FailureCategory, Grade, Recommendation, Tally, tally
from fairwitness.contracts.common.base import (
    AgentDocument,
    Count,
    Flag,
    Maybe,
    Positive,
    Text,
    Texts,
    Timestamp,
    instant,
)
from fairwitness.contracts.common.ids import Commit, SafeName
from fairwitness.contracts.common.markdown import body_with
from fairwitness.contracts.common.problems import expect


class ResearcherReturn(AgentDocument):
    """The return of the researcher.

    The agent is asked for three to five findings. Fewer are accepted, since a small phase may have one; more than five
    are not.
    """

    key_findings: Annotated[Texts, Field(min_length=1, max_length=5)]
    recommended_approach: Text
    risks: Texts
    open_questions: Texts


class PlannerReturn(AgentDocument):
    """The size of the plan."""

    plans_created: Positive
    waves: Positive
    total_tasks: Positive
    complexity: Complexity
    dependencies: Texts
    concerns: Texts


class TaskEvidence(AgentDocument):
    """What an executor claims for one task."""

    task_id: SafeName
    criteria_met: Texts
    commands_run: Texts


class ExecutorReturn(AgentDocument):
    """The work that an executor claims to have done."""

    tasks_completed: Tally
    tasks_failed: Tally
    commit_shas: tuple[Commit, ...]
    evidence: tuple[TaskEvidence, ...]
    deviations: Texts

    @model_validator(mode="after")
    def _one_total(self) -> Self:
        completed, total = tally(self.tasks_completed)
        failed, same = tally(self.tasks_failed)
        expect(self, total == same and completed + failed <= total, "tallies of the same tasks", "tasks_failed")
        return self


class PreflightReturn(AgentDocument):
    """Whether a phase may start."""

    all_clear: Flag
    spec_hash_match: Flag
    working_tree_clean: Flag
    dependencies_met: Flag
    unresolved_debug: Texts
    issues: Texts

    @model_validator(mode="after")
    def _clear_means_all(self) -> Self:
        every = self.spec_hash_match and self.working_tree_clean and self.dependencies_met
        expect(self, every or not self.all_clear, "all_clear only when every check holds", "all_clear")
        return self


class PlanIssueSeverity(StrEnum):
    """The severity of an issue in the plan; a blocker prevents execution."""

    BLOCKER = "blocker"
    WARNING = "warning"
    INFO = "info"


class PlanIssue(AgentDocument):
    """One issue in the plan."""

    severity: PlanIssueSeverity
    description: Text
    plan: Maybe[Text] = None
    dimension: Maybe[Text] = None
    fix_hint: Maybe[Text] = None


class PlanCheckerReturn(AgentDocument):
    """Whether the plan will reach the phase's goal."""

    pass_: Flag = Field(alias="pass")
    issues: tuple[PlanIssue, ...]
    confidence: Grade
    blocker_count: Count
    warning_count: Count

    @model_validator(mode="after")
    def _counts_follow_the_issues(self) -> Self:
        severities = [issue.severity for issue in self.issues]
        blockers = severities.count(PlanIssueSeverity.BLOCKER) == self.blocker_count
        expect(self, blockers, "a blocker_count equal to the blockers among the issues", "blocker_count")
        warnings = severities.count(PlanIssueSeverity.WARNING) == self.warning_count
        expect(self, warnings, "a warning_count equal to the warnings among the issues", "warning_count")
        expect(self, not (self.pass_ and self.blocker_count), "pass only without a blocker", "pass")
        return self


class JudgeReturn(AgentDocument):
    """The judge's second opinion; it recommends and never scores."""

    recommendation: Recommendation
    concerns: Annotated[Texts, Field(min_length=1)]
    independent_evidence: Texts
    verifier_agreement: Flag
    verifier_missed: Texts
    scope_creep: Texts
    missing_requirements: Texts
    notes: Text


class ClassifiedFailure(AgentDocument):
    """A failure and its category."""

    failure: Text
    category: FailureCategory


class DebuggerReturn(AgentDocument):
    """The result of a repair."""

    fixed: Flag
    changes: Texts
    commits: tuple[Commit, ...]
    remaining_issues: Texts
    failure_categories: tuple[ClassifiedFailure, ...]


SECTIONS = ("Current Focus", "Symptoms", "Eliminated", "Evidence", "Resolution")


class DebugStatus(StrEnum):
    """The status of an investigation."""

    GATHERING = "gathering"
    INVESTIGATING = "investigating"
    FIXING = "fixing"
    VERIFYING = "verifying"
    RESOLVED = "resolved"
    DIAGNOSED = "diagnosed"


_CAUSE_UNKNOWN = (DebugStatus.GATHERING, DebugStatus.INVESTIGATING)


def _empty_is_unknown(value: Any) -> Any:
    return None if value == "" else value


_EMPTY_IS_UNKNOWN = BeforeValidator(_empty_is_unknown, json_schema_input_type=FailureCategory | Literal[""] | None)


class DebugSession(AgentDocument):
    """The record of an investigation, complete enough for a new agent to continue it."""

    status: DebugStatus
    trigger: Text
    failure_category: Annotated[Maybe[FailureCategory], _EMPTY_IS_UNKNOWN] = None
    """Empty until the root cause is known."""
    created: Timestamp
    updated: Timestamp
    body: Annotated[str, body_with(*SECTIONS)]

    @model_validator(mode="after")
    def _cause_before_fix(self) -> Self:
        known = self.failure_category is not None or self.status in _CAUSE_UNKNOWN
        expect(self, known, "a failure_category once the root cause is known", "failure_category")
        expect(self, instant(self.created) <= instant(self.updated), "an updated time not before created", "updated")
        return self
