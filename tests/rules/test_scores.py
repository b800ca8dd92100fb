"""Scores: exact tenths, the gate total and in sentences, loops that end, deferral, and ways up that say something."""
# the sentences of the table stay whole

from fractions import Fraction
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.phase_return import PhaseOutcome
from fairwitness.contracts.autopilot.rating import Deficiency, ScoreBand, band_of
from fairwitness.contracts.autopilot.vocabulary import Recommendation, RunFlag
from fairwitness.rules.scores import (
    GAP_ITERATIONS,
    QUALITY_CYCLES,
    REMEDIATION_CYCLES,
    GapMove,
    PhaseGateFacts,
    PhaseGateMove,
    RubberStamp,
    adjusted_limit,
    after_gaps,
    autonomous_resolution_rate,
    flag_conflicts,
    in_order_of_gap,
    kept_tenths,
    may_defer,
    mean_score,
    path_problems,
    phase_gate,
    rubber_stamp,
    split_score,
    tenths,
    threshold_tenths,
    too_many_deferred,
    uniform_tail,
    worth_gaps,
)

GENERATED = settings(max_examples=300)


def _facts(
    outcome: PhaseOutcome = PhaseOutcome.COMPLETED,
    recommendation: Recommendation = Recommendation.PROCEED,
    score: int | None = 90,
    *,
    threshold: int = 90,
    cycles: int = 0,
    gained: bool = True,
    quality: bool = False,
    dependents: bool = False,
    complete: bool = False,
) -> PhaseGateFacts:
    return PhaseGateFacts(
        outcome=outcome,
        recommendation=recommendation,
        score_tenths=score,
        threshold_tenths=threshold,
        cycles=cycles,
        gained=gained,
        quality=quality,
        has_dependents=dependents,
        complete=complete,
    )


FACTS = st.builds(
    _facts,
    st.sampled_from(PhaseOutcome),
    st.sampled_from(Recommendation),
    st.none() | st.integers(0, 100),
    threshold=st.sampled_from([70, 90, 95, 98]),
    cycles=st.integers(0, 5),
    gained=st.booleans(),
    quality=st.booleans(),
    dependents=st.booleans(),
    complete=st.booleans(),
)
_PASSES = (PhaseGateMove.PASS, PhaseGateMove.PASS_INCOMPLETE, PhaseGateMove.PASS_EXHAUSTED)


@pytest.mark.req("A20")
def test_every_tenth_is_read_exactly_and_falls_into_its_band() -> None:
    bands: dict[ScoreBand, list[float]] = {}
    for score in (whole / 10 for whole in range(101)):
        assert tenths(score) == int(f"{score:.1f}".replace(".", ""))
        bands.setdefault(band_of(score), []).append(score)
    assert {band.value: (min(scores), max(scores)) for band, scores in bands.items()} == snapshot(
        {
            "not_implemented": (0.0, 2.9),
            "major_failures": (3.0, 4.9),
            "significant_gaps": (5.0, 6.9),
            "acceptable": (7.0, 7.9),
            "good": (8.0, 9.4),
            "excellence": (9.5, 10.0),
        }
    )


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("scores", "mean"),
    [
        ([9.0], 9.0),
        ([8.9, 9.0], 8.9),
        ([8.3, 8.3, 8.3], 8.3),
        ([0.1, 0.2, 0.3], 0.2),
        ([9.9, 10.0, 10.0], 9.9),
        ([7.05, 7.05], 7.0),
        ([2.9, 2.9, 2.9, 2.9, 2.9, 2.9, 2.9], 2.9),
        ([0.0, 10.0], 5.0),
        ([1e-05], 0.0),
    ],
)
def test_a_mean_is_rounded_down_to_one_decimal_and_not_by_binary_accident(scores: list[float], mean: float) -> None:
    assert mean_score(scores) == mean


@pytest.mark.req("A20")
@GENERATED
@given(st.lists(st.integers(0, 100), min_size=1, max_size=12))
def test_a_mean_of_tenths_is_the_floor_of_the_exact_mean(scores: list[int]) -> None:
    assert tenths(mean_score([score / 10 for score in scores])) == sum(scores) // len(scores)
    assert Fraction(sum(scores), len(scores)) - 1 < tenths(mean_score([score / 10 for score in scores]))


