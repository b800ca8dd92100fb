"""Where a pass goes: total over every row of results, within bounds that can be counted, and the whole table."""
# the sentences of the tables stay whole

from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.breaker import BreakerSettings
from fairwitness.contracts.autopilot.facts import PathItem, Retries
from fairwitness.contracts.autopilot.passes import PassKind, PassMove, PassMoveKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop, Recommendation, StepName, TriageRoute
from fairwitness.rules.next_pass_step import PLAN_ROUNDS, next_step

UNUSED = Retries(debug_in_phase=0, replan_in_phase=0, total=0)
COMMIT = "a" * 40


def _asked(kind: PassKind = PassKind.WHOLE, *again: StepName) -> PhasePass:
    item = PathItem(file="a.py", deficiency="no test", impact="+1")
    return PhasePass(
        phase="6.1",
        number=1,
        kind=kind,
        start=COMMIT,
        checkpoint=COMMIT,
        loop=ImprovementLoop.REMEDIATION if kind is PassKind.CYCLE else None,
        before_tenths=80 if kind is PassKind.CYCLE else None,
        items=(item,) if kind is PassKind.CYCLE else (),
        tasks=("a",) if kind is PassKind.PART else (),
        again=again,
    )


def _result(step: StepName, number: int = 1, good: bool = True, **said: object) -> StepResult:
    return StepResult.model_validate({"step": step, "number": number, "good": good, **said})


STEPS = st.sampled_from(StepName)
BREAKERS = st.builds(
    BreakerSettings,
    max_debug_attempts_per_phase=st.integers(1, 4),
    max_replan_attempts_per_phase=st.integers(1, 3),
    max_total_retries_per_run=st.integers(1, 8),
    output_degradation_pct=st.integers(1, 100),
)
USED = st.builds(
    Retries,
    debug_in_phase=st.integers(0, 3),
    replan_in_phase=st.integers(0, 2),
    total=st.integers(0, 9),
)
PASSES = st.one_of(
    st.sampled_from([PassKind.WHOLE, PassKind.CYCLE, PassKind.PART]).map(_asked),
    st.lists(STEPS, min_size=1, max_size=3).map(lambda steps: _asked(PassKind.AGAIN, *steps)),
)


def _results(
    step: st.SearchStrategy[StepName], number: int = 1, *, well: bool = False
) -> st.SearchStrategy[StepResult]:
    """How a step may end; with `well` rather as it should, so that walks come far."""
    mostly = st.sampled_from([True, True, True, True, False] if well else [True, False])
    rarely = st.sampled_from([*[None] * 12, "the budget is used up"] if well else [None, "the budget is used up"])
    return st.builds(
        StepResult,
        step=step,
        number=st.just(number),
        good=mostly,
        route=st.sampled_from([None, *TriageRoute]),
        recommendation=st.sampled_from([*Recommendation, None, *[Recommendation.PROCEED, Recommendation.DEBUG] * 3]),
        score_tenths=st.one_of(st.none(), st.integers(0, 100)),
        defers=st.sampled_from([False, False, True]),
        splits=st.sampled_from([False, False, False, True]),
        issues=st.sampled_from([(), ("a.py has no test",)]),
        halt=rarely,
    )


def _walk(
    data: st.DataObject, asked: PhasePass, used: Retries, limits: BreakerSettings
) -> tuple[list[StepResult], PassMove]:
    """A pass from its beginning to its end, whatever comes of its steps."""
    results: list[StepResult] = []
    while (move := next_step(asked, results, used, limits)).kind is PassMoveKind.STEP:
        assert len(results) < _bound(limits), "it does not end"
        assert move.step is not None
        assert move.number is not None
        results.append(data.draw(_results(st.just(move.step), move.number, well=True)))
    return results, move


def _bound(limits: BreakerSettings) -> int:
    """No pass has more steps: each research has its plans and one execution, and each change is verified and judged."""
    researched = 1 + limits.max_replan_attempts_per_phase
    debugged = limits.max_debug_attempts_per_phase
    changed = 1 + researched + debugged  # the first verification may follow from triage or be asked for itself
    rated = 1 + researched
    return 2 + researched * (1 + 2 * PLAN_ROUNDS) + researched + debugged + 2 * changed + rated


