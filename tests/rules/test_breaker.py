"""The breaker: total over steps and positions, an open one starts nothing, and the whole small table in sentences."""
# the sentences of the table stay whole

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.autopilot.breaker import BreakerPosition, BreakerSettings, BreakerState
from fairwitness.contracts.autopilot.facts import Retries, RetryKind, RunUsage, StepEffect, StepFailureCause
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, StepName
from fairwitness.contracts.common.base import instant
from fairwitness.rules.breaker import (
    CLOSED,
    MEASURED,
    FailRun,
    GoOn,
    LowScoreMove,
    Pause,
    after_low_score,
    after_resume,
    after_step,
    count_step,
    error_key,
    made_progress,
    may_retry,
    may_start,
    normalise_error,
)

NOW = "2026-02-26T14:30:00Z"
LATER = "2026-02-26T14:35:00Z"
SETTINGS = BreakerSettings()
NOTHING_USED = RunUsage(phase_tokens=0, phase_minutes=0, total_tokens=0, total_minutes=0, total_retries=0)
BROKEN = StepFailureCause(category=FailureCategory.BUILD_FAILURE, first_line="make: *** [all] Error 2")


def _breaker(
    position: BreakerPosition = BreakerPosition.CLOSED,
    *,
    no_progress: int = 0,
    same_error: int = 0,
    last_error: str | None = None,
    cooldown_until: str | None = None,
) -> BreakerState:
    return BreakerState(
        state=position,
        consecutive_no_progress=no_progress,
        consecutive_same_error=same_error,
        last_error=last_error,
        cooldown_until=cooldown_until,
    )


def _outcome(
    step: StepName = StepName.EXECUTE,
    *,
    commits: int = 0,
    passing: int = 0,
    gained: int = 0,
    error: StepFailureCause | None = None,
) -> StepEffect:
    return StepEffect(step=step, new_commits=commits, newly_passing=passing, score_gained=gained, error=error)


def _error(line: str, category: FailureCategory = FailureCategory.BUILD_FAILURE) -> StepFailureCause:
    return StepFailureCause(category=category, first_line=line)


def _usage(**changes: int) -> RunUsage:
    return NOTHING_USED.model_copy(update=changes)


STATES = st.builds(
    _breaker,
    st.sampled_from(BreakerPosition),
    no_progress=st.integers(0, 6),
    same_error=st.integers(0, 6),
    last_error=st.sampled_from([None, error_key(BROKEN), "other"]),
    cooldown_until=st.sampled_from([None, NOW, LATER]),
)
OUTCOMES = st.builds(
    _outcome,
    st.sampled_from(StepName),
    commits=st.integers(0, 1),
    passing=st.integers(0, 1),
    gained=st.integers(0, 1),
    error=st.sampled_from([None, BROKEN, _error("segmentation fault")]),
)
USAGES = st.builds(
    RunUsage,
    phase_tokens=st.sampled_from([0, 499_999, 500_000]),
    phase_minutes=st.sampled_from([0, 119, 120]),
    total_tokens=st.sampled_from([0, 4_999_999, 5_000_000]),
    total_minutes=st.sampled_from([0, 1439, 1440]),
    total_retries=st.sampled_from([0, 9, 10]),
)
GENERATED = settings(max_examples=300)


@pytest.mark.req("A4")
def test_for_every_step_it_is_known_whether_progress_is_expected_of_it() -> None:
    assert set(MEASURED) == set(StepName)
    assert {step for step, measured in MEASURED.items() if measured} == {
        StepName.EXECUTE,
        StepName.VERIFY,
        StepName.RATE,
        StepName.DEBUG,
    }


@pytest.mark.req("A4")
@GENERATED
@given(STATES, st.integers(0, 5))
def test_an_open_breaker_starts_nothing_and_a_half_open_one_a_single_probe(breaker: BreakerState, running: int) -> None:
    expected = {BreakerPosition.CLOSED: True, BreakerPosition.OPEN: False, BreakerPosition.HALF_OPEN: running == 0}
    assert may_start(breaker, running=running) is expected[breaker.state]


