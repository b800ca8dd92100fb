"""Views of autopilot runs beside the board: the roadmap, the report, and metrics of all runs.

Everything is read from the ledger; files are listed but never trusted.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.autopilot_project import read_project
from fairwitness.app.repository import repository_root
from fairwitness.app.run_records.autopilot_history import autopilot_runs, latest_run
from fairwitness.app.views.board import AutopilotView, view_of_summary
from fairwitness.app.views.ledger import open_ledger
from fairwitness.app.views.workers import worker_on
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, TrendSummary
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus
from fairwitness.errors import DatabaseUnusable
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.cost import run_metrics, trend
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.layout import autopilot as layout

_OVER = (AutopilotRunStatus.COMPLETED, AutopilotRunStatus.FAILED)
_REPORTED = (PhaseStatus.IN_PROGRESS, PhaseStatus.COMPLETED, PhaseStatus.FAILED, PhaseStatus.NEEDS_HUMAN_VERIFICATION)


@contextmanager
def opened_ledger(root: Path) -> Iterator[Ledger]:
    """Open the ledger of a repository for reading."""
    ledger = open_ledger(root)
    try:
        yield ledger
    finally:
        ledger.close()


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
        view = view_of_summary(ledger.database, log.run_id)
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
