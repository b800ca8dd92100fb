"""The state of a feature run, computed from its events; every view is derived from it."""

from collections.abc import Mapping
from typing import Literal

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Prose, Text, Texts, Timestamp
from fairwitness.contracts.common.completion import StepId
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.ids import (
    Commit,
    FeatureRunId,
    GitRef,
    NodeId,
    RelPath,
    SafeName,
    Sha256,
    Slug,
    TaskId,
)
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Confidence, Severity
from fairwitness.contracts.feature.events import Degradation, DispatchStatus, FeatureRunOutcome, StepOutcome
from fairwitness.contracts.feature.pushback import PushbackOption
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope


class StepState(Contract):
    """One step; it is running if it has no outcome."""

    runs: Positive
    """How many times it was started; loops start a step again."""
    started_at: Timestamp
    finished_at: Timestamp | None
    outcome: StepOutcome | None
    reason: Maybe[Text] = None


class DispatchState(Contract):
    """One agent call; it is running if it has no status."""

    step: StepId
    agent: Role
    instance: Text
    started_at: Timestamp
    status: DispatchStatus | None
    duration_ms: Count
    tokens: Count
    refused_calls: Count
    reason: Maybe[Text] = None
    cause: Maybe[ErrorCause] = None
    visit: Count
    """Which visit of its step it belongs to; 0 if it was made before the step began."""
    attempt: Maybe[Positive] = None
    """The attempt of its task."""
    life: Count
    """How often the run had been resumed."""


class AttemptState(Contract):
    """One attempt at a task; it is running if it has no verdict."""

    attempt: Positive
    branch: GitRef
    started_at: Timestamp
    verified: Flag | None
    tree: Maybe[Commit] = None
    reason: Maybe[Text] = None


class TaskState(Contract):
    """One task with all its attempts."""

    attempts: tuple[AttemptState, ...]
    merged: Commit | None
    merged_attempt: Positive | None
    reverts: Count


class ApprovalState(Contract):
    """One question; it is open if no option is selected."""

    options: tuple[SafeName, ...]
    asked_at: Timestamp
    answered_at: Timestamp | None
    selected_option: SafeName | None
    auto_selected: Flag
    actor: Maybe[Text] = None
    visit: Count
    """Which visit of its step asked it."""
    spent: tuple[SafeName, ...]
    """What was selected here before."""


class GateState(Contract):
    """The latest answer of a gate."""

    open: Flag
    count: Count
    threshold: Count
    missing: Texts
    asked_at: Timestamp


class ReviewState(Contract):
    """What one reviewer said in one round."""

    scope: ReviewScope
    round: Positive
    perspective: Perspective
    verdicts: Mapping[Category, CategoryVerdict]


class PushbackState(Contract):
    """Concerns that were raised, and what was chosen."""

    step: StepId
    concerns: Count
    worst: Severity | None
    selected_option: PushbackOption
    auto_selected: Flag


class ReplanState(Contract):
    """One more round for failing tasks."""

    by: Maybe[Literal["implementer"]] = None
    """Who does them again as planned; None if the planner replaces them first."""
    iteration: Positive
    failing: tuple[TaskId, ...]


class DegradationState(Contract):
    """One degradation of the run."""

    kind: Degradation
    detail: Text


class ExhaustedState(Contract):
    """A cap that was reached."""

    what: Text
    cap: Count
    used: Count


class LedgerHead(Contract):
    """The ledger's chain head as it was last recorded."""

    head: Sha256
    rows: Count


class LeftPath(Contract):
    """Why the run left the light path, and the number of code reviews that it had made there."""

    reason: Text
    code_reviews: Count


class RunEnding(Contract):
    """How the run ended."""

    outcome: FeatureRunOutcome
    confidence: Confidence | None
    commit: Maybe[Commit] = None
    reason: Prose
    finished_at: Timestamp


class FeatureState(Contract):
    """The state of the run after one event."""

    run_id: FeatureRunId
    seq: Positive
    last_event_id: SafeName
    started_at: Timestamp
    updated_at: Timestamp
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    baseline_tag: GitRef
    settings_hash: Sha256
    path: RunPath = RunPath.FULL
    left_path: Maybe[LeftPath] = None
    resumed: Count = 0
    current_step: StepId | None = None
    steps: Mapping[StepId, StepState] = {}
    dispatches: Mapping[SafeName, DispatchState] = {}
    tasks: Mapping[NodeId, TaskState] = {}
    approvals: Mapping[SafeName, ApprovalState] = {}
    gates: Mapping[SafeName, GateState] = {}
    reviews: tuple[ReviewState, ...] = ()
    pushbacks: tuple[PushbackState, ...] = ()
    replans: tuple[ReplanState, ...] = ()
    artifacts: Mapping[RelPath, Sha256] = {}
    degradations: tuple[DegradationState, ...] = ()
    exhausted: tuple[ExhaustedState, ...] = ()
    decisions: Count = 0
    ledger_head: LedgerHead | None = None
    commit: Commit | None = None
    rollback_command: Maybe[Text] = None
    ending: RunEnding | None = None
