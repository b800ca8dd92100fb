"""The facts of a report: plain values read from the ledger."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from fairwitness.app.views.agent_usage import AgentUsage
from fairwitness.app.views.checks import Check, checks_of_whole
from fairwitness.app.views.feature import FeatureView
from fairwitness.app.views.run import RunView
from fairwitness.runs.feature.tasks import FIX_NODE

MOST = 3000
"""The maximum number of rows that are read of a table: the newest."""


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
    """A part of the timeline: a visit of a step, an attempt at a task, or a phase."""

    name: str
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


class JudgedCriterion(NamedTuple):
    """An acceptance criterion with the result of the command that judges it."""

    about: str
    """The task or phase."""
    text: str
    result: str
    evidence: str = ""
    """The command that judges it, or who decided."""
    execution: int | None = None


class Contradiction(NamedTuple):
    """A claim of an agent that the evidence contradicts."""

    task: str
    attempt: str
    found: str


class SubjectResult(NamedTuple):
    """The last verification of a task, a merge or the whole change."""

    is_open: bool
    missing: tuple[str, ...]
    notes: tuple[str, ...]


class Opinion(NamedTuple):
    """A judgement of an agent or a person about a phase, or a change request."""

    about: str
    who: str
    verdict: str
    words: str


class DiffRow(NamedTuple):
    """A line of a diff: `+`, `-` or a space, and its number; the sign `@` separates hunks."""

    sign: str
    number: int
    text: str


class FileDiff(NamedTuple):
    """A file that a change adds, modifies or removes."""

    path: str
    change: str
    added: int
    removed: int
    rows: tuple[DiffRow, ...]


@dataclass(slots=True)
class Difference:
    """What changed between two commits; the files are None if the repository does not hold them."""

    title: str
    base: str
    head: str
    is_result: bool = True
    """Whether this is the result of the run, not the work of a refused attempt."""
    files: tuple[FileDiff, ...] | None = None


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
    titles: dict[str, str] = field(default_factory=dict)
    criteria: list[JudgedCriterion] = field(default_factory=list)
    contradictions: list[Contradiction] = field(default_factory=list)
    proofs: dict[str, SubjectResult] = field(default_factory=dict)
    statements: list[Opinion] = field(default_factory=list)
    head_commit: str | None = None
    """The commit that holds the result so far."""
    landed: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """Every merge that is part of the result: its commit and its tasks."""
    taken_back: set[str] = field(default_factory=set)
    """The tasks whose merge was rolled back."""
    differences: list[Difference] = field(default_factory=list)
    events: int = 0
    checks: list[Check] = field(default_factory=list)
    said: list[ReviewAnswer] = field(default_factory=list)
    calls: list[ReportedCall] = field(default_factory=list)
    answers: list[ApprovalAnswer] = field(default_factory=list)
    used: dict[str, AgentUsage] = field(default_factory=dict)
    """The usage by role."""
    models: tuple[str, ...] = ()
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

    @property
    def merged(self) -> tuple[int, int]:
        """The number of merged tasks, and of all."""
        if self.graph is not None:
            counts = self.graph.counts()
            return counts["merged"], max(counts["total"], len(self.graph.nodes))
        tasks = (
            [task for task in self.feature.started_tasks() if task.name != FIX_NODE] if self.feature is not None else []
        )
        return sum(task.word == "merged" for task in tasks), len(tasks)

    @property
    def criteria_met(self) -> tuple[int, int]:
        """The number of criteria that are met, or whose task passed its checks, and of all."""
        return sum(one.result == "met" for one in self.criteria), len(self.criteria)

    @property
    def final_checks(self) -> list[Check]:
        """The checks of the whole result."""
        return checks_of_whole(self.checks)
