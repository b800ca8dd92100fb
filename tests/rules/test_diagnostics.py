"""Diagnostics: an item is where, what and what for, vague ones are refused with a reason, and every loop ends."""
# the sentences of the tables stay whole

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.vocabulary import ImprovementLoop
from fairwitness.rules.diagnostics import (
    VAGUE_PHRASES,
    LoopFacts,
    LoopMove,
    after_cycle,
    after_loop,
    diagnostic_problems,
    item_problems,
    needs_diagnostic,
    usable_paths,
)
from fairwitness.rules.run_flags import CYCLES

GENERATED = settings(max_examples=300)
PATHS = frozenset({"src/auth/login.py", "Makefile"})


def _item(deficiency: str = "line 45: a locked account is not refused", **changes: str) -> PathItem:
    good = {"file": "src/auth/login.py", "deficiency": deficiency, "impact": "resolves 1 of 2 concerns"}
    return PathItem.model_validate(good | changes)


def _why(item: PathItem) -> tuple[str, ...]:
    found = item_problems(item, PATHS)
    return () if found is None else found.problems


@pytest.mark.req("A13")
@pytest.mark.parametrize(
    "deficiency",
    [
        "line 45: a locked account is not refused",
        "no handler for 404",
        "drops row 0",
        "the refusal of a locked account is missing",
        "add tests for `refuse_locked`",
        "login.py swallows the error of parse_token",
        "the code of `refuse` could be reached with None",
        "criterion 3 has no test that would be better than a search",
    ],
)
def test_an_item_that_says_where_what_and_what_for_is_a_way_up(deficiency: str) -> None:
    assert _why(_item(deficiency)) == ()


@pytest.mark.req("A13")
def test_every_vague_item_is_refused_with_its_reason() -> None:
    vague = [
        "improve code quality",
        "add better tests",
        "enhance documentation",
        "add 3 tests",
        "improve code quality in 12 places",
        "improve the code of src/auth/login.py",
        "src/auth/login.py",
        "login.py needs work",
        "this module does not follow best practices at all",
        "errors are not handled properly in most cases here",
        "the structure is suboptimal for what comes next",
        "it could be written in a way that reads well",
    ]
    assert {text: _why(_item(text)) for text in vague} == snapshot(
        {
            "improve code quality": ("the deficiency is vague",),
            "add better tests": ("the deficiency is vague",),
            "enhance documentation": ("the deficiency is vague",),
            "add 3 tests": ("the deficiency is vague",),
            "improve code quality in 12 places": ("the deficiency is vague",),
            "improve the code of src/auth/login.py": ("the deficiency is vague",),
            "src/auth/login.py": ("the deficiency is vague",),
            "login.py needs work": ("the deficiency is vague",),
            "this module does not follow best practices at all": ("the deficiency is vague: “best practices”",),
            "errors are not handled properly in most cases here": ("the deficiency is vague: “properly”",),
            "the structure is suboptimal for what comes next": ("the deficiency is vague: “suboptimal”",),
            "it could be written in a way that reads well": ("the deficiency is vague: “could be”",),
        }
    )


@pytest.mark.req("A13")
@pytest.mark.parametrize("phrase", VAGUE_PHRASES)
def test_a_word_of_the_list_is_no_deficiency_and_beside_a_named_one_does_no_harm(phrase: str) -> None:
    assert len(_why(_item(f"the handling there is {phrase} for the callers"))) == 1
    assert _why(_item(f"the handling in `refuse` is {phrase} for the callers")) == ()


@pytest.mark.req("A13")
def test_a_file_that_nobody_knows_or_an_effect_that_nobody_can_check_is_refused() -> None:
    assert _why(_item(file="src/auth/logout.py")) == snapshot(("the file is neither in the project nor in the plan",))
    assert _why(_item(file="src/auth")) == snapshot(
        ("the file is not named", "the file is neither in the project nor in the plan")
    )
    assert _why(_item(impact="would be much nicer")) == snapshot(("the impact names neither a number nor a criterion",))
    assert _why(_item("improve tests", file="src/none.py", impact="helps")) == snapshot(
        (
            "the deficiency is vague",
            "the impact names neither a number nor a criterion",
            "the file is neither in the project nor in the plan",
        )
    )
    assert _why(_item(file="Makefile")) == ()
    assert item_problems(_item(file="bin/tool"), {"bin/tool"}) is None, "what is a file of the project is one"


@pytest.mark.req("A13")
def test_items_are_sorted_and_told_once() -> None:
    good, vague = _item(), _item("more tests")
    sorted_ = usable_paths([good, vague, good, vague], PATHS)
    assert sorted_.usable == (good,)
    assert [refused.item for refused in sorted_.refused] == [vague]


