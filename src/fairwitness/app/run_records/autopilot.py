"""An autopilot run in the ledger: its log and files, verdicts of a person, and resuming."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fairwitness.app.settings.tables import read_tables
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.events_phase import HumanVerdictRecorded
from fairwitness.contracts.autopilot.events_run import (
    AutopilotRunResumed,
    DeferralThresholdAdjusted,
    HighDeferRateWarning,
)
from fairwitness.contracts.autopilot.order import AutopilotSettings
from fairwitness.contracts.autopilot.roadmap import DetailedPhase
from fairwitness.contracts.autopilot.state import Meta, SpecLock
from fairwitness.contracts.autopilot.vocabulary import AutopilotRunStatus, HumanWord, PhaseStatus
from fairwitness.contracts.common.approvals import ApprovalOption, ApprovalRequest
from fairwitness.contracts.common.base import instant
from fairwitness.contracts.common.evidence import Observation
from fairwitness.errors import NotReady, RowRefused, UsageError
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import visible
from fairwitness.ledger.record import Record
from fairwitness.rules.breaker import after_resume
from fairwitness.rules.next_run_move import verdict_gate
from fairwitness.rules.run_flags import DeferralRate, deferral_rate
from fairwitness.runs.autopilot.learnings import Learnings, verdict_entry
from fairwitness.runs.autopilot.log import RESUMED, AutopilotLog, LoggedEvent, new_event, put_events
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.store.artifacts import Store

SAID, RELOCK = "said", "relock"
"""The kinds of observations that record a verdict and a new lock once each."""
ISSUES = "issues"
WORDS = {"pass": HumanWord.PASS, "fail": HumanWord.FAIL, ISSUES: HumanWord.ISSUES_FOUND}
"""The verdicts, as a person types them."""


@dataclass(frozen=True, slots=True)
class AutopilotRunRecord:
    """The log and files of an autopilot run, for processes that do not drive it."""

    log: AutopilotLog
    repository: Repository
    files: Store
    """The files of the person's checkout, which contains the run's folders."""

    @property
    def actor(self) -> str:
        """The git identity of the person."""
        return read_identity(self.repository).author

    def locks(self) -> tuple[SpecLock, ...]:
        """Return the current locks: those of the order, or those that a person set later."""
        rows = self.log.ledger.observations(self.log.run_id, RELOCK)
        if not rows:
            return self.log.order().specs
        return tuple(SpecLock.model_validate(lock) for lock in rows[-1].detail["specs"])

    def refresh(self) -> None:
        """Update the state file from the events, so that it is right while no process drives the run."""
        StateFile(self.log, self.files).refresh()

    def waiting(self) -> tuple[str, ...]:
        """Return the phases that wait for a verdict, in the order in which they were deferred."""
        phases = self.log.state().state.phases
        return tuple(phase for phase, record in phases.items() if _waits(record.status))


def _waits(status: PhaseStatus) -> bool:
    return status is PhaseStatus.NEEDS_HUMAN_VERIFICATION


@contextmanager
def open_autopilot_run(root: Path, run_id: str, *, clock: Clock = system_clock) -> Iterator[AutopilotRunRecord]:
    """Open an autopilot run; raise `UsageError` if the id belongs to no autopilot run."""
    repository = Repository.open(root)
    state = state_of(repository)
    ledger = ledger_in(state, repository, clock=clock)
    try:
        log = AutopilotLog(ledger, run_id, clock=clock)
        log.order()  # raises if this is not an autopilot run
        yield AutopilotRunRecord(log, repository, Store(repository.top or state))
    finally:
        ledger.close()


def write_once(log: AutopilotLog, row: Observation, *events: LoggedEvent) -> bool:
    """Record an observation together with its events; return False if its key exists already."""

    def write(record: Record) -> None:
        record.observation(row)
        put_events(record, events, row.observed_at)

    try:
        log.ledger.record(log.run_id, write)
    except RowRefused:
        if log.ledger.observation(log.run_id, row.key) is None:
            raise
        return False
    return True


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A recorded verdict and its consequences."""

    run_id: str
    phase: str
    verdict: HumanWord
    old_limit: float
    new_limit: float
    """The confidence from which no person is asked, before and after the verdict."""
    warning: str | None
    waiting: tuple[str, ...]
    """The phases that still wait for a verdict."""

    @property
    def gate(self) -> str:
        """The gate at which the engine waits for the verdict."""
        return verdict_gate(self.phase)


