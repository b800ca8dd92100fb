"""Checks, reviews and files of a run for its bundle: rows of the ledger, judged by the same rules as the run itself."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from fairwitness.contracts.common.evidence import CheckRow, Phase, Tally
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.feature.facts import ChangedFile, FeatureFacts, ReviewFacts, TaskFacts
from fairwitness.contracts.feature.review import Category, Perspective, ReviewReturn, ReviewScope
from fairwitness.contracts.feature.state import FeatureState, TaskState
from fairwitness.db.base import Database
from fairwitness.errors import LedgerTampered
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.subjects import subjects
from fairwitness.rules.gates import check_names, is_verified, task_gates, task_rows, verdicts
from fairwitness.rules.policy import Standing, effective_size
from fairwitness.rules.review import review_gates, situation_of
from fairwitness.rules.risk import colour_of, effective_risk
from fairwitness.runs.feature.bundle_model import Checked, OnRecord, Reviewer, Round, Touched

_ROWS = "SELECT id, check_name, phase, round, passed, verdict FROM anvil_checks WHERE run_id = ?"
_COUNTS = """
SELECT task_id, COUNT(*), SUM(passed) FROM anvil_checks
WHERE run_id = ? AND task_id IS NOT NULL AND phase <> 'review' GROUP BY task_id ORDER BY MIN(id)
"""
_SAID = """
SELECT c.id, k.body FROM anvil_checks c
JOIN check_sources s ON s.check_id = c.id JOIN claims k ON k.id = s.claim_id
WHERE c.run_id = ? AND c.phase = 'review'
"""
ROUNDS = (1, 2)
"""As many rounds as a review may have."""
_NO_TASK = TaskState(attempts=(), merged=None, merged_attempt=None, reverts=0)


def refuse_made_up(database: Database, run_id: str, facts: FeatureFacts) -> None:
    """`LedgerTampered` if a fact rests on a row that the ledger does not hold, or holds otherwise."""
    held = {row[0]: (row[1], row[2], row[3], bool(row[4]), row[5]) for row in database.read(_ROWS, (run_id,))}
    for row in _resting_on(facts):
        said = (row.check_name, row.phase.value, row.round, row.passed, row.verdict.value if row.verdict else None)
        if held.get(row.id) != said:
            raise LedgerTampered(
                f"run {run_id}: check {row.id} ({row.check_name}) is not in the ledger as the facts have it",
                next_step="fairwitness ledger verify",
            )


def _resting_on(facts: FeatureFacts) -> Iterator[CheckRow]:
    fixed = facts.fix.checks if facts.fix is not None else None
    for task in (*facts.tasks, *(each for each in (facts.whole, fixed) if each is not None)):
        yield from (*task.baseline.rows, *task.after.rows)
    for review in (facts.design_review, facts.code_review):
        if review is not None:
            yield from review.tally.rows


def checked(task: TaskFacts, state: FeatureState, policy: Policy, *, is_whole: bool) -> Checked:
    """What the evidence says of one task."""
    known = state.tasks.get(task.task, _NO_TASK)
    risk = effective_risk(task.risk, task.files, policy)
    rows = task_rows(task)
    return Checked(
        name=task.task,
        is_whole=is_whole,
        planned_risk=task.risk,
        risk=risk,
        size=effective_size(task.size, risk),
        iteration=task.iteration,
        is_verified=is_verified(task, policy),
        gates=task_gates(task, policy),
        standings=Counter(standing for _, standing in rows),
        sources=Counter(row.provenance for row, _ in rows),
        regressions=tuple(sorted({row.check_name for row, worth in rows if worth is Standing.REGRESSED})),
        red_before_too=tuple(sorted({row.check_name for row, worth in rows if worth is Standing.RED_BEFORE_TOO})),
        attempts=len(known.attempts),
        reverts=known.reverts,
        merged=known.merged,
    )


def elsewhere(database: Database, run_id: str, facts: FeatureFacts) -> tuple[OnRecord, ...]:
    """What has rows in the run and is no task of it any more."""
    known = {task.task for task in (*facts.tasks, *([facts.whole] if facts.whole is not None else []))}
    rows = database.read(_COUNTS, (run_id,))
    return tuple(OnRecord(str(name), int(count), int(good)) for name, count, good in rows if name not in known)


def rounds(ledger: Ledger, run_id: str, policy: Policy) -> tuple[Round, ...]:
    """Every round of both reviews, the design's first."""
    said = {number: _returned(body) for number, body in ledger.database.read(_SAID, (run_id,))}
    tallies = [
        ledger.tally(run_id, subject.task_id, Phase.REVIEW)
        for subject in subjects(ledger.database, run_id)
        if Phase.REVIEW.value in subject.rounds
    ]
    found = []
    for scope in ReviewScope:
        names = set(check_names(scope).values())
        for tally in tallies:
            own = [row for row in tally.rows if row.check_name in names]
            for number in sorted({row.round for row in own if row.round in ROUNDS}):
                rows = tuple(row for row in own if row.round == number)
                found.append(_round(scope, number, Tally(query=tally.query, rows=rows), said, policy))
    return tuple(found)


