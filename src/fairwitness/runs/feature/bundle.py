"""The evidence bundle of a run: the proof of the whole change, and a page read from the ledger as of one head."""

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from fairwitness.contracts.common.evidence import CheckRow, Phase, Tally
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.vocabulary import SEVERITIES, CategoryVerdict, Workflow
from fairwitness.contracts.feature.events import HeadRecorded
from fairwitness.contracts.feature.facts import ChangedFile, FeatureFacts, ReviewFacts, TaskFacts
from fairwitness.contracts.feature.review import Category, Perspective, ReviewReturn, ReviewScope
from fairwitness.contracts.feature.state import FeatureState, TaskState
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.db.base import Database
from fairwitness.errors import EventsBroken, LedgerTampered
from fairwitness.git.ledger_heads import KeptHead, keep_head
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.subjects import subjects
from fairwitness.rules.confidence import confidence_facts, grade, may_commit
from fairwitness.rules.evidence_worth import RowWorth, effective_size
from fairwitness.rules.feature_paths import REVIEWERS_OF, path_of_review
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.rules.gates import check_names, is_verified, task_gates, task_rows
from fairwitness.rules.review import VERDICT_OF, review_gates, situation_of, verdicts_of
from fairwitness.rules.risk import colour_of, effective_risk
from fairwitness.runs.feature import ledger_queries
from fairwitness.runs.feature.bundle_model import (
    CheckedTask,
    DegradationNote,
    Issue,
    OnRecord,
    Reviewer,
    Round,
    RunBundle,
    TouchedFile,
)
from fairwitness.runs.feature.bundle_page import bundle_page
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import WHOLE, facts_of
from fairwitness.runs.shared.criteria import changed_files
from fairwitness.verify.subject import VerifyDeps, prove

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
"""The rounds that a review may have."""
_NO_TASK = TaskState(attempts=(), merged=None, merged_attempt=None, reverts=0)


def refuse_made_up(database: Database, run_id: str, facts: FeatureFacts) -> None:
    """Raise `LedgerTampered` if a fact rests on a row that the ledger lacks or that differs."""
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


def checked(task: TaskFacts, state: FeatureState, policy: Policy, *, is_whole: bool) -> CheckedTask:
    """Return what the evidence says about one task."""
    known = state.tasks.get(task.task, _NO_TASK)
    risk = effective_risk(task.risk, task.files, policy)
    rows = task_rows(task)
    return CheckedTask(
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
        regressions=tuple(sorted({row.check_name for row, worth in rows if worth is RowWorth.REGRESSED})),
        red_before_too=tuple(sorted({row.check_name for row, worth in rows if worth is RowWorth.RED_BEFORE_TOO})),
        attempts=len(known.attempts),
        reverts=known.reverts,
        merged=known.merged,
    )


def elsewhere(database: Database, run_id: str, facts: FeatureFacts) -> tuple[OnRecord, ...]:
    """Return the subjects that have rows in the run but are no longer among its tasks."""
    known = {task.task for task in (*facts.tasks, *([facts.whole] if facts.whole is not None else []))}
    rows = database.read(_COUNTS, (run_id,))
    return tuple(OnRecord(str(name), int(count), int(good)) for name, count, good in rows if name not in known)


def review_rounds(ledger: Ledger, run_id: str, state: FeatureState, policy: Policy) -> tuple[Round, ...]:
    """Return every round of both reviews, the design review first."""
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
                review = ReviewFacts(
                    scope=scope,
                    round=number,
                    tally=Tally(query=tally.query, rows=rows),
                    reviewers=(),
                    path=path_of_review(state, scope, number),
                )
                found.append(_round(review, said, policy))
    return tuple(found)


def unheard(database: Database, run_id: str) -> int:
    """Return the number of review rows that belong to no check and no round that a gate reads."""
    names = {name for scope in ReviewScope for name in check_names(scope).values()}
    rows = [row for row in database.read(_ROWS, (run_id,)) if row[2] == Phase.REVIEW.value]
    return sum(row[1] not in names or row[3] not in ROUNDS for row in rows)


