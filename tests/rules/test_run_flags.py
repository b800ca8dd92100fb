"""Flags: what each combination comes to, nonsense told at once, and when people are asked."""
# the sentences of the tables stay whole

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.state import Deferral, Meta
from fairwitness.contracts.autopilot.vocabulary import HumanWord, ImprovementLoop, PhaseStatus, RunFlag
from fairwitness.contracts.common.problems import ProblemLevel
from fairwitness.rules.run_flags import CYCLES, Takes, deferral_rate, flag_problems, known_flags, run_mode
from fairwitness.rules.scores import flag_conflicts
from support.fixtures import value_of

GENERATED = settings(max_examples=300)
STATUSES = {
    "1": PhaseStatus.COMPLETED,
    "2": PhaseStatus.FAILED,
    "3": PhaseStatus.NOT_STARTED,
    "4": PhaseStatus.NEEDS_HUMAN_VERIFICATION,
}


def _told(names: list[str], wanted: list[str] | None = None) -> list[str]:
    return [
        f"{problem.level.value} at {'.'.join(map(str, problem.where))}: expected {problem.expected}, found {problem.found}"  # noqa: E501
        for problem in flag_problems(names, wanted or [], STATUSES)
    ]


@pytest.mark.req("A14")
def test_the_whole_table_of_courses() -> None:
    table = {}
    for size in range(3):
        for given_ in combinations(RunFlag, size):
            flags = frozenset(given_)
            if flag_conflicts(flags):
                continue
            what = run_mode(flags)
            loops = [f"{plan.cycles} times {plan.loop.value} to {plan.target_tenths}" for plan in what.loops]
            told = (
                f"{what.takes.value}, passes at {what.threshold_tenths}, {' then '.join(loops) or 'no loop'}"
                + "".join(
                    f", {word}" for word in ("fresh", "goes_on", "maps", "discusses", "visual") if getattr(what, word)
                )
            )
            table[" + ".join(flag.value for flag in given_) or "no flag"] = told
    assert table == snapshot(
        {
            "no flag": "unfinished, passes at 90, 2 times remediation to 90",
            "force": "finished, passes at 90, 2 times remediation to 90, fresh",
            "quality": "both, passes at 95, 3 times quality to 95",
            "gaps": "finished, passes at 95, 5 times gaps to 95",
            "complete": "unfinished, passes at 90, 2 times remediation to 90, goes_on",
            "map": "none, passes at 90, 2 times remediation to 90, maps",
            "lenient": "unfinished, passes at 70, no loop",
            "discuss": "unfinished, passes at 90, 2 times remediation to 90, discusses",
            "visual": "unfinished, passes at 90, 2 times remediation to 90, visual",
            "force + lenient": "finished, passes at 70, no loop, fresh",
            "force + discuss": "finished, passes at 90, 2 times remediation to 90, fresh, discusses",
            "force + visual": "finished, passes at 90, 2 times remediation to 90, fresh, visual",
            "quality + gaps": "both, passes at 95, 3 times quality to 95 then 5 times gaps to 98",
            "quality + complete": "unfinished, passes at 95, 3 times quality to 95, goes_on",
            "quality + map": "both, passes at 95, 3 times quality to 95, maps",
            "quality + lenient": "both, passes at 95, 3 times quality to 95",
            "quality + discuss": "both, passes at 95, 3 times quality to 95, discusses",
            "quality + visual": "both, passes at 95, 3 times quality to 95, visual",
            "gaps + map": "finished, passes at 95, 5 times gaps to 95, maps",
            "gaps + lenient": "finished, passes at 95, 5 times gaps to 95",
            "gaps + discuss": "finished, passes at 95, 5 times gaps to 95, discusses",
            "gaps + visual": "finished, passes at 95, 5 times gaps to 95, visual",
            "complete + map": "unfinished, passes at 90, 2 times remediation to 90, goes_on, maps",
            "complete + lenient": "unfinished, passes at 70, no loop, goes_on",
            "complete + discuss": "unfinished, passes at 90, 2 times remediation to 90, goes_on, discusses",
            "complete + visual": "unfinished, passes at 90, 2 times remediation to 90, goes_on, visual",
            "map + lenient": "unfinished, passes at 70, no loop, maps",
            "map + discuss": "unfinished, passes at 90, 2 times remediation to 90, maps, discusses",
            "map + visual": "unfinished, passes at 90, 2 times remediation to 90, maps, visual",
            "lenient + discuss": "unfinished, passes at 70, no loop, discusses",
            "lenient + visual": "unfinished, passes at 70, no loop, visual",
            "discuss + visual": "unfinished, passes at 90, 2 times remediation to 90, discusses, visual",
        }
    )


@pytest.mark.req("A13", "A14")
def test_every_loop_has_its_number_of_cycles() -> None:
    assert {loop.value: CYCLES[loop] for loop in ImprovementLoop} == snapshot(
        {"remediation": 2, "quality": 3, "gaps": 5}
    )


@pytest.mark.req("A14")
@GENERATED
@given(st.frozensets(st.sampled_from(RunFlag)))
def test_every_combination_has_a_course_and_leniency_never_lowers_quality_or_gaps(flags: frozenset[RunFlag]) -> None:
    what = run_mode(flags)
    assert what.threshold_tenths >= 70
    assert (what.takes is Takes.NONE) == (flags == {RunFlag.MAP})
    if flags & {RunFlag.QUALITY, RunFlag.GAPS}:
        strict, lenient = run_mode(flags - {RunFlag.LENIENT}), run_mode(flags | {RunFlag.LENIENT})
        assert strict == lenient
        assert ImprovementLoop.REMEDIATION not in [plan.loop for plan in what.loops]
        assert min(plan.target_tenths for plan in what.loops) == what.threshold_tenths
    else:
        assert (what.loops == ()) == (RunFlag.LENIENT in flags)