def _count(results: list[StepResult], step: StepName) -> int:
    return sum(result.step is step for result in results)


def _last(results: list[StepResult], step: StepName) -> StepResult | None:
    return next((result for result in reversed(results) if result.step is step), None)


@pytest.mark.req("A3")
@given(PASSES, st.lists(_results(STEPS), max_size=6), USED, BREAKERS)
def test_whatever_stands_in_the_ledger_there_is_one_way_on(
    asked: PhasePass, results: list[StepResult], used: Retries, limits: BreakerSettings
) -> None:
    move = next_step(asked, results, used, limits)
    if move.kind is PassMoveKind.STEP:
        assert move.step is not None
        assert move.number == 1 + _count(results, move.step)
        assert (move.outcome, move.recommendation, move.because, move.halt) == (None, None, None, None)
    else:
        assert (move.step, move.number) == (None, None)
        assert move.because
        assert move.outcome is not None
        proceeds = move.recommendation is Recommendation.PROCEED
        assert proceeds == (move.outcome is not PhaseOutcome.FAILED), "what failed goes no further"


@pytest.mark.req("A3", "A4")
@given(st.data(), PASSES, USED, BREAKERS)
def test_every_pass_ends_within_its_bounds(
    data: st.DataObject, asked: PhasePass, used: Retries, limits: BreakerSettings
) -> None:
    results, _ = _walk(data, asked, used, limits)
    debugged, researched = _count(results, StepName.DEBUG), _count(results, StepName.RESEARCH)
    started_there = asked.kind is PassKind.AGAIN
    assert used.debug_in_phase + debugged <= max(
        limits.max_debug_attempts_per_phase, used.debug_in_phase + started_there
    )
    assert researched <= 1 + limits.max_replan_attempts_per_phase
    assert _count(results, StepName.PLAN) <= PLAN_ROUNDS * max(1, researched)
    assert _count(results, StepName.EXECUTE) <= max(1, researched)
    assert used.total + debugged + max(0, researched - 1) <= max(
        limits.max_total_retries_per_run, used.total + started_there
    )


@pytest.mark.req("A3", "A4")
@given(st.data(), PASSES, USED, BREAKERS)
def test_no_step_runs_after_a_halt(
    data: st.DataObject, asked: PhasePass, used: Retries, limits: BreakerSettings
) -> None:
    results, move = _walk(data, asked, used, limits)
    before = list(takewhile(lambda result: result.halt is None, results))
    assert len(results) - len(before) <= 1
    halted = results[len(before) :]
    assert move.halt == (halted[0].halt if halted else None)
    if halted:
        assert (move.outcome, move.recommendation) == (PhaseOutcome.FAILED, Recommendation.HALT)


@pytest.mark.req("A3")
@given(st.data(), USED, BREAKERS)
def test_nothing_is_carried_out_before_its_plan_was_checked(
    data: st.DataObject, used: Retries, limits: BreakerSettings
) -> None:
    results, move = _walk(data, _asked(), used, limits)
    for at, result in enumerate(results):
        if result.step is StepName.EXECUTE:
            assert [before.step for before in results[at - 2 : at]] == [StepName.PLAN, StepName.PLAN_CHECK]
            assert results[at - 2].good
            assert results[at - 1].good
            assert not results[at - 2].splits
    if move.outcome is PhaseOutcome.SPLIT_REQUEST:
        assert results[-1].step is StepName.PLAN_CHECK, "its parts are not checked again"
        assert results[-1].good
        assert results[-2].splits


@pytest.mark.req("A3", "A20")
@given(st.data(), PASSES, USED, BREAKERS)
def test_nothing_is_rated_before_it_was_verified_and_a_judge_let_it_go_on(
    data: st.DataObject, asked: PhasePass, used: Retries, limits: BreakerSettings
) -> None:
    results, move = _walk(data, asked, used, limits)
    for at, result in enumerate(results):
        if result.step is StepName.RATE and at > 0:
            judged, verified = results[at - 1], _last(results[:at], StepName.VERIFY)
            assert (judged.step, judged.good) == (StepName.JUDGE, True)
            assert judged.recommendation is Recommendation.PROCEED
            assert verified is None or (verified.good and not verified.defers)
            assert verified is not None or (asked.kind is PassKind.AGAIN and at == 1), "an earlier pass verified it"
    if move.outcome is PhaseOutcome.COMPLETED:
        assert results[-1].step is StepName.RATE
        assert results[-1].good
        assert results[-1].score_tenths is not None
    if move.outcome is PhaseOutcome.NEEDS_HUMAN_VERIFICATION:
        verified = _last(results, StepName.VERIFY)
        assert verified is not None
        assert verified.good
        assert verified.defers