@pytest.mark.req("A4")
@GENERATED
@given(STATES, OUTCOMES, USAGES)
def test_whatever_pauses_or_fails_the_run_leaves_the_breaker_open_for_the_cooldown(
    breaker: BreakerState, outcome: StepEffect, usage: RunUsage
) -> None:
    answer = after_step(breaker, outcome, usage, SETTINGS, now=NOW)
    if isinstance(answer, GoOn):
        assert answer.breaker.state is not BreakerPosition.OPEN or breaker.state is BreakerPosition.OPEN
    else:
        assert answer.breaker.state is BreakerPosition.OPEN
        assert answer.breaker.cooldown_until is not None
        assert instant(answer.breaker.cooldown_until) == instant(LATER)
        assert answer.value == getattr(usage, answer.setting, answer.value)


@pytest.mark.req("A4")
@GENERATED
@given(STATES, OUTCOMES, USAGES)
def test_a_step_never_closes_an_open_breaker(breaker: BreakerState, outcome: StepEffect, usage: RunUsage) -> None:
    if breaker.state is BreakerPosition.OPEN:
        answer = after_step(breaker, outcome, usage, SETTINGS, now=NOW)
        assert answer.breaker.state is BreakerPosition.OPEN


@pytest.mark.req("A4")
@GENERATED
@given(STATES, OUTCOMES, USAGES)
def test_a_cap_of_the_whole_run_fails_it_whatever_else_is_the_case(
    breaker: BreakerState, outcome: StepEffect, usage: RunUsage
) -> None:
    over = usage.total_tokens >= SETTINGS.cost_cap_tokens_total
    over = over or usage.total_minutes >= SETTINGS.wall_clock_timeout_minutes_total
    assert isinstance(after_step(breaker, outcome, usage, SETTINGS, now=NOW), FailRun) is over


@pytest.mark.req("A4")
@GENERATED
@given(st.lists(OUTCOMES, max_size=60))
def test_without_progress_a_run_pauses_within_its_thresholds(outcomes: list[StepEffect]) -> None:
    breaker, idle = CLOSED, 0
    for outcome in outcomes:
        answer = after_step(breaker, outcome, NOTHING_USED, SETTINGS, now=NOW)
        idle = 0 if made_progress(outcome) else idle + (MEASURED[outcome.step] or outcome.error is not None)
        if idle >= SETTINGS.no_progress_threshold:
            assert isinstance(answer, Pause)
            return
        if isinstance(answer, Pause):
            assert answer.setting == "same_error_threshold"
            return
        breaker = answer.breaker


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("setting", "usage", "value", "fails"),
    [
        ("cost_cap_tokens_total", {"total_tokens": 5_000_000}, 5_000_000, True),
        ("wall_clock_timeout_minutes_total", {"total_minutes": 1440}, 1440, True),
        ("cost_cap_tokens_per_phase", {"phase_tokens": 500_001}, 500_001, False),
        ("wall_clock_timeout_minutes_per_phase", {"phase_minutes": 120}, 120, False),
        ("max_total_retries_per_run", {"total_retries": 10}, 10, False),
    ],
)
def test_each_cap_is_named_with_its_value_at_the_cap_and_not_before(
    setting: str, usage: dict[str, int], value: int, fails: bool
) -> None:
    answer = after_step(CLOSED, _outcome(commits=1), _usage(**usage), SETTINGS, now=NOW)
    assert isinstance(answer, FailRun if fails else Pause)
    assert (answer.setting, answer.value) == (setting, value)
    just_below = {name: getattr(SETTINGS, setting) - 1 for name in usage}
    assert after_step(CLOSED, _outcome(commits=1), _usage(**just_below), SETTINGS, now=NOW) == GoOn(breaker=CLOSED)


