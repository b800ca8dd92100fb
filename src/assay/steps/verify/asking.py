"""The gate of a verified change, asked of the ledger alone: the same answer whoever asks, and whenever."""

from assay.contracts.common.evidence import Phase
from assay.contracts.common.gates import Blocked, Open
from assay.contracts.verify.report import CHANGE, Asked
from assay.ledger.ledger import Ledger
from assay.rules.change import change_holds


def answer_of(ledger: Ledger, run_id: str) -> Open | Blocked | None:
    """The gate's answer for a run, from the ledger alone; None if the run verified no change."""
    question = ledger.observation(run_id, "asked")
    if question is None:
        return None
    return change_holds(
        ledger.tally(run_id, CHANGE, Phase.AFTER),
        baseline=ledger.tally(run_id, CHANGE, Phase.BASELINE),
        asked=Asked.model_validate(question.detail),
    )