@pytest.mark.req("A3", "A4")
def test_the_longest_pass_is_just_as_long_as_the_bound() -> None:
    """Each step ends so that as much as possible follows."""
    limits = BreakerSettings()

    def ends(step: StepName, number: int, results: list[StepResult]) -> StepResult:
        plans = _count(results, StepName.PLAN)
        debugged = _count(results, StepName.DEBUG)
        wants = "debug" if debugged < limits.max_debug_attempts_per_phase else "proceed"
        good = step is not StepName.PLAN_CHECK or plans % PLAN_ROUNDS == 0
        said = {"route": "verify_only"} if step is StepName.TRIAGE else {}
        said |= {"recommendation": wants} if step is StepName.JUDGE else {}
        return _result(step, number, good, **said, **({"score_tenths": 0} if step is StepName.RATE else {}))

    results: list[StepResult] = []
    while (move := next_step(_asked(), results, UNUSED, limits)).kind is PassMoveKind.STEP:
        assert move.step is not None
        assert move.number is not None
        results.append(ends(move.step, move.number, results))
    assert _said(move) == "ends failed, rollback: its score is 0.0 and no replanning is left"
    assert len(results) == _bound(limits) == snapshot(36)


@pytest.mark.req("A3")
@given(st.data(), st.sampled_from([PassKind.CYCLE, PassKind.PART]), USED, BREAKERS)
def test_a_cycle_and_a_part_go_by_the_plan_that_stands(
    data: st.DataObject, kind: PassKind, used: Retries, limits: BreakerSettings
) -> None:
    results, move = _walk(data, _asked(kind), used, limits)
    thinking = {StepName.TRIAGE, StepName.RESEARCH, StepName.PLAN, StepName.PLAN_CHECK}
    assert not thinking & {result.step for result in results}
    assert _count(results, StepName.EXECUTE) <= 1
    assert move.outcome is not PhaseOutcome.SPLIT_REQUEST


def test_steps_that_are_done_again_begin_with_the_earliest_of_them() -> None:
    asked = _asked(PassKind.AGAIN, StepName.RATE, StepName.VERIFY)
    assert next_step(asked, (), UNUSED, BreakerSettings()).step is StepName.VERIFY
    for step in StepName:
        move = next_step(_asked(PassKind.AGAIN, step), (), UNUSED, BreakerSettings())
        assert (move.step, move.number) == (step, 1)


def test_what_is_not_done_again_holds_as_it_was() -> None:
    asked = _asked(PassKind.AGAIN, StepName.JUDGE)
    judged = StepResult(step=StepName.JUDGE, number=1, good=True, recommendation=Recommendation.PROCEED)

    def after(*, good: bool, defers: bool = False) -> PassMove:
        before = (StepResult(step=StepName.VERIFY, number=1, good=good, defers=defers),)
        return next_step(asked, (judged,), UNUSED, BreakerSettings(), repeated=before)

    assert after(good=True).step is StepName.RATE
    assert after(good=True, defers=True).outcome is PhaseOutcome.NEEDS_HUMAN_VERIFICATION
    assert after(good=False).step is StepName.DEBUG


def _said(move: PassMove) -> str:
    if move.kind is PassMoveKind.STEP:
        return f"{move.step}" + (f" {move.number}" if move.number != 1 else "")
    halt = " (halted)" if move.halt else ""
    return f"ends {move.outcome}, {move.recommendation}: {move.because}{halt}"


def _after(*results: StepResult, kind: PassKind = PassKind.WHOLE, used: Retries = UNUSED) -> str:
    again = (StepName.VERIFY,) if kind is PassKind.AGAIN else ()
    return _said(next_step(_asked(kind, *again), results, used, BreakerSettings()))


