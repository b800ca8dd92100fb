"""An autopilot run as people look at it: its phases as a board, its breaker, what it used, and the numbers of all runs.

Everything is read from the fold of the run's events; files are only named, never believed.
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
from fairwitness.contracts.autopilot.vocabulary import PhaseStatus, RunStatus
from fairwitness.errors import DatabaseBusy, DatabaseUnusable
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.cost import run_metrics, standing_score, trend
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.layout import autopilot as layout

_OVER = (RunStatus.COMPLETED, RunStatus.FAILED)
_REPORTED = (PhaseStatus.IN_PROGRESS, PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.NEEDS_HUMAN_VERIFICATION)


@dataclass(frozen=True, slots=True)
class PhaseLine:
    """One phase on the board."""

    id: str
    name: str
    type: str
    status: str
    step: str | None
    """The step it is at, while it is worked on."""
    score: float | None
    scores: tuple[float, ...]
    """Every score it had, in order."""
    tokens: int
    token_cap: int
    notes: tuple[str, ...]
    """What is odd about it, in a few words each."""

    @property
    def word(self) -> str:
        """Its status as a person reads it."""
        return phase_status_text(self.status)


@dataclass(frozen=True, slots=True)
class AutopilotView:
    """A run as it stands."""

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
    """How many phases were put to a person, of how many that ended."""
    resolution_rate: float
    confidence_limit: float | None

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    def counts(self) -> dict[str, int]:
        """How many phases are in which status; only of those that are there."""
        statuses = [phase.status for phase in self.phases]
        return {status: statuses.count(status) for status in dict.fromkeys(statuses)}


def view_of_log(log: AutopilotLog) -> AutopilotView:
    """The run as its events tell it."""
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
    """The ledger of a repository, to look at."""
    ledger = open_ledger(root)
    try:
        yield ledger
    finally:
        ledger.close()


def view_of_run(root: Path, wanted: str | None) -> AutopilotView:
    """One run as it stands; without a name, the latest."""
    with opened_ledger(root) as ledger:
        return view_of_log(AutopilotLog(ledger, latest_run(ledger, wanted)))


def latest_run_at(root: Path, wanted: str | None) -> str:
    """The run that a person means; without a name, the latest."""
    with opened_ledger(root) as ledger:
        return latest_run(ledger, wanted)


def has_run(root: Path) -> bool:
    """Whether there is any autopilot run here."""
    with suppress(DatabaseUnusable), opened_ledger(root) as ledger:
        return bool(autopilot_runs(ledger))
    return False


def next_autopilot_command(root: Path, view: AutopilotView, *, is_reported: bool = False) -> str:
    """What a person would do next about a run; `is_reported` if its report is what they look at."""
    if view.status == RunStatus.COMPLETED:
        return "fairwitness autopilot next" if is_reported else f"fairwitness autopilot report {view.run_id}"
    if view.waiting:
        return f"fairwitness verdict {view.waiting[0]} pass|fail|issues"
    if view.status == RunStatus.FAILED and not is_reported:
        return f"fairwitness autopilot report {view.run_id}"
    is_carried = view.status == RunStatus.RUNNING and worker_on(root, view.run_id) is not None
    return f"fairwitness {'watch' if is_carried else 'resume'} {view.run_id}"


class LiveBoard:
    """One run that is looked at again and again."""

    def __init__(self, root: Path, run_id: str) -> None:
        self._root, self._run_id = root, run_id
        self._log: AutopilotLog | None = None
        self._last: AutopilotView | None = None

    def open(self) -> None:
        """Begins to look."""
        self._log = AutopilotLog(open_ledger(self._root), self._run_id)

    def close(self) -> None:
        """Ends it."""
        if self._log is not None:
            self._log.ledger.close()

    def view(self) -> AutopilotView:
        """The run as it stands; as it stood, while somebody keeps the ledger busy."""
        assert self._log is not None, "opened before it is looked at"
        try:
            self._last = view_of_log(self._log)
        except DatabaseBusy:
            if self._last is None:
                raise
        return self._last


@dataclass(frozen=True, slots=True)
class RoadmapPhase:
    """A phase of the roadmap, as the runs so far left it."""

    id: str
    name: str
    status: str


def roadmap_phases(root: Path) -> tuple[RoadmapPhase, ...]:
    """All phases of the roadmap as it is now; `UsageError` if it cannot be read."""
    repository = Repository.open(root)
    roadmap = read_project(repository, system_clock).roadmap
    left: dict[str, str] = {}
    with suppress(DatabaseUnusable), opened_ledger(root) as ledger:  # without a ledger nothing was ever run
        for run_id in autopilot_runs(ledger):
            records = AutopilotLog(ledger, run_id).state().state.phases
            left |= {phase: record.status.value for phase, record in records.items() if record.status in _REPORTED}
    left |= dict.fromkeys(roadmap.ticked, PhaseStatus.COMPLETED.value)
    return tuple(
        RoadmapPhase(phase.id, phase.name, left.get(phase.id, PhaseStatus.NOT_STARTED.value))
        for phase in roadmap.phases
    )


@dataclass(frozen=True, slots=True)
class AutopilotReport:
    """A run in numbers, and where its documents are."""

    view: AutopilotView
    metrics: RunMetrics
    documents: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {**self.view.plain(), "metrics": self.metrics.plain(), "documents": list(self.documents)}


def report_of(root: Path, wanted: str | None) -> AutopilotReport:
    """What a run came to, and which of its documents exist."""
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
    """Files that are about this run: some are written anew by every run, so they are about the latest one."""
    found = [layout.archived_state(view.run_id)]
    if is_latest:
        found += [layout.STATE, layout.COMPLETION_REPORT, layout.COMPLETION_DATA, layout.LEARNINGS]
        found += [layout.phase_post_mortem(phase.id) for phase in view.phases]
        found += [layout.phase_confidence(phase.id) for phase in view.phases]
        found += [f"{layout.PHASES}/{phase.id}" for phase in view.phases]
    return (path for path in found if (root / path).exists())


@dataclass(frozen=True, slots=True)
class AllMetrics:
    """The numbers of every run that ended, oldest first, and the trend from two on."""

    runs: MetricsFile
    trend: TrendSummary | None

    def plain(self) -> dict[str, Any]:
        """As plain values."""
        return {"runs": self.runs.plain(), "trend": None if self.trend is None else self.trend.plain()}


def all_metrics(root: Path) -> AllMetrics:
    """What the ledger says of all runs; the file beside the archive is written from the same."""
    entries = []
    with opened_ledger(root) as ledger:
        for run_id in autopilot_runs(ledger):
            folded = AutopilotLog(ledger, run_id).state()
            if folded.state.meta.status in _OVER:
                entries.append(run_metrics(folded, now=folded.state.meta.last_checkpoint))
    found = MetricsFile(tuple(entries))
    return AllMetrics(found, trend(found))
