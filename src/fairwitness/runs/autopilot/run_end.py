"""The end of a run: completed, failed or paused, with metrics, report, diagnostic and archive.

The ledger comes first, in one record with the final numbers; every file is made from that record. An end that was cut
short is finished by ending again.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError

from fairwitness.contracts.autopilot.audit import AuditOutcome
from fairwitness.contracts.autopilot.completion import BlockedPhase, CompletionReport, DependencyGap, SkippedPhase
from fairwitness.contracts.autopilot.events_phase import HumanVerdictRecorded, PhaseFailed, PhaseSkipped
from fairwitness.contracts.autopilot.events_run import AutopilotRunCompleted, BatchCompletionReport, RunHalted
from fairwitness.contracts.autopilot.metrics import MetricsFile, RunMetrics, TrendSummary
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, PhaseStatus, RunFlag
from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.problems import Problem
from fairwitness.errors import BadDocument, NotStored
from fairwitness.kit.documents import Format, read
from fairwitness.kit.json_text import render_line
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.markdown import Markdown, code, counted, page, table
from fairwitness.rules.cost import run_metrics, trend
from fairwitness.rules.fold_phase import autopilot_event
from fairwitness.rules.next_run_move import is_at_its_end
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event
from fairwitness.runs.autopilot.pages_run import (
    BranchChange,
    completion_file,
    completion_page,
    halt_page,
    metrics_file,
    metrics_with,
    run_part,
    trend_part,
    work_part,
)
from fairwitness.runs.autopilot.self_audit import AUDIT
from fairwitness.runs.autopilot.state_file import StateFile, archive, archive_beside
from fairwitness.store.artifacts import Store, content_hash
from fairwitness.store.layout import autopilot

_TOLD = ("phase_skipped", "phase_failed", "human_verdict_recorded")
_UNTOLD = "no reason is on record"


class _PhaseReasons(NamedTuple):
    """What only the events say: why a phase was skipped, and why one failed."""

    skipped: Mapping[str, PhaseSkipped.Details]
    failed: Mapping[str, str]


def completion_of(log: AutopilotLog, *, now: str) -> CompletionReport:
    """Return the report of a `--complete` run; parts of a split phase count as that phase."""
    order, folded = log.order(), log.state()
    names = {phase.id: phase.name for phase in order.roadmap.phases}
    records = {phase: record for phase, record in folded.state.phases.items() if phase in names}
    own = folded.model_copy(update={"state": folded.state.model_copy(update={"phases": records})})
    numbers = run_metrics(own, now=now)
    tried = {each.phase_id for each in numbers.per_phase_summary}
    done = {phase for phase, record in records.items() if record.status is PhaseStatus.COMPLETED}
    done |= {
        phase
        for phase, known in order.earlier.items()
        if phase in names and phase not in tried and known.status is PhaseStatus.COMPLETED
    }
    story = _phase_reasons(log)
    skipped = tuple(_skipped_phases(log, story, tried))
    gaps = (
        DependencyGap(
            failed_phase_id=phase,
            failed_phase_name=names[phase],
            failure_reason=story.failed.get(phase, _UNTOLD),
            blocked_phases=tuple(
                BlockedPhase(phase_id=each.phase_id, phase_name=each.phase_name)
                for each in skipped
                if each.blocking_phase == phase
            ),
        )
        for phase, record in records.items()
        if record.status is PhaseStatus.FAILED
    )
    return CompletionReport(
        run_id=log.run_id,
        timestamp=now,
        mode="--complete",
        total_phases_in_roadmap=len(names),
        completed_phases_total=len(done),
        completion_percentage=round(100 * len(done) / len(names), 2),
        phases_attempted=numbers.phases_attempted,
        phases_succeeded=numbers.phases_succeeded,
        phases_failed=numbers.phases_failed,
        phases_skipped=skipped,
        phases_deferred=numbers.phases_human_deferred,
        dependency_gaps=tuple(gaps),
    )


def _skipped_phases(log: AutopilotLog, story: _PhaseReasons, tried: set[str]) -> Iterator[SkippedPhase]:
    """Yield the phases that were not run, with the reason; unfinished phases are not among them."""
    order = log.order()
    for phase in order.roadmap.phases:
        said = story.skipped.get(phase.id)
        known = order.earlier.get(phase.id)
        if phase.id in tried:
            continue
        if said is not None:
            yield SkippedPhase(
                phase_id=phase.id,
                phase_name=phase.name,
                reason=said.reason,
                original_run_timestamp=said.original_run_timestamp,
                blocking_phase=said.blocking_phase,
            )
        elif known is not None and known.status is PhaseStatus.COMPLETED:
            yield SkippedPhase(
                phase_id=phase.id,
                phase_name=phase.name,
                reason="already_completed",
                original_run_timestamp=known.completed_at,
            )


def _phase_reasons(log: AutopilotLog) -> _PhaseReasons:
    skipped: dict[str, PhaseSkipped.Details] = {}
    failed: dict[str, str] = {}
    for envelope in log.ledger.events(log.run_id):
        opened = autopilot_event(envelope) if envelope.type in _TOLD else None
        if opened is None or isinstance(opened, Problem):
            continue
        match opened[0]:
            case PhaseSkipped(details=said):
                skipped[said.phase_id] = said
            case PhaseFailed(phase=str() as phase, details=said):
                kind = "" if said.category is None else f"{said.category.value}: "
                failed[phase] = f"{kind}{said.reason or _UNTOLD}"
            case HumanVerdictRecorded(phase=str() as phase, details=said):
                failed[phase] = f"a person found: {'; '.join(said.issues or ()) or 'it does not pass'}"
            case _:
                pass
    return _PhaseReasons(skipped, failed)


def ordinary_page(run: RunMetrics, audit: AuditOutcome | None, trend: TrendSummary | None, change: BranchChange) -> str:
    """Return `completion-report.md` of a run without `--complete`, which has only its metrics as data."""
    return page(_ordinary(run, audit, trend, change), whole=f"`{autopilot.METRICS}`")


def _ordinary(
    run: RunMetrics, audit: AuditOutcome | None, trend: TrendSummary | None, change: BranchChange
) -> Iterator[Markdown]:
    yield Markdown(f"# Completion report of {run.run_id}")
    yield Markdown(f"Written by Fair Witness at {run.timestamp}, at the end of the run.")
    yield from work_part(change)
    yield Markdown("## Self-audit")
    if audit is None:
        yield Markdown("No self-audit was made, so nothing is known of requirements that were forgotten.")
    else:
        yield Markdown(
            f"{counted(audit.total_requirements_checked, 'requirement')} held against the files: "
            f"{counted(audit.gaps_found, 'gap')} found, {audit.gaps_fixed} closed, {audit.gaps_remaining} left."
        )
        yield table(
            ("Requirement", "What is left"),
            [(code(each.requirement_id), each.description) for each in audit.remaining_gap_details],
            "No gap is left.",
        )
    yield Markdown("## Numbers")
    yield from run_part(run)
    yield Markdown("## Trend")
    yield from trend_part(trend)


METRICS, REPORT = "metrics", "report"

_Event: TypeAlias = Callable[[str, RunMetrics], LoggedEvent]
"""Makes the event that ends a run from the time and the metrics."""


class RunEndResult(NamedTuple):
    """The result of a run that ended."""

    metrics: RunMetrics
    trend: TrendSummary | None
    report: CompletionReport | None
    """Only for a `--complete` run."""
    archived: str | None
    """The path of the archived state; None if the run has phases left."""


class RunCloser:
    """Ends one run."""

    def __init__(
        self, log: AutopilotLog, files: Store, state_file: StateFile, changed: Callable[[], Iterable[str]]
    ) -> None:
        """`changed` returns the files in which the run's branch differs from where the run began."""
        self._log, self._files, self._state_file, self._changed = log, files, state_file, changed

    def complete(self, audit: AuditOutcome | None) -> RunEndResult:
        """End the run as completed: every phase passed, and none waits for a person."""

        def completed(now: str, metrics: RunMetrics) -> LoggedEvent:
            totals = self._log.state().state.metrics
            event = new_event(
                AutopilotRunCompleted,
                now,
                phases_completed=totals.phases_completed,
                duration_minutes=metrics.total_duration_minutes,
                total_tokens_used=totals.total_tokens_used,
            )
            return LoggedEvent(event)

        ended = self._finish(completed, audit)
        return ended._replace(archived=archive(self._log, self._files))

    def fail(self, reason: str, audit: AuditOutcome | None = None) -> RunEndResult:
        """End the run as failed; it can still be resumed."""

        def failed(now: str, _: RunMetrics) -> LoggedEvent:
            return LoggedEvent(new_event(RunHalted, now, reason=reason, status=AutopilotRunStatus.FAILED))

        ended = self._finish(failed, audit)
        self.diagnose()
        return ended._replace(archived=self._archive_beside())

    def pause(self, reason: str) -> str:
        """Pause the run until a person resumes it; return the path of the diagnostic."""
        if self._status() is AutopilotRunStatus.RUNNING:
            now = self._log.now()
            self._log.append(LoggedEvent(new_event(RunHalted, now, reason=reason, status=AutopilotRunStatus.PAUSED)))
            killpoint("autopilot.halted")
        path = self.diagnose()
        self._state_file.refresh()
        return path

    def report(self, audit: AuditOutcome | None = None) -> CompletionReport | None:
        """Write the report of a `--complete` run, before it waits for a person and at its end; None for other runs."""
        report = self._kept_report()
        if report is not None:
            self._write_report(report, None, audit, None)
        return report

    def finish_files(self) -> None:
        """Finish an end that was cut short, or that another process recorded: write every file that is missing.

        A running run is left alone.
        """
        match self._status():
            case AutopilotRunStatus.COMPLETED:
                self.complete(None)
            case AutopilotRunStatus.FAILED:
                self._finish(None, None)
                self.diagnose()
                self._archive_beside()
            case AutopilotRunStatus.PAUSED:
                self.diagnose()
                self._state_file.refresh()
            case AutopilotRunStatus.RUNNING:
                pass

    def diagnose(self) -> str:
        """Write the page about the last halt, unless it exists; return its path."""
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
        """Archive a failed run at the end of its roadmap; None as long as it has phases that could run."""
        phases = self._log.state().state.phases
        statuses = {phase: record.status for phase, record in phases.items()}
        return archive_beside(self._log, self._files) if is_at_its_end(self._log.order(), statuses) else None

    def _status(self) -> AutopilotRunStatus:
        return self._log.state().state.meta.status

    def _finish(self, event: _Event | None, audit: AuditOutcome | None) -> RunEndResult:
        """Record the final numbers with the event, unless that is recorded already, and write the files."""
        log = self._log
        audits = log.all_kept(AUDIT, AuditOutcome)
        found = audit or (audits[-1] if audits else None)
        report = self._kept_report()
        is_over = self._status() in (AutopilotRunStatus.COMPLETED, AutopilotRunStatus.FAILED)
        key = f"{METRICS}:{self._ends() + (not is_over)}"
        metrics = log.kept(key, RunMetrics)
        if metrics is None:
            numbers = run_metrics(log.state(), now=log.now())
            events = event if not is_over else None
            metrics = log.keep(
                key, METRICS, log.run_id, numbers, None if events is None else lambda now: (events(now, numbers),)
            )
            killpoint("autopilot.ended")
        course = trend(append_metrics(self._files, metrics))
        self._write_report(report, metrics, found, course)
        self._state_file.refresh()
        return RunEndResult(metrics, course, report, None)

    def _ends(self) -> int:
        """Return how often the run has ended; a pause does not count."""
        events = self._log.ledger.events(self._log.run_id)
        return sum(
            envelope.type == "run_completed"
            or (envelope.type == "run_halted" and envelope.data.get("status") != AutopilotRunStatus.PAUSED.value)
            for envelope in events
        )

    def _kept_report(self) -> CompletionReport | None:
        """Return the current report, recorded once as long as nothing changes."""
        log = self._log
        if RunFlag.COMPLETE not in log.order().flags:
            return None
        report = completion_of(log, now=log.now())
        said = {name: value for name, value in report.plain().items() if name != "timestamp"}
        facts = hashlib.sha256(render_line(said).encode()).hexdigest()[:16]

        def events(now: str) -> tuple[LoggedEvent, ...]:
            event = new_event(
                BatchCompletionReport,
                now,
                phases_attempted=report.phases_attempted,
                phases_succeeded=report.phases_succeeded,
                phases_failed=report.phases_failed,
                phases_skipped=len(report.phases_skipped),
                completion_percentage=report.completion_percentage,
                report_path=autopilot.COMPLETION_REPORT,
            )
            return (LoggedEvent(event),)

        return log.keep(f"{REPORT}:{facts}", REPORT, log.run_id, report, events)

    def _write_report(
        self,
        report: CompletionReport | None,
        metrics: RunMetrics | None,
        audit: AuditOutcome | None,
        course: TrendSummary | None,
    ) -> None:
        used = self._log.state().state.metrics.total_tokens_used
        change = BranchChange(self._log.order().target, tuple(self._changed()), used)
        if report is not None:
            self._put(autopilot.COMPLETION_DATA, completion_file(report))
            self._put(autopilot.COMPLETION_REPORT, completion_page(report, metrics, audit, course, change))
        elif metrics is not None:
            self._put(autopilot.COMPLETION_REPORT, ordinary_page(metrics, audit, course, change))

    def _put(self, path: str, text: str) -> None:
        content = text.encode()
        if not self._files.exists(path) or self._files.get(path) != content:
            self._files.put(path, content)
            killpoint("autopilot.report")


def append_metrics(files: Store, run: RunMetrics) -> MetricsFile:
    """Add a run to `metrics.json`, once; return all runs up to this one.

    A file that cannot be read is moved aside, never overwritten.
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