@pytest.mark.req("A14")
def test_the_whole_table_of_thresholds() -> None:
    flags = (RunFlag.LENIENT, RunFlag.QUALITY, RunFlag.GAPS)
    table = [
        f"{' + '.join(flag.value for flag in given_) or 'no flag'}: {threshold_tenths(frozenset(given_))}"
        for size in range(4)
        for given_ in combinations(flags, size)
    ]
    assert table == snapshot(
        [
            "no flag: 90",
            "lenient: 70",
            "quality: 95",
            "gaps: 95",
            "lenient + quality: 95",
            "lenient + gaps: 95",
            "quality + gaps: 98",
            "lenient + quality + gaps: 98",
        ]
    )


@pytest.mark.req("A14")
def test_every_excluded_pair_is_told_at_once_and_no_other() -> None:
    refused = [
        f"{one.value}+{other.value}"
        for one, other in combinations(RunFlag, 2)
        if flag_conflicts(frozenset({one, other}))
    ]
    assert refused == snapshot(["force+quality", "force+gaps", "force+complete", "force+map", "gaps+complete"])
    assert len(flag_conflicts(frozenset(RunFlag))) == 5
    assert flag_conflicts(frozenset()) == ()


@pytest.mark.req("A13", "A14")
@GENERATED
@given(FACTS)
def test_the_gate_answers_whatever_it_is_asked_and_never_passes_below_seven(facts: PhaseGateFacts) -> None:
    answer = phase_gate(facts)
    if answer.move in _PASSES:
        assert facts.outcome is PhaseOutcome.COMPLETED
        assert facts.recommendation is Recommendation.PROCEED
        assert facts.score_tenths is not None
        assert facts.score_tenths >= 70
    if facts.recommendation is Recommendation.ROLLBACK:
        assert answer.move is PhaseGateMove.ROLL_BACK
    if answer.move is PhaseGateMove.FAIL_AND_HALT:
        assert facts.has_dependents
        assert not facts.complete


@pytest.mark.req("A13", "A14")
@GENERATED
@given(FACTS, st.integers(1, 30))
def test_a_better_score_never_costs_a_pass(facts: PhaseGateFacts, more: int) -> None:
    better = facts.model_copy(update={"score_tenths": min(100, (facts.score_tenths or 0) + more)})
    if phase_gate(facts).move in _PASSES:
        assert phase_gate(better).move in _PASSES


@pytest.mark.req("A13", "A14")
@GENERATED
@given(FACTS)
def test_remediation_ends_within_its_cycles(facts: PhaseGateFacts) -> None:
    limit = QUALITY_CYCLES if facts.quality else REMEDIATION_CYCLES
    if phase_gate(facts).move is PhaseGateMove.REMEDIATE:
        assert facts.cycles < limit
        assert facts.score_tenths is not None
        assert 70 <= facts.score_tenths < facts.threshold_tenths
    assert phase_gate(facts.model_copy(update={"cycles": limit})).move is not PhaseGateMove.REMEDIATE


@pytest.mark.req("A13", "A14")
@GENERATED
@given(FACTS)
def test_a_quality_run_marks_nothing_incomplete_and_fails_nothing_that_would_not_fail_without_it(
    facts: PhaseGateFacts,
) -> None:
    with_, without = (phase_gate(facts.model_copy(update={"quality": quality})).move for quality in (True, False))
    assert with_ is not PhaseGateMove.PASS_INCOMPLETE
    assert without is not PhaseGateMove.PASS_EXHAUSTED
    fails = (PhaseGateMove.FAIL_AND_HALT, PhaseGateMove.FAIL_AND_GO_ON)
    assert (with_ in fails) == (without in fails)