def record_verdict(context: AutopilotRunRecord, phase: str, said: HumanWord, issues: Sequence[str]) -> RecordedVerdict:
    """Record a verdict on a deferred phase once, together with its consequences."""
    found = tuple(issue.strip() for issue in issues if issue.strip())
    if said is HumanWord.ISSUES_FOUND and not found:
        raise UsageError("the verdict `issues` requires at least one issue", next_step='add --issue "what is wrong"')
    log = context.log
    while True:
        _refuse_unasked(context, phase)
        meta, now = log.state().state.meta, log.now()
        after = deferral_rate(_with_verdict(meta, phase, said))
        events = [LoggedEvent(new_event(HumanVerdictRecorded, now, phase=phase, verdict=said, issues=found or None))]
        events += _consequences(log, after, now)
        number = sum(each.phase_id == phase and each.human_verdict is not None for each in meta.deferral_history) + 1
        detail: dict[str, object] = {"verdict": said.value, "issues": list(found), "actor": context.actor}
        row = log.observation(f"{SAID}:{phase}:{number}", SAID, phase, detail, now)
        if not write_once(log, row, *events):
            continue  # another process recorded one first: the next pass refuses
        killpoint("autopilot.verdict")
        learn_verdicts(context)
        warning = f"{after.deferred} of {after.processed} phases were put to you" if after.too_often else None
        return RecordedVerdict(log.run_id, phase, said, after.limit, after.new_limit, warning, context.waiting())


def learn_verdicts(context: AutopilotRunRecord) -> None:
    """Add the verdicts of the run to the learnings, unless they are there already."""
    state, order = context.log.state().state, context.log.order()
    learnings = Learnings(context.log, context.files)
    for phase in order.roadmap.phases:
        verdict = state.phases[phase.id].human_verdict if phase.id in state.phases else None
        if verdict is not None:
            learnings.add(f"verdict-{phase.id}", verdict_entry(phase, verdict))


def _refuse_unasked(context: AutopilotRunRecord, phase: str) -> None:
    run_id, records = context.log.run_id, context.log.state().state.phases
    waiting = context.waiting()
    if phase in waiting:
        return
    listed = f"those that do: {', '.join(waiting)}" if waiting else f"fairwitness autopilot status {run_id}"
    if phase not in records:
        raise UsageError(f"{run_id} has no phase {visible(phase)}", next_step=listed)
    text = records[phase].status.value.replace("_", " ")
    raise UsageError(f"phase {phase} of {run_id} is {text} and does not wait for a verdict", next_step=listed)


def _with_verdict(meta: Meta, phase: str, said: HumanWord) -> Meta:
    """Return the metadata after the verdict; the fold of its event changes the same fields."""
    history = tuple(
        each.model_copy(update={"human_verdict": said})
        if each.phase_id == phase and each.human_verdict is None
        else each
        for each in meta.deferral_history
    )
    return meta.model_copy(update={"deferral_history": history})


def _consequences(log: AutopilotLog, after: DeferralRate, now: str) -> Iterator[LoggedEvent]:
    if after.new_limit != after.limit:
        yield LoggedEvent(
            new_event(
                DeferralThresholdAdjusted,
                now,
                old_confidence=after.limit,
                new_confidence=after.new_limit,
                pass_rate=round(after.passed / after.verdicts, 4),
                verdicts=after.verdicts,
            )
        )
    last = log.ledger.last_event(log.run_id, "high_defer_rate_warning")
    if after.too_often and (last is None or last.data.get("human_deferred_count") != after.deferred):
        yield LoggedEvent(
            new_event(
                HighDeferRateWarning,
                now,
                human_deferred_count=after.deferred,
                total_phases_processed=after.processed,
                defer_rate=after.rate,
            )
        )


def settled_verdicts(root: Path, run_id: str) -> tuple[str, ...]:
    """Return the gates of a run that have a verdict, by the engine's names.

    The learnings are written first, because the process that recorded a verdict may have died before doing so.
    """
    with open_autopilot_run(root, run_id) as context:
        learn_verdicts(context)
        phases = context.log.state().state.phases
        return tuple(verdict_gate(phase) for phase, record in phases.items() if record.human_verdict is not None)


