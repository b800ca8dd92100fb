"""How a run ends: completed, failed or paused; its metrics, its report, its diagnostic, and its place in the archive.

The ledger is told first, in one record with the numbers that the run ends with; every file is made from what was kept
there, so that an ending that was cut short is finished by ending once more.
"""

import hashlib
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError

from fairwitness.contracts.autopilot.audit import AuditOutcome
from fairwitness.contracts.autopilot.completion import CompletionReport
from fairwitness.contracts.autopilot.events_run import BatchCompletionReport, RunCompleted, RunHalted
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, TrendSummary
from fairwitness.contracts.autopilot.words import RunFlag, RunStatus
from fairwitness.contracts.common.base import instant
from fairwitness.errors import BadDocument, NotStored
from fairwitness.kit.documents import Format, read
from fairwitness.kit.json_text import render_line
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.cost import run_metrics, trend
from fairwitness.rules.run_moves import is_at_its_end
from fairwitness.runs.autopilot.auditing import AUDIT
from fairwitness.runs.autopilot.completion import completion_of, ordinary_page
from fairwitness.runs.autopilot.log import AutopilotLog, Told, happened
from fairwitness.runs.autopilot.pages_run import completion_file, completion_page, halt_page, metrics_file, metrics_with
from fairwitness.runs.autopilot.state_file import StateFile, archive, archive_beside
from fairwitness.store.artifacts import Store, content_hash
from fairwitness.store.layout import autopilot

METRICS, REPORT = "metrics", "report"

_Event: TypeAlias = Callable[[str, RunMetrics], Told]
"""What tells of the end of a run, given the moment and its numbers."""


class Ended(NamedTuple):
    """What a run that ended came to."""

    metrics: RunMetrics
    trend: TrendSummary | None
    report: CompletionReport | None
    """Only of a `--complete` run."""
    archived: str | None
    """Where its state stands; None for a run that has phases left."""


