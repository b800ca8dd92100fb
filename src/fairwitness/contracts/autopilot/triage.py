"""The triage of a phase, `TRIAGE.json`: which criteria already hold, and the route that follows."""

from enum import StrEnum
from typing import Self

from pydantic import model_validator

from fairwitness.contracts.autopilot.vocabulary import Snippet, StepName, TriageRoute
from fairwitness.contracts.common.base import Contract, Count, Fraction, Maybe, Text, Timestamp
from fairwitness.contracts.common.ids import PhaseId
from fairwitness.contracts.common.problems import expect, is_ratio

VERIFY_ONLY_ABOVE = 0.80
SKIPPED_BY_VERIFY_ONLY = (StepName.RESEARCH, StepName.PLAN, StepName.PLAN_CHECK, StepName.EXECUTE)


class CriteriaSource(StrEnum):
    """The source of the criteria with runnable commands."""

    PLAN = "plan"
    ROADMAP = "roadmap"
    NONE = "none"


class TriageResult(StrEnum):
    """The result of one command."""

    PASS = "pass"
    FAIL = "fail"


class TriagedCriterion(Contract):
    """One criterion, checked on the current code."""

    criterion: Text
    command: Text
    result: TriageResult
    output: Snippet


class Triage(Contract):
    """The criteria that triage checked, and its decision."""

    phase_id: PhaseId
    timestamp: Timestamp
    criteria_source: CriteriaSource
    criteria_checked: tuple[TriagedCriterion, ...]
    total_criteria: Count
    passed_criteria: Count
    pass_ratio: Fraction
    routing_decision: TriageRoute
    skipped_steps: tuple[StepName, ...]
    note: Maybe[Text] = None

    @model_validator(mode="after")
    def _counts_follow_the_criteria(self) -> Self:
        passed = sum(checked.result is TriageResult.PASS for checked in self.criteria_checked)
        expect(
            self, self.passed_criteria == passed, "passed_criteria equal to the criteria that passed", "passed_criteria"
        )
        total = self.total_criteria >= len(self.criteria_checked)
        expect(self, total, "total_criteria of at least the criteria checked", "total_criteria")
        ratio = is_ratio(self.pass_ratio, self.passed_criteria, self.total_criteria)
        expect(self, ratio, "pass_ratio equal to passed_criteria of total_criteria", "pass_ratio")
        return self

    @model_validator(mode="after")
    def _route_is_earned(self) -> Self:
        if self.routing_decision is TriageRoute.VERIFY_ONLY:
            earned = self.pass_ratio > VERIFY_ONLY_ABOVE
            expect(self, earned, "verify_only when more than 0.80 of the criteria hold", "routing_decision")
        due = SKIPPED_BY_VERIFY_ONLY if self.routing_decision is TriageRoute.VERIFY_ONLY else ()
        expect(self, self.skipped_steps == due, "the skipped_steps of the routing_decision", "skipped_steps")
        return self
