"""Views of autopilot runs: the board with breaker and usage, the roadmap, the report, and metrics of all runs.

Everything is read from the fold of the run's events; files are listed but never trusted.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.autopilot_project import read_project
from fairwitness.app.repository import repository_root
from fairwitness.app.run_records.autopilot_history import autopilot_runs, latest_run
from fairwitness.app.views.ledger import open_ledger
from fairwitness.app.views.run import phase_status_text
from fairwitness.app.views.workers import worker_on
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, TrendSummary
from fairwitness.contracts.autopilot.phase_record import PhaseRecord
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.errors import DatabaseBusy, DatabaseUnusable
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.cost import run_metrics, standing_score, trend
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.layout import autopilot as layout

_OVER = (AutopilotRunStatus.COMPLETED, AutopilotRunStatus.FAILED)
_REPORTED = (PhaseStatus.IN_PROGRESS, PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.NEEDS_HUMAN_VERIFICATION)


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """A phase on the board."""

    id: str
    name: str
    type: str
    status: str
    step: str | None
    """The current step; None unless the phase is in progress."""
    score: float | None
    scores: tuple[float, ...]
    """All scores so far, in order."""
    tokens: int
    token_cap: int
    notes: tuple[str, ...]
    """Remarks of a few words each, such as `remediated 2x`."""

    @property
    def word(self) -> str:
        """The status in words."""
        return phase_status_text(self.status)


@dataclass(frozen=True, slots=True)
class AutopilotView:
    """The current state of an autopilot run."""

    run_id: str
    status: str
    flags: tuple[str, ...]
    threshold: float
    target: str
    phases: tuple[PhaseLine, ...]
    current_phase: str | None
    current_step: str | None
    tokens: int
    token_cap: int
    minutes: float
    minute_cap: int
    breaker: str
    cooldown_until: str | None
    last_error: str | None
    waiting: tuple[str, ...]
    """Phases that wait for a verdict."""
    deferred: int
    processed: int
    """How many phases were deferred to a person, and how many ended."""
    resolution_rate: float
    confidence_limit: float | None

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return asdict(self)

    def counts(self) -> dict[str, int]:
        """Return the number of phases per status, for the statuses that occur."""
        statuses = [phase.status for phase in self.phases]
        return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def view_of_log(log: AutopilotLog) -> AutopilotView:
    """Return the state of a run, folded from its events."""
    order, state = log.order(), log.state().state
    meta, limits = state.meta, order.limits.breaker
    named = {phase.id: phase for phase in order.roadmap.phases}
    lines = tuple(
        _line(
            phase,
            named[phase if phase in named else phase[:-1]].name,
            record,
            step=meta.current_step if phase == meta.current_phase else None,
            cap=limits.cost_cap_tokens_per_phase,
        )
        for phase, record in state.phases.items()
    )
    return AutopilotView(
        run_id=log.run_id,
        status=meta.status.value,
        flags=tuple(flag.value for flag in order.flags),
        threshold=meta.pass_threshold,
        target=order.target,
        phases=lines,
        current_phase=meta.current_phase,
        current_step=None if meta.current_step is None else meta.current_step.value,
        tokens=state.metrics.total_tokens_used,
        token_cap=limits.cost_cap_tokens_total,
        minutes=state.metrics.total_duration_minutes,
        minute_cap=limits.wall_clock_timeout_minutes_total,
        breaker=state.circuit_breaker.state.value,
        cooldown_until=state.circuit_breaker.cooldown_until,
        last_error=None if state.circuit_breaker.state is BreakerPosition.CLOSED else state.circuit_breaker.last_error,
        waiting=tuple(line.id for line in lines if line.status == PhaseStatus.NEEDS_HUMAN_VERIFICATION),
        deferred=meta.human_deferred_count,
        processed=meta.total_phases_processed,
        resolution_rate=meta.autonomous_resolution_rate,
        confidence_limit=meta.deferral_confidence,
    )


def _line(phase: str, name: str, record: PhaseRecord, *, step: str | None, cap: int) -> PhaseLine:
    return PhaseLine(
        id=phase,
        name=name,
        type=record.phase_type.value,
        status=record.status.value,
        step=None if step is None else str(step),
        score=standing_score(record),
        scores=tuple(entry.score for entry in record.score_history),
        tokens=record.tokens_used,
        token_cap=cap,
        notes=tuple(_notes(record)),
    )


def _notes(record: PhaseRecord) -> Iterator[str]:
    if record.remediation_cycles:
        yield f"remediated {record.remediation_cycles}x"
    if record.debug_attempts:
        yield f"debugged {record.debug_attempts}x"
    if record.replan_attempts:
        yield "planned anew"
    if record.force_incomplete:
        yield "below the threshold"
    if record.quality_exhausted:
        yield "quality exhausted"
    if record.gaps_exhausted:
        yield "gaps exhausted"
    if record.rubber_stamp_suspect:
        yield "scores hardly differ"
    if record.human_verdict is not None:
        yield f"a person said {record.human_verdict.verdict.value.replace('_', ' ')}"


@contextmanager
def opened_ledger(root: Path) -> Iterator[Ledger]:
    """Open the ledger of a repository for reading."""
    ledger = open_ledger(root)
    try:
        yield ledger
    finally:
        ledger.close()


def view_of_run(root: Path, wanted: str | None) -> AutopilotView:
    """Return the current state of a run; of the latest if none is named."""
    with opened_ledger(root) as ledger:
        return view_of_log(AutopilotLog(ledger, latest_run(ledger, wanted)))


def latest_run_at(root: Path, wanted: str | None) -> str:
    """Return the id of the named run, or of the latest."""
    with opened_ledger(root) as ledger:
        return latest_run(ledger, wanted)


def has_run(root: Path) -> bool:
    """Return whether the repository has an autopilot run."""
    with suppress(DatabaseUnusable), opened_ledger(root) as ledger:
        return bool(autopilot_runs(ledger))
    return False


def next_autopilot_command(root: Path, view: AutopilotView, *, is_reported: bool = False) -> str:
    """Return the next command for a run; `is_reported` means that its report was just shown."""
    if view.status == AutopilotRunStatus.COMPLETED:
        return "fairwitness autopilot next" if is_reported else f"fairwitness autopilot report {view.run_id}"
    if view.waiting:
        return f"fairwitness verdict {view.waiting[0]} pass|fail|issues"
    if view.status == AutopilotRunStatus.FAILED and not is_reported:
        return f"fairwitness autopilot report {view.run_id}"
    is_carried = view.status == AutopilotRunStatus.RUNNING and worker_on(root, view.run_id) is not None
    return f"fairwitness {'watch' if is_carried else 'resume'} {view.run_id}"


class LiveBoard:
    """A view of one run that is read repeatedly."""

    def __init__(self, root: Path, run_id: str) -> None:
        self._root, self._run_id = root, run_id
        self._log: AutopilotLog | None = None
        self._last: AutopilotView | None = None

    def open(self) -> None:
        """Open the ledger."""
        self._log = AutopilotLog(open_ledger(self._root), self._run_id)

    def close(self) -> None:
        """Close the ledger."""
        if self._log is not None:
            self._log.ledger.close()

    def view(self) -> AutopilotView:
        """Return the current state of the run, or the last known one while the ledger is busy."""
        assert self._log is not None, "opened before it is looked at"
        try:
            self._last = view_of_log(self._log)
        except DatabaseBusy:
            if self._last is None:
                raise
        return self._last


@dataclass(frozen=True, slots=True)
class RoadmapPhaseView:
    """A phase of the roadmap with its status after all runs so far."""

    id: str
    name: str
    status: str


def roadmap_phases(root: Path) -> tuple[RoadmapPhaseView, ...]:
    """Return all phases of the current roadmap; raise `UsageError` if it cannot be read."""
    repository = Repository.open(root)
    roadmap = read_project(repository, system_clock).roadmap
    left: dict[str, str] = {}
    with suppress(DatabaseUnusable), opened_ledger(root) as ledger:  # without a ledger there was no run
        for run_id in autopilot_runs(ledger):
            records = AutopilotLog(ledger, run_id).state().state.phases
            left |= {phase: record.status.value for phase, record in records.items() if record.status in _REPORTED}
    left |= dict.fromkeys(roadmap.ticked, PhaseStatus.COMPLETED.value)
    return tuple(
        RoadmapPhaseView(phase.id, phase.name, left.get(phase.id, PhaseStatus.NOT_STARTED.value))
        for phase in roadmap.phases
    )


@dataclass(frozen=True, slots=True)
class AutopilotReport:
    """The metrics of a run and the paths of its documents."""

    view: AutopilotView
    metrics: RunMetrics
    documents: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {**self.view.plain(), "metrics": self.metrics.plain(), "documents": list(self.documents)}


def report_of(root: Path, wanted: str | None) -> AutopilotReport:
    """Return the state and metrics of a run, and those of its documents that exist."""
    with opened_ledger(root) as ledger:
        log = AutopilotLog(ledger, latest_run(ledger, wanted))
        view = view_of_log(log)
        folded = log.state()
        return AutopilotReport(
            view,
            run_metrics(folded, now=folded.state.meta.last_checkpoint),
            tuple(_documents(repository_root(root), view, is_latest=log.run_id == autopilot_runs(ledger)[-1])),
        )


def _documents(root: Path, view: AutopilotView, *, is_latest: bool) -> Iterator[str]:
    """Yield the existing files of a run. Every run overwrites some of them, so those belong to the latest run."""
    found = [layout.archived_state(view.run_id)]
    if is_latest:
        found += [layout.STATE, layout.COMPLETION_REPORT, layout.COMPLETION_DATA, layout.LEARNINGS]
        found += [layout.phase_post_mortem(phase.id) for phase in view.phases]
        found += [layout.phase_confidence(phase.id) for phase in view.phases]
        found += [f"{layout.PHASES}/{phase.id}" for phase in view.phases]
    return (path for path in found if (root / path).exists())


@dataclass(frozen=True, slots=True)
class AllMetrics:
    """The metrics of every run that ended, oldest first, and the trend if there are two or more."""

    runs: MetricsFile
    trend: TrendSummary | None

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {"runs": self.runs.plain(), "trend": None if self.trend is None else self.trend.plain()}


def all_metrics(root: Path) -> AllMetrics:
    """Return the metrics of all ended runs; the metrics file beside the archive holds the same data."""
    entries = []
    with opened_ledger(root) as ledger:
        for run_id in autopilot_runs(ledger):
            folded = AutopilotLog(ledger, run_id).state()
            if folded.state.meta.status in _OVER:
                entries.append(run_metrics(folded, now=folded.state.meta.last_checkpoint))
    found = MetricsFile(tuple(entries))
    return AllMetrics(found, trend(found))
