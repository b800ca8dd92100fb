"""What the checks of the project said about a tree that a task or a merge of the run proved.

Every merge is verified before it lands, so the tip of the run's branch has been proven when a phase is verified. The
rows are read from the ledger; nothing runs again.
"""

from collections.abc import Iterable
from typing import Final

from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.vocabulary import CheckWord
from fairwitness.contracts.common.base import Contract, Texts
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.evidence_worth import SATISFIES, SHUTS, RowWorth, ValuedRow
from fairwitness.runs.shared.retry_sections import proof_rows
from fairwitness.store.artifacts import Store
from fairwitness.verify.conclusion import VERIFIED
from fairwitness.verify.failed_checks import check_texts

_KINDS: Final = {
    "syntax-check": "compile",
    "type-check": "compile",
    "import-check": "compile",
    "ide-diagnostics": "compile",
    "tests": "tests",
    "lint": "lint",
    "build": "build",
}
"""The checks of the ledger, and the check of the state file that each decides."""


class ProvenTree(Contract):
    """The results of the project's checks at a tree."""

    checks: AutomatedChecks
    lines: Texts = ()
    """Each check with its result and command, then remarks about the change, such as that no new test covers it."""


def proven_tree(ledger: Ledger, store: Store, run_id: str, tree: str) -> ProvenTree:
    """Return what the last verification of a tree found; `store` is that of the state folder."""
    verified = [row for row in ledger.observations(run_id, VERIFIED) if row.tree == tree and row.task_id is not None]
    if not verified:
        return ProvenTree(checks=AutomatedChecks(compile="n/a", tests="n/a", lint="n/a", build="n/a"))
    last = verified[-1]
    task, round_ = str(last.task_id), int(last.key.rpartition(":")[2])
    rows = proof_rows(ledger, run_id, task, round_)
    texts = check_texts(ledger, store, run_id, task, rows)
    lines = [str(text) for text in texts]
    lines += [str(note) for note in last.detail.get("notes", ())]
    words: dict[str, CheckWord] = {name: check_word(rows, name) for name in ("compile", "tests", "lint", "build")}
    return ProvenTree(checks=AutomatedChecks.model_validate(words), lines=tuple(dict.fromkeys(lines)))


def check_word(rows: Iterable[ValuedRow], kind: str) -> CheckWord:
    """Return the result of one kind of check over all its rows, such as those of two projects.

    It passed only if every row says so: a part without evidence, or one that failed before the change too, leaves the
    result open. An agent's claim says nothing.
    """
    worths = {worth for row, worth in rows if _KINDS.get(row.check_name) == kind} - {RowWorth.SILENT}
    if worths & SHUTS:
        return False
    return True if worths and worths <= SATISFIES else "n/a"


def settled_checks(by_command: AutomatedChecks, proven: AutomatedChecks) -> AutomatedChecks:
    """Return the results of the settings' commands; where there is no command, those of the discovered checks."""
    said, found = by_command.plain(), proven.plain()
    return AutomatedChecks.model_validate(found | {name: word for name, word in said.items() if word != "n/a"})