@pytest.mark.req("A13")
def test_the_whole_table_of_outcomes_and_recommendations() -> None:
    table = [
        f"{outcome.value}, {recommendation.value}: {answer.move.value}, {answer.because}"
        for outcome, recommendation in product(PhaseOutcome, Recommendation)
        for answer in [phase_gate(_facts(outcome, recommendation))]
    ]
    assert table == snapshot(
        [
            "completed, proceed: pass, it reached the threshold",
            "completed, debug: fail_and_go_on, it is completed, but debug was recommended",
            "completed, rollback: roll_back, a rollback was asked for",
            "completed, halt: fail_and_go_on, it is completed, but halt was recommended",
            "failed, proceed: fail_and_go_on, it failed",
            "failed, debug: fail_and_go_on, it failed",
            "failed, rollback: roll_back, a rollback was asked for",
            "failed, halt: fail_and_go_on, it failed",
            "needs_human_verification, proceed: defer, a person must verify it",
            "needs_human_verification, debug: defer, a person must verify it",
            "needs_human_verification, rollback: roll_back, a rollback was asked for",
            "needs_human_verification, halt: defer, a person must verify it",
            "split_request, proceed: split, it is too large for one phase",
            "split_request, debug: split, it is too large for one phase",
            "split_request, rollback: roll_back, a rollback was asked for",
            "split_request, halt: split, it is too large for one phase",
        ]
    )


@pytest.mark.req("A13", "A14")
def test_the_whole_table_of_scores_and_cycles() -> None:
    table = []
    for threshold, quality in ((90, False), (70, False), (95, True)):
        for score, cycles, gained in product((None, 69, 70, 89, 90, 95), (0, 1, 2, 3), (True, False)):
            move = phase_gate(
                _facts(score=score, threshold=threshold, cycles=cycles, gained=gained, quality=quality)
            ).move
            if (
                gained
                or move is not phase_gate(_facts(score=score, threshold=threshold, cycles=cycles, quality=quality)).move
            ):
                said = f"score {score}" + ("" if gained else " without gain")
                table.append(
                    f"{'quality' if quality else 'plain'} {threshold}, {said} after {cycles} cycles: {move.value}"
                )
    assert table == snapshot(
        [
            "plain 90, score None after 0 cycles: fail_and_go_on",
            "plain 90, score None after 1 cycles: fail_and_go_on",
            "plain 90, score None after 2 cycles: fail_and_go_on",
            "plain 90, score None after 3 cycles: fail_and_go_on",
            "plain 90, score 69 after 0 cycles: fail_and_go_on",
            "plain 90, score 69 after 1 cycles: fail_and_go_on",
            "plain 90, score 69 after 2 cycles: fail_and_go_on",
            "plain 90, score 69 after 3 cycles: fail_and_go_on",
            "plain 90, score 70 after 0 cycles: remediate",
            "plain 90, score 70 after 1 cycles: remediate",
            "plain 90, score 70 after 2 cycles: pass_incomplete",
            "plain 90, score 70 after 3 cycles: pass_incomplete",
            "plain 90, score 89 after 0 cycles: remediate",
            "plain 90, score 89 after 1 cycles: remediate",
            "plain 90, score 89 after 2 cycles: pass_incomplete",
            "plain 90, score 89 after 3 cycles: pass_incomplete",
            "plain 90, score 90 after 0 cycles: pass",
            "plain 90, score 90 after 1 cycles: pass",
            "plain 90, score 90 after 2 cycles: pass",
            "plain 90, score 90 after 3 cycles: pass",
            "plain 90, score 95 after 0 cycles: pass",
            "plain 90, score 95 after 1 cycles: pass",
            "plain 90, score 95 after 2 cycles: pass",
            "plain 90, score 95 after 3 cycles: pass",
            "plain 70, score None after 0 cycles: fail_and_go_on",
            "plain 70, score None after 1 cycles: fail_and_go_on",
            "plain 70, score None after 2 cycles: fail_and_go_on",
            "plain 70, score None after 3 cycles: fail_and_go_on",
            "plain 70, score 69 after 0 cycles: fail_and_go_on",
            "plain 70, score 69 after 1 cycles: fail_and_go_on",
            "plain 70, score 69 after 2 cycles: fail_and_go_on",
            "plain 70, score 69 after 3 cycles: fail_and_go_on",
            "plain 70, score 70 after 0 cycles: pass",
            "plain 70, score 70 after 1 cycles: pass",
            "plain 70, score 70 after 2 cycles: pass",
            "plain 70, score 70 after 3 cycles: pass",
            "plain 70, score 89 after 0 cycles: pass",
            "plain 70, score 89 after 1 cycles: pass",
            "plain 70, score 89 after 2 cycles: pass",
            "plain 70, score 89 after 3 cycles: pass",
            "plain 70, score 90 after 0 cycles: pass",
            "plain 70, score 90 after 1 cycles: pass",
            "plain 70, score 90 after 2 cycles: pass",
            "plain 70, score 90 after 3 cycles: pass",
            "plain 70, score 95 after 0 cycles: pass",
            "plain 70, score 95 after 1 cycles: pass",
            "plain 70, score 95 after 2 cycles: pass",
            "plain 70, score 95 after 3 cycles: pass",
            "quality 95, score None after 0 cycles: fail_and_go_on",
            "quality 95, score None after 1 cycles: fail_and_go_on",
            "quality 95, score None after 2 cycles: fail_and_go_on",
            "quality 95, score None after 3 cycles: fail_and_go_on",
            "quality 95, score 69 after 0 cycles: fail_and_go_on",
            "quality 95, score 69 after 1 cycles: fail_and_go_on",
            "quality 95, score 69 after 2 cycles: fail_and_go_on",
            "quality 95, score 69 after 3 cycles: fail_and_go_on",
            "quality 95, score 70 after 0 cycles: remediate",
            "quality 95, score 70 without gain after 0 cycles: pass_exhausted",
            "quality 95, score 70 after 1 cycles: remediate",
            "quality 95, score 70 without gain after 1 cycles: pass_exhausted",
            "quality 95, score 70 after 2 cycles: remediate",
            "quality 95, score 70 without gain after 2 cycles: pass_exhausted",
            "quality 95, score 70 after 3 cycles: pass_exhausted",
            "quality 95, score 89 after 0 cycles: remediate",
            "quality 95, score 89 without gain after 0 cycles: pass_exhausted",
            "quality 95, score 89 after 1 cycles: remediate",
            "quality 95, score 89 without gain after 1 cycles: pass_exhausted",
            "quality 95, score 89 after 2 cycles: remediate",
            "quality 95, score 89 without gain after 2 cycles: pass_exhausted",
            "quality 95, score 89 after 3 cycles: pass_exhausted",
            "quality 95, score 90 after 0 cycles: remediate",
            "quality 95, score 90 without gain after 0 cycles: pass_exhausted",
            "quality 95, score 90 after 1 cycles: remediate",
            "quality 95, score 90 without gain after 1 cycles: pass_exhausted",
            "quality 95, score 90 after 2 cycles: remediate",
            "quality 95, score 90 without gain after 2 cycles: pass_exhausted",
            "quality 95, score 90 after 3 cycles: pass_exhausted",
            "quality 95, score 95 after 0 cycles: pass",
            "quality 95, score 95 after 1 cycles: pass",
            "quality 95, score 95 after 2 cycles: pass",
            "quality 95, score 95 after 3 cycles: pass",
        ]
    )


