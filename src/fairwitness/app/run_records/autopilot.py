"""An autopilot run that stands in the ledger of a repository: its book and its files, and what people do to it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from fairwitness.app.settings.tables import read_tables
from fairwitness.app.state import ledger_in, state_of
from fairwitness.contracts.autopilot.breaker import BreakerPosition
from fairwitness.contracts.autopilot.events_phase import HumanVerdictRecorded
from fairwitness.contracts.autopilot.events_run import DeferralThresholdAdjusted, HighDeferRateWarning, RunResumed
from fairwitness.contracts.autopilot.order import AutopilotSettings
from fairwitness.contracts.autopilot.roadmap import DetailedPhase
from fairwitness.contracts.autopilot.state import Meta, SpecLock
from fairwitness.contracts.autopilot.vocabulary import HumanWord, PhaseStatus, RunStatus
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
from fairwitness.rules.run_flags import Asking, asking
from fairwitness.runs.autopilot.learnings import Learnings, verdict_entry
from fairwitness.runs.autopilot.log import RESUMED, AutopilotLog, LoggedEvent, new_event, put_events
from fairwitness.runs.autopilot.state_file import StateFile
from fairwitness.store.artifacts import Store

SAID, RELOCK = "said", "relock"
"""The kinds of observations by which a person's verdict and their locking stand once."""
ISSUES = "issues"
WORDS = {"pass": HumanWord.PASS, "fail": HumanWord.FAIL, ISSUES: HumanWord.ISSUES_FOUND}
"""What a person may say of a phase, as it is typed."""


@dataclass(frozen=True, slots=True)
class AutopilotRunRecord:
    """Where an autopilot run is at home, for those who do not carry it."""

    log: AutopilotLog
    repository: Repository
    files: Store
    """Of the person's checkout; the run's folders are beneath it."""

    @property
    def actor(self) -> str:
        """The person at this machine."""
        return read_identity(self.repository).author

    def locks(self) -> tuple[SpecLock, ...]:
        """The locks that hold now: those of the order, or those that a person set on purpose since."""
        rows = self.log.ledger.observations(self.log.run_id, RELOCK)
        if not rows:
            return self.log.order().specs
        return tuple(SpecLock.model_validate(lock) for lock in rows[-1].detail["specs"])

    def refresh(self) -> None:
        """Brings the state file up to its events, so that it is right while nobody carries the run."""
        StateFile(self.log, self.files).refresh()

    def waiting(self) -> tuple[str, ...]:
        """The phases that wait for a verdict, in the order they were put to a person."""
        phases = self.log.state().state.phases
        return tuple(phase for phase, record in phases.items() if _waits(record.status))


def _waits(status: PhaseStatus) -> bool:
    return status is PhaseStatus.NEEDS_HUMAN_VERIFICATION


@contextmanager
def open_autopilot_run(root: Path, run_id: str, *, clock: Clock = system_clock) -> Iterator[AutopilotRunRecord]:
    """The room of a run, for as long as it is asked for; `UsageError` if it is no run of autopilot."""
    repository = Repository.open(root)
    state = state_of(repository)
    ledger = ledger_in(state, clock=clock)
    try:
        log = AutopilotLog(ledger, run_id, clock=clock)
        log.order()  # refuses what is no autopilot run
        yield AutopilotRunRecord(log, repository, Store(repository.top or state))
    finally:
        ledger.close()


def write_once(log: AutopilotLog, row: Observation, *told: LoggedEvent) -> bool:
    """Writes what was seen together with its events; False if something stands under its key already."""

    def write(record: Record) -> None:
        record.observation(row)
        put_events(record, told, row.observed_at)

    try:
        log.ledger.record(log.run_id, write)
    except RowRefused:
        if log.ledger.observation(log.run_id, row.key) is None:
            raise
        return False
    return True


@dataclass(frozen=True, slots=True)
class RecordedVerdict:
    """A verdict that was written down, and what followed from it."""

    run_id: str
    phase: str
    verdict: HumanWord
    old_limit: float
    new_limit: float
    """The confidence from which nobody is asked, before and after."""
    warning: str | None
    waiting: tuple[str, ...]
    """The phases that still wait for a verdict."""

    @property
    def gate(self) -> str:
        """Where the engine waits for it."""
        return verdict_gate(self.phase)


def record_verdict(context: AutopilotRunRecord, phase: str, said: HumanWord, issues: Sequence[str]) -> RecordedVerdict:
    """Writes a person's word about a deferred phase down, once, with what it moves."""
    found = tuple(issue.strip() for issue in issues if issue.strip())
    if said is HumanWord.ISSUES_FOUND and not found:
        raise UsageError("a verdict of issues needs at least one", next_step='add --issue "what is wrong"')
    log = context.log
    while True:
        _refuse_unasked(context, phase)
        meta, now = log.state().state.meta, log.now()
        after = asking(_with_verdict(meta, phase, said))
        told = [LoggedEvent(new_event(HumanVerdictRecorded, now, phase=phase, verdict=said, issues=found or None))]
        told += _consequences(log, after, now)
        number = sum(each.phase_id == phase and each.human_verdict is not None for each in meta.deferral_history) + 1
        detail: dict[str, object] = {"verdict": said.value, "issues": list(found), "actor": context.actor}
        row = log.seen(f"{SAID}:{phase}:{number}", SAID, phase, detail, now)
        if not write_once(log, row, *told):
            continue  # somebody said it first: the phase waits no more, and that is told
        killpoint("autopilot.verdict")
        learn_verdicts(context)
        warning = f"{after.deferred} of {after.processed} phases were put to you" if after.too_often else None
        return RecordedVerdict(log.run_id, phase, said, after.limit, after.new_limit, warning, context.waiting())