class Ending:
    """The end of one run."""

    def __init__(self, log: AutopilotLog, files: Store, state_file: StateFile) -> None:
        self._log, self._files, self._state_file = log, files, state_file

    def complete(self, audit: AuditOutcome | None) -> Ended:
        """Ends the run well: every phase passed, and none waits for a person."""

        def completed(now: str, metrics: RunMetrics) -> Told:
            totals = self._log.state().state.metrics
            event = happened(
                RunCompleted,
                now,
                phases_completed=totals.phases_completed,
                duration_minutes=metrics.total_duration_minutes,
                total_tokens_used=totals.total_tokens_used,
            )
            return Told(event)

        ended = self._finish(completed, audit)
        return ended._replace(archived=archive(self._log, self._files))

    def fail(self, reason: str, audit: AuditOutcome | None = None) -> Ended:
        """Ends the run badly; a person may still take it up again."""

        def failed(now: str, _: RunMetrics) -> Told:
            return Told(happened(RunHalted, now, reason=reason, status=RunStatus.FAILED))

        ended = self._finish(failed, audit)
        self.diagnose()
        return ended._replace(archived=self._archive_beside())

    def pause(self, reason: str) -> str:
        """Stops the run until a person goes on with it; where the diagnostic stands."""
        if self._status() is RunStatus.RUNNING:
            now = self._log.now()
            self._log.tell(Told(happened(RunHalted, now, reason=reason, status=RunStatus.PAUSED)))
            killpoint("autopilot.halted")
        path = self.diagnose()
        self._state_file.refresh()
        return path

    def report(self, audit: AuditOutcome | None = None) -> CompletionReport | None:
        """Says how a `--complete` run stands, before a person is waited for and at its end; None for any other run."""
        report = self._kept_report()
        if report is not None:
            self._write_report(report, None, audit, None)
        return report

    def mend(self) -> None:
        """Finishes what was cut short, or what somebody else told of: of a run that ended or was halted every file
        stands afterwards. A run that goes on is left alone."""
        match self._status():
            case RunStatus.COMPLETED:
                self.complete(None)
            case RunStatus.FAILED:
                self._finish(None, None)
                self.diagnose()
                self._archive_beside()
            case RunStatus.PAUSED:
                self.diagnose()
                self._state_file.refresh()
            case RunStatus.RUNNING:
                pass

    def diagnose(self) -> str:
        """Writes the page about the last halt, unless it stands; its path."""
        halted = self._log.ledger.last_event(self._log.run_id, "run_halted")
        assert halted is not None
        path = autopilot.diagnostic(instant(halted.timestamp))
        if not self._files.exists(path):
            reason = str(halted.data.get("reason", "no reason is on record"))
            page = halt_page(self._log.state().state, reason=reason, at=halted.timestamp)
            self._files.put(path, page.encode())
            killpoint("autopilot.diagnostic")
        return path

    def _archive_beside(self) -> str | None:
        """Where a failed run stands in the archive; None as long as it has phases left that could be run."""
        phases = self._log.state().state.phases
        statuses = {phase: record.status for phase, record in phases.items()}
        return archive_beside(self._log, self._files) if is_at_its_end(self._log.order(), statuses) else None

    def _status(self) -> RunStatus:
        return self._log.state().state.meta.status

    def _finish(self, event: _Event | None, audit: AuditOutcome | None) -> Ended:
        """Keeps the numbers of this end together with the event, unless that was told, and writes its files."""
        log = self._log
        audits = log.all_kept(AUDIT, AuditOutcome)
        found = audit or (audits[-1] if audits else None)
        report = self._kept_report()
        is_over = self._status() in (RunStatus.COMPLETED, RunStatus.FAILED)
        key = f"{METRICS}:{self._ends() + (not is_over)}"
        metrics = log.kept(key, RunMetrics)
        if metrics is None:
            numbers = run_metrics(log.state(), now=log.now())
            told = event if not is_over else None
            metrics = log.keep(
                key, METRICS, log.run_id, numbers, None if told is None else lambda now: (told(now, numbers),)
            )
            killpoint("autopilot.ended")
        course = trend(append_metrics(self._files, metrics))
        self._write_report(report, metrics, found, course)
        self._state_file.refresh()
        return Ended(metrics, course, report, None)

    def _ends(self) -> int:
        """How often the run has ended; a pause is no end."""
        told = self._log.ledger.events(self._log.run_id)
        return sum(
            envelope.type == "run_completed"
            or (envelope.type == "run_halted" and envelope.data.get("status") != RunStatus.PAUSED.value)
            for envelope in told
        )

    def _kept_report(self) -> CompletionReport | None:
        """The report on what stands now, told once as long as nothing changes."""
        log = self._log
        if RunFlag.COMPLETE not in log.order().flags:
            return None
        report = completion_of(log, now=log.now())
        said = {name: value for name, value in report.plain().items() if name != "timestamp"}
        facts = hashlib.sha256(render_line(said).encode()).hexdigest()[:16]

        def told(now: str) -> tuple[Told, ...]:
            event = happened(
                BatchCompletionReport,
                now,
                phases_attempted=report.phases_attempted,
                phases_succeeded=report.phases_succeeded,
                phases_failed=report.phases_failed,
                phases_skipped=len(report.phases_skipped),
                completion_percentage=report.completion_percentage,
                report_path=autopilot.COMPLETION_REPORT,
            )
            return (Told(event),)

        return log.keep(f"{REPORT}:{facts}", REPORT, log.run_id, report, told)

    def _write_report(
        self,
        report: CompletionReport | None,
        metrics: RunMetrics | None,
        audit: AuditOutcome | None,
        course: TrendSummary | None,
    ) -> None:
        if report is not None:
            self._put(autopilot.COMPLETION_DATA, completion_file(report))
            self._put(autopilot.COMPLETION_REPORT, completion_page(report, metrics, audit, course))
        elif metrics is not None:
            self._put(autopilot.COMPLETION_REPORT, ordinary_page(metrics, audit, course))

    def _put(self, path: str, text: str) -> None:
        content = text.encode()
        if not self._files.exists(path) or self._files.get(path) != content:
            self._files.put(path, content)
            killpoint("autopilot.report")


def append_metrics(files: Store, run: RunMetrics) -> MetricsFile:
    """Adds a run to `metrics.json`, once; all runs up to and with this one.

    A file that cannot be read is put aside under a name of its own, never overwritten.
    """
    known = _metrics(files)
    after = known if run in known.root else metrics_with(known, run)
    if after is not known:
        files.put(autopilot.METRICS, metrics_file(after).encode())
        killpoint("autopilot.metrics")
    return MetricsFile(after.root[: after.root.index(run) + 1])


def _metrics(files: Store) -> MetricsFile:
    try:
        data = files.get(autopilot.METRICS)
    except NotStored:
        return MetricsFile(())
    try:
        return MetricsFile.model_validate(read(data, Format.JSON).value)
    except (BadDocument, ValidationError):
        name = content_hash(data).removeprefix("sha256:")[:12]
        files.move(autopilot.METRICS, f"{autopilot.ARCHIVE}/metrics-unreadable-{name}.json")
        killpoint("autopilot.aside")
        return MetricsFile(())
