"""What is to happen in a feature run on paper: how every call ends, what every check says, what a person answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.facts import GateChoice, HumanGate
from fairwitness.contracts.feature.review import Category


class How(StrEnum):
    """How a call can end."""

    DONE = "done"
    ERROR = "error"
    TIMEOUT = "timeout"
    UNUSABLE = "unusable"
    """Of a planner: the answer is valid, and its plan breaks its limits."""
    REVISION = "revision"
    """Of a verifier: it says NEEDS_REVISION itself."""
    OVER_BUDGET = "over_budget"
    """It may not begin; whoever resumes the run gives it more."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How one call ends."""

    how: How = How.DONE
    cause: ErrorCause = ErrorCause.AGENT_ERROR
    """Of an error."""
    concerns: tuple[Severity, ...] = ()
    """Of the intake and of the specification."""
    findings: tuple[tuple[Category, Severity], ...] = ()
    """Of a reviewer."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What the checks of an attempt, or of the whole change, say."""

    failing: frozenset[str] = frozenset()
    """Checks that passed before and fail now."""
    silent: frozenset[str] = frozenset()
    """Checks that gave no evidence."""
    has_baseline: bool = True
    can_run: bool = True
    """False: nothing of the third tier could be run, and a remark says so."""
    merges: bool = True
    """False: its own evidence is good, and the merged tree is red."""


def error(cause: ErrorCause = ErrorCause.AGENT_ERROR) -> Ending:
    """A call that fails."""
    return Ending(How.ERROR, cause)


def finds(*found: tuple[Category, Severity]) -> Ending:
    """A reviewer that finds something."""
    return Ending(findings=found)


def worries(*concerns: Severity) -> Ending:
    """An intake, or a specification, with concerns."""
    return Ending(concerns=concerns)


def fails(*checks: str) -> Rows:
    """An attempt whose checks fail."""
    return Rows(failing=frozenset(checks or ("tests",)))


@dataclass(frozen=True, slots=True)
class Script:
    """One run; whatever it does not mention goes well."""

    mode: ApprovalMode = ApprovalMode.AUTONOMOUS
    policy: Policy = field(default_factory=Policy)
    calls: Mapping[str, Ending] = field(default_factory=dict)
    """By the dispatch's id: step, visit, instance and try (`step-1-1-researcher-impact-2`); in a graph, step, graph,
    task and try (`step-5-1-task-01-1`)."""
    rows: Mapping[str, Rows] = field(default_factory=dict)
    """By task and graph (`task-01:1`); of the whole change by how often the run was resumed (`whole:0`)."""
    answers: Mapping[HumanGate, tuple[GateChoice, ...]] = field(default_factory=dict)
    """What a person answers at a gate, time after time; then what is offered first."""
    is_one_model: bool = False
    """Whether all agents are the same model."""
    is_unseen: bool = False
    """Whether nothing that an agent opened was seen."""
    sandbox: SandboxTier = SandboxTier.NAMESPACES
    resumes: int = 0
    """How often somebody resumes the run when it has stopped and may go on."""

    def ending(self, dispatch_id: str) -> Ending:
        """How a call ends."""
        return self.calls.get(dispatch_id, Ending())

    def rows_of(self, task: str, number: int) -> Rows:
        """What the checks say of an attempt."""
        return self.rows.get(f"{task}:{number}", Rows())


AUTONOMOUS, INTERACTIVE = ApprovalMode.AUTONOMOUS, ApprovalMode.INTERACTIVE
