"""Schema 7, `implementation-report`: what an implementer says it changed. A claim; the harness measures for itself."""

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from fairwitness.contracts.common.base import AgentDocument, Count, Flag, Integer, Maybe, Text
from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.ids import RelPath, TaskId
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.evaluation import ArtifactEvaluation


class TaskType(StrEnum):
    """What kind of work a task is."""

    CODE = "code"
    DOCUMENTATION = "documentation"
    CONFIGURATION = "configuration"


class ChangeAction(StrEnum):
    """What happened to a file."""

    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class Diagnostics(AgentDocument):
    """Counts of errors and warnings."""

    errors: Count
    warnings: Count


class TestSummary(AgentDocument):
    """Counts of tests."""

    __test__ = False  # the name begins with Test, but it is no test class

    total: Count
    passed: Count
    failed: Count


class Baseline(AgentDocument):
    """What the implementer says it saw before it changed anything."""

    ide_diagnostics: Maybe[Diagnostics] = None
    """Counts that only an editor shows; an agent is not asked for them."""
    build_exit_code: Integer | None
    test_summary: TestSummary | None


class SelfCheck(AgentDocument):
    """What the implementer says it saw afterwards."""

    ide_diagnostics: Maybe[Diagnostics] = None
    """Counts that only an editor shows; an agent is not asked for them."""
    build_exit_code: Integer | None
    test_summary: TestSummary | None
    self_fix_attempts: Annotated[Integer, Field(ge=0, le=2)]
    git_staged: Flag


class ReportedChange(AgentDocument):
    """One file that was touched."""

    path: RelPath
    action: ChangeAction
    description: Text


class VerificationEntry(AgentDocument):
    """A baseline check the implementer reports; never a ledger row by itself."""

    check_name: Text
    phase: Literal["baseline"]
    tool: Text
    passed: Flag


class FindingOutcome(StrEnum):
    """What became of a finding in a fix."""

    FIXED = "fixed"
    PARTLY = "partly"
    NOT_FIXED = "not_fixed"


class FindingAnswer(AgentDocument):
    """What was done about one finding of the review."""

    id: Text
    """The finding's id, exactly as it was given."""
    outcome: FindingOutcome
    note: Text
    """What was changed, or why nothing was."""


class ImplementationPayload(AgentDocument):
    """The report."""

    task_id: TaskId
    task_type: TaskType
    baseline: Baseline
    changes: Annotated[tuple[ReportedChange, ...], Field(min_length=1)]
    self_check: SelfCheck
    verification_entries: Maybe[tuple[VerificationEntry, ...]] = None
    artifact_evaluations: Maybe[tuple[ArtifactEvaluation, ...]] = None
    finding_answers: Maybe[tuple[FindingAnswer, ...]] = None
    """One for each finding that the task hands over."""


class ImplementationReport(SignedDocument[ImplementationPayload]):
    """Schema 7: `implementation-reports/<task-id>.yaml`."""

    signer = FeatureAgent.IMPLEMENTER