@pytest.mark.req("A14")
def test_nonsense_is_told_all_at_once() -> None:
    assert _told([]) == []
    assert _told(["--quality", "--complete"], ["1", "3"]) == []
    assert _told(["--fast", "", "--fast", "force"]) == snapshot(
        [
            "error at flags: expected one of --force, --quality, --gaps, --complete, --map, --lenient, --discuss, --visual, found --fast",  # noqa: E501
            "error at flags: expected one of --force, --quality, --gaps, --complete, --map, --lenient, --discuss, --visual, found nothing",  # noqa: E501
        ]
    )
    assert _told(["--force", "--quality", "--gaps", "--complete", "--map"]) == snapshot(
        [
            "error at flags: expected --force or --quality, not both, found --force --quality",
            "error at flags: expected --force or --gaps, not both, found --force --gaps",
            "error at flags: expected --force or --complete, not both, found --force --complete",
            "error at flags: expected --gaps or --complete, not both, found --gaps --complete",
            "error at flags: expected --force or --map, not both, found --force --map",
        ]
    )
    assert _told(["--lenient", "--quality"]) == snapshot(
        [
            "warning at flags: expected --lenient without --quality and --gaps, beside which it has no effect, found --lenient"  # noqa: E501
        ]
    )
    assert _told(["--lenient"]) == []


@pytest.mark.req("A14")
def test_only_a_finished_phase_can_be_forced_or_have_its_gaps_closed() -> None:
    assert _told(["--force"], ["1", "2", "3", "4", "2"]) == snapshot(
        [
            "error at phases.2: expected a phase that is completed, found failed",
            "error at phases.3: expected a phase that is completed, found not_started",
            "error at phases.4: expected a phase that is completed, found needs_human_verification",
        ]
    )
    assert _told(["--gaps"], ["1", "3"]) == snapshot(
        ["error at phases.3: expected a phase that is completed, found not_started"]
    )
    assert _told(["--gaps", "--quality"], ["1", "3"]) == []
    assert _told([], ["7", " "]) == snapshot(
        [
            "error at phases: expected a phase of the roadmap, found 7",
            "error at phases: expected a phase of the roadmap, found nothing",
        ]
    )


@pytest.mark.req("A14")
@GENERATED
@given(
    st.lists(st.sampled_from([*(f"--{flag.value}" for flag in RunFlag), "--fast"])), st.lists(st.sampled_from("12345"))
)
def test_a_warning_alone_stops_nothing_and_every_forbidden_pair_is_an_error(
    names: list[str], wanted: list[str]
) -> None:
    problems = flag_problems(names, wanted, STATUSES)
    errors = [problem for problem in problems if problem.level is ProblemLevel.ERROR]
    if flag_conflicts(known_flags(names)) or "--fast" in names or "5" in wanted:
        assert errors
    assert len(set(problems)) == len(problems)


def _meta(*verdicts: HumanWord | None, deferred: int = 0, processed: int = 0, confidence: float | None = 6.0) -> Meta:
    history = [
        Deferral(
            phase_id=str(number),
            reason="a real card",
            autonomous_confidence=4.0,
            human_verdict=verdict,
            timestamp="2026-02-26T14:30:00Z",
        )
        for number, verdict in enumerate(verdicts)
    ]
    changes = {
        "human_deferred_count": deferred,
        "total_phases_processed": processed,
        "deferral_threshold": 0.05,
        "deferral_confidence": confidence,
        "deferral_history": [one.plain() for one in history],
    }
    return Meta.model_validate(value_of("003/filled-state.json")["_meta"] | changes)


@pytest.mark.req("A19")
@pytest.mark.parametrize(
    ("deferred", "processed", "rate", "too_often"),
    [(0, 0, 0.0, False), (1, 1, 1.0, False), (1, 2, 0.5, True), (1, 20, 0.05, False), (2, 20, 0.1, True)],
)
def test_a_run_that_asks_too_often_is_told_so(deferred: int, processed: int, rate: float, too_often: bool) -> None:
    found = deferral_rate(_meta(deferred=deferred, processed=processed))
    assert (found.deferred, found.processed, found.rate, found.too_often) == (deferred, processed, rate, too_often)


@pytest.mark.req("A19")
def test_the_limit_follows_the_verdicts_and_open_ones_do_not_count() -> None:
    good, bad, found = HumanWord.PASS, HumanWord.FAIL, HumanWord.ISSUES_FOUND
    assert deferral_rate(_meta(good, good, None)).new_limit == 6.0
    assert deferral_rate(_meta(good, good, good, None)).new_limit == 5.5
    assert deferral_rate(_meta(good, bad, found)).new_limit == 6.5
    assert deferral_rate(_meta(good, good, good, confidence=3.0)).new_limit == 3.0
    assert deferral_rate(_meta(bad, bad, bad, confidence=8.0)).new_limit == 8.0
    fresh = deferral_rate(_meta(bad, bad, good, confidence=None))
    assert (fresh.verdicts, fresh.passed, fresh.limit, fresh.new_limit) == (3, 1, 6.0, 6.5)