P, T, R, L, C, E, V, J, S, D = (
    StepName.PREFLIGHT,
    StepName.TRIAGE,
    StepName.RESEARCH,
    StepName.PLAN,
    StepName.PLAN_CHECK,
    StepName.EXECUTE,
    StepName.VERIFY,
    StepName.JUDGE,
    StepName.RATE,
    StepName.DEBUG,
)


@pytest.mark.req("A3")
def test_the_whole_table_of_single_results() -> None:
    table = {
        f"{step}{'' if good else ', bad'}{' with a reason' if issues else ''}": _after(
            *([_result(R), _result(L)] if step is C else []), _result(step, good=good, issues=issues)
        )
        for step in StepName
        for good, issues in ((True, ()), (False, ()), (False, ("a.py has no test",)))
    }
    assert table == snapshot(
        {
            "preflight": "triage",
            "preflight, bad": "ends failed, halt: the preflight is not clear",
            "preflight, bad with a reason": "ends failed, halt: a.py has no test",
            "triage": "research",
            "triage, bad": "research",
            "triage, bad with a reason": "research",
            "research": "plan",
            "research, bad": "ends failed, rollback: the research produced no result",
            "research, bad with a reason": "ends failed, rollback: the research produced no result: a.py has no test",
            "plan": "plan_check",
            "plan, bad": "ends failed, rollback: there is no plan",
            "plan, bad with a reason": "ends failed, rollback: there is no plan: a.py has no test",
            "plan_check": "execute",
            "plan_check, bad": "plan 2",
            "plan_check, bad with a reason": "plan 2",
            "execute": "verify",
            "execute, bad": "verify",
            "execute, bad with a reason": "verify",
            "verify": "judge",
            "verify, bad": "judge",
            "verify, bad with a reason": "judge",
            "judge": "ends failed, halt: the judge gave no valid verdict",
            "judge, bad": "ends failed, halt: the judge gave no valid verdict",
            "judge, bad with a reason": "ends failed, halt: a.py has no test",
            "rate": "ends failed, rollback: the phase has no valid score",
            "rate, bad": "ends failed, rollback: the phase has no valid score",
            "rate, bad with a reason": "ends failed, rollback: the phase has no valid score: a.py has no test",
            "debug": "verify",
            "debug, bad": "verify",
            "debug, bad with a reason": "verify",
        }
    )


def _described(result: StepResult) -> str:
    words = (result.step.value, result.route and result.route.value, None if result.good else "bad")
    return " ".join(word for word in words if word)


@pytest.mark.req("A3")
def test_the_whole_table_of_beginnings() -> None:
    table = {
        f"{kind}: {'nothing' if result is None else _described(result)}": _after(
            *(() if result is None else (result,)), kind=kind
        )
        for kind in PassKind
        for result in (
            None,
            _result(P),
            *(_result(T, route=route) for route in (None, *TriageRoute)),
            _result(T, good=False, route=TriageRoute.VERIFY_ONLY),
        )
    }
    assert table == snapshot(
        {
            "whole: nothing": "preflight",
            "whole: preflight": "triage",
            "whole: triage": "research",
            "whole: triage verify_only bad": "research",
            "whole: triage full_pipeline": "research",
            "cycle: preflight": "execute",
            "cycle: triage": "research",
            "whole: triage verify_only": "verify",
            "cycle: nothing": "preflight",
            "cycle: triage verify_only bad": "research",
            "part: preflight": "execute",
            "part: triage": "research",
            "cycle: triage full_pipeline": "research",
            "part: triage verify_only bad": "research",
            "cycle: triage verify_only": "verify",
            "again: preflight": "execute",
            "again: triage": "research",
            "part: nothing": "preflight",
            "part: triage full_pipeline": "research",
            "part: triage verify_only": "verify",
            "again: nothing": "verify",
            "again: triage full_pipeline": "research",
            "again: triage verify_only": "verify",
            "again: triage verify_only bad": "research",
        }
    )


