"""The gates of a run: their results with the query, values, count and threshold behind them.

Every gate that the log of a run names is here: those that its decisions evaluated, those of verified changes, the
approvals of persons, and the phases of autopilot.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwitness.app.repository import state_in
from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.evidence import EvidenceQuery, Phase
from fairwitness.contracts.common.gates import Blocked, Gate, Open
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Size, Workflow
from fairwitness.contracts.feature.facts import GateChoice
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.contracts.verify.report import VerifySubject as Verified
from fairwitness.errors import UsageError
from fairwitness.kit.text import visible
from fairwitness.ledger.kept import refuse_broken
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.phase_summary import ALREADY
from fairwitness.ledger.subjects import RowSubject, subjects
from fairwitness.rules import gates
from fairwitness.rules.evidence_worth import LACKS, SHUTS, valued_rows
from fairwitness.rules.feature_paths import REVIEWERS_OF, path_of_review
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.rules.next_forge_move import INTERVIEW, REVIEW
from fairwitness.runs.feature.decisions import DECISION, read
from fairwitness.store.artifacts import Store
from fairwitness.verify.failed_checks import CheckText as CheckText
from fairwitness.verify.failed_checks import check_texts
from fairwitness.verify.gate_answer import gate_answer

_LISTED = 12
_REVIEWS = {f"-{scope.value}-review": scope for scope in ReviewScope}
_GOES_ON = frozenset({GateChoice.PROCEED.value, GateChoice.APPROVE.value})
"""The answers with which a feature run goes on as planned; every other one returns work or ends the run."""
_EVENTS = "SELECT seq, timestamp, type, data FROM events WHERE run_id = ? AND seq = ?"
BY_EVENTS = (Gate.PERSON_APPROVES, Gate.PHASE_PASSES)
"""The gates that events answer, not rows of evidence."""


_DECIDING = (Gate.VERIFICATION_SUFFICIENT, Gate.CHANGE_HOLDS)
"""The gates that decide about a task, in the order in which they are preferred."""


@dataclass(frozen=True, slots=True)
class EarlierAnswer:
    """What a gate answered earlier in the run."""

    when: str
    """The decision or the attempt."""
    answer: Open | Blocked


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate of a task, review, approval or phase in its last round."""

    task: str
    """What the gate is about."""
    round: int
    answer: Open | Blocked
    earlier: tuple[EarlierAnswer, ...] = ()
    """Its other answers during the run, oldest first."""

    @property
    def name(self) -> str:
        """The name of the gate, such as `EG-2:task-03`."""
        return f"{self.answer.gate.value}:{self.task}" if self.task else self.answer.gate.value

    @property
    def names(self) -> tuple[str, ...]:
        """Every name by which it can be asked for: as listed, as events write it, and short."""
        short = self.task if self.answer.gate is Gate.PERSON_APPROVES else self.answer.gate.value
        return (self.name, self.name.replace(":", ".", 1), short)

    @property
    def other_names(self) -> tuple[str, ...]:
        """Names that screens show and that several gates may have: what it is about, and EG-2 for a verified change."""
        subjects = {self.task, *(end[1:] for end in _REVIEWS if self.task.endswith(end))}
        kinds = {self.answer.gate.value, *(("EG-2",) if self.answer.gate is Gate.CHANGE_HOLDS else ())}
        return (*subjects, *(f"{kind}{sign}{about}" for kind in kinds for about in subjects for sign in ":."))

    def plain(self) -> dict[str, Any]:
        """Return the view as plain values."""
        before = [{"when": each.when, **each.answer.plain()} for each in self.earlier]
        return {"name": self.name, "task": self.task, "round": self.round, **self.answer.plain(), "earlier": before}


def run_gates(ledger: Ledger, run_id: str, *, size: Size = Size.LARGE) -> tuple[GateView, ...]:
    """Return every gate of a run: as its decisions evaluated it, or else as its evidence answers it now.

    Evidence alone does not hold the size of a task: the stricter one is assumed.
    """
    decided = _decided(ledger, run_id)
    views: list[GateView] = []
    for subject in subjects(ledger.database, run_id):
        verified = _verified(ledger, run_id, subject)
        if verified is not None:
            views.append(verified)
        if subject.task_id in decided:
            views += decided.pop(subject.task_id)
        elif verified is None:
            scope = next((scope for end, scope in _REVIEWS.items() if subject.task_id.endswith(end)), None)
            views += (
                _review_gates(ledger, run_id, subject, scope) if scope else _task_gates(ledger, run_id, subject, size)
            )
    without_rows = [view for of_one in decided.values() for view in of_one]
    return (*views, *without_rows, *_by_events(run_id, ledger.events(run_id)))


