"""The self-audit: the return of its agent, and the outcome that is stored."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.autopilot.vocabulary import FixComplexity
from fairwitness.contracts.common.base import AgentDocument, Contract, Count, Text
from fairwitness.contracts.common.ids import Commit, PhaseId
from fairwitness.contracts.common.problems import expect


class AuditStatus(StrEnum):
    """Whether a requirement is met."""

    PASS = "pass"
    GAP = "gap"


class AuditedRequirement(AgentDocument):
    """One requirement compared with the files; only a gap has a description and a fix complexity."""

    requirement_id: Text
    expected: Text
    actual_found: Text
    file_line_evidence: Text
    status: AuditStatus
    gap_description: Text | None
    fix_complexity: FixComplexity | None

    @model_validator(mode="after")
    def _only_a_gap_is_described(self) -> Self:
        gap = self.status is AuditStatus.GAP
        expect(self, (self.gap_description is not None) is gap, "gap_description exactly for a gap", "gap_description")
        expect(self, (self.fix_complexity is not None) is gap, "fix_complexity exactly for a gap", "fix_complexity")
        return self


class AuditedPhase(AgentDocument):
    """The audit of one phase, requirement by requirement."""

    phase_id: PhaseId
    requirements_checked: tuple[AuditedRequirement, ...]


class GapDetail(AgentDocument):
    """A gap and a suggested fix."""

    requirement_id: Text
    phase_id: PhaseId
    gap_description: Text
    fix_complexity: FixComplexity
    suggested_fix: Text


class AuditAggregate(AgentDocument):
    """The counts of the audit, and the details of its gaps."""

    total_requirements_checked: Count
    passed_on_first_check: Count
    gaps_found: Count
    gap_details: tuple[GapDetail, ...]

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        total = self.passed_on_first_check + self.gaps_found == self.total_requirements_checked
        expect(self, total, "passed_on_first_check and gaps_found adding up to the total", "total_requirements_checked")
        # Not every gap needs details (one of two in the specification's example), so only a surplus is an error.
        expect(self, len(self.gap_details) <= self.gaps_found, "no more gap_details than gaps_found", "gap_details")
        return self


class SelfAuditReturn(AgentDocument):
    """The return of the audit agent."""

    audit_results: tuple[AuditedPhase, ...]
    aggregate: AuditAggregate


class RemainingGap(Contract):
    """A gap that remains after the fix cycles."""

    requirement_id: Text
    description: Text


class AuditOutcome(Contract):
    """The result of the audit after its fix cycles."""

    total_requirements_checked: Count
    passed_on_first_check: Count
    gaps_found: Count
    gaps_fixed: Count
    gaps_remaining: Count
    remaining_gap_details: tuple[RemainingGap, ...]
    audit_cycles: Annotated[int, Strict(), Field(ge=0, le=2)]
    fix_commits: tuple[Commit, ...]

    @model_validator(mode="after")
    def _counts_add_up(self) -> Self:
        total = self.passed_on_first_check + self.gaps_found == self.total_requirements_checked
        expect(self, total, "passed_on_first_check and gaps_found adding up to the total", "total_requirements_checked")
        gaps = self.gaps_fixed + self.gaps_remaining == self.gaps_found
        expect(self, gaps, "gaps_fixed and gaps_remaining adding up to gaps_found", "gaps_found")
        named = len(self.remaining_gap_details) == self.gaps_remaining
        expect(self, named, "one remaining_gap_details entry per remaining gap", "remaining_gap_details")
        return self


class SelfAuditSummary(Contract):
    """The audit's entry in the completion report."""

    self_audit: AuditOutcome
