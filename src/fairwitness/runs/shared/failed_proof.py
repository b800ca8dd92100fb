"""What the ledger knows about an attempt whose checks failed, for those who try again, in every workflow."""

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.git.call import GitFailed
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.evidence_worth import LACKS, SHUTS, ValuedRow, valued_rows
from fairwitness.runs.shared.sections import change_text, text_section
from fairwitness.store.artifacts import Store
from fairwitness.verify.conclusion import SETTINGS
from fairwitness.verify.failed_checks import CheckText, check_texts, spelled

GONE = "(its commit is no longer in the repository)"


def proof_rows(ledger: Ledger, run_id: str, task: str, round_: int) -> tuple[ValuedRow, ...]:
    """Return the rows of a round of a task, and what each is worth."""
    return valued_rows(
        ledger.tally(run_id, task, Phase.AFTER, round_),
        iteration=round_,
        baseline=ledger.tally(run_id, task, Phase.BASELINE, round_ - 1),
    )


def failed_texts(
    ledger: Ledger, store: Store, run_id: str, task: str, rows: tuple[ValuedRow, ...]
) -> tuple[CheckText, ...]:
    """Return what the checks said that failed or gave no evidence; `store` is that of the state folder."""
    failed = [each for each in rows if each.worth in SHUTS | LACKS]
    return check_texts(ledger, store, run_id, task, failed)


def checks_section(texts: tuple[CheckText, ...]) -> tuple[PromptSection, ...]:
    """Return the failing checks as an input of the next attempt."""
    return text_section("Checks that failed in the last attempt", spelled(texts))


def change_section(text: str) -> tuple[PromptSection, ...]:
    """Return the change that failed as an input of the next attempt."""
    return text_section("The change of the last attempt, which was discarded", text)


def failed_proof(
    ledger: Ledger, store: Store, shadow: Shadow, run_id: str, task: str, round_: int
) -> tuple[PromptSection, ...]:
    """Return the failing checks of a round and the change that they failed for; nothing if none failed."""
    texts = failed_texts(ledger, store, run_id, task, proof_rows(ledger, run_id, task, round_))
    if not texts:
        return ()
    began = ledger.observation(run_id, VerifySubject(task_id=task, round=round_).key(SETTINGS))
    trees = {} if began is None else began.detail
    change = ""
    if "base" in trees and "head" in trees:
        try:
            change = change_text(shadow, str(trees["base"]), str(trees["head"]))
        except GitFailed:
            change = GONE
    return (*checks_section(texts), *change_section(change))
