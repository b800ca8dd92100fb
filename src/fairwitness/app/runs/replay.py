"""Repeats the decisions of a run from the facts and the policy that were recorded with each of them.

Three things are compared: the recorded decision with the one the rules make now, the events that it wrote with those
that follow from it, and its calls likewise. Only the ledger is read, so an exported one can be replayed, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.run_records.feature import order_of
from fairwitness.app.views.detail import FEATURE
from fairwitness.app.views.ledger import known_run, open_ledger
from fairwitness.contracts.common.decisions import Decision
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.evidence import Observation
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.errors import EventsBroken, LedgerTampered, UsageError
from fairwitness.kit.text import visible
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import LedgerFinding, verify, verify_here
from fairwitness.rules.feature_decision import decide
from fairwitness.rules.feature_events import Raised, calls_of, events_of
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.runs.feature.decisions import DECISION, facts_behind, read
from fairwitness.runs.feature.facts import raised_here

_ONLY_DECIDED = frozenset({"decided", "gate_evaluated", "step_started", "replan_started", "path_changed"})
"""Events that only a decision writes."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A difference between the recorded and the repeated decision."""

    what: str
    """A field of the decision, `events` or `calls`."""
    stood: Any
    now: Any


@dataclass(frozen=True, slots=True)
class Replayed:
    """A repeated decision and its differences."""

    number: int
    step: str | None
    """The step of the run at the decision; None before the first step."""
    kind: str
    reason: str
    now_kind: str
    now_reason: str
    flips: tuple[Flip, ...]


def replay_in(root: Path, run: str) -> tuple[str, tuple[Replayed, ...]]:
    """Replay a run of a repository; return its id and its decisions in order."""
    ledger = open_ledger(root)
    try:
        run_id = known_run(ledger, run, workflow=FEATURE)
        _refuse_tampered(verify_here(ledger.database, run_id))
        return run_id, replay(ledger, run_id)
    finally:
        ledger.close()


def replay_file(file: Path, run: str | None) -> tuple[str, tuple[Replayed, ...]]:
    """Replay a run of an exported ledger; the run must be named if there are several."""
    if not file.is_file():
        raise UsageError(f"there is no file {file}", next_step="name a verification-ledger.db")
    ledger = Ledger.read_only(file)
    try:
        runs = ledger.runs()
        if run is None and len(runs) != 1:
            raise UsageError(f"{file} holds {len(runs)} runs", next_step="name one: fairwitness replay RUN --file FILE")
        run_id = runs[0] if run is None else known_run(ledger, run)
        return run_id, replay(ledger, run_id)
    finally:
        ledger.close()


def replay(ledger: Ledger, run_id: str, policy: Policy | None = None) -> tuple[Replayed, ...]:
    """Repeat every decision of a run, optionally under another policy."""
    _refuse_tampered(verify(ledger.database, run_id))
    order, _ = order_of(ledger, run_id)
    rows = sorted(ledger.observations(run_id, DECISION), key=_number)
    if not rows:
        raise UsageError(f"run {run_id} has made no decision yet", next_step=f"fairwitness status {run_id}")
    numbers = [_number(row) for row in rows]
    if numbers != list(range(1, len(rows) + 1)):
        raise EventsBroken(f"run {run_id}: a decision is missing: {numbers}", next_step="fairwitness ledger verify")
    moments = list(_moments(ledger, run_id))
    if [moment.number for moment in moments] != numbers:
        numbered = [moment.number for moment in moments]
        raise EventsBroken(f"run {run_id}: its events tell of the decisions {numbered}, its rows of {numbers}")
    return tuple(
        _again(ledger, run_id, row, moment, policy or order.policy) for row, moment in zip(rows, moments, strict=True)
    )


def _refuse_tampered(found: list[LedgerFinding]) -> None:
    if found:
        raise LedgerTampered(f"the ledger is not as it was written: {found[0]}", next_step="restore it from a backup")


def decided_again(row: Observation, policy: Policy) -> tuple[Decision, Decision]:
    """Return the recorded decision, and what the rules decide now."""
    return read(row), decide(facts_behind(row), policy)


def differences(stood: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Flip, ...]:
    """Return the fields in which two decisions differ."""
    names = dict.fromkeys((*stood, *now))
    return tuple(Flip(name, stood.get(name), now.get(name)) for name in names if stood.get(name) != now.get(name))


@dataclass(frozen=True, slots=True)
class _Moment:
    """The state of a run at a decision, and the events from there to the next decision."""

    number: int
    state: FeatureState
    events: tuple[Envelope, ...]


def _moments(ledger: Ledger, run_id: str) -> Iterator[_Moment]:
    """Split the events at each decision, each part with the state before it."""
    state: FeatureState | None = None
    before: FeatureState | None = None
    piece: list[Envelope] = []
    for envelope in ledger.events(run_id):
        if envelope.type == "decided":
            if before is not None:
                yield _Moment(int(piece[0].data["number"]), before, tuple(piece))
            if state is None:
                raise EventsBroken(f"run {run_id} decides before it began", next_step="fairwitness ledger verify")
            before, piece = state, []
        piece.append(envelope)
        folded = fold_feature((envelope,), onto=state)
        if isinstance(folded, Problem):
            where = spell_path(folded.where)
            raise EventsBroken(f"run {run_id}: {where}: expected {folded.expected}; found {folded.found}")
        state = folded
    if before is not None:
        yield _Moment(int(piece[0].data["number"]), before, tuple(piece))


def _again(ledger: Ledger, run_id: str, row: Observation, moment: _Moment, policy: Policy) -> Replayed:
    stood, now = decided_again(row, policy)
    number = moment.number
    flips = [
        *differences(stood.plain(), now.plain()),
        *_events(moment, stood, raised=raised_here(ledger, run_id, moment.state)),
        *_calls(moment.state, stood, row),
    ]
    return Replayed(
        number,
        moment.state.current_step,
        stood.kind,
        visible(stood.reason),
        now.kind,
        visible(now.reason),
        tuple(flips),
    )


def _events(moment: _Moment, stood: Decision, *, raised: Raised | None) -> Iterator[Flip]:
    """Compare the events of a decision: they follow it directly and occur nowhere else."""
    wanted = [event.plain() for event in events_of(moment.state, stood, moment.number, raised=raised)]
    events = [{"type": envelope.type, **envelope.data} for envelope in moment.events]
    written = events[: len(wanted)]
    strays = [event for event in events[len(wanted) :] if event["type"] in _ONLY_DECIDED]
    if written != wanted or strays:
        yield Flip("events", [*written, *strays], wanted)


def _calls(state: FeatureState, stood: Decision, row: Observation) -> Iterator[Flip]:
    now = [
        [call.dispatch_id, call.step.value, call.visit, call.instance, call.number] for call in calls_of(state, stood)
    ]
    if row.detail.get("calls") != now:
        yield Flip("calls", row.detail.get("calls"), now)


def _number(row: Observation) -> int:
    return int(row.key.removeprefix(f"{DECISION}:"))