def resume_autopilot(root: Path, run_id: str, *, clock: Clock = system_clock) -> bool:
    """Record that a run is resumed; return False if nothing had to be recorded.

    A running or completed run needs no record. A paused or failed run continues with its breaker half-open, but not
    before the cooldown is over. Of the settings only the budget is read again, because a person may have raised it for
    a run that used it up.
    """
    with open_autopilot_run(root, run_id, clock=clock) as context:
        log = context.log
        while True:
            state = log.state().state
            if state.meta.status in (AutopilotRunStatus.RUNNING, AutopilotRunStatus.COMPLETED):
                return False
            now = log.now()
            if after_resume(state.circuit_breaker, now=now).state is BreakerPosition.OPEN:
                raise _cools_down(run_id, state.circuit_breaker.cooldown_until, clock())
            budget = read_tables(AutopilotSettings, context.repository.top).budget
            resumed = new_event(
                AutopilotRunResumed,
                now,
                previous_status=state.meta.status,
                from_phase=state.meta.current_phase,
                from_step=state.meta.current_step,
            )
            number = len(log.ledger.observations(run_id, RESUMED)) + 1
            detail: dict[str, object] = {"actor": context.actor, "budget": budget.plain()}
            row = log.observation(f"{RESUMED}:{number}", RESUMED, run_id, detail, now)
            if not write_once(log, row, LoggedEvent(resumed)):
                continue  # another process resumed it: the next pass sees it running
            killpoint("autopilot.resumed")
            return True


def _cools_down(run_id: str, until: str | None, now: datetime) -> NotReady:
    left = 0 if until is None else max(1, round((instant(until) - now).total_seconds()))
    minutes, seconds = divmod(left, 60)
    text = f"{minutes}m {seconds}s" if minutes else f"{seconds}s"
    return NotReady(
        f"the breaker of {run_id} is open for another {text}", next_step=f"then: fairwitness resume {run_id}"
    )


WANTS_WORDS = frozenset({ISSUES})
"""Answers that require an explanation."""
_DOES = {
    "pass": "the phase is completed, and what rests on it goes on",
    "fail": "the phase failed; what rests on it is not run",
    ISSUES: "the phase failed for what you found; say what that is",
}
_STEP = "verify"


def open_verdict(context: AutopilotRunRecord) -> ApprovalRequest | None:
    """Return the question about the first phase that waits for a verdict, or None."""
    waiting = context.waiting()
    if not waiting:
        return None
    phase = waiting[0]
    return ApprovalRequest(
        gate_id=f"verdict.{phase}",
        pipeline_step=_STEP,
        question=f"Phase {phase} is done as far as commands can tell. What do you say?",
        context="\n".join(_known(context, phase)) or "nothing is known about it",
        options=tuple(
            # no phase passes by pressing Enter: the default answer requires an explanation
            ApprovalOption(id=word, label=word, description=_DOES[word], is_default=word == ISSUES)
            for word in WORDS
        ),
    )


def _known(context: AutopilotRunRecord, phase: str) -> Iterator[str]:
    state, order = context.log.state().state, context.log.order()
    named = _phase_of(order.roadmap.phases, phase)
    yield f"{named.name}: {named.goal}"
    deferrals = [each for each in state.meta.deferral_history if each.phase_id == phase]
    if deferrals:
        sure = deferrals[-1].autonomous_confidence
        yield f"why you: {deferrals[-1].reason}" + ("" if sure is None else f" (its own confidence: {sure} of 10)")
    why = state.phases[phase].human_verify_justification
    if why is not None:
        yield f"to look at: {why.task_description}"
        yield f"automatic tasks: {why.auto_tasks_passed} of {why.auto_tasks_total} passed"
    yield from (f"criterion: {each.text}" for each in named.criteria)
    yield f"branch: {order.target}"


def _phase_of(phases: tuple[DetailedPhase, ...], phase: str) -> DetailedPhase:
    known = {each.id: each for each in phases}
    return known[phase] if phase in known else known[phase[:-1]]


def answer_verdict(context: AutopilotRunRecord, option: str, said: str | None) -> str:
    """Record an answer once; return the gate at which the engine waits for it."""
    waiting = context.waiting()
    if not waiting:
        raise UsageError(
            f"run {context.log.run_id} asks nothing", next_step="fairwitness inbox lists what waits for you"
        )
    if option not in WORDS:
        raise UsageError(f"{option!r} is not a verdict", next_step=f"choose {' or '.join(WORDS)}")
    if option in WANTS_WORDS and not (said or "").strip():
        raise UsageError(f"{option} requires an explanation", next_step=f"add --text: {_DOES[option]}")
    return record_verdict(context, waiting[0], WORDS[option], [said] if said else []).gate