def _round(review: ReviewFacts, said: Mapping[int, ReviewReturn | None], policy: Policy) -> Round:
    known = {perspective.value for perspective in REVIEWERS_OF[review.path]}
    rows = review.tally.rows
    return Round(
        scope=review.scope,
        number=review.round,
        reviewers=tuple(
            _reviewer(perspective, of_one, said, review.scope, review.round)
            for perspective, of_one in verdicts_of(review).items()
        ),
        strangers=tuple(sorted({row.instance or "nobody" for row in rows if row.instance not in known})),
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
        review = None  # the claim is about another review
    return Reviewer(
        perspective=perspective.value,
        rows=rows,
        findings=review.findings if review is not None else None,
        earlier=(review.earlier_findings or ()) if review is not None else (),
    )


def _returned(body: str) -> ReviewReturn | None:
    """Return a reviewer's document if its claim holds it, by itself or as the answer of a dispatch."""
    value: Any = json.loads(body)
    for candidate in (value, *value.values()) if isinstance(value, dict) else ():
        try:
            return ReviewReturn.model_validate(candidate)
        except ValidationError:
            continue
    return None


def touched(tasks: Sequence[TaskFacts], whole: TaskFacts | None, policy: Policy) -> tuple[TouchedFile, ...]:
    """Return every file that a task or the whole change touches, the riskiest first."""
    committed = {file.path: file for file in whole.files} if whole is not None else {}
    by_path: dict[str, ChangedFile] = {}
    owners: dict[str, list[str]] = {}
    for task in tasks:
        for file in task.files:
            by_path[file.path] = file
            owners.setdefault(file.path, []).append(task.task)
    by_path |= committed
    found = (
        TouchedFile(path, file.change, colour_of(file, policy), tuple(owners.get(path, ())), path in committed)
        for path, file in by_path.items()
    )
    return tuple(sorted(found, key=_danger))


def _danger(file: TouchedFile) -> tuple[int, str]:
    return -list(type(file.colour)).index(file.colour), file.path


def last_rounds(all_rounds: Iterable[Round]) -> tuple[Round, ...]:
    """Return the last round of each review, which is the one that counts."""
    return tuple({each.scope: each for each in all_rounds}.values())


TRIES = 3


def assemble(ledger: Ledger, run_id: str, facts: FeatureFacts, policy: Policy) -> RunBundle:
    """Return the bundle of a run; `facts` are those of its last decision.

    Raise `LedgerTampered` if the facts are not what the ledger holds, and `EventsBroken` if the events are no run or if
    the run is still being written to: then no head covers everything.
    """
    for _ in range(TRIES):
        head = ledger.head(run_id)
        bundle = _assembled(ledger, run_id, facts, policy, head)
        if ledger.head(run_id) == head:
            return bundle
    raise EventsBroken(f"run {run_id} is still being written to", next_step="wait until it rests, and ask again")


def _assembled(ledger: Ledger, run_id: str, facts: FeatureFacts, policy: Policy, head: Head) -> RunBundle:
    database = ledger.database
    refuse_made_up(database, run_id, facts)
    state = _folded(ledger, run_id)
    tasks = tuple(checked(task, state, policy, is_whole=False) for task in facts.tasks)
    whole = None if facts.whole is None else checked(facts.whole, state, policy, is_whole=True)
    rounds = review_rounds(ledger, run_id, state, policy)
    confidence = grade(confidence_facts(facts, policy))
    return RunBundle(
        state=state,
        confidence=confidence,
        may_commit=may_commit(confidence.level),
        tasks=tasks,
        whole=whole,
        elsewhere=elsewhere(database, run_id, facts),
        rounds=rounds,
        unheard=unheard(database, run_id),
        files=touched(facts.tasks, facts.whole, policy),
        issues=_issues(state, tasks, whole, rounds),
        less=_less(state, facts),
        answers=ledger_queries.answers(database, run_id),
        waiting=tuple(gate for gate, asked in state.approvals.items() if asked.selected_option is None),
        telemetry=ledger_queries.telemetry(ledger, run_id, state),
        evaluations=ledger_queries.evaluations(database, run_id),
        head=head,
    )


def _folded(ledger: Ledger, run_id: str) -> FeatureState:
    state = fold_feature(ledger.events(run_id))
    if isinstance(state, Problem):
        raise EventsBroken(
            f"run {run_id}: {spell_path(state.where)}: expected {state.expected}; found {state.found}",
            next_step="fairwitness ledger verify",
        )
    return state


def _less(state: FeatureState, facts: FeatureFacts) -> tuple[DegradationNote, ...]:
    told = [DegradationNote(each.kind, each.detail) for each in state.degradations]
    kinds = {each.kind for each in told}
    return (*told, *(DegradationNote(kind, None) for kind in facts.degradations if kind not in kinds))


def _issues(
    state: FeatureState, tasks: tuple[CheckedTask, ...], whole: CheckedTask | None, rounds: tuple[Round, ...]
) -> tuple[Issue, ...]:
    """Return all open issues, the worst first; unrated ones come before those that are only Minor."""
    found = [
        *(issue for each in last_rounds(rounds) for issue in _left_by(each)),
        *(issue for each in (*tasks, *([whole] if whole is not None else [])) for issue in _lacking(each)),
        *_concerns(state),
        *(
            Issue(None, f"the cap of {each.what} was reached: {each.used} of {each.cap}", "the run's budget", False)
            for each in state.exhausted
        ),
    ]
    unrated = len(SEVERITIES) - 1.5
    return tuple(sorted(found, key=lambda each: unrated if each.severity is None else SEVERITIES.index(each.severity)))


def _left_by(review: Round) -> Iterator[Issue]:
    for reviewer in review.reviewers:
        source = f"{reviewer.perspective}, {review.scope.value} review, round {review.number}"
        for finding in reviewer.findings or ():
            what = f"{finding.category.value}: {finding.id}: {finding.title}"
            yield Issue(finding.severity, what, source, is_claim=True)
        yield from _rows_beyond_findings(reviewer, source)


def _rows_beyond_findings(reviewer: Reviewer, source: str) -> Iterator[Issue]:
    """Yield the revisions that a review row demands without a recorded finding."""
    for category, row in reviewer.rows.items():
        told = {VERDICT_OF[each.severity] for each in reviewer.findings or () if each.category is category}
        if row.verdict is not None and row.verdict is not CategoryVerdict.APPROVE and row.verdict not in told:
            what = f"{category.value}: {row.verdict.value}, and no finding on record says why"
            yield Issue(row.severity, what, source, is_claim=True)


def _lacking(checked: CheckedTask) -> Iterator[Issue]:
    subject = "the whole change" if checked.is_whole else checked.name
    if not checked.is_verified:
        yield Issue(None, f"{subject} is not verified", "the gates", is_claim=False)
    for check in checked.regressions:
        yield Issue(None, f"{subject}: {check} passed before the change and fails now", "executed", is_claim=False)
    for check in checked.red_before_too:
        yield Issue(None, f"{subject}: {check} failed before the change and fails still", "executed", is_claim=False)


def _concerns(state: FeatureState) -> Iterator[Issue]:
    for each in state.pushbacks:
        if each.concerns:
            how = "selected by itself" if each.auto_selected else "selected"
            what = f"{each.concerns} concerns at {each.step}; {each.selected_option.value} was {how}"
            yield Issue(each.worst, what, "pushback", is_claim=True)


def prove_whole(context: FeatureContext, verify_deps: VerifyDeps, tip: str, stop: threading.Event) -> None:
    """Run the checks on the whole change, from the base commit to what would be committed."""
    life = context.state().resumed
    sides = [
        Side(ref=commit[:12], commit=commit, tree=context.repository.tree_of(commit))
        for commit in (context.order.base_commit, tip)
    ]
    if sides[0].tree == sides[1].tree:
        return
    prove(
        verify_deps,
        context.run_id,
        VerifySubject(task_id=WHOLE, round=life + 1),
        base=sides[0],
        head=sides[1],
        stop=stop,
    )
    key = f"{WHOLE}:{life}"
    if context.ledger.observation(context.run_id, key) is None:
        files = changed_files(context.shadow.diff(sides[0].tree, sides[1].tree))
        detail: dict[str, object] = {
            "round": life + 1,
            "tree": sides[1].tree,
            "commit": tip,
            "files": [file.plain() for file in files],
        }
        context.write(
            lambda record: record.observation(context.observation(key, WHOLE, WHOLE, detail, tree=sides[1].tree))
        )
        killpoint("feature.whole")


def write_bundle(context: FeatureContext) -> None:
    """Write the evidence bundle over a ledger head that is kept in git."""
    begun, headed, written = (
        _last(context, kind) for kind in ("dispatch_started", "head_recorded", "artifact_written")
    )
    if written > begun:
        return  # a killed try wrote it; written again it would name another head
    top = context.repository.top or context.repository.common_dir
    if headed < begun:
        record_head(context.ledger, top, context.run_id, Workflow.FEATURE, timestamp=context.now())
    else:  # it was recorded, but may not have been kept in git
        _anchor(context.ledger, top, context.run_id)
    killpoint("feature.headed")
    bundle = assemble(context.ledger, context.run_id, facts_of(context), context.order.policy)
    context.put(context.layout.evidence_bundle, bundle_page(bundle))


def _last(context: FeatureContext, kind: str) -> int:
    """Return the sequence number of the last event of a kind. The last `dispatch_started` is the start of the
    current call."""
    event = context.ledger.last_event(context.run_id, kind)
    return 0 if event is None else event.seq


def record_head(ledger: Ledger, work_tree: Path, run_id: str, workflow: Workflow, *, timestamp: str) -> Head:
    """Record the ledger's head as an event, keep the head after that event in git, and return the latter.

    A crash between the two leaves an older ref, with which a longer chain still agrees.
    """
    before = ledger.head(run_id)
    note = HeadRecorded(head=before.hash, rows=before.links)
    data = note.model_dump(mode="json", exclude={"type"})
    ledger.record(run_id, lambda record: record.event(workflow, note.type, data, timestamp=timestamp))
    return _anchor(ledger, work_tree, run_id)


def _anchor(ledger: Ledger, work_tree: Path, run_id: str) -> Head:
    """Anchor a run's head on this machine and in git; raise if git refuses, because a bundle names a head in git."""
    anchor = ledger.anchor(run_id, with_ref=False).anchor
    keep_head(work_tree, run_id, KeptHead(anchor.links, anchor.head, anchor.number, anchor.hash, anchor.ledger))
    return Head(anchor.links, anchor.head)
