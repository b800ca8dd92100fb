"""The evidence bundle of a run as values: everything its page shows, with the source of each part."""

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
    """One task or the whole change, with the answers of its gates and the worth of its rows."""

    name: str
    is_whole: bool
    planned_risk: Risk
    risk: Risk
    """The higher of the planner's risk and the risk of the files that really changed."""
    size: Size
    iteration: int
    is_verified: bool
    gates: tuple[GateAnswer, ...]
    standings: Mapping[RowWorth, int]
    """The rows of this iteration by what they are worth."""
    sources: Mapping[Provenance, int]
    """The same rows by their source."""
    regressions: tuple[str, ...]
    red_before_too: tuple[str, ...]
    attempts: int
    reverts: int
    merged: str | None


@dataclass(frozen=True, slots=True)
class OnRecord:
    """Rows about a task that a new plan removed."""

    name: str
    rows: int
    passed: int


@dataclass(frozen=True, slots=True)
class Reviewer:
    """What one perspective filed in one round; `findings` is None if they are not recorded."""

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
    """Agents that filed rows without being a reviewer of this round."""
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
    """Whether the file is among the changes of the whole tree that was verified."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An open issue; `severity` is None if it was not rated."""

    severity: Severity | None
    what: str
    source: str
    is_claim: bool


@dataclass(frozen=True, slots=True)
class DegradationNote:
    """A degradation of the run; `detail` is None if no event gives it."""

    kind: Degradation
    detail: str | None


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """An answer at a gate, given by a person or automatically."""

    gate: str
    when: str
    mode: ApprovalMode
    option: str
    is_auto: bool
    actor: str
    said: str | None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """The usage of agent calls; usage that was not counted is kept apart from zero."""

    rows: tuple[Dispatch, ...]
    counted: int
    """Calls whose tokens were counted."""
    tokens_in: int
    tokens_out: int
    priced: int
    """Calls whose price is known."""
    cost_micros: int
    models: tuple[str, ...]
    refused: int
    """Requests of agents that their roles do not permit."""
    unfinished: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunBundle:
    """The whole bundle, as of one head of the ledger."""

    state: FeatureState
    confidence: Graded
    may_commit: bool
    tasks: tuple[CheckedTask, ...]
    whole: CheckedTask | None
    elsewhere: tuple[OnRecord, ...]
    rounds: tuple[Round, ...]
    unheard: int
    """Review rows that no gate reads."""
    files: tuple[TouchedFile, ...]
    issues: tuple[Issue, ...]
    less: tuple[DegradationNote, ...]
    answers: tuple[HumanAnswer, ...]
    waiting: tuple[str, ...]
    """Gates without an answer."""
    telemetry: Telemetry
    evaluations: Evaluations
    head: Head