@pytest.mark.req("A4")
def test_the_first_limit_in_order_of_rank_is_the_one_that_is_named() -> None:
    everything = RunUsage(
        phase_tokens=10**9, phase_minutes=10**6, total_tokens=10**9, total_minutes=10**6, total_retries=99
    )
    stuck = _breaker(no_progress=9, same_error=9, last_error=error_key(BROKEN))
    failing = _outcome(error=BROKEN)
    named = []
    for spent in ("total_tokens", "total_minutes", "phase_tokens", "phase_minutes", "total_retries", "nothing"):
        answer = after_step(stuck, failing, everything, SETTINGS, now=NOW)
        assert not isinstance(answer, GoOn)
        named.append(answer.setting)
        everything = everything.model_copy(update={spent: 0})
    answer = after_step(stuck.model_copy(update={"last_error": "other"}), failing, everything, SETTINGS, now=NOW)
    assert isinstance(answer, Pause)
    assert [*named, answer.setting] == snapshot(
        [
            "cost_cap_tokens_total",
            "wall_clock_timeout_minutes_total",
            "cost_cap_tokens_per_phase",
            "wall_clock_timeout_minutes_per_phase",
            "max_total_retries_per_run",
            "same_error_threshold",
            "no_progress_threshold",
        ]
    )


@pytest.mark.req("A4")
def test_the_third_step_without_progress_and_the_fifth_equal_error_open_it() -> None:
    breaker = CLOSED
    for expected in (1, 2):
        answer = after_step(breaker, _outcome(), NOTHING_USED, SETTINGS, now=NOW)
        assert isinstance(answer, GoOn)
        breaker = answer.breaker
        assert breaker.consecutive_no_progress == expected
    third = after_step(breaker, _outcome(), NOTHING_USED, SETTINGS, now=NOW)
    assert isinstance(third, Pause)
    assert (third.setting, third.value) == ("no_progress_threshold", 3)

    breaker = CLOSED
    for attempt in range(1, 5):
        # each try commits something, so that only the error is a reason to stop
        answer = after_step(
            breaker, _outcome(commits=1, error=_error(f"a.py:{attempt}: boom")), NOTHING_USED, SETTINGS, now=NOW
        )
        assert isinstance(answer, GoOn)
        breaker = answer.breaker
    fifth = after_step(breaker, _outcome(commits=1, error=_error("a.py:99: boom")), NOTHING_USED, SETTINGS, now=NOW)
    assert isinstance(fifth, Pause)
    assert (fifth.setting, fifth.value) == ("same_error_threshold", 5)


@pytest.mark.req("A4")
def test_a_whole_planning_phase_that_ends_well_is_not_held_against_the_run() -> None:
    breaker = CLOSED
    for step in (step for step, measured in MEASURED.items() if not measured):
        breaker = count_step(breaker, _outcome(step))
    assert breaker == CLOSED
    assert count_step(CLOSED, _outcome(StepName.PLAN, error=BROKEN)).consecutive_no_progress == 1


@pytest.mark.req("A4")
def test_the_whole_table_of_what_a_step_counts() -> None:
    before = _breaker(no_progress=2, same_error=3, last_error=error_key(BROKEN))
    endings = {
        "nothing new": _outcome(),
        "a commit": _outcome(commits=1),
        "a passing criterion": _outcome(passing=1),
        "a better score": _outcome(gained=1),
        "the same error": _outcome(error=BROKEN),
        "the same error in another line": _outcome(error=_error("make: *** [all] Error 3")),
        "the same line of another category": _outcome(error=_error(BROKEN.first_line, FailureCategory.LINT_FAILURE)),
        "another error": _outcome(error=_error("boom")),
        "a commit and the same error": _outcome(commits=1, error=BROKEN),
        "research without an error": _outcome(StepName.RESEARCH),
        "research with another error": _outcome(StepName.RESEARCH, error=_error("boom")),
    }
    table = [
        f"{name}: no progress {after.consecutive_no_progress}, same error {after.consecutive_same_error}, last {after.last_error}"  # noqa: E501
        for name, outcome in endings.items()
        for after in [count_step(before, outcome)]
    ]
    assert table == snapshot(
        [
            "nothing new: no progress 3, same error 3, last build_failure: make: *** [all] Error <n>",
            "a commit: no progress 0, same error 0, last None",
            "a passing criterion: no progress 0, same error 0, last None",
            "a better score: no progress 0, same error 0, last None",
            "the same error: no progress 3, same error 4, last build_failure: make: *** [all] Error <n>",
            "the same error in another line: no progress 3, same error 4, last build_failure: make: *** [all] Error <n>",  # noqa: E501
            "the same line of another category: no progress 3, same error 1, last lint_failure: make: *** [all] Error <n>",  # noqa: E501
            "another error: no progress 3, same error 1, last build_failure: boom",
            "a commit and the same error: no progress 0, same error 4, last build_failure: make: *** [all] Error <n>",
            "research without an error: no progress 2, same error 3, last build_failure: make: *** [all] Error <n>",
            "research with another error: no progress 3, same error 1, last build_failure: boom",
        ]
    )