@pytest.mark.req("A13")
def test_a_diagnostic_is_needed_below_nine_and_names_a_way_up() -> None:
    assert [needs_diagnostic(score) for score in (0, 70, 89, 90, 100)] == [True, True, True, False, False]
    assert diagnostic_problems(90, None, PATHS) == ()
    assert diagnostic_problems(89, [_item()], PATHS) == ()
    assert diagnostic_problems(89, None, PATHS) == snapshot(
        ("a score below 9.0 needs a diagnostic, and there is none",)
    )
    assert diagnostic_problems(89, [], PATHS) == snapshot(("the diagnostic names no way up",))
    assert diagnostic_problems(89, [_item(), _item("more tests", file="src/x.py")], PATHS) == snapshot(
        ("src/x.py: the deficiency is vague", "src/x.py: the file is neither in the project nor in the plan")
    )


@pytest.mark.req("A13")
@GENERATED
@given(st.text(min_size=1), st.text(min_size=1))
def test_whatever_an_item_says_it_is_answered_and_an_unknown_file_is_never_a_way_up(
    deficiency: str, impact: str
) -> None:
    item = PathItem.model_construct(file="src/auth/login.py", deficiency=deficiency, impact=impact)
    nowhere = item_problems(item, frozenset())
    assert nowhere is not None
    assert nowhere.problems == (*_why(item), "the file is neither in the project nor in the plan")


@pytest.mark.req("A14")
def test_a_worse_result_is_reverted_an_equal_one_stays_and_the_best_score_stands() -> None:
    table = [
        f"{before} then {after}: {result.score_tenths}{', gained' if result.gained else ''}{', revert' if result.revert else ''}"  # noqa: E501
        for before, after in ((88, 91), (88, 88), (88, 85), (88, None))
        for result in [after_cycle(before, after)]
    ]
    assert table == snapshot(
        ["88 then 91: 91, gained", "88 then 88: 88", "88 then 85: 88, revert", "88 then None: 88, revert"]
    )


@pytest.mark.req("A14")
@GENERATED
@given(st.integers(0, 100), st.none() | st.integers(0, 100))
def test_a_cycle_never_costs_score(before: int, after: int | None) -> None:
    result = after_cycle(before, after)
    assert result.score_tenths >= before
    assert result.gained == (result.score_tenths > before)
    assert not (result.gained and result.revert)


def _loop(
    loop: ImprovementLoop,
    target: int = 90,
    score: int = 85,
    *,
    cycles: int = 0,
    gained: bool = True,
    remaining: int = 1,
) -> LoopFacts:
    return LoopFacts(
        loop=loop, target_tenths=target, score_tenths=score, cycles=cycles, gained=gained, remaining=remaining
    )


