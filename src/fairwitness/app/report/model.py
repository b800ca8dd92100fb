"""The facts of a report: plain values read from the ledger."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.run import RunView


class Check(NamedTuple):
    """A check of the ledger with its source."""

    id: int
    task: str | None
    phase: str
    round: int
    name: str
    instance: str | None
    passed: int
    verdict: str | None
    severity: str | None
    command: str | None
    exit_code: int | None
    snippet: str | None
    provenance: str | None
    execution: int | None
    assessment: str | None
    tree: str | None
    sandbox: str | None
    duration_ms: int | None


class ReviewAnswer(NamedTuple):
    """The answer of a reviewer in one round."""

    task: str | None
    agent: str
    instance: str | None
    round: int
    body: dict[str, Any]


class ReportedCall(NamedTuple):
    """A finished call of an agent."""

    step: str
    agent: str
    instance: str | None
    started_at: str
    completed_at: str | None
    status: str | None
    dispatch_count: int
    retry_count: int
    notes: str | None


class ApprovalAnswer(NamedTuple):
    """An answer to an approval question."""

    gate: str
    at: str
    mode: str
    option: str
    is_auto: int
    actor: str
    said: str | None


@dataclass(slots=True)
class Visit:
    """A visit of a step."""

    step: str
    started: str
    finished: str | None = None
    outcome: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class TaskAttempt:
    """An attempt at a task."""

    task: str
    number: int
    branch: str
    agent: str
    started: str
    word: str = "under way"
    tree: str | None = None
    reason: str | None = None


class Decision(NamedTuple):
    """A decision with its gates and facts."""

    number: int
    kind: str
    reason: str
    at: str
    decision: dict[str, Any]
    facts: dict[str, Any]


class GateEvaluation(NamedTuple):
    """A result of a gate during the run."""

    at: str
    gate: str
    task: str | None
    is_open: bool
    counted: int
    threshold: int
    missing: str


class Used(NamedTuple):
    """The usage of a run's calls, as far as it was counted."""

    calls: int
    counted: int
    tokens_in: int
    tokens_out: int
    priced: int
    cost_micros: int
    models: tuple[str, ...]


NOTHING_USED = Used(0, 0, 0, 0, 0, 0, ())


@dataclass(slots=True)
class ReportFacts:
    """Everything that a report shows of a run."""

    run_id: str
    workflow: str = "verify"
    """The workflow of a run without events is `verify`."""
    order: dict[str, Any] = field(default_factory=dict)
    feature: FeatureView | None = None
    graph: RunView | None = None
    visits: list[Visit] = field(default_factory=list)
    attempts: dict[tuple[str, int], TaskAttempt] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    asked: list[GateEvaluation] = field(default_factory=list)
    documents: dict[str, str] = field(default_factory=dict)
    events: int = 0
    checks: list[Check] = field(default_factory=list)
    said: list[ReviewAnswer] = field(default_factory=list)
    calls: list[ReportedCall] = field(default_factory=list)
    answers: list[ApprovalAnswer] = field(default_factory=list)
    used: Used = NOTHING_USED
    left_out: int = 0
    """The number of older checks that were not read."""
    links: int = 0
    head: str = ""

    @property
    def last_moment(self) -> datetime:
        """The time of the last event."""
        view = self.feature or self.graph
        if view is None or not view.last_time:
            return datetime.fromtimestamp(0, UTC)
        return datetime.fromisoformat(view.last_time)