@pytest.mark.req("A11", "A13")
def test_a_failure_halts_only_what_others_wait_for_unless_the_run_completes_the_rest() -> None:
    moves = [
        phase_gate(_facts(PhaseOutcome.FAILED, dependents=dependents, complete=complete)).move.value
        for dependents, complete in product((False, True), (False, True))
    ]
    assert moves == ["fail_and_go_on", "fail_and_go_on", "fail_and_halt", "fail_and_go_on"]


@pytest.mark.req("A14")
def test_gaps_go_one_by_one_widest_first_and_keep_the_better_score() -> None:
    def gap(name: str, current: float, target: float = 9.5) -> Deficiency:
        return Deficiency(
            criterion=name,
            current_score=current,
            target_score=target,
            deficiency="no handler for 404",
            target_file="src/a.py",
            expected_impact="+0.3",
        )

    ordered = in_order_of_gap((gap("a", 9.0), gap("b", 7.5), gap("c", 9.0), gap("d", 8.0)))
    assert [one.criterion for one in ordered] == ["b", "d", "a", "c"]
    wide, narrow = gap("wide", 9.0, 9.8), gap("narrow", 8.0, 8.5)
    assert in_order_of_gap((narrow, wide)) == (wide, narrow)
    assert (kept_tenths(88, 91), kept_tenths(91, 88), kept_tenths(90, 90)) == (91, 91, 90)
    assert [worth_gaps(score) for score in (97, 98)] == [True, False]


