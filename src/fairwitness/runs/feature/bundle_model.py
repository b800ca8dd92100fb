"""The evidence bundle of a run as values: everything its page shows, and how each part came to be known."""

from collections.abc import Mapping
from dataclasses import dataclass

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import Graded
from fairwitness.contracts.common.evidence import CheckRow, Dispatch, Provenance
from fairwitness.contracts.common.gates import GateAnswer
from fairwitness.contracts.common.vocabulary import Risk, Severity, Size
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import ChangeKind
from fairwitness.contracts.feature.review import Category, EarlierFinding, ReviewFinding, ReviewScope
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.ledger.chain import Head
from fairwitness.rules.evidence_worth import RowWorth
from fairwitness.rules.review import Situation
from fairwitness.runs.feature.metrics_pages import Evaluations


@dataclass(frozen=True, slots=True)
class CheckedTask:
    """One task, or the whole change: what its gates answer and what its rows are worth."""

    name: str
    is_whole: bool
    planned_risk: Risk
    risk: Risk
    """The higher of the planner's colour and that of the files really changed."""
    size: Size
    iteration: int
    is_verified: bool
    gates: tuple[GateAnswer, ...]
    standings: Mapping[RowWorth, int]
    """Rows of this iteration by what they are worth."""
    sources: Mapping[Provenance, int]
    """The same rows by where they come from."""
    regressions: tuple[str, ...]
    red_before_too: tuple[str, ...]
    attempts: int
    reverts: int
    merged: str | None


@dataclass(frozen=True, slots=True)
class OnRecord:
    """Rows about something that no fact of the run is about any more: a task that was replanned away."""

    name: str
    rows: int
    passed: int


@dataclass(frozen=True, slots=True)
class Reviewer:
    """What one perspective filed in one round; its findings are None if they are not on record."""

    perspective: str
    rows: Mapping[Category, CheckRow]
    findings: tuple[ReviewFinding, ...] | None
    earlier: tuple[EarlierFinding, ...]


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a review."""

    scope: ReviewScope
    number: int
    reviewers: tuple[Reviewer, ...]
    strangers: tuple[str, ...]
    """Who filed rows without being one of the three."""
    gates: tuple[GateAnswer, ...]
    situation: Situation


@dataclass(frozen=True, slots=True)
class TouchedFile:
    """A file of the change."""

    path: str
    change: ChangeKind
    colour: Risk
    tasks: tuple[str, ...]
    is_committed: bool
    """Whether it is among the changes of the whole tree that was verified."""


@dataclass(frozen=True, slots=True)
class Issue:
    """Something left open; the severity is None where nobody rated it."""

    severity: Severity | None
    what: str
    source: str
    is_claim: bool


@dataclass(frozen=True, slots=True)
class DegradationNote:
    """A way in which the run went on with less; the detail is None if no event tells it."""

    kind: Degradation
    detail: str | None


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """An answer to a question that could wait for a person."""

    gate: str
    when: str
    mode: ApprovalMode
    option: str
    is_auto: bool
    actor: str
    said: str | None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """What the calls of agents used; what nobody counted is told apart from nothing."""

    rows: tuple[Dispatch, ...]
    counted: int
    """Calls whose tokens somebody counted."""
    tokens_in: int
    tokens_out: int
    priced: int
    """Calls whose price is known."""
    cost_micros: int
    models: tuple[str, ...]
    refused: int
    """Things agents asked for that their roles may not do."""
    unfinished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class EvidenceBundle:
    """Everything, as of one head of the chain."""

    state: FeatureState
    confidence: Graded
    may_commit: bool
    tasks: tuple[CheckedTask, ...]
    whole: CheckedTask | None
    elsewhere: tuple[OnRecord, ...]
    rounds: tuple[Round, ...]
    unheard: int
    """Review rows that no gate looks at."""
    files: tuple[TouchedFile, ...]
    issues: tuple[Issue, ...]
    less: tuple[DegradationNote, ...]
    answers: tuple[HumanAnswer, ...]
    waiting: tuple[str, ...]
    """Questions nobody has answered."""
    telemetry: Telemetry
    evaluations: Evaluations
    head: Head