def unheard(database: Database, run_id: str) -> int:
    """How many review rows belong to no check and no round that any gate looks at."""
    names = {name for scope in ReviewScope for name in check_names(scope).values()}
    rows = [row for row in database.read(_ROWS, (run_id,)) if row[2] == Phase.REVIEW.value]
    return sum(row[1] not in names or row[3] not in ROUNDS for row in rows)


def _round(
    scope: ReviewScope, number: int, tally: Tally, said: Mapping[int, ReviewReturn | None], policy: Policy
) -> Round:
    review = ReviewFacts(scope=scope, round=number, tally=tally, reviewers=())
    known = {perspective.value for perspective in Perspective}
    return Round(
        scope=scope,
        number=number,
        reviewers=tuple(
            _reviewer(perspective, rows, said, scope, number)
            for perspective, rows in verdicts(tally, scope=scope, round=number).items()
        ),
        strangers=tuple(sorted({row.instance or "nobody" for row in tally.rows if row.instance not in known})),
        gates=review_gates(review, policy),
        situation=situation_of(review, policy),
    )


def _reviewer(
    perspective: Perspective,
    rows: Mapping[Category, CheckRow],
    said: Mapping[int, ReviewReturn | None],
    scope: ReviewScope,
    number: int,
) -> Reviewer:
    newest = max(rows.values(), key=lambda row: row.id, default=None)
    review = said.get(newest.id) if newest is not None else None
    if review is not None and (review.scope, review.round, review.reviewer_perspective) != (scope, number, perspective):
        review = None  # what it says is about something else
    return Reviewer(
        perspective=perspective.value,
        rows=rows,
        findings=review.findings if review is not None else None,
        earlier=(review.earlier_findings or ()) if review is not None else (),
    )


def _returned(body: str) -> ReviewReturn | None:
    """What a reviewer returned, if its claim holds it: by itself, or as the answer of a dispatch."""
    value: Any = json.loads(body)
    for candidate in (value, *value.values()) if isinstance(value, dict) else ():
        try:
            return ReviewReturn.model_validate(candidate)
        except ValidationError:
            continue
    return None


def touched(tasks: Sequence[TaskFacts], whole: TaskFacts | None, policy: Policy) -> tuple[Touched, ...]:
    """Every file that a task or the whole change touches, the most dangerous first."""
    committed = {file.path: file for file in whole.files} if whole is not None else {}
    by_path: dict[str, ChangedFile] = {}
    owners: dict[str, list[str]] = {}
    for task in tasks:
        for file in task.files:
            by_path[file.path] = file
            owners.setdefault(file.path, []).append(task.task)
    by_path |= committed
    found = (
        Touched(path, file.change, colour_of(file, policy), tuple(owners.get(path, ())), path in committed)
        for path, file in by_path.items()
    )
    return tuple(sorted(found, key=_danger))


def _danger(file: Touched) -> tuple[int, str]:
    return -list(type(file.colour)).index(file.colour), file.path


def last_rounds(all_rounds: Iterable[Round]) -> tuple[Round, ...]:
    """The round of each review that counts."""
    return tuple({each.scope: each for each in all_rounds}.values())