@pytest.mark.req("A4")
def test_the_whole_table_of_positions_and_endings() -> None:
    endings = {
        "progress": _outcome(commits=1),
        "no progress": _outcome(),
        "an error": _outcome(error=BROKEN),
        "progress and an error": _outcome(commits=1, error=BROKEN),
        "a research step": _outcome(StepName.RESEARCH),
    }
    table = []
    for position, (name, outcome) in product(BreakerPosition, endings.items()):
        answer = after_step(_breaker(position), outcome, NOTHING_USED, SETTINGS, now=NOW)
        because = "" if isinstance(answer, GoOn) else f" by {answer.setting} at {answer.value}"
        table.append(f"{position.value}, {name}: {answer.answer}{because}, then {answer.breaker.state.value}")
    assert table == snapshot(
        [
            "closed, progress: go_on, then closed",
            "closed, no progress: go_on, then closed",
            "closed, an error: go_on, then closed",
            "closed, progress and an error: go_on, then closed",
            "closed, a research step: go_on, then closed",
            "open, progress: go_on, then open",
            "open, no progress: go_on, then open",
            "open, an error: go_on, then open",
            "open, progress and an error: go_on, then open",
            "open, a research step: go_on, then open",
            "half_open, progress: go_on, then closed",
            "half_open, no progress: pause by no_progress_threshold at 1, then open",
            "half_open, an error: pause by same_error_threshold at 1, then open",
            "half_open, progress and an error: pause by same_error_threshold at 1, then open",
            "half_open, a research step: go_on, then half_open",
        ]
    )


@pytest.mark.req("A4")
def test_a_probe_that_makes_progress_closes_the_breaker_and_forgets_its_counters() -> None:
    half_open = _breaker(BreakerPosition.HALF_OPEN, no_progress=2, same_error=4, last_error="x")
    answer = after_step(half_open, _outcome(commits=1), NOTHING_USED, SETTINGS, now=NOW)
    assert answer == GoOn(breaker=CLOSED)


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("before", "now", "after"),
    [
        (_breaker(), NOW, _breaker()),
        (_breaker(BreakerPosition.HALF_OPEN, no_progress=1), NOW, _breaker(BreakerPosition.HALF_OPEN, no_progress=1)),
        (
            _breaker(BreakerPosition.OPEN, no_progress=3, cooldown_until=LATER),
            "2026-02-26T14:34:59Z",
            _breaker(BreakerPosition.OPEN, no_progress=3, cooldown_until=LATER),
        ),
        (
            _breaker(BreakerPosition.OPEN, no_progress=3, same_error=5, last_error="x", cooldown_until=LATER),
            LATER,
            _breaker(BreakerPosition.HALF_OPEN, last_error="x"),
        ),
        (
            _breaker(BreakerPosition.OPEN, cooldown_until=LATER),
            "2026-02-26T15:36:00+01:00",
            _breaker(BreakerPosition.HALF_OPEN),
        ),
        (_breaker(BreakerPosition.OPEN), NOW, _breaker(BreakerPosition.HALF_OPEN)),
    ],
)
def test_a_resumed_run_is_half_open_once_the_cooldown_is_over(
    before: BreakerState, now: str, after: BreakerState
) -> None:
    assert after_resume(before, now=now) == after


