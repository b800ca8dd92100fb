"""A run as a report tells it: plain values, as they were read from the ledger."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.run import RunView


class Check(NamedTuple):
    """One row of the ledger with its source."""

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
    """What a reviewer returned in one round."""

    task: str | None
    agent: str
    instance: str | None
    round: int
    body: dict[str, Any]


class AgentCall(NamedTuple):
    """One row of telemetry."""

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
    """One answer to a question."""

    gate: str
    at: str
    mode: str
    option: str
    is_auto: int
    actor: str
    said: str | None


@dataclass(slots=True)
class Visit:
    """One visit of a step."""

    step: str
    started: str
    finished: str | None = None
    outcome: str | None = None
    reason: str | None = None


@dataclass(slots=True)
class TaskAttempt:
    """One try at a task."""

    task: str
    number: int
    branch: str
    agent: str
    started: str
    word: str = "under way"
    tree: str | None = None
    reason: str | None = None


class Decision(NamedTuple):
    """One decision, with the gates it asked and the facts it rests on."""

    number: int
    kind: str
    reason: str
    at: str
    decision: dict[str, Any]
    facts: dict[str, Any]


class GateEvaluation(NamedTuple):
    """A gate that was asked while the run went on."""

    at: str
    gate: str
    task: str | None
    is_open: bool
    counted: int
    threshold: int
    missing: str


class Used(NamedTuple):
    """What the calls of a run used, as far as anybody counted."""

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
    """A run."""

    run_id: str
    workflow: str = "verify"
    """Of a run that has no events: only checks were run."""
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
    calls: list[AgentCall] = field(default_factory=list)
    answers: list[ApprovalAnswer] = field(default_factory=list)
    used: Used = NOTHING_USED
    left_out: int = 0
    """How many checks are too old to be read."""
    links: int = 0
    head: str = ""

    @property
    def last_moment(self) -> datetime:
        """The moment of the last event: as late as anything that is told here."""
        view = self.feature or self.graph
        if view is None or not view.last_time:
            return datetime.fromtimestamp(0, UTC)
        return datetime.fromisoformat(view.last_time)
