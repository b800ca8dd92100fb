"""What a run has reached of its roadmap, counted from its ledger: the data and the page of its completion report."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fairwitness.contracts.autopilot.audit import AuditOutcome
from fairwitness.contracts.autopilot.completion import BlockedPhase, CompletionReport, DependencyGap, SkippedPhase
from fairwitness.contracts.autopilot.events_phase import HumanVerdictRecorded, PhaseFailed, PhaseSkipped
from fairwitness.contracts.autopilot.metrics import RunMetrics, TrendSummary
from fairwitness.contracts.autopilot.words import PhaseStatus
from fairwitness.contracts.common.problems import Problem
from fairwitness.kit.markdown import Markdown, code, counted, page, table
from fairwitness.rules.cost import run_metrics
from fairwitness.rules.fold_phase import autopilot_event
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.pages_run import run_part, trend_part
from fairwitness.store.layout import autopilot

_TOLD = ("phase_skipped", "phase_failed", "human_verdict_recorded")
_UNTOLD = "no reason is on record"


class _Story(NamedTuple):
    """What the events say that the state does not keep: why a phase was skipped, and why one failed."""

    skipped: Mapping[str, PhaseSkipped.Details]
    failed: Mapping[str, str]


def completion_of(log: AutopilotLog, *, now: str) -> CompletionReport:
    """The report on a `--complete` run as it stands; parts of a split phase are counted as that phase."""
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
    story = _story(log)
    skipped = tuple(_skipped(log, story, tried))
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


def _skipped(log: AutopilotLog, story: _Story, tried: set[str]) -> Iterator[SkippedPhase]:
    """The phases of the roadmap that were not run, each with its reason; what is only unfinished is none of them."""
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


def _story(log: AutopilotLog) -> _Story:
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
    return _Story(skipped, failed)


def ordinary_page(run: RunMetrics, audit: AuditOutcome | None, trend: TrendSummary | None) -> str:
    """`completion-report.md` of a run without `--complete`: there are no data behind it but the metrics."""
    return page(_ordinary(run, audit, trend), whole=f"`{autopilot.METRICS}`")


def _ordinary(run: RunMetrics, audit: AuditOutcome | None, trend: TrendSummary | None) -> Iterator[Markdown]:
    yield Markdown(f"# Completion report of {run.run_id}")
    yield Markdown(f"Written by Fair Witness at {run.timestamp}, at the end of the run.")
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
