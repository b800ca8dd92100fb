"""The gates of a run: their results with the query, values, count and threshold behind them."""

from dataclasses import dataclass
from typing import Any

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.common.vocabulary import Size
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.contracts.verify.report import VerifySubject as Verified
from fairwitness.errors import UsageError
from fairwitness.kit.text import visible
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.subjects import RowSubject, subjects
from fairwitness.rules import gates
from fairwitness.verify.gate_answer import gate_answer

_LISTED = 12
_REVIEWS = {f"-{scope.value}-review": scope for scope in ReviewScope}


@dataclass(frozen=True, slots=True)
class GateView:
    """A gate of a task or review in its last round."""

    task: str
    round: int
    answer: Open | Blocked

    @property
    def name(self) -> str:
        """The name of the gate, such as `EG-2:task-03`."""
        return f"{self.answer.gate.value}:{self.task}"

    def plain(self) -> dict[str, Any]:
        """Return the view as plain values."""
        return {"name": self.name, "task": self.task, "round": self.round, **self.answer.plain()}


def run_gates(ledger: Ledger, run_id: str, *, size: Size = Size.LARGE) -> tuple[GateView, ...]:
    """Return every gate of a run. The ledger does not hold the size of a task: the stricter one is assumed."""
    views: list[GateView] = []
    for subject in subjects(ledger.database, run_id):
        verified = _verified(ledger, run_id, subject)
        if verified is not None:
            views.append(verified)
            continue
        scope = next((scope for end, scope in _REVIEWS.items() if subject.task_id.endswith(end)), None)
        views += _review_gates(ledger, run_id, subject, scope) if scope else _task_gates(ledger, run_id, subject, size)
    return tuple(views)


def _verified(ledger: Ledger, run_id: str, subject: RowSubject) -> GateView | None:
    """Return the gate of a change, an attempt or a merge in its last completely verified round, or None."""
    for round_ in range(subject.rounds.get(Phase.AFTER.value, 1), 0, -1):
        answer = gate_answer(ledger, run_id, Verified(task_id=subject.task_id, round=round_))
        if answer is not None:
            return GateView(subject.task_id, round_, answer)
    return None


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
    answers = (
        gates.reviewers_submitted(tally, scope=scope, round=round_),
        gates.no_blocker(tally, round=round_),
        gates.categories_covered(tally, scope=scope, round=round_),
        gates.majority_approves(tally, scope=scope, round=round_),
    )
    return [GateView(subject.task_id, round_, answer) for answer in answers]


def one_gate(run_id: str, views: tuple[GateView, ...], wanted: str) -> GateView:
    """Return the named gate: `EG-2:task-03`, or `EG-2` if only one task has it."""
    fitting = [view for view in views if wanted in (view.name, view.answer.gate.value)]
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
