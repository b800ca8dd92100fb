"""The evidence bundle of a run, assembled by SELECT over its ledger as of one head of the chain."""

from collections.abc import Iterator

from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.common.words import SEVERITIES, Verdict
from fairwitness.contracts.feature.facts import FeatureFacts
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.errors import EventsBroken
from fairwitness.ledger.chain import Head
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.confidence import confidence_facts, grade, may_commit
from fairwitness.rules.fold_feature import fold_feature
from fairwitness.rules.review import VERDICT_OF
from fairwitness.runs.feature import bundle_evidence, bundle_telemetry
from fairwitness.runs.feature.bundle_model import Bundle, Checked, Issue, Less, Reviewer, Round

TRIES = 3


def assemble(ledger: Ledger, run_id: str, facts: FeatureFacts, policy: Policy) -> Bundle:
    """Everything the ledger says of a run; `facts` are those its last decision rests on.

    `LedgerTampered` if the facts are not what the ledger holds, `EventsBroken` if its events tell no run, or if it is
    still being written to: then no head could be named that all of this stands under.
    """
    for _ in range(TRIES):
        head = ledger.head(run_id)
        bundle = _assembled(ledger, run_id, facts, policy, head)
        if ledger.head(run_id) == head:
            return bundle
    raise EventsBroken(f"run {run_id} is still being written to", next_step="wait until it rests, and ask again")


def _assembled(ledger: Ledger, run_id: str, facts: FeatureFacts, policy: Policy, head: Head) -> Bundle:
    database = ledger.database
    bundle_evidence.refuse_made_up(database, run_id, facts)
    state = _folded(ledger, run_id)
    tasks = tuple(bundle_evidence.checked(task, state, policy, is_whole=False) for task in facts.tasks)
    whole = None if facts.whole is None else bundle_evidence.checked(facts.whole, state, policy, is_whole=True)
    rounds = bundle_evidence.rounds(ledger, run_id, policy)
    confidence = grade(confidence_facts(facts, policy))
    return Bundle(
        state=state,
        confidence=confidence,
        may_commit=may_commit(confidence.level),
        tasks=tasks,
        whole=whole,
        elsewhere=bundle_evidence.elsewhere(database, run_id, facts),
        rounds=rounds,
        unheard=bundle_evidence.unheard(database, run_id),
        files=bundle_evidence.touched(facts.tasks, facts.whole, policy),
        issues=_issues(state, tasks, whole, rounds),
        less=_less(state, facts),
        answers=bundle_telemetry.answers(database, run_id),
        waiting=tuple(gate for gate, asked in state.approvals.items() if asked.selected_option is None),
        telemetry=bundle_telemetry.telemetry(ledger, run_id, state),
        evaluations=bundle_telemetry.evaluations(database, run_id),
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


def _less(state: FeatureState, facts: FeatureFacts) -> tuple[Less, ...]:
    told = [Less(each.kind, each.detail) for each in state.degradations]
    kinds = {each.kind for each in told}
    return (*told, *(Less(kind, None) for kind in facts.degradations if kind not in kinds))


def _issues(
    state: FeatureState, tasks: tuple[Checked, ...], whole: Checked | None, rounds: tuple[Round, ...]
) -> tuple[Issue, ...]:
    """Everything left open, the worst first; what nobody rated stands before what is only Minor."""
    found = [
        *(issue for each in bundle_evidence.last_rounds(rounds) for issue in _left_by(each)),
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
    """What a row wants revised without a finding on record that says why."""
    for category, row in reviewer.rows.items():
        told = {VERDICT_OF[each.severity] for each in reviewer.findings or () if each.category is category}
        if row.verdict is not None and row.verdict is not Verdict.APPROVE and row.verdict not in told:
            what = f"{category.value}: {row.verdict.value}, and no finding on record says why"
            yield Issue(row.severity, what, source, is_claim=True)


def _lacking(checked: Checked) -> Iterator[Issue]:
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