@pytest.mark.req("A13", "A14")
def test_the_whole_table_of_loops() -> None:
    table: dict[str, list[str]] = {}
    for loop, target in (
        (ImprovementLoop.REMEDIATION, 90),
        (ImprovementLoop.REMEDIATION, 70),
        (ImprovementLoop.QUALITY, 95),
        (ImprovementLoop.GAPS, 95),
        (ImprovementLoop.GAPS, 98),
    ):
        for score, cycles, gained in product((69, 89, 94, 96), (0, 2, 3, 5), (True, False)):
            answer = after_loop(_loop(loop, target, score, cycles=cycles, gained=gained))
            told = f"{loop.value} to {target}: {answer.move.value}, {answer.because}"
            table.setdefault(told, []).append(f"{score} after {cycles}{'' if gained else ' without gain'}")
    assert {told: ", ".join(cases) for told, cases in table.items()} == snapshot(
        {
            "remediation to 90: failed, its score is below 7.0": "69 after 0, 69 after 0 without gain, 69 after 2, 69 after 2 without gain, 69 after 3, 69 after 3 without gain, 69 after 5, 69 after 5 without gain",  # noqa: E501
            "remediation to 90: again, it is below the threshold": "89 after 0, 89 after 0 without gain",
            "remediation to 90: force_incomplete, remediation is exhausted": "89 after 2, 89 after 2 without gain, 89 after 3, 89 after 3 without gain, 89 after 5, 89 after 5 without gain",  # noqa: E501
            "remediation to 90: reached, it reached the threshold": "94 after 0, 94 after 0 without gain, 94 after 2, 94 after 2 without gain, 94 after 3, 94 after 3 without gain, 94 after 5, 94 after 5 without gain, 96 after 0, 96 after 0 without gain, 96 after 2, 96 after 2 without gain, 96 after 3, 96 after 3 without gain, 96 after 5, 96 after 5 without gain",  # noqa: E501
            "remediation to 70: failed, its score is below 7.0": "69 after 0, 69 after 0 without gain, 69 after 2, 69 after 2 without gain, 69 after 3, 69 after 3 without gain, 69 after 5, 69 after 5 without gain",  # noqa: E501
            "remediation to 70: reached, it reached the threshold": "89 after 0, 89 after 0 without gain, 89 after 2, 89 after 2 without gain, 89 after 3, 89 after 3 without gain, 89 after 5, 89 after 5 without gain, 94 after 0, 94 after 0 without gain, 94 after 2, 94 after 2 without gain, 94 after 3, 94 after 3 without gain, 94 after 5, 94 after 5 without gain, 96 after 0, 96 after 0 without gain, 96 after 2, 96 after 2 without gain, 96 after 3, 96 after 3 without gain, 96 after 5, 96 after 5 without gain",  # noqa: E501
            "quality to 95: failed, its score is below 7.0": "69 after 0, 69 after 0 without gain, 69 after 2, 69 after 2 without gain, 69 after 3, 69 after 3 without gain, 69 after 5, 69 after 5 without gain",  # noqa: E501
            "quality to 95: again, it is below the quality it should have": "89 after 0, 89 after 2, 94 after 0, 94 after 2",  # noqa: E501
            "quality to 95: quality_exhausted, more cycles bring no more quality": "89 after 0 without gain, 89 after 2 without gain, 89 after 3, 89 after 3 without gain, 89 after 5, 89 after 5 without gain, 94 after 0 without gain, 94 after 2 without gain, 94 after 3, 94 after 3 without gain, 94 after 5, 94 after 5 without gain",  # noqa: E501
            "quality to 95: reached, it reached the threshold": "96 after 0, 96 after 0 without gain, 96 after 2, 96 after 2 without gain, 96 after 3, 96 after 3 without gain, 96 after 5, 96 after 5 without gain",  # noqa: E501
            "gaps to 95: again, a deficiency is left": "69 after 0, 69 after 0 without gain, 69 after 2, 69 after 2 without gain, 69 after 3, 69 after 3 without gain, 89 after 0, 89 after 0 without gain, 89 after 2, 89 after 2 without gain, 89 after 3, 89 after 3 without gain, 94 after 0, 94 after 0 without gain, 94 after 2, 94 after 2 without gain, 94 after 3, 94 after 3 without gain",  # noqa: E501
            "gaps to 95: gaps_exhausted, no iteration or no deficiency is left": "69 after 5, 69 after 5 without gain, 89 after 5, 89 after 5 without gain, 94 after 5, 94 after 5 without gain",  # noqa: E501
            "gaps to 95: reached, it reached the target": "96 after 0, 96 after 0 without gain, 96 after 2, 96 after 2 without gain, 96 after 3, 96 after 3 without gain, 96 after 5, 96 after 5 without gain",  # noqa: E501
            "gaps to 98: again, a deficiency is left": "69 after 0, 69 after 0 without gain, 69 after 2, 69 after 2 without gain, 69 after 3, 69 after 3 without gain, 89 after 0, 89 after 0 without gain, 89 after 2, 89 after 2 without gain, 89 after 3, 89 after 3 without gain, 94 after 0, 94 after 0 without gain, 94 after 2, 94 after 2 without gain, 94 after 3, 94 after 3 without gain, 96 after 0, 96 after 0 without gain, 96 after 2, 96 after 2 without gain, 96 after 3, 96 after 3 without gain",  # noqa: E501
            "gaps to 98: gaps_exhausted, no iteration or no deficiency is left": "69 after 5, 69 after 5 without gain, 89 after 5, 89 after 5 without gain, 94 after 5, 94 after 5 without gain, 96 after 5, 96 after 5 without gain",  # noqa: E501
        }
    )


@pytest.mark.req("A13", "A14")
@GENERATED
@given(
    st.sampled_from(ImprovementLoop),
    st.sampled_from([70, 90, 95, 98]),
    st.integers(70, 100),
    st.lists(st.none() | st.integers(0, 100), min_size=6, max_size=6),
)
def test_every_loop_ends_within_its_cycles_with_its_own_mark_and_never_below_where_it_began(
    loop: ImprovementLoop, target: int, start: int, results: list[int | None]
) -> None:
    score, cycles, gained = start, 0, True
    while (answer := after_loop(_loop(loop, target, score, cycles=cycles, gained=gained))).move is LoopMove.AGAIN:
        result = after_cycle(score, results[cycles])
        score, gained, cycles = result.score_tenths, result.gained, cycles + 1
    assert cycles <= CYCLES[loop]
    assert score >= start
    marks = {
        ImprovementLoop.REMEDIATION: LoopMove.FORCE_INCOMPLETE,
        ImprovementLoop.QUALITY: LoopMove.QUALITY_EXHAUSTED,
        ImprovementLoop.GAPS: LoopMove.GAPS_EXHAUSTED,
    }
    assert answer.move is (LoopMove.REACHED if score >= target else marks[loop])


@pytest.mark.req("A14")
def test_gaps_end_when_no_deficiency_is_left() -> None:
    assert after_loop(_loop(ImprovementLoop.GAPS, 95, 94, remaining=0)).move is LoopMove.GAPS_EXHAUSTED
    assert after_loop(_loop(ImprovementLoop.REMEDIATION, 90, 69)).move is LoopMove.FAILED