def _decided(ledger: Ledger, run_id: str) -> dict[str, list[GateView]]:
    """Return the gates of a feature run by subject, as its last decision about each of them evaluated it."""
    found: dict[str, dict[Gate, GateView]] = {}
    for number, row in enumerate(ledger.observations(run_id, DECISION), 1):
        for answer in read(row).gates:
            task, *more = answer.query.values[1:]
            rounds = [value for value in more if isinstance(value, int)]
            subject = "" if task is None else str(task)
            of_one = found.setdefault(subject, {})
            before = of_one.get(answer.gate)
            earlier = () if before is None else before.earlier
            if before is None or (before.answer.answer, _missing(before)) != (answer.answer, _missing_of(answer)):
                earlier = (*earlier, EarlierAnswer(f"decision {number}", answer))
            of_one[answer.gate] = GateView(subject, rounds[0] if rounds else 0, answer, earlier)
    return {task: [_without_last(views[gate]) for gate in sorted(views)] for task, views in found.items()}


def _missing(view: GateView) -> tuple[str, ...]:
    return _missing_of(view.answer)


def _missing_of(answer: Open | Blocked) -> tuple[str, ...]:
    return answer.missing if isinstance(answer, Blocked) else ()


def _without_last(view: GateView) -> GateView:
    return GateView(view.task, view.round, view.answer, view.earlier[:-1])


def _verified(ledger: Ledger, run_id: str, subject: RowSubject) -> GateView | None:
    """Return the gate of a change, an attempt or a merge in its last completely verified round, or None."""
    found: list[tuple[int, Open | Blocked]] = []
    for round_ in range(1, subject.rounds.get(Phase.AFTER.value, 1) + 1):
        answer = gate_answer(ledger, run_id, Verified(task_id=subject.task_id, round=round_))
        if answer is not None:
            found.append((round_, answer))
    if not found:
        return None
    *before, (last, answer) = found
    earlier = tuple(EarlierAnswer(f"attempt {round_}", one) for round_, one in before)
    return GateView(subject.task_id, last, answer, earlier)


def _task_gates(ledger: Ledger, run_id: str, subject: RowSubject, size: Size) -> list[GateView]:
    iteration = subject.rounds.get(Phase.AFTER.value, 1)
    before = ledger.tally(run_id, subject.task_id, Phase.BASELINE)
    after = ledger.tally(run_id, subject.task_id, Phase.AFTER, iteration)
    sufficient = gates.verification_sufficient(after, size=size, iteration=iteration, baseline=before)
    return [
        GateView(subject.task_id, 0, gates.baseline_exists(before)),
        GateView(subject.task_id, iteration, sufficient),
    ]


def _review_gates(ledger: Ledger, run_id: str, subject: RowSubject, scope: ReviewScope) -> list[GateView]:
    round_ = subject.rounds.get(Phase.REVIEW.value, 1)
    tally = ledger.tally(run_id, subject.task_id, Phase.REVIEW, round_)
    state = fold_feature(ledger.events(run_id))
    path = RunPath.FULL if isinstance(state, Problem) else path_of_review(state, scope, round_)
    panel = REVIEWERS_OF[path]
    answers = (
        gates.reviewers_submitted(tally, scope=scope, round=round_, panel=panel),
        gates.no_blocker(tally, round=round_),
        gates.categories_covered(tally, scope=scope, round=round_, panel=panel),
        gates.majority_approves(tally, scope=scope, round=round_, panel=panel),
    )
    return [GateView(subject.task_id, round_, answer) for answer in answers]


def _by_events(run_id: str, events: Iterable[Envelope]) -> tuple[GateView, ...]:
    """Return the approvals and phases of a run, as its last event about each of them answered it."""
    found: dict[str, GateView] = {}
    plans = 0
    for event in events:
        plans += event.type == "plan.proposed"
        try:
            answers = tuple(_answers(event, plans))
        except (KeyError, TypeError, AttributeError):
            refuse_broken(run_id, f"event {event.seq}", f"{event.type} lacks a field, or has one of another type")
        for gate, about, why in answers:
            query = EvidenceQuery(sql=_EVENTS, values=(run_id, event.seq))
            found[f"{gate.value}:{about}"] = GateView(about, 0, _answered(gate, why, event.seq, query))
    return tuple(found.values())


def _answered(gate: Gate, why: str | None, seq: int, query: EvidenceQuery) -> Open | Blocked:
    if why is None:
        return Open(gate=gate, evidence=(seq,), count=1, threshold=1, query=query)
    text = visible(why).strip() or "no reason is known"
    return Blocked(gate=gate, missing=(text,), because=text, count=0, threshold=1, query=query)


_Answer = tuple[Gate, str, str | None]
"""A gate, what it is about, and why it is blocked; None if it is open."""
_WAITS = "an answer of a person"


