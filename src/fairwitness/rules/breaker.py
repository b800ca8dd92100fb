"""The circuit breaker of an autopilot run: when the run pauses, when it fails, and when it may try again.

A step makes progress with a new commit, a newly passing criterion or a higher score. Steps that cannot make progress
(research, planning, judging) do not count against the run as long as they succeed.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Literal

from fairwitness.contracts.autopilot.breaker import BreakerPosition, BreakerSettings, BreakerState
from fairwitness.contracts.autopilot.facts import Retries, RetryKind, RunUsage, StepEffect, StepFailureCause
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.base import Contract, Count, instant

MEASURED: Mapping[StepName, bool] = {
    StepName.PREFLIGHT: False,
    StepName.TRIAGE: False,
    StepName.RESEARCH: False,
    StepName.PLAN: False,
    StepName.PLAN_CHECK: False,
    StepName.EXECUTE: True,
    StepName.VERIFY: True,
    StepName.JUDGE: False,
    StepName.RATE: True,
    StepName.DEBUG: True,
}
"""Which steps are expected to make progress."""

CLOSED = BreakerState(
    state=BreakerPosition.CLOSED,
    consecutive_no_progress=0,
    consecutive_same_error=0,
    last_error=None,
    cooldown_until=None,
)
"""The breaker of a new run."""


class GoOn(Contract):
    """The run may continue within the breaker's new position."""

    answer: Literal["go_on"] = "go_on"
    breaker: BreakerState


class Pause(Contract):
    """The breaker opened: the run pauses until it is resumed after the cooldown."""

    answer: Literal["pause"] = "pause"
    breaker: BreakerState
    setting: str
    value: Count


class FailRun(Contract):
    """A cap of the whole run was reached: the run fails."""

    answer: Literal["fail_run"] = "fail_run"
    breaker: BreakerState
    setting: str
    value: Count


class LowScoreMove(StrEnum):
    """What a low score requires in addition to the gate."""

    NO = "no"
    REPLAN = "replan"
    FAIL_PHASE = "fail_phase"


_NOISE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\x1b\[[0-9;]*[A-Za-z]"), ""),
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d\d:\d\d:\d\d([.,]\d+)?\b"), "<time>"),
    (re.compile(r"\b0[xX][0-9A-Fa-f]+\b"), "<id>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}\b"), "<id>"),
    (re.compile(r"(?<=\S):\d+(:\d+)?"), ":<line>"),
    (re.compile(r"\bline \d+"), "line <line>"),
    (re.compile(r"\d+"), "<n>"),
    (re.compile(r"\s+"), " "),
)
_LONGEST = 200


