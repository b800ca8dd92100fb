"""The confidence of a run, High, Medium or Low: computed from facts of the ledger, never from an agent's claim."""

from collections.abc import Iterable, Iterator, Mapping

from fairwitness.contracts.common.decisions import Graded
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Confidence, Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import ConfidenceFacts, FeatureFacts, TaskFacts
from fairwitness.rules.evidence_worth import RowWorth, ValuedRow
from fairwitness.rules.feature_paths import REVIEWERS_OF
from fairwitness.rules.gates import approves, is_verified, task_rows
from fairwitness.rules.review import open_findings, verdicts_of

AT_MOST: Mapping[Degradation, Confidence] = {
    Degradation.FEWER_RESEARCHERS: Confidence.MEDIUM,
    Degradation.KNOWLEDGE_FAILED: Confidence.HIGH,  # says nothing about the code
    Degradation.TIER3_INFEASIBLE: Confidence.MEDIUM,
    Degradation.SINGLE_MODEL: Confidence.MEDIUM,
    Degradation.DESIGN_NOT_APPROVED: Confidence.MEDIUM,
    Degradation.REPLAN_EXHAUSTED: Confidence.LOW,
    Degradation.REVIEW_EXHAUSTED: Confidence.LOW,
    Degradation.SANDBOX_TIER: Confidence.MEDIUM,
    Degradation.UNSEEN_REVIEW: Confidence.MEDIUM,
}
"""The highest confidence of a run with this degradation."""

FINDING_AT_MOST: Mapping[Severity, Confidence] = {
    Severity.BLOCKER: Confidence.LOW,
    Severity.CRITICAL: Confidence.LOW,
    Severity.MAJOR: Confidence.MEDIUM,
    Severity.MINOR: Confidence.HIGH,
}
"""The highest confidence with an open finding of this severity."""

APPROVALS_AT_MOST: Mapping[tuple[int, int], Confidence] = {
    (0, 3): Confidence.LOW,
    (1, 3): Confidence.LOW,
    (2, 3): Confidence.MEDIUM,
    (3, 3): Confidence.HIGH,
    (0, 1): Confidence.LOW,
    (1, 1): Confidence.MEDIUM,
}
"""The highest confidence with so many approvals of so many reviewers; the light path has one."""

_BEST_FIRST = tuple(Confidence)


def grade(facts: ConfidenceFacts) -> Graded:
    """Return the lowest confidence that any fact allows, with every reason why it is not High.

    >>> facts = ConfidenceFacts(
    ...     unverified=(), whole_verified=True, regressions=(), red_before_too=("lint",),
    ...     reviewers=3, approvals=3, open_findings=(), degradations=())
    >>> grade(facts).level.value, grade(facts).because
    ('Medium', ('at most Medium: lint failed before the change and fails still',))
    """
    limits = [(level, why) for level, why in _limits(facts) if level is not Confidence.HIGH]
    return Graded(
        level=max((level for level, _ in limits), key=_BEST_FIRST.index, default=Confidence.HIGH),
        because=tuple(f"at most {level.value}: {why}" for level, why in limits),
    )


def _limits(facts: ConfidenceFacts) -> Iterator[tuple[Confidence, str]]:
    if facts.unverified:
        yield Confidence.LOW, f"without enough evidence: {', '.join(facts.unverified)}"
    if not facts.whole_verified:
        yield Confidence.LOW, "the tree to be committed has not passed its checks"
    if facts.regressions:
        yield Confidence.LOW, f"passed before the change and fails now: {', '.join(facts.regressions)}"
    for check in facts.red_before_too:
        yield Confidence.MEDIUM, f"{check} failed before the change and fails still"
    if facts.approvals is None:
        yield Confidence.LOW, "the code was not reviewed"
    else:
        approve = f"{facts.approvals} of {facts.reviewers} reviewers approve"
        yield (
            APPROVALS_AT_MOST[facts.approvals, facts.reviewers],
            approve if facts.reviewers > 1 else f"{approve} (light path)",
        )
    for severity in Severity:
        left = facts.open_findings.count(severity)
        if left:
            findings = "1 open finding" if left == 1 else f"{left} open findings"
            yield FINDING_AT_MOST[severity], f"{findings} of severity {severity.value}"
    for degradation in Degradation:
        if degradation in facts.degradations:
            yield AT_MOST[degradation], f"the run was degraded: {degradation.value.replace('_', ' ')}"


def may_commit(level: Confidence) -> bool:
    """Return True if a run with this confidence commits by itself.

    >>> [level.value for level in Confidence if may_commit(level)]
    ['High', 'Medium']
    """
    return level is not Confidence.LOW


def confidence_facts(facts: FeatureFacts, policy: Policy) -> ConfidenceFacts:
    """Return the facts of a run that its confidence depends on."""
    review = facts.code_review
    everything = (*facts.tasks, *([facts.whole] if facts.whole is not None else []))
    rows = [item for task in everything for item in task_rows(task)]
    said = verdicts_of(review) if review is not None else {}
    return ConfidenceFacts(
        unverified=tuple(sorted(task.task for task in facts.tasks if not is_verified(task, policy))),
        whole_verified=facts.whole is not None and is_verified(facts.whole, policy),
        regressions=tuple(dict.fromkeys(name for task in everything for name in _regressed(task))),
        red_before_too=_checks(rows, RowWorth.RED_BEFORE_TOO),
        reviewers=len(REVIEWERS_OF[facts.path if review is None else review.path]),
        approvals=None if review is None else sum(approves(of_one) for of_one in said.values()),
        open_findings=tuple(found.severity for found in open_findings(review)) if review is not None else (),
        degradations=facts.degradations,
    )


def _regressed(task: TaskFacts) -> Iterator[str]:
    """Yield the checks of a task that regressed, each with its first failing test."""
    for check in _checks(task_rows(task), RowWorth.REGRESSED):
        why = dict(task.failing).get(check)
        yield f"{check}: {why.replace('; ', ', ')}" if why else check  # "; " separates reasons


def _checks(rows: Iterable[ValuedRow], standing: RowWorth) -> tuple[str, ...]:
    return tuple(sorted({row.check_name for row, worth in rows if worth is standing}))
