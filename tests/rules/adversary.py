"""A small world that answers every decision in every way it can: what a run's facts may be after each move."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
    ErrorCause,
    Finish,
    Halt,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Revise,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.evidence import CheckRow
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Assessment, Confidence, Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import (
    OPTIONS,
    Approval,
    CallFacts,
    CanStart,
    FeatureFacts,
    FixFacts,
    HumanGate,
    ReviewFacts,
    Step,
    TaskFacts,
)
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.rules.confidence import AT_MOST
from fairwitness.rules.gates import is_verified
from rules.build import A, B, R, baseline, call, failed, nothing, observed, row, tally, task, votes

ALL = (A, A, A)
SAID = {
    "unanimous": (ALL, ALL, ALL),
    "security": (ALL, ALL, (R, A, A)),
    "no majority": ((A, R, A), (A, A, R), ALL),
    "blocker": (ALL, ALL, (A, A, B)),
    "one silent": (ALL, ALL, None),
}
ENDS = (("DONE", None), ("ERROR", None), ("ERROR", ErrorCause.PERMISSION_DENIED), ("NEEDS_REVISION", None))
REVIEW_OF = {
    Step.DESIGN_REVIEW: ("design_review", ReviewScope.DESIGN),
    Step.CODE_REVIEW: ("code_review", ReviewScope.CODE),
}


@cache
def review_rows(kind: str, scope: ReviewScope, round: int) -> tuple[CheckRow, ...]:
    """The rows of a review; the same question has the same rows, so that equal worlds are equal."""
    return tuple(votes(*SAID[kind], scope=scope, round=round))


@cache
def check_rows(kind: str, iteration: int) -> tuple[CheckRow, ...]:
    """The rows of a task whose checks passed, failed, or gave nothing."""
    made = {
        "pass": [row("tests", round=iteration), row("lint", round=iteration)],
        "fail": [failed("tests", round=iteration), row("lint", round=iteration)],
        "lost": [nothing("tests", Assessment.LOST, round=iteration), row("lint", round=iteration)],
        "reverted": [observed("revert-task-01", False, round=iteration)],
    }
    return tuple(made[kind])


@cache
def the_task(kind: str | None, iteration: int, runs: int, with_baseline: bool, baseline_runs: int) -> TaskFacts:
    """The only task of the plan."""
    return task(
        "task-01",
        iteration=iteration,
        after=tally(*(check_rows(kind, iteration) if kind else ())),
        baseline=tally(*((_BASELINE,) if with_baseline else ())),
        check_runs=runs,
        baseline_runs=baseline_runs,
    )


_BASELINE = baseline("tests")
_BEFORE = {
    HumanGate.REQUEST_PUSHBACK: (Step.SETUP,),
    HumanGate.RESEARCH: (Step.RESEARCH, Step.RESEARCH_GATE),
    HumanGate.SPEC_PUSHBACK: (Step.SPEC,),
    HumanGate.PLAN: (Step.PLAN, Step.PLAN_GATE),
}
"""The steps at which it still matters what was answered at a gate."""


def _copy(facts: FeatureFacts, **changes: Any) -> FeatureFacts:
    return facts.model_copy(update=changes)


def answers(facts: FeatureFacts, decision: Decision) -> Iterator[FeatureFacts]:
    """Every world that may follow; none after the end."""
    match decision:
        case Halt() | Finish():
            return
        case Advance():
            yield _advanced(facts, decision)
        case Wait():
            yield from _waited(facts, decision)
        case Retry():
            yield from _retried(facts, decision)
        case Revise():
            yield _revised(facts, decision)
        case Replan():
            fresh = the_task(None, decision.iteration, 0, True, 1)
            yield _copy(facts, step=Step.PLAN, calls=(), iteration=decision.iteration, tasks=(fresh,))
        case Revert():
            (old,) = facts.tasks
            after = tally(*old.after.rows, *check_rows("reverted", decision.iteration))
            yield _copy(facts, tasks=(old.model_copy(update={"after": after}),))
        case AskHuman():
            kept = facts.approval
            gate = HumanGate(decision.gate_id)
            spent = kept.spent if kept is not None and kept.gate is gate else ()
            yield _copy(facts, approval=Approval(gate=gate, asked=True, selected=None, spent=spent))


def _advanced(facts: FeatureFacts, decision: Advance) -> FeatureFacts:
    to = Step(decision.to)
    begun = tuple(call(instance, None) for instance in decision.start)
    facts = _forgotten(_copy(facts, degradations=(*facts.degradations, *map(Degradation, decision.degradations))), to)
    if to in REVIEW_OF:
        field, scope = REVIEW_OF[to]
        old: ReviewFacts | None = getattr(facts, field)
        assert decision.round is not None
        if old is None or old.round != decision.round:
            old = ReviewFacts(scope=scope, round=decision.round, tally=tally(), reviewers=())
        new = old.model_copy(update={"reviewers": (*old.reviewers, *begun)})
        return _copy(facts, step=to, calls=(), fix=None, **{field: new})
    if to is facts.step:
        return _copy(facts, calls=(*facts.calls, *begun))
    changes: dict[str, Any] = {"step": to, "calls": begun, "concerns": None, "fix": None}
    if to is Step.PLAN:
        changes["design_review"] = None  # nobody asks about it any more
    if to is Step.IMPLEMENT and not facts.tasks:
        changes["tasks"] = (the_task(None, facts.iteration, 0, False, 0),)
    return _copy(facts, **changes)


def _forgotten(facts: FeatureFacts, to: Step) -> FeatureFacts:
    """The facts without what no later decision depends on: without this the world has millions of states."""
    low = [kind for kind in facts.degradations if AT_MOST[kind] is Confidence.LOW]
    changes: dict[str, Any] = {"degradations": (Degradation.REVIEW_EXHAUSTED,) if low else ()}
    approval = facts.approval
    if approval is not None and to not in _BEFORE[approval.gate]:
        changes["approval"] = None
    if to is Step.CODE_REVIEW and to is not facts.step:
        (old,) = facts.tasks
        changes |= {
            "iteration": 1,
            "tasks": (the_task("pass" if is_verified(old, Policy()) else "fail", 1, 1, True, 1),),
        }
    return _copy(facts, **changes)


def _waited(facts: FeatureFacts, decision: Wait) -> Iterator[FeatureFacts]:
    match decision.waits_for:
        case WaitsFor.PERMISSION:
            yield _copy(facts, can_start=CanStart.YES, held_by=None)
        case WaitsFor.PERSON:
            assert facts.approval is not None
            for choice in OPTIONS[facts.approval.gate]:
                yield _copy(facts, approval=facts.approval.model_copy(update={"selected": choice}))
        case WaitsFor.CHECKS:
            assert facts.fix is not None
            for kind in ("pass", "fail", "lost"):
                yield _copy(facts, fix=FixFacts(call=facts.fix.call, checks=the_task(kind, 3, 1, True, 1)))
        case WaitsFor.CALLS:
            yield from _returned(facts)


def _ended(calls: tuple[CallFacts, ...], status: str, cause: ErrorCause | None) -> tuple[CallFacts, ...]:
    return tuple(
        call(item.instance, status, cause, attempts=item.attempts) if item.status is None else item for item in calls
    )


def _one_failed(calls: tuple[CallFacts, ...]) -> tuple[CallFacts, ...]:
    """The first running call fails, the others are done."""
    running = [item.instance for item in calls if item.status is None]
    return tuple(
        call(item.instance, "ERROR" if item.instance == running[0] else "DONE", attempts=item.attempts)
        if item.status is None
        else item
        for item in calls
    )


def _returned(facts: FeatureFacts) -> Iterator[FeatureFacts]:
    if facts.fix is not None:
        for status, cause in ENDS:
            (fixed,) = _ended((facts.fix.call,), status, cause)
            yield _copy(facts, fix=FixFacts(call=fixed, checks=None))
        return
    assert facts.step is not None
    if facts.step in REVIEW_OF:
        field, scope = REVIEW_OF[facts.step]
        review: ReviewFacts = getattr(facts, field)
        for kind in SAID:
            rows = review_rows(kind, scope, review.round)
            done = _ended(review.reviewers, "DONE", None)
            yield _copy(facts, **{field: review.model_copy(update={"tally": tally(*rows), "reviewers": done})})
        yield _copy(facts, **{field: review.model_copy(update={"reviewers": _one_failed(review.reviewers)})})
        return
    for status, cause in ENDS:
        ended = _copy(facts, calls=_ended(facts.calls, status, cause))
        if status == "DONE" and facts.step in (Step.SETUP, Step.SPEC):
            for concerns in (None, Severity.MINOR, Severity.BLOCKER):
                yield _copy(ended, concerns=concerns)
        elif status == "DONE" and facts.step is Step.IMPLEMENT:
            (old,) = facts.tasks
            for known in (True, False):
                begun = the_task(None, old.iteration, 0, known or bool(old.baseline.rows), 1)
                yield _copy(ended, tasks=(begun,))
        elif status == "DONE" and facts.step is Step.VERIFY:
            for found in (None, "pass", "fail", "lost"):
                yield _copy(ended, tasks=(the_task(found, facts.iteration, 1 if found else 0, True, 1),))
        elif facts.step is Step.KNOWLEDGE:
            for whole in (None, the_task("pass", 1, 1, True, 1)):
                yield _copy(ended, whole=whole)
        else:
            yield ended
    yield _copy(facts, calls=_one_failed(facts.calls))


def _retried(facts: FeatureFacts, decision: Retry) -> Iterator[FeatureFacts]:
    if decision.what is RetryOf.CALL:
        if facts.fix is not None:
            yield _copy(facts, fix=FixFacts(call=_again((facts.fix.call,), decision)[0], checks=None))
        elif facts.step in REVIEW_OF:
            field, _ = REVIEW_OF[facts.step]
            review: ReviewFacts = getattr(facts, field)
            yield _copy(facts, **{field: review.model_copy(update={"reviewers": _again(review.reviewers, decision)})})
        else:
            yield _copy(facts, calls=_again(facts.calls, decision))
        return
    if facts.fix is not None:
        assert facts.fix.checks is not None
        for kind in ("pass", "fail", "lost"):
            checks = the_task(kind, 3, facts.fix.checks.check_runs + 1, True, 1)
            yield _copy(facts, fix=FixFacts(call=facts.fix.call, checks=checks))
        return
    (old,) = facts.tasks
    if decision.what is RetryOf.BASELINE:
        for known in (True, False):
            yield _copy(facts, tasks=(the_task(None, old.iteration, 0, known, old.baseline_runs + 1),))
        return
    for kind in ("pass", "fail", "lost"):
        yield _copy(facts, tasks=(the_task(kind, old.iteration, old.check_runs + 1, True, 1),))


def _again(calls: tuple[CallFacts, ...], decision: Retry) -> tuple[CallFacts, ...]:
    return tuple(
        call(item.instance, None, attempts=item.attempts + 1) if item.instance in decision.instances else item
        for item in calls
    )


def _revised(facts: FeatureFacts, decision: Revise) -> FeatureFacts:
    to = Step(decision.to)
    if facts.step is Step.CODE_REVIEW:
        return _copy(facts, fix=FixFacts(call=call("review-fix", None), checks=None))
    approval = facts.approval
    if approval is not None and approval.selected is not None:
        spent = (*approval.spent, approval.selected)
        approval = approval.model_copy(update={"asked": False, "selected": None, "spent": spent})
    return _copy(facts, step=to, calls=(), concerns=None, approval=approval)