@pytest.mark.req("A3")
def test_the_whole_table_of_plans() -> None:
    def rounds(number: int) -> list[StepResult]:
        return [_result(step, at, step is L) for at in range(1, number + 1) for step in (L, C)]

    table = {
        "refused once": _after(_result(R), *rounds(1)),
        "refused twice": _after(_result(R), *rounds(2)),
        "refused three times": _after(_result(R), *rounds(3)),
        "refused three times, and once after new research": _after(_result(R), *rounds(3), _result(R, 2), *rounds(1)),
        "too large and not checked": _after(_result(R), _result(L, splits=True)),
        "too large and refused": _after(_result(R), _result(L, splits=True), _result(C, good=False)),
        "too large and good": _after(_result(R), _result(L, splits=True), _result(C)),
        "too large at first, then good": _after(
            _result(R), _result(L, splits=True), _result(C, good=False), _result(L, 2), _result(C, 2)
        ),
        "no plan although too large": _after(_result(R), _result(L, good=False, splits=True)),
        "refused without research": _after(_result(C, good=False)),
    }
    assert table == snapshot(
        {
            "refused once": "plan 2",
            "refused twice": "plan 3",
            "refused three times": "ends failed, rollback: 3 plans were refused",
            "refused three times, and once after new research": "plan 5",
            "too large and not checked": "plan_check",
            "too large and refused": "plan 2",
            "too large and good": "ends split_request, proceed: the plan is too large for one phase",
            "too large at first, then good": "execute",
            "no plan although too large": "ends failed, rollback: there is no plan",
            "refused without research": "plan",
        }
    )


@pytest.mark.req("A3")
def test_the_whole_table_of_judgements() -> None:
    table = {
        f"{verified} and {wants or 'nothing'}{'' if good else ' that does not count'}": _after(
            *([] if verified == "unseen" else [_result(V, good=verified != "bad", defers=verified == "deferred")]),
            _result(J, good=good, recommendation=wants),
        )
        for verified in ("good", "bad", "deferred", "unseen")
        for wants in (None, *Recommendation)
        for good in (True, False)
    }
    assert table == snapshot(
        {
            "good and nothing": "ends failed, halt: the judge gave no valid verdict",
            "good and nothing that does not count": "ends failed, halt: the judge gave no valid verdict",
            "good and proceed": "rate",
            "good and proceed that does not count": "ends failed, halt: the judge gave no valid verdict",
            "good and debug": "debug",
            "good and debug that does not count": "ends failed, halt: the judge gave no valid verdict",
            "good and rollback": "ends failed, rollback: the judge asks for rollback",
            "good and rollback that does not count": "ends failed, halt: the judge gave no valid verdict",
            "good and halt": "ends failed, halt: the judge asks for halt",
            "good and halt that does not count": "ends failed, halt: the judge gave no valid verdict",
            "bad and nothing": "ends failed, halt: the judge gave no valid verdict",
            "bad and nothing that does not count": "ends failed, halt: the judge gave no valid verdict",
            "bad and proceed": "debug",
            "bad and proceed that does not count": "ends failed, halt: the judge gave no valid verdict",
            "bad and debug": "debug",
            "bad and debug that does not count": "ends failed, halt: the judge gave no valid verdict",
            "bad and rollback": "ends failed, rollback: the judge asks for rollback",
            "bad and rollback that does not count": "ends failed, halt: the judge gave no valid verdict",
            "bad and halt": "ends failed, halt: the judge asks for halt",
            "bad and halt that does not count": "ends failed, halt: the judge gave no valid verdict",
            "deferred and nothing": "ends failed, halt: the judge gave no valid verdict",
            "deferred and nothing that does not count": "ends failed, halt: the judge gave no valid verdict",
            "deferred and proceed": "ends needs_human_verification, proceed: a person must verify it",
            "deferred and proceed that does not count": "ends failed, halt: the judge gave no valid verdict",
            "deferred and debug": "debug",
            "deferred and debug that does not count": "ends failed, halt: the judge gave no valid verdict",
            "deferred and rollback": "ends failed, rollback: the judge asks for rollback",
            "deferred and rollback that does not count": "ends failed, halt: the judge gave no valid verdict",
            "deferred and halt": "ends failed, halt: the judge asks for halt",
            "deferred and halt that does not count": "ends failed, halt: the judge gave no valid verdict",
            "unseen and nothing": "ends failed, halt: the judge gave no valid verdict",
            "unseen and nothing that does not count": "ends failed, halt: the judge gave no valid verdict",
            "unseen and proceed": "rate",
            "unseen and proceed that does not count": "ends failed, halt: the judge gave no valid verdict",
            "unseen and debug": "debug",
            "unseen and debug that does not count": "ends failed, halt: the judge gave no valid verdict",
            "unseen and rollback": "ends failed, rollback: the judge asks for rollback",
            "unseen and rollback that does not count": "ends failed, halt: the judge gave no valid verdict",
            "unseen and halt": "ends failed, halt: the judge asks for halt",
            "unseen and halt that does not count": "ends failed, halt: the judge gave no valid verdict",
        }
    )


