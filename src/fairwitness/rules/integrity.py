"""The sixteen integrity checks of a phase: each passes, warns, has steps repeated, or fails the phase."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from fairwitness.contracts.autopilot.integrity import IntegrityAnswer, IntegrityFacts, IntegrityFinding, Remark
from fairwitness.contracts.autopilot.phase_return import JudgedStatus, PhaseOutcome
from fairwitness.contracts.autopilot.vocabulary import CheckWord, Recommendation, StepName, tally
from fairwitness.contracts.common.base import Contract
from fairwitness.rules.diagnostics import diagnostic_problems
from fairwitness.rules.integrity_evidence import (
    JUDGED,
    again,
    evidence_of_its_type,
    fails,
    judge_did_not_nod,
    judge_reported,
    person_is_asked_by_the_plan,
    person_is_needed,
    second_party,
    verification_took_place,
    warns,
    was_there_shown,
)
from fairwitness.rules.scores import RubberStamp, rubber_stamp, tenths, uniform_tail

INDEPENDENT = (StepName.VERIFY, StepName.JUDGE, StepName.RATE)
"""Steps that must be done by an agent that did no other step."""


def written_score(document: str) -> str | None:
    """Return the score of a rating as it was written: once parsed, 8 and 8.0 are the same number.

    >>> [written_score(f'{{"alignment_score": {score}}}') for score in ("8", "8.0", "null")]
    ['8', '8.0', None]
    """
    try:
        read: Any = json.loads(document, parse_int=str, parse_float=str, parse_constant=str)
    except (ValueError, RecursionError):
        return None
    score = read.get("alignment_score") if isinstance(read, dict) else None
    return score if isinstance(score, str) else None


def was_judged(facts: IntegrityFacts) -> Iterator[Remark]:
    """1: verified and judged, with a score, with checks that ended as the harness saw them end."""
    returned, said = facts.returned, facts.said
    if returned.status not in JUDGED:
        return
    ran = {run.step for run in facts.seen.ran}
    completed = returned.status is PhaseOutcome.COMPLETED
    for step in INDEPENDENT if completed else INDEPENDENT[:2]:
        if step not in ran:
            yield fails(f"the step {step.value} did not run")
    if completed and returned.alignment_score is None:
        yield fails("it is completed and has no score")
    if completed and said.verification is not None and not said.verification.pass_:
        yield fails("it is completed, and its verification failed")
    elif completed and returned.pipeline_steps.verify.status is not JudgedStatus.PASS:
        yield fails(f"it is completed, and its verification is {returned.pipeline_steps.verify.status.value}")
    wants = None if said.judgement is None else said.judgement.recommendation
    if completed and returned.recommendation is Recommendation.PROCEED and wants not in (None, Recommendation.PROCEED):
        yield fails(f"it is to proceed, and its judge said {wants}")
    yield from _checks(facts, completed=completed)


def _checks(facts: IntegrityFacts, *, completed: bool) -> Iterator[Remark]:
    said, seen = facts.returned.automated_checks, facts.seen.checks
    build: CheckWord = "n/a" if seen.build is None else seen.build
    pairs: tuple[tuple[str, CheckWord, CheckWord], ...] = (
        ("compile", said.compile, seen.compile),
        ("lint", said.lint, seen.lint),
        ("build", said.build, build),
        ("tests", seen.tests, seen.tests),  # a return cannot express them
    )
    for name, told, found in pairs:
        if told != found:
            yield fails(f"the check {name} is {_spelled(found)} and was returned as {_spelled(told)}")
        elif completed and found is False:
            yield fails(f"it is completed, and the check {name} fails")


def _spelled(word: CheckWord) -> str:
    return str(word).lower()


def commits_exist(facts: IntegrityFacts) -> Iterator[Remark]:
    """2: every commit that is named exists; a task without one is only noted."""
    for named in facts.returned.commit_shas:
        if not any(commit.startswith(named) for commit in facts.seen.commits):
            yield fails(f"the commit {named} does not exist in this phase")
    done, _ = tally(facts.returned.tasks_completed)
    if done > len(facts.seen.commits):
        yield warns(f"there are more completed tasks ({done}) than commits ({len(facts.seen.commits)})")


def not_too_quick(facts: IntegrityFacts) -> Iterator[Remark]:
    """3: several tasks take their time."""
    done, _ = tally(facts.returned.tasks_completed)
    seconds, least = facts.seen.phase_seconds, facts.settings.quick_phase_seconds
    if done >= 2 and seconds < least:
        yield warns(f"{done} tasks were completed in {seconds:g} s, less than {least} s")


def judges_are_independent(facts: IntegrityFacts) -> Iterator[Remark]:
    """4: who verifies, judges or rates did nothing else in the phase; the harness may verify, but has no opinion."""
    if facts.returned.status not in JUDGED:
        return
    for step in INDEPENDENT:
        mine = {run.session for run in facts.seen.ran if run.step is step}
        if None in mine and step is not StepName.VERIFY:
            yield again(f"the step {step.value} was not done by an agent of its own", step)
        others = sorted(
            {run.step.value for run in facts.seen.ran if run.step is not step and run.session in mine - {None}}
        )
        if others:
            yield again(f"the agent of the step {step.value} also did {', '.join(others)}", step)


_ONE_DECIMAL = re.compile(r"(10\.0|[0-9]\.[0-9])")


def score_is_earned(facts: IntegrityFacts) -> Iterator[Remark]:
    """5: the score was written with its decimal, is none that nobody gave, and does not look like all before it."""
    score = facts.returned.alignment_score
    if score is None or facts.returned.status not in JUDGED:
        return
    raw = facts.said.written_score
    if raw is None:
        yield again("there is a score that no rater wrote", StepName.RATE)
    elif _ONE_DECIMAL.fullmatch(raw) is None:
        yield again(f"the score is written as {raw}, not with one decimal", StepName.RATE)
    elif tenths(float(raw)) < tenths(score):  # a lower score results from deductions by Fair Witness
        yield fails(f"the score {score} is higher than the rater's {raw}")
    stamp = stamp_of(facts)
    if stamp is not None:
        length = uniform_tail((*facts.standing.earlier_tenths, tenths(score)))
        yield warns(f"{length} scores in a row lie within 0.2 of each other: {_FOLLOWS[stamp]}")


def stamp_of(facts: IntegrityFacts) -> RubberStamp | None:
    """Return the rubber-stamp suspicion that this score raises after the earlier ones."""
    score = facts.returned.alignment_score
    return None if score is None else rubber_stamp((*facts.standing.earlier_tenths, tenths(score)))


_FOLLOWS = {
    RubberStamp.WARNING: "this pattern suggests rubber-stamping",
    RubberStamp.ENHANCED: "the next phase is verified harder",
    RubberStamp.CRITICAL: "their phases are marked as suspect",
}


def failures_are_classified(facts: IntegrityFacts) -> Iterator[Remark]:
    """12: every failure has its category."""
    if facts.returned.status is PhaseOutcome.FAILED and facts.standing.category is None:
        yield warns("it failed for a reason that has no category")
    verification = facts.said.verification
    if verification is not None:
        classified = {one.failure for one in verification.failure_categories}
        for failure in verification.failures:
            if failure not in classified:
                yield warns(f"the failure “{failure}” has no category")


def way_up_is_named(facts: IntegrityFacts) -> Iterator[Remark]:
    """15: below nine there is a diagnostic, and each of its items says where, what, and what for."""
    score = facts.returned.alignment_score
    if facts.returned.status is PhaseOutcome.COMPLETED and score is not None:
        for problem in diagnostic_problems(tenths(score), facts.standing.way_up, facts.standing.paths):
            yield again(problem, StepName.RATE)


def remediation_ended(facts: IntegrityFacts) -> Iterator[Remark]:
    """16: remediation stays within its cycles; a phase that used them all goes on as it is."""
    standing, score = facts.standing, facts.returned.alignment_score
    if standing.cycles > standing.cycle_limit:
        yield fails(f"{standing.cycles} remediation cycles were run, {standing.cycle_limit} are allowed")
    elif (
        0 < standing.cycles == standing.cycle_limit and score is not None and tenths(score) < standing.threshold_tenths
    ):
        yield warns(f"{standing.cycles} remediation cycles did not bring it to {standing.threshold_tenths / 10}")


IntegrityRule: TypeAlias = Callable[[IntegrityFacts], Iterator[Remark]]


class IntegrityCheck(NamedTuple):
    """One integrity check."""

    number: int
    name: str
    rule: IntegrityRule


CHECKS: tuple[IntegrityCheck, ...] = (
    IntegrityCheck(1, "verified and judged", was_judged),
    IntegrityCheck(2, "tasks and commits", commits_exist),
    IntegrityCheck(3, "time of the phase", not_too_quick),
    IntegrityCheck(4, "independent judges", judges_are_independent),
    IntegrityCheck(5, "score as written", score_is_earned),
    IntegrityCheck(6, "already there, shown", was_there_shown),
    IntegrityCheck(7, "evidence of the type", evidence_of_its_type),
    IntegrityCheck(8, "already there, seen twice", second_party),
    IntegrityCheck(9, "report of the judge", judge_reported),
    IntegrityCheck(10, "time of the verification", verification_took_place),
    IntegrityCheck(11, "judge that approves everything", judge_did_not_nod),
    IntegrityCheck(12, "classified failures", failures_are_classified),
    IntegrityCheck(13, "task that asks for a person", person_is_asked_by_the_plan),
    IntegrityCheck(14, "need for a person", person_is_needed),
    IntegrityCheck(15, "diagnostic below nine", way_up_is_named),
    IntegrityCheck(16, "end of remediation", remediation_ended),
)


class IntegrityVerdict(Contract):
    """The worst answer, the steps to be done again if it is an enforcement, the suspicion, and every finding."""

    answer: IntegrityAnswer
    again: tuple[StepName, ...]
    stamp: RubberStamp | None
    findings: tuple[IntegrityFinding, ...]


def integrity(facts: IntegrityFacts) -> IntegrityVerdict:
    """Return the result of all checks. A step that would have to be repeated a second time is a failure."""
    findings = tuple(
        IntegrityFinding(number=number, name=name, answer=_due(said, facts), because=said.because, again=said.again)
        for number, name, rule in CHECKS
        for said in rule(facts)
    )
    worst = max((found.answer for found in findings), key=_MILDEST_FIRST.index, default=IntegrityAnswer.NOTHING)
    steps = {step for found in findings for step in found.again} if worst is IntegrityAnswer.ENFORCEMENT else set()
    return IntegrityVerdict(
        answer=worst,
        again=tuple(step for step in StepName if step in steps),
        stamp=stamp_of(facts) if facts.returned.status in JUDGED else None,
        findings=findings,
    )


def _due(said: Remark, facts: IntegrityFacts) -> IntegrityAnswer:
    spent = said.answer is IntegrityAnswer.ENFORCEMENT and facts.standing.enforced
    return IntegrityAnswer.FAILURE if spent else said.answer


_MILDEST_FIRST = tuple(IntegrityAnswer)
