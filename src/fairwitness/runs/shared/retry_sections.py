"""What the next attempt is told about one that failed, as inputs of its brief: one builder for the three workflows.

A workflow says why the attempt failed and how each part is read; the table of `rules/retry_material` chooses the parts.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.report import VerifySubject
from fairwitness.git.call import GitFailed
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.evidence_worth import LACKS, SHUTS, ValuedRow, valued_rows
from fairwitness.rules.graph_events import RED_MERGE
from fairwitness.rules.retry_material import FailureCause, Material, material_for
from fairwitness.runs.shared.sections import change_text, text_section
from fairwitness.store.artifacts import Store
from fairwitness.verify.conclusion import SETTINGS
from fairwitness.verify.failed_checks import CheckText, check_texts

TITLES: Final[Mapping[Material, str]] = {
    Material.CHECKS: "Checks that failed in the last attempt",
    Material.CRITERIA: "Criteria that the last attempt did not meet",
    Material.VERIFIER: "What reviewers said about the last attempt",
    Material.DIFF: "The change that failed",
    Material.HISTORY: "Earlier attempts",
    Material.SINCE: "Files that other tasks changed since then",
    Material.CONFLICT: "Conflicts to resolve",
}
DISCARDED: Final = "(it was discarded: your files do not contain it)"
PRESENT: Final = "(it is in your files)"
_MERGING, _MERGED = "merge.started", "merge.finished"
_GONE: Final = "(its commit is no longer in the repository)"
_SINCE: Final = 40
"""How many files are named that other tasks changed."""


def retry_sections(
    causes: Iterable[FailureCause], parts: Mapping[Material, Callable[[], str]]
) -> tuple[PromptSection, ...]:
    """Return what the table asks for, in the order of reading; parts that are missing or empty are left out."""
    wanted = [material for material in material_for(causes) if material in parts]
    return tuple(section for material in wanted for section in text_section(TITLES[material], parts[material]()))


def listed(texts: Iterable[str]) -> str:
    """Return texts as a list.

    >>> listed(["one", "two"])
    '- one\\n- two'
    """
    return "\n".join(f"- {text}" for text in texts)


def proof_rows(ledger: Ledger, run_id: str, task: str, round_: int) -> tuple[ValuedRow, ...]:
    """Return the rows of a round of a task, and what each is worth."""
    return valued_rows(
        ledger.tally(run_id, task, Phase.AFTER, round_),
        iteration=round_,
        baseline=ledger.tally(run_id, task, Phase.BASELINE, round_ - 1),
    )


def failed_subject(ledger: Ledger, run_id: str, node: str, attempt: int, reason: str) -> tuple[str, int]:
    """Return the task and the round whose checks refused an attempt: its own, or those of the merge it failed in."""
    if not reason.startswith(RED_MERGE):
        return node, attempt
    ends = [event for event in ledger.events(run_id) if event.type in (_MERGING, _MERGED)]
    for place in range(len(ends) - 1, 0, -1):
        if ends[place].data.get("culprit") == node:
            began = next(event for event in reversed(ends[:place]) if event.type == _MERGING)
            stacked = [name for name in began.data["nodes"] if name not in ends[place].data["conflicting"]]
            return f"merge-{began.data['batch']}", 1 + stacked.index(node)
    return node, attempt


def failed_texts(
    ledger: Ledger, store: Store, run_id: str, task: str, rows: tuple[ValuedRow, ...]
) -> tuple[CheckText, ...]:
    """Return what the checks said that failed or gave no evidence; `store` is that of the state folder."""
    failed = [each for each in rows if each.worth in SHUTS | LACKS]
    return check_texts(ledger, store, run_id, task, failed)


def proven_change(ledger: Ledger, shadow: Shadow, run_id: str, task: str, round_: int) -> str:
    """Return the change that a round of a task was verified with; empty if it was not verified."""
    began = ledger.observation(run_id, VerifySubject(task_id=task, round=round_).key(SETTINGS))
    trees = {} if began is None else began.detail
    return change_between(shadow, str(trees["base"]), str(trees["head"])) if {"base", "head"} <= trees.keys() else ""


def change_between(shadow: Shadow, base: str, head: str, *, note: str = DISCARDED) -> str:
    """Return the diff between two trees of an earlier attempt with a note where it is, or that it is gone."""
    try:
        return f"{note}\n{change_text(shadow, base, head)}"
    except GitFailed:
        return _GONE


def changed_since(repository: Repository, shadow: Shadow, before: str | None, now: str | None) -> str:
    """Return the files that differ between the commits that two attempts start from."""
    if before is None or now is None or before == now:
        return ""
    try:
        paths = [file.path for file in shadow.diff(repository.tree_of(before), repository.tree_of(now))]
    except GitFailed:
        return ""
    more = [f"and {len(paths) - _SINCE} more"] if len(paths) > _SINCE else []
    return listed((*paths[:_SINCE], *more))
