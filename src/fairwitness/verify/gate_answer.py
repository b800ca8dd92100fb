"""The gate's answer for a verified change, computed from the ledger alone: every reader gets the same answer."""

from typing import NamedTuple

from fairwitness.contracts.common.evidence import Phase, Tally
from fairwitness.contracts.common.gates import Blocked, Open
from fairwitness.contracts.verify.report import ChangeRequirements, VerifySubject
from fairwitness.ledger.kept import recorded
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.change_gate import change_holds

THE_CHANGE = VerifySubject()
"""The subject of `fairwitness verify`: the only change in its run."""


class Tallies(NamedTuple):
    """The check rows of one subject, after the change and before it."""

    after: Tally
    baseline: Tally


def tallies(ledger: Ledger, run_id: str, subject: VerifySubject) -> Tallies:
    """Return all check rows of a subject."""
    # the run of `fairwitness verify` has one round, and the query shown to people names none
    round_ = None if subject.is_the_change else subject.round
    return Tallies(
        after=ledger.tally(run_id, subject.task_id, Phase.AFTER, round_),
        baseline=ledger.tally(run_id, subject.task_id, Phase.BASELINE, subject.baseline_round),
    )


def gate_answer(ledger: Ledger, run_id: str, subject: VerifySubject = THE_CHANGE) -> Open | Blocked | None:
    """Return the gate's answer for a subject of a run; None if its verification is missing or incomplete."""
    observation = ledger.observation(run_id, subject.key("asked"))
    if observation is None:
        return None
    rows = tallies(ledger, run_id, subject)
    return change_holds(
        rows.after,
        baseline=rows.baseline,
        asked=recorded(ChangeRequirements, observation),
        iteration=subject.round,
    )