@pytest.mark.req("A3", "A4")
def test_the_whole_table_of_debugging() -> None:
    def used(debug: int, total: int) -> Retries:
        return Retries(debug_in_phase=debug, replan_in_phase=0, total=total)

    judged = [_result(V, good=False, issues=("a.py has no test",)), _result(J, recommendation="proceed")]
    table = {
        f"{debug} in the phase, {total} in the run, {here} in the pass": _after(
            *(_result(D, at) for at in range(1, here + 1)), *judged, used=used(debug, total)
        )
        for debug, total, here in (
            (0, 0, 0),
            (2, 2, 0),
            (3, 3, 0),
            (0, 9, 0),
            (0, 10, 0),
            (0, 9, 1),
            (1, 1, 1),
            (1, 1, 2),
        )
    }
    assert table == snapshot(
        {
            "0 in the phase, 0 in the run, 0 in the pass": "debug",
            "2 in the phase, 2 in the run, 0 in the pass": "debug",
            "3 in the phase, 3 in the run, 0 in the pass": "ends failed, rollback: debugging is exhausted: a.py has no test",  # noqa: E501
            "0 in the phase, 9 in the run, 0 in the pass": "debug",
            "0 in the phase, 10 in the run, 0 in the pass": "ends failed, rollback: debugging is exhausted: a.py has no test",  # noqa: E501
            "0 in the phase, 9 in the run, 1 in the pass": "ends failed, rollback: debugging is exhausted: a.py has no test",  # noqa: E501
            "1 in the phase, 1 in the run, 1 in the pass": "debug 2",
            "1 in the phase, 1 in the run, 2 in the pass": "ends failed, rollback: debugging is exhausted: a.py has no test",  # noqa: E501
        }
    )


@pytest.mark.req("A3", "A4")
def test_the_whole_table_of_ratings() -> None:
    def used(replan: int, total: int) -> Retries:
        return Retries(debug_in_phase=0, replan_in_phase=replan, total=total)

    table = {
        f"{kind}, {score}, {researched} researched, {replan} replanned before, {total} in all": _after(
            *(_result(R, at) for at in range(1, researched + 1)),
            _result(S, score_tenths=score),
            kind=kind,
            used=used(replan, total),
        )
        for kind in PassKind
        for score, researched, replan, total in (
            (None, 1, 0, 0),
            (70, 1, 0, 0),
            (69, 0, 0, 0),
            (69, 1, 0, 0),
            (69, 1, 1, 1),
            (69, 2, 0, 0),
            (69, 1, 0, 10),
        )
    }
    assert table == snapshot(
        {
            "whole, None, 1 researched, 0 replanned before, 0 in all": "ends failed, rollback: the phase has no valid score",  # noqa: E501
            "whole, 70, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "whole, 69, 0 researched, 0 replanned before, 0 in all": "research",
            "whole, 69, 1 researched, 0 replanned before, 0 in all": "research 2",
            "whole, 69, 1 researched, 1 replanned before, 1 in all": "ends failed, rollback: its score is 6.9 and no replanning is left",  # noqa: E501
            "whole, 69, 2 researched, 0 replanned before, 0 in all": "ends failed, rollback: its score is 6.9 and no replanning is left",  # noqa: E501
            "whole, 69, 1 researched, 0 replanned before, 10 in all": "ends failed, rollback: its score is 6.9 and no replanning is left",  # noqa: E501
            "cycle, None, 1 researched, 0 replanned before, 0 in all": "ends failed, rollback: the phase has no valid score",  # noqa: E501
            "cycle, 70, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "cycle, 69, 0 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "cycle, 69, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "cycle, 69, 1 researched, 1 replanned before, 1 in all": "ends completed, proceed: all steps are done",
            "cycle, 69, 2 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "cycle, 69, 1 researched, 0 replanned before, 10 in all": "ends completed, proceed: all steps are done",
            "part, None, 1 researched, 0 replanned before, 0 in all": "ends failed, rollback: the phase has no valid score",  # noqa: E501
            "part, 70, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "part, 69, 0 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "part, 69, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "part, 69, 1 researched, 1 replanned before, 1 in all": "ends completed, proceed: all steps are done",
            "part, 69, 2 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "part, 69, 1 researched, 0 replanned before, 10 in all": "ends completed, proceed: all steps are done",
            "again, None, 1 researched, 0 replanned before, 0 in all": "ends failed, rollback: the phase has no valid score",  # noqa: E501
            "again, 70, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "again, 69, 0 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "again, 69, 1 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "again, 69, 1 researched, 1 replanned before, 1 in all": "ends completed, proceed: all steps are done",
            "again, 69, 2 researched, 0 replanned before, 0 in all": "ends completed, proceed: all steps are done",
            "again, 69, 1 researched, 0 replanned before, 10 in all": "ends completed, proceed: all steps are done",
        }
    )


