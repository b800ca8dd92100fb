"""The gate of a verified change, asked of the ledger alone: the same answer whoever asks, and whenever."""

from typing import NamedTuple

from fairwitness.contracts.common.evidence import Phase, Tally
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.report import Asked, Subject
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.change_gate import change_holds

THE_CHANGE = Subject()
"""What `fairwitness verify` proves: one change, and nothing else in its run."""


class Tallies(NamedTuple):
    """The rows of one subject, and of no other."""

    after: Tally
    baseline: Tally


def tallies(ledger: Ledger, run_id: str, subject: Subject) -> Tallies:
    """Everything the ledger holds of a subject."""
    # the run of `fairwitness verify` has one round only, and its query is shown as it always was
    round_ = None if subject.is_the_change else subject.round
    return Tallies(
        after=ledger.tally(run_id, subject.task_id, Phase.AFTER, round_),
        baseline=ledger.tally(run_id, subject.task_id, Phase.BASELINE, subject.baseline_round),
    )


def gate_answer(ledger: Ledger, run_id: str, subject: Subject = THE_CHANGE) -> Open | Blocked | None:
    """The gate's answer for a subject of a run, from the ledger alone; None if it was not verified (to its end)."""
    question = ledger.observation(run_id, subject.key("asked"))
    if question is None:
        return None
    found = tallies(ledger, run_id, subject)
    return change_holds(
        found.after,
        baseline=found.baseline,
        asked=Asked.model_validate(question.detail),
        iteration=subject.round,
    )
