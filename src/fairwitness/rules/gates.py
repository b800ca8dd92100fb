"""The six evidence gates of the feature pipeline: from a tally of evidence to an open gate, or to what is missing.

`evidence_worth` defines what a row is worth. Three rules go beyond plain counts: a check that was run without giving
evidence (time-out, violation, lost sandbox, no sandbox, another tree) is missing and blocks the gate even when others
reach the count; a check that failed before the change and still fails neither counts nor blocks; repeated runs of the
same check count once.
"""

from collections.abc import Iterable, Mapping, Sequence

from fairwitness.contracts.common.evidence import CheckRow, Phase, Tally
from fairwitness.contracts.common.gates import Blocked, Gate, GateAnswer, Open
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import CategoryVerdict, Size
from fairwitness.contracts.feature.facts import TaskFacts
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope
from fairwitness.rules.evidence_worth import (
    LACKS,
    SATISFIES,
    SHUTS,
    RowWorth,
    ValuedRow,
    baseline_worth,
    depth_of,
    effective_size,
    latest,
    valued_rows,
)
from fairwitness.rules.risk import effective_risk


def baseline_exists(tally: Tally, *, tree: str | None = None) -> Open | Blocked:
    """Evaluate EG-1: at least one check was run before the change."""
    rows = [row for row in latest(tally.rows) if row.phase is Phase.BASELINE]
    good = [row for row in rows if baseline_worth(row, tree=tree) in SATISFIES]
    if good:
        return _open(Gate.BASELINE_EXISTS, tally, good, count=len({row.check_name for row in good}), threshold=1)
    useless = [f"{row.check_name} ({_why_no_baseline(row, tree)})" for row in rows]
    return _blocked(
        Gate.BASELINE_EXISTS,
        tally,
        missing=["a baseline check", *useless],
        because="nothing was run before the change" if not rows else "no baseline row is evidence",
        count=0,
        threshold=1,
    )


def _why_no_baseline(row: CheckRow, tree: str | None) -> str:
    worth = baseline_worth(row, tree=tree)
    return f"only {row.provenance.value}" if worth is RowWorth.SILENT else _worth(row, worth)


def _worth(row: CheckRow, worth: RowWorth) -> str:
    if worth is not RowWorth.NO_EVIDENCE:
        return worth.value
    return f"{worth.value}: {row.assessment.value if row.assessment else 'no result'}"


def verification_sufficient(
    tally: Tally,
    *,
    size: Size,
    iteration: int,
    tree: str | None = None,
    required: tuple[str, ...] = (),
    baseline: Tally | None = None,
    policy: Policy | None = None,
    failing: Mapping[str, str] | None = None,
) -> Open | Blocked:
    """Evaluate EG-2: enough checks passed, none failed, none is missing.

    `size` is the effective size (a red task is Large); `required` names the checks that the task declared: criteria,
    readiness. `failing` adds to a check's name why it failed.
    """
    depth = depth_of(size, policy or Policy())
    rows = valued_rows(tally, iteration=iteration, tree=tree, baseline=baseline)
    counted = {row.check_name for row, worth in rows if worth is RowWorth.COUNTS}
    satisfied = {row.check_name for row, worth in rows if worth in SATISFIES}
    why = failing or {}
    shut = [_told(row, worth, why) for row, worth in rows if worth in SHUTS]
    lacking = [_told(row, worth, why) for row, worth in rows if worth in LACKS]
    named = {row.check_name for row, worth in rows if worth in SHUTS | LACKS}
    demanded = dict.fromkeys((*depth.required, *required))
    lacking += [_with_reason(f"{name} (not run)", name, why) for name in demanded if name not in satisfied | named]
    short = depth.checks - len(counted)
    reasons = [", ".join(shut)] if shut else []
    if short > 0:
        # checks that failed before and unknown names are listed only where they explain a missing count
        unhelpful = (RowWorth.RED_BEFORE_TOO, RowWorth.UNKNOWN)
        lacking += [_told(row, worth, why) for row, worth in rows if worth in unhelpful]
        lacking.append(f"{short} more passing {'check' if short == 1 else 'checks'}")
        reasons.append(f"{len(counted)} of {depth.checks} checks passed")
    elif lacking:
        reasons.append(f"checks without evidence: {', '.join(lacking)}")
    if not shut and not lacking:
        evidence = [row for row, worth in rows if worth in SATISFIES]
        return _open(Gate.VERIFICATION_SUFFICIENT, tally, evidence, count=len(counted), threshold=depth.checks)
    return _blocked(
        Gate.VERIFICATION_SUFFICIENT,
        tally,
        missing=[*shut, *lacking],
        because="; ".join(reasons),
        count=len(counted),
        threshold=depth.checks,
    )


def _told(row: CheckRow, worth: RowWorth, why: Mapping[str, str]) -> str:
    return _with_reason(f"{row.check_name} ({_worth(row, worth)})", row.check_name, why)


def _with_reason(text: str, check: str, why: Mapping[str, str]) -> str:
    return f"{text}: {why[check]}" if check in why else text


def task_gates(task: TaskFacts, policy: Policy) -> tuple[GateAnswer, GateAnswer]:
    """Evaluate EG-1 and EG-2 of one task, at the size that follows from its plan and the files actually changed."""
    risk = effective_risk(task.risk, task.files, policy)
    return (
        baseline_exists(task.baseline),
        verification_sufficient(
            task.after,
            size=effective_size(task.size, risk),
            iteration=task.round,
            tree=task.tree,
            required=task.required,
            baseline=task.baseline,
            policy=policy,
            failing=dict(task.failing),
        ),
    )


def is_verified(task: TaskFacts, policy: Policy) -> bool:
    """Return True if both gates of a task are open; merges require the same."""
    return all(isinstance(answer, Open) for answer in task_gates(task, policy))