@pytest.mark.req("A14")
def test_the_whole_table_of_gaps() -> None:
    table = [
        f"score {score} of 95 after {iterations}, {remaining} left: {after_gaps(score, 95, iterations, remaining).value}"  # noqa: E501
        for score, iterations, remaining in product((94, 95), (0, 4, 5), (0, 1))
    ]
    assert table == snapshot(
        [
            "score 94 of 95 after 0, 0 left: exhausted",
            "score 94 of 95 after 0, 1 left: next",
            "score 94 of 95 after 4, 0 left: exhausted",
            "score 94 of 95 after 4, 1 left: next",
            "score 94 of 95 after 5, 0 left: exhausted",
            "score 94 of 95 after 5, 1 left: exhausted",
            "score 95 of 95 after 0, 0 left: reached",
            "score 95 of 95 after 0, 1 left: reached",
            "score 95 of 95 after 4, 0 left: reached",
            "score 95 of 95 after 4, 1 left: reached",
            "score 95 of 95 after 5, 0 left: reached",
            "score 95 of 95 after 5, 1 left: reached",
        ]
    )


@pytest.mark.req("A14")
@GENERATED
@given(st.integers(0, 94), st.lists(st.integers(0, 100), max_size=12))
def test_gaps_end_within_five_iterations_and_never_lose_score(start: int, results: list[int]) -> None:
    score, iterations = start, 0
    while after_gaps(score, 95, iterations, len(results) - iterations) is GapMove.NEXT:
        before, score = score, kept_tenths(score, results[iterations])
        assert score >= before
        iterations += 1
    assert iterations <= GAP_ITERATIONS


@pytest.mark.req("A13")
def test_a_split_phase_has_a_score_only_when_all_its_parts_have() -> None:
    assert split_score([9.1, 9.2]) == 9.1
    assert split_score([9.1, None]) is None
    assert split_score([]) is None


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("deferred", "processed", "warned"),
    [
        (0, 0, False),
        (1, 1, False),
        (1, 2, True),
        (1, 20, False),
        (2, 20, True),
        (3, 60, False),
        (7, 140, False),
        (8, 140, True),
    ],
)
def test_a_warning_comes_when_more_than_the_share_of_two_or_more_phases_is_deferred(
    deferred: int, processed: int, warned: bool
) -> None:
    assert too_many_deferred(deferred, processed, 0.05) is warned


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("limit", "passed", "verdicts", "after"),
    [
        (6.0, 2, 2, 6.0),
        (6.0, 0, 2, 6.0),
        (6.0, 3, 3, 5.5),
        (6.0, 4, 5, 6.0),
        (6.0, 9, 11, 5.5),
        (6.0, 7, 10, 6.0),
        (6.0, 2, 3, 6.5),
        (6.0, 0, 3, 6.5),
        (3.0, 3, 3, 3.0),
        (3.5, 3, 3, 3.0),
        (8.0, 0, 3, 8.0),
        (7.5, 0, 3, 8.0),
    ],
)
def test_the_limit_follows_the_human_verdicts_between_floor_and_ceiling(
    limit: float, passed: int, verdicts: int, after: float
) -> None:
    assert adjusted_limit(limit, passed, verdicts) == after


@pytest.mark.req("A19")
@GENERATED
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=30))
def test_no_row_of_verdicts_moves_the_limit_out_of_its_range(rows: list[tuple[int, int]]) -> None:
    limit = 6.0
    for row in rows:
        after = adjusted_limit(limit, min(row), max(row))
        assert abs(after - limit) in (0.0, 0.5)
        limit = after
        assert 3.0 <= limit <= 8.0


@pytest.mark.req("A19")
def test_only_a_verifier_less_sure_than_the_limit_may_defer() -> None:
    assert [may_defer(confidence, 6.0) for confidence in (5.9, 6.0, 6.1)] == [True, False, False]