def learn_verdicts(context: AutopilotRunRecord) -> None:
    """Writes what people said of phases to the learnings, as far as it does not stand there."""
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
    told = records[phase].status.value.replace("_", " ")
    raise UsageError(f"phase {phase} of {run_id} is {told} and waits for no verdict", next_step=listed)


def _with_verdict(meta: Meta, phase: str, said: HumanWord) -> Meta:
    """The run's numbers as they will be: the fold of the verdict's own event changes nothing else about them."""
    history = tuple(
        each.model_copy(update={"human_verdict": said})
        if each.phase_id == phase and each.human_verdict is None
        else each
        for each in meta.deferral_history
    )
    return meta.model_copy(update={"deferral_history": history})


def _consequences(log: AutopilotLog, after: Asking, now: str) -> Iterator[LoggedEvent]:
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
    """The gates of a run at which a person has said something, as the engine knows them.

    What was said is learned first: whoever wrote it down may have been killed before that.
    """
    with open_autopilot_run(root, run_id) as context:
        learn_verdicts(context)
        phases = context.log.state().state.phases
        return tuple(verdict_gate(phase) for phase, record in phases.items() if record.human_verdict is not None)


def resume_autopilot(root: Path, run_id: str, *, clock: Clock = system_clock) -> bool:
    """Writes down that a run goes on; False if nothing had to be written.

    One that runs just goes on, and a completed one stays so. A paused one goes on with its breaker half-open, but not
    before the cooldown is over; so does one that failed, of which only a person says that it shall. The one setting
    that may have changed is the budget: whoever goes on with a run that stopped there may have raised it.
    """
    with open_autopilot_run(root, run_id, clock=clock) as context:
        log = context.log
        while True:
            state = log.state().state
            if state.meta.status in (RunStatus.RUNNING, RunStatus.COMPLETED):
                return False
            now = log.now()
            if after_resume(state.circuit_breaker, now=now).state is BreakerPosition.OPEN:
                raise _cools_down(run_id, state.circuit_breaker.cooldown_until, clock())
            budget = read_tables(AutopilotSettings, context.repository.top).budget
            resumed = new_event(
                RunResumed,
                now,
                previous_status=state.meta.status,
                from_phase=state.meta.current_phase,
                from_step=state.meta.current_step,
            )
            number = len(log.ledger.observations(run_id, RESUMED)) + 1
            detail: dict[str, object] = {"actor": context.actor, "budget": budget.plain()}
            row = log.seen(f"{RESUMED}:{number}", RESUMED, run_id, detail, now)
            if not write_once(log, row, LoggedEvent(resumed)):
                continue  # somebody else resumed it: then it runs
            killpoint("autopilot.resumed")
            return True


def _cools_down(run_id: str, until: str | None, now: datetime) -> NotReady:
    left = 0 if until is None else max(1, round((instant(until) - now).total_seconds()))
    minutes, seconds = divmod(left, 60)
    told = f"{minutes}m {seconds}s" if minutes else f"{seconds}s"
    return NotReady(
        f"the breaker of {run_id} is open for another {told}", next_step=f"then: fairwitness resume {run_id}"
    )


WANTS_WORDS = frozenset({ISSUES})
"""Answers that mean nothing without a text."""
_DOES = {
    "pass": "the phase is completed, and what rests on it goes on",
    "fail": "the phase failed; what rests on it is not run",
    ISSUES: "the phase failed for what you found; say what that is",
}
_STEP = "verify"


def open_verdict(context: AutopilotRunRecord) -> ApprovalRequest | None:
    """The first phase that waits for a verdict, as a question; None if none does."""
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
            # nobody passes a phase by pressing a key: the answer that is offered first asks for words
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
    """Writes the answer down, once; the name under which the engine waits for it."""
    waiting = context.waiting()
    if not waiting:
        raise UsageError(
            f"run {context.log.run_id} asks nothing", next_step="fairwitness inbox lists what waits for you"
        )
    if option not in WORDS:
        raise UsageError(f"{option!r} is no verdict", next_step=f"choose {' or '.join(WORDS)}")
    if option in WANTS_WORDS and not (said or "").strip():
        raise UsageError(f"{option} needs a word of yours", next_step=f"add --text: {_DOES[option]}")
    return record_verdict(context, waiting[0], WORDS[option], [said] if said else []).gate
