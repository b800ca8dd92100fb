"""What the next attempt at a task is told about the one that failed: a table from causes to material.

A retry without its reason fails the same way. The table says what an implementer, a planner or a refinery gets; the
runs build it, bounded and as data.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from fairwitness.rules.evidence_worth import LACKS, SHUTS, RowWorth, ValuedRow


class FailureCause(StrEnum):
    """Why an attempt failed."""

    CHECK = "a check failed"
    NO_EVIDENCE = "a check gave no evidence"
    CRITERION = "a criterion is not met"
    UNJUDGED = "a criterion could not be judged"
    SCOPE = "the change is empty, too large or outside its task"
    AGENT = "the agent gave no usable answer"
    CONFLICT = "it conflicts with merged work"
    MERGE = "the checks failed after the merge"
    REVIEW = "a reviewer refused the work"
    PLAN = "the plan was refused"


class Material(StrEnum):
    """A part of what a retry is told."""

    CHECKS = "the failing checks with their tests, errors and output"
    CRITERIA = "the criteria that are not met, with the reason"
    VERIFIER = "what verifier, judge, rater or plan checker said"
    DIFF = "the change that failed"
    HISTORY = "the reasons of all earlier attempts"
    SINCE = "what other tasks changed meanwhile"
    CONFLICT = "the conflicts: each place with both sides and their tasks"


_PROVEN_WRONG = (Material.CHECKS, Material.VERIFIER, Material.DIFF, Material.SINCE, Material.HISTORY)

MATERIAL: Mapping[FailureCause, tuple[Material, ...]] = {
    FailureCause.CHECK: _PROVEN_WRONG,
    FailureCause.NO_EVIDENCE: _PROVEN_WRONG,
    FailureCause.CRITERION: (Material.CRITERIA, *_PROVEN_WRONG),
    FailureCause.UNJUDGED: (Material.CRITERIA, Material.VERIFIER, Material.HISTORY),
    FailureCause.SCOPE: (Material.CHECKS, Material.DIFF, Material.HISTORY),
    FailureCause.AGENT: (Material.HISTORY, Material.SINCE),
    FailureCause.CONFLICT: (Material.CONFLICT, Material.SINCE, Material.HISTORY),
    FailureCause.MERGE: (Material.CHECKS, Material.DIFF, Material.SINCE, Material.HISTORY),
    FailureCause.REVIEW: (Material.VERIFIER, Material.DIFF, Material.SINCE, Material.HISTORY),
    FailureCause.PLAN: (Material.VERIFIER, Material.HISTORY),
}


def causes_of(rows: Iterable[ValuedRow], *, unmet: bool, unjudged: bool) -> tuple[FailureCause, ...]:
    """Return why an attempt failed, from its evidence; an attempt without evidence failed because of its agent.

    >>> causes_of((), unmet=False, unjudged=True)
    (<FailureCause.UNJUDGED: 'a criterion could not be judged'>,)
    """
    found: list[FailureCause] = []
    for row, worth in rows:
        if worth in SHUTS:
            found.append(_cause(row.check_name))
        elif worth in LACKS and worth is not RowWorth.STALE:
            found.append(FailureCause.NO_EVIDENCE)
    found += [FailureCause.CRITERION] * unmet + [FailureCause.UNJUDGED] * unjudged
    return tuple(dict.fromkeys(found)) or (FailureCause.AGENT,)


def work_causes(*, red: bool, refused: bool, conflict: bool = False) -> tuple[FailureCause, ...]:
    """Return why work failed whose rows no gate counts: a command or check failed, or a reviewer refused it.

    >>> work_causes(red=False, refused=False)
    (<FailureCause.AGENT: 'the agent gave no usable answer'>,)
    """
    found = ((FailureCause.CHECK, red), (FailureCause.REVIEW, refused))
    causes = tuple(cause for cause, holds in found if holds) or (FailureCause.AGENT,)
    return (*causes, FailureCause.CONFLICT) if conflict else causes


def _cause(check: str) -> FailureCause:
    if check == "scope":
        return FailureCause.SCOPE
    return FailureCause.CRITERION if check.startswith("ac-") else FailureCause.CHECK


def material_for(causes: Iterable[FailureCause]) -> tuple[Material, ...]:
    """Return what a retry is told for these causes, in the order of reading.

    >>> [each.name for each in material_for([FailureCause.AGENT, FailureCause.CONFLICT])]
    ['HISTORY', 'SINCE', 'CONFLICT']
    """
    wanted = {material for cause in causes for material in MATERIAL[cause]}
    return tuple(material for material in Material if material in wanted)