@pytest.mark.req("A19")
def test_the_share_that_needed_nobody_is_nothing_before_the_first_phase() -> None:
    assert [autonomous_resolution_rate(*counts) for counts in ((0, 0), (2, 1), (3, 1), (3, 0))] == [
        0.0,
        0.5,
        0.6667,
        1.0,
    ]


@pytest.mark.req("A20")
@pytest.mark.parametrize(
    ("scores", "tail", "stamp"),
    [
        ([], 0, None),
        ([85], 1, None),
        ([85, 87], 2, None),
        ([85, 87, 86], 3, RubberStamp.WARNING),
        ([85, 88, 86], 2, None),
        ([60, 85, 87, 86, 85], 4, RubberStamp.WARNING),
        ([85, 87, 86, 85, 85], 5, RubberStamp.ENHANCED),
        ([85, 87, 86, 85, 85, 86], 6, RubberStamp.ENHANCED),
        ([85] * 7, 7, RubberStamp.CRITICAL),
        ([85] * 9, 9, RubberStamp.CRITICAL),
        ([84, 85, 86, 87, 88], 3, RubberStamp.WARNING),
        ([0, 0, 0], 3, RubberStamp.WARNING),
        ([100, 100, 98], 3, RubberStamp.WARNING),
    ],
)
def test_a_row_of_nearly_equal_scores_is_suspicious_by_its_length(
    scores: list[int], tail: int, stamp: RubberStamp | None
) -> None:
    assert uniform_tail(scores) == tail
    assert rubber_stamp(scores) is stamp


def _item(**changes: str) -> PathItem:
    good = {
        "file": "src/auth/login.py",
        "deficiency": "line 45: the locked account is not refused",
        "impact": "resolves 1 of 2 concerns",
    }
    return PathItem.model_validate(good | changes)


@pytest.mark.req("A13")
@pytest.mark.parametrize(
    "deficiency",
    [
        "improve code quality",
        "add better tests",
        "enhance documentation",
        "Improve the overall readability of the module",
        "needs work",
        "fix issues",
        "more tests",
    ],
)
def test_a_vague_deficiency_is_no_way_up(deficiency: str) -> None:
    found = path_problems(_item(deficiency=deficiency))
    assert found is not None
    assert found.problems == ("the deficiency is vague",)


@pytest.mark.req("A13")
@pytest.mark.parametrize(
    "deficiency",
    [
        "line 450: no pattern for criterion 3",
        "add tests for `refuse_locked`",
        "parse_range improves nothing for an empty list",
        "the refusal of a locked account is missing",
        "add a test of login() for locked accounts",
        "the parser drops the last header silently",
    ],
)
def test_a_deficiency_that_names_something_is_one(deficiency: str) -> None:
    assert path_problems(_item(deficiency=deficiency)) is None


@pytest.mark.req("A13")
def test_an_item_without_file_deficiency_or_impact_is_told_everything_it_lacks() -> None:
    found = path_problems(_item(file="src/auth", deficiency="improve tests", impact="would be nicer"))
    assert found is not None
    assert found.problems == snapshot(
        ("the file is not named", "the deficiency is vague", "the impact names neither a number nor a criterion")
    )
    assert path_problems(_item(impact="raises 'security' to the threshold")) is None
    assert path_problems(_item(file="src/v1.0/auth")) is not None
    assert path_problems(_item(deficiency="headers are silently dropped")) is None
    assert path_problems(_item(deficiency="headers are dropped")) is not None
    for name in ("a.py", "docs/a.md", "Makefile", "build/Dockerfile"):
        assert path_problems(_item(file=name)) is None


@pytest.mark.req("A13", "A14")
def test_the_gate_says_why() -> None:
    asked = [
        _facts(score=None),
        _facts(score=69),
        _facts(score=89),
        _facts(score=89, cycles=2),
        _facts(score=94, threshold=95, quality=True),
        _facts(score=94, threshold=95, quality=True, cycles=3),
    ]
    assert [phase_gate(facts).because for facts in asked] == [
        "it is completed, but has no score",
        "its score is below 7.0",
        "it is below the threshold",
        "remediation is exhausted",
        "it is below the quality it should have",
        "more cycles bring no more quality",
    ]