def _answers(event: Envelope, plans: int) -> Iterator[_Answer]:
    """Yield what an event says about gates; `plans` is the number of plans that the captain proposed so far."""
    data, approval, phase = event.data, Gate.PERSON_APPROVES, str(event.phase or "")
    match event.type:
        case "approval_requested":
            yield approval, str(data["gate_id"]), _WAITS
        case "approval_answered":
            chosen = str(data["selected_option"])
            yield approval, str(data["gate_id"]), None if chosen in _GOES_ON else f"{data['actor']} chose {chosen}"
        case "captain.message" if data.get("round"):
            is_asked = data["speaker"] == "captain"
            yield approval, f"{INTERVIEW}.{data['round']}", _WAITS if is_asked else None
        case "plan.proposed":
            yield approval, f"{REVIEW}.{plans}", _WAITS
        case "plan.approved":
            yield approval, f"{REVIEW}.{plans}", None
        case "plan.returned":
            yield approval, f"{REVIEW}.{plans}", f"returned by {data['actor']}: {data['feedback']}"
        case "cr.emitted":
            yield approval, str(data["crId"]), "a decision about the change request"
        case "cr.approved":
            yield approval, str(data["crId"]), None
        case "cr.rejected":
            yield approval, str(data["crId"]), f"refused by {data['actor']}: {data['reason']}"
        case _ if phase and event.workflow is Workflow.AUTOPILOT:
            yield from _phase_answers(event, phase)
        case _:
            pass


def _phase_answers(event: Envelope, phase: str) -> Iterator[_Answer]:
    data = event.data
    deferral = (data.get("facts") or {}).get("deferral")
    if deferral is not None:
        yield Gate.PERSON_APPROVES, f"verdict.{phase}", _WAITS
        yield Gate.PHASE_PASSES, phase, f"a verdict of a person: {deferral['reason']}"
    match event.type:
        case "phase_started":
            yield Gate.PHASE_PASSES, phase, "the end of the phase"
        case "phase_completed":
            yield Gate.PHASE_PASSES, phase, None
        case "confidence_diagnostic_written":
            yield (
                Gate.PHASE_PASSES,
                phase,
                f"score {data.get('alignment_score')}, {data.get('pass_threshold')} required",
            )
        case "phase_failed":
            yield Gate.PHASE_PASSES, phase, str(data.get("reason") or "it failed")
        case "step_failed":
            step = str(data.get("step")).replace("_", " ")
            yield Gate.PHASE_PASSES, phase, f"{step}: {data.get('error') or data.get('category') or 'failed'}"
        case "phase_skipped":
            reason = str(data["reason"])
            yield Gate.PHASE_PASSES, phase, None if reason == ALREADY else reason.replace("_", " ")
        case "human_verdict_recorded":
            said = str(data["verdict"])
            issues = "; ".join(map(str, data.get("issues") or ()))
            why = None if said == "pass" else f"a person says {said}" + (f": {issues}" if issues else "")
            yield Gate.PERSON_APPROVES, f"verdict.{phase}", why
            yield Gate.PHASE_PASSES, phase, why
        case _:
            pass


def one_gate(run_id: str, views: tuple[GateView, ...], wanted: str) -> GateView:
    """Return the named gate: `EG-2:task-03` (events write `EG-2.task-03`), or `EG-2` if only one task has it.

    `task-03` is its only blocked gate, or else the one that decides about it.
    """
    fitting = [view for view in views if wanted in view.names]
    if not fitting:
        fitting = [view for view in views if wanted in view.other_names]
        blocked = [view for view in fitting if isinstance(view.answer, Blocked)]
        deciding = [view for gate in _DECIDING for view in fitting if view.answer.gate is gate]
        fitting = next((some for some in (blocked, deciding[:1]) if len(some) == 1), fitting)
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        known = ", ".join(view.name for view in views[:_LISTED])
        more = f" and {len(views) - _LISTED} more: fairwitness ledger gates {run_id}" if len(views) > _LISTED else ""
        next_step = f"its gates are {known}{more}" if views else f"fairwitness status {run_id}"
        raise UsageError(f"run {run_id} has no gate {visible(wanted)!r}", next_step=next_step)
    raise UsageError(
        f"{wanted!r} could be {' or '.join(view.name for view in fitting)}", next_step="name it with its task"
    )


def failed_checks(root: Path, ledger: Ledger, run_id: str, view: GateView) -> tuple[CheckText, ...]:
    """Return the checks that block a gate, with their failing tests, errors and output; none for other gates."""
    if view.answer.gate not in (Gate.VERIFICATION_SUFFICIENT, Gate.CHANGE_HOLDS) or isinstance(view.answer, Open):
        return ()
    subject = Verified(task_id=view.task, round=view.round)
    rows = valued_rows(
        ledger.tally(run_id, view.task, Phase.AFTER, view.round),
        iteration=view.round,
        baseline=ledger.tally(run_id, view.task, Phase.BASELINE, subject.baseline_round),
    )
    failed = [each for each in rows if each.worth in SHUTS | LACKS]
    return check_texts(ledger, Store(state_in(root), private=True), run_id, view.task, failed)