def normalise_error(text: str) -> str:
    """Return the first line that is not blank, without parts that differ from one try to the next.

    >>> normalise_error("src/a.py:14: error in 0x7f3a at 2026-02-26T14:30:00Z after 35 ms")
    'src/a.py:<line>: error in <id> at <time> after <n> ms'
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    for noise, instead in _NOISE:
        first = noise.sub(instead, first)
    return first.strip()[:_LONGEST]


def error_key(error: StepFailureCause) -> str:
    """Return the key by which equal errors are recognized: category and normalized first line."""
    return f"{error.category.value}: {normalise_error(error.first_line)}"


def made_progress(outcome: StepEffect) -> bool:
    """Return True if the step left a new commit, a newly passing criterion or a higher score."""
    return outcome.new_commits > 0 or outcome.newly_passing > 0 or outcome.score_gained > 0


def count_step(breaker: BreakerState, outcome: StepEffect) -> BreakerState:
    """Return the breaker with its counters after a step; its position does not change.

    Only progress resets the count of equal errors: a step in between that merely succeeds does not.
    """
    progress = made_progress(outcome)
    stalled = not progress and (MEASURED[outcome.step] or outcome.error is not None)
    no_progress = 0 if progress else breaker.consecutive_no_progress + stalled
    same_error, last_error = breaker.consecutive_same_error, breaker.last_error
    if outcome.error is not None:
        key = error_key(outcome.error)
        same_error = same_error + 1 if key == last_error else 1
        last_error = key
    elif progress:
        same_error, last_error = 0, None
    return breaker.model_copy(
        update={
            "consecutive_no_progress": no_progress,
            "consecutive_same_error": same_error,
            "last_error": last_error,
        }
    )


def after_step(
    breaker: BreakerState, outcome: StepEffect, usage: RunUsage, settings: BreakerSettings, *, now: str
) -> GoOn | Pause | FailRun:
    """Return what the end of a step means for the run. A cap of the whole run takes precedence over everything else
    that opens the breaker.
    """
    counted = count_step(breaker, outcome)
    opened = counted.model_copy(update={"state": BreakerPosition.OPEN, "cooldown_until": cools_until(now, settings)})
    fatal = _reached(
        settings,
        (
            ("cost_cap_tokens_total", usage.total_tokens),
            ("wall_clock_timeout_minutes_total", usage.total_minutes),
        ),
    )
    if fatal is not None:
        return FailRun(breaker=opened, setting=fatal[0], value=fatal[1])
    tripped = _reached(
        settings,
        (
            ("cost_cap_tokens_per_phase", usage.phase_tokens),
            ("wall_clock_timeout_minutes_per_phase", usage.phase_minutes),
            ("max_total_retries_per_run", usage.total_retries),
            ("same_error_threshold", counted.consecutive_same_error),
            ("no_progress_threshold", counted.consecutive_no_progress),
        ),
    )
    if tripped is not None:
        return Pause(breaker=opened, setting=tripped[0], value=tripped[1])
    if breaker.state is BreakerPosition.HALF_OPEN:
        return _after_probe(counted, opened, outcome)
    return GoOn(breaker=counted)  # a step that was running when the breaker opened does not close it when it ends


def _after_probe(counted: BreakerState, opened: BreakerState, outcome: StepEffect) -> GoOn | Pause:
    if outcome.error is not None:
        return Pause(breaker=opened, setting="same_error_threshold", value=counted.consecutive_same_error)
    if made_progress(outcome):
        return GoOn(breaker=CLOSED)
    if MEASURED[outcome.step]:
        return Pause(breaker=opened, setting="no_progress_threshold", value=counted.consecutive_no_progress)
    return GoOn(breaker=counted)  # a step that cannot make progress is no probe: the next step is


def _reached(settings: BreakerSettings, limits: tuple[tuple[str, int], ...]) -> tuple[str, int] | None:
    for setting, value in limits:
        limit: int = getattr(settings, setting)
        if value >= limit:
            return setting, value
    return None


def cools_until(now: str, settings: BreakerSettings) -> str:
    """Return the time at which a breaker that opens now may be tried again."""
    return (instant(now) + timedelta(minutes=settings.cooldown_minutes)).isoformat()


def after_resume(breaker: BreakerState, *, now: str) -> BreakerState:
    """Return the breaker of a resumed run: half-open after the cooldown, open until then."""
    if breaker.state is not BreakerPosition.OPEN:
        return breaker
    if breaker.cooldown_until is not None and instant(now) < instant(breaker.cooldown_until):
        return breaker
    return breaker.model_copy(
        update={
            "state": BreakerPosition.HALF_OPEN,
            "consecutive_no_progress": 0,
            "consecutive_same_error": 0,
            "cooldown_until": None,
        }
    )


def may_start(breaker: BreakerState, *, running: int) -> bool:
    """Return True if one more step may start while `running` steps are running: an open breaker starts none, a
    half-open one a single probe.

    >>> half = CLOSED.model_copy(update={"state": BreakerPosition.HALF_OPEN})
    >>> may_start(half, running=0), may_start(half, running=1)
    (True, False)
    """
    if breaker.state is BreakerPosition.CLOSED:
        return True
    return breaker.state is BreakerPosition.HALF_OPEN and running == 0


def may_retry(kind: RetryKind, retries: Retries, settings: BreakerSettings) -> bool:
    """Return True if one more retry of this kind is within the limits of the phase and of the run."""
    if retries.total >= settings.max_total_retries_per_run:
        return False
    within_phase: Mapping[RetryKind, bool] = {
        RetryKind.TASK: True,
        RetryKind.DEBUG: retries.debug_in_phase < settings.max_debug_attempts_per_phase,
        RetryKind.REPLAN: retries.replan_in_phase < settings.max_replan_attempts_per_phase,
    }
    return within_phase[kind]


def after_low_score(score_tenths: int, retries: Retries, settings: BreakerSettings) -> LowScoreMove:
    """Return a replan for a score below the mark as long as one is left; after that the phase fails.

    >>> after_low_score(69, Retries(debug_in_phase=0, replan_in_phase=1, total=1), BreakerSettings()).value
    'fail_phase'
    """
    if score_tenths >= settings.output_degradation_pct:  # a score of 7.0 is 70 tenths, and 70 percent of ten
        return LowScoreMove.NO
    return LowScoreMove.REPLAN if may_retry(RetryKind.REPLAN, retries, settings) else LowScoreMove.FAIL_PHASE