@pytest.mark.req("A4")
def test_the_cooldown_is_the_setting() -> None:
    settings_ = SETTINGS.model_copy(update={"cooldown_minutes": 7})
    answer = after_step(CLOSED, _outcome(), _usage(total_retries=10), settings_, now=NOW)
    assert answer.breaker.cooldown_until == "2026-02-26T14:37:00+00:00"


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("said", "normalised"),
    [
        ("src/a.py:14: error", "src/a.py:<line>: error"),
        ("src/a.py:14:7: error", "src/a.py:<line>: error"),
        ('  File "x.py", line 12, in f', 'File "x.py", line <line>, in f'),
        ("object at 0x7F3a91 died", "object at <id> died"),
        ("commit 3f2a9bc missing", "commit <id> missing"),
        ("id 123e4567-e89b-12d3-a456-426614174000 gone", "id <id> gone"),
        ("2026-02-26T14:30:00.123Z failed", "<time> failed"),
        ("2026-02-26 14:30:00,123 failed", "<time> failed"),
        ("2026-02-26T14:30+01:00 failed", "<time> failed"),
        ("at 14:30:59.5 failed", "at <time> failed"),
        ("3 tests failed in 12.4s", "<n> tests failed in <n>.<n>s"),
        ("\n\n  first\t line \nsecond", "first line"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("defaced facade", "defaced facade"),
        ("1234567 rows", "<n> rows"),
        ("", ""),
        ("x" * 300, "x" * 200),
    ],
)
def test_an_error_is_told_apart_by_what_it_says_and_not_by_where_or_when(said: str, normalised: str) -> None:
    assert normalise_error(said) == normalised
    assert normalise_error(normalised) == normalised


@pytest.mark.req("A4")
def test_two_errors_are_the_same_when_category_and_normalised_line_are() -> None:
    one, other = _error("a.py:1: boom"), _error("a.py:2: boom\nelsewhere")
    assert error_key(one) == error_key(other) == "build_failure: a.py:<line>: boom"
    assert error_key(one) != error_key(_error("a.py:1: boom", FailureCategory.LINT_FAILURE))


@pytest.mark.req("A4")
def test_the_whole_table_of_retries() -> None:
    table = [
        f"{kind.value} after debug {debug}, replan {replan}, total {total}: {'yes' if allowed else 'no'}"
        for kind, debug, replan, total in product(RetryKind, (2, 3), (0, 1), (9, 10))
        for allowed in [may_retry(kind, Retries(debug_in_phase=debug, replan_in_phase=replan, total=total), SETTINGS)]
    ]
    assert table == snapshot(
        [
            "task_retry after debug 2, replan 0, total 9: yes",
            "task_retry after debug 2, replan 0, total 10: no",
            "task_retry after debug 2, replan 1, total 9: yes",
            "task_retry after debug 2, replan 1, total 10: no",
            "task_retry after debug 3, replan 0, total 9: yes",
            "task_retry after debug 3, replan 0, total 10: no",
            "task_retry after debug 3, replan 1, total 9: yes",
            "task_retry after debug 3, replan 1, total 10: no",
            "debug after debug 2, replan 0, total 9: yes",
            "debug after debug 2, replan 0, total 10: no",
            "debug after debug 2, replan 1, total 9: yes",
            "debug after debug 2, replan 1, total 10: no",
            "debug after debug 3, replan 0, total 9: no",
            "debug after debug 3, replan 0, total 10: no",
            "debug after debug 3, replan 1, total 9: no",
            "debug after debug 3, replan 1, total 10: no",
            "replan after debug 2, replan 0, total 9: yes",
            "replan after debug 2, replan 0, total 10: no",
            "replan after debug 2, replan 1, total 9: no",
            "replan after debug 2, replan 1, total 10: no",
            "replan after debug 3, replan 0, total 9: yes",
            "replan after debug 3, replan 0, total 10: no",
            "replan after debug 3, replan 1, total 9: no",
            "replan after debug 3, replan 1, total 10: no",
        ]
    )


@pytest.mark.req("A4")
@pytest.mark.parametrize(
    ("score_tenths", "replans", "total", "degraded"),
    [
        (70, 0, 0, LowScoreMove.NO),
        (100, 1, 10, LowScoreMove.NO),
        (69, 0, 0, LowScoreMove.REPLAN),
        (0, 0, 9, LowScoreMove.REPLAN),
        (69, 1, 1, LowScoreMove.FAIL_PHASE),
        (69, 0, 10, LowScoreMove.FAIL_PHASE),
    ],
)
def test_a_score_below_the_mark_gives_one_replan_and_then_the_phase_fails(
    score_tenths: int, replans: int, total: int, degraded: LowScoreMove
) -> None:
    assert (
        after_low_score(score_tenths, Retries(debug_in_phase=0, replan_in_phase=replans, total=total), SETTINGS)
        is degraded
    )