@pytest.mark.req("A4")
@pytest.mark.parametrize("step", StepName)
@pytest.mark.parametrize("good", [True, False])
def test_a_halt_outranks_every_result(step: StepName, good: bool) -> None:
    assert _after(_result(step, good=good, halt="the budget is used up")) == (
        "ends failed, halt: the budget is used up (halted)"
    )


@pytest.mark.req("A4", "A5")
def test_files_that_are_as_they_were_are_not_verified_again() -> None:
    settings, lost = BreakerSettings(max_debug_attempts_per_phase=2), {"good": False, "unchanged": True}
    before = _result(StepName.PREFLIGHT)
    cycle = next_step(
        _asked(PassKind.CYCLE), (before, _result(StepName.EXECUTE, issues=("no test",), **lost)), UNUSED, settings
    )
    assert (cycle.outcome, cycle.recommendation) == (PhaseOutcome.FAILED, Recommendation.PROCEED)
    assert cycle.because == "the cycle changed nothing: no test"
    whole = next_step(_asked(), (before, _result(StepName.EXECUTE, **lost)), UNUSED, settings)
    assert whole.step is StepName.VERIFY, "it was never verified"
    honest = next_step(_asked(PassKind.CYCLE), (before, _result(StepName.EXECUTE)), UNUSED, settings)
    assert honest.step is StepName.VERIFY
    verified = _result(StepName.VERIFY, good=False, issues=("it prints 0",))
    repaired = (before, verified, _result(StepName.DEBUG, **lost))
    again = next_step(_asked(), repaired, UNUSED, settings)
    assert (again.step, again.number) == (StepName.DEBUG, 2)
    spent = next_step(_asked(), (*repaired, _result(StepName.DEBUG, 2, **lost)), UNUSED, settings)
    assert spent.because == "debugging is exhausted: it prints 0"
    judged = _result(StepName.JUDGE, recommendation=Recommendation.DEBUG, issues=("a.py has no test",))
    doubted = (before, _result(StepName.VERIFY), judged, *(_result(StepName.DEBUG, n, **lost) for n in (1, 2)))
    assert next_step(_asked(), doubted, UNUSED, settings).because == (
        "debugging is exhausted: the judge says: a.py has no test"
    ), "the verification passed"
    both = (before, verified, judged, *(_result(StepName.DEBUG, n, **lost) for n in (1, 2)))
    assert next_step(_asked(), both, UNUSED, settings).because == "debugging is exhausted: it prints 0"
    unknown = next_step(
        _asked(), (_result(StepName.DEBUG, **lost),), UNUSED, BreakerSettings(max_debug_attempts_per_phase=1)
    )
    assert unknown.outcome is PhaseOutcome.FAILED