def task_rows(task: TaskFacts) -> tuple[ValuedRow, ...]:
    """Return a task's evidence rows with their worth."""
    return valued_rows(task.after, iteration=task.round, tree=task.tree, baseline=task.baseline)


def check_names(scope: ReviewScope) -> Mapping[Category, str]:
    """Return the check name of each category that a reviewer judges.

    >>> check_names(ReviewScope.CODE)[Category.SECURITY]
    'review-code-security'
    """
    return {category: f"review-{scope.value}-{category.value}" for category in Category}


ALL_REVIEWERS = tuple(Perspective)


def verdicts(
    tally: Tally, *, scope: ReviewScope, round: int, panel: Sequence[Perspective] = ALL_REVIEWERS
) -> Mapping[Perspective, Mapping[Category, CheckRow]]:
    """Return the latest verdicts of this round of each reviewer of the panel, ignoring rows without a verdict."""
    rows = [row for row in latest(tally.rows) if row.phase is Phase.REVIEW and row.round == round and row.verdict]
    return {
        perspective: {
            category: row
            for category, name in check_names(scope).items()
            for row in rows
            if row.check_name == name and row.instance == perspective.value
        }
        for perspective in panel
    }


def reviewers_submitted(
    tally: Tally, *, scope: ReviewScope, round: int, panel: Sequence[Perspective] = ALL_REVIEWERS
) -> Open | Blocked:
    """Evaluate EG-3: each reviewer of the panel submitted a verdict; other instances do not count."""
    said = verdicts(tally, scope=scope, round=round, panel=panel)
    missing = [perspective.value for perspective in panel if not said[perspective]]
    count = len(panel) - len(missing)
    if not missing:
        return _open(Gate.REVIEWERS_SUBMITTED, tally, _rows(said), count=count, threshold=len(panel))
    return _blocked(
        Gate.REVIEWERS_SUBMITTED,
        tally,
        missing=missing,
        because=f"{count} of {len(panel)} reviewers filed a verdict",
        count=count,
        threshold=len(panel),
    )


def no_blocker(tally: Tally, *, round: int) -> Open | Blocked:
    """Evaluate EG-4: no reviewer, known or not, reported a blocker in this round; a later row does not retract one."""
    rows = [row for row in tally.rows if row.phase is Phase.REVIEW and row.round == round]
    blockers = sorted({(row.check_name, row.instance or "") for row in rows if row.verdict is CategoryVerdict.BLOCKER})
    if not blockers:
        return _open(Gate.NO_BLOCKER, tally, rows, count=0, threshold=0)
    return _blocked(
        Gate.NO_BLOCKER,
        tally,
        missing=[f"{name} without a blocker ({instance or 'no instance'})" for name, instance in blockers],
        because="a reviewer reported a blocker, which approvals cannot outvote",
        count=len(blockers),
        threshold=0,
    )


def categories_covered(
    tally: Tally, *, scope: ReviewScope, round: int, panel: Sequence[Perspective] = ALL_REVIEWERS
) -> Open | Blocked:
    """Evaluate EG-5: each reviewer of the panel judged all three categories."""
    said = verdicts(tally, scope=scope, round=round, panel=panel)
    missing = [
        f"{perspective.value}: {category.value}"
        for perspective in panel
        for category in Category
        if category not in said[perspective]
    ]
    count = sum(len(of_one) == len(Category) for of_one in said.values())
    if not missing:
        return _open(Gate.CATEGORIES_COVERED, tally, _rows(said), count=count, threshold=len(panel))
    return _blocked(
        Gate.CATEGORIES_COVERED,
        tally,
        missing=missing,
        because=f"{count} of {len(panel)} reviewers judged every category",
        count=count,
        threshold=len(panel),
    )


def approves(of_one: Mapping[Category, CheckRow]) -> bool:
    """Return True if one reviewer judged every category and approved each."""
    return len(of_one) == len(Category) and all(row.verdict is CategoryVerdict.APPROVE for row in of_one.values())


def majority_approves(
    tally: Tally,
    *,
    scope: ReviewScope,
    round: int,
    policy: Policy | None = None,
    panel: Sequence[Perspective] = ALL_REVIEWERS,
) -> Open | Blocked:
    """Evaluate EG-6: enough reviewers approve in all three categories; all of a panel that is smaller than that."""
    needed = min((policy or Policy()).review.approvals, len(panel))
    said = verdicts(tally, scope=scope, round=round, panel=panel)
    approving = [perspective for perspective in panel if approves(said[perspective])]
    if len(approving) >= needed:
        evidence = [row for perspective in approving for row in said[perspective].values()]
        return _open(Gate.MAJORITY_APPROVES, tally, evidence, count=len(approving), threshold=needed)
    return _blocked(
        Gate.MAJORITY_APPROVES,
        tally,
        missing=[f"approval of {perspective.value}" for perspective in panel if perspective not in approving],
        because=f"{len(approving)} of {needed} approvals",
        count=len(approving),
        threshold=needed,
    )


def _rows(said: Mapping[Perspective, Mapping[Category, CheckRow]]) -> list[CheckRow]:
    return [row for of_one in said.values() for row in of_one.values()]


def _open(gate: Gate, tally: Tally, rows: Iterable[CheckRow], *, count: int, threshold: int) -> Open:
    ids = tuple(sorted({row.id for row in rows}))
    return Open(gate=gate, evidence=ids, count=count, threshold=threshold, query=tally.query)


def _blocked(gate: Gate, tally: Tally, *, missing: Iterable[str], because: str, count: int, threshold: int) -> Blocked:
    return Blocked(
        gate=gate, missing=tuple(missing), because=because, count=count, threshold=threshold, query=tally.query
    )
