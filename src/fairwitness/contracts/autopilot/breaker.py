"""The circuit breaker of a run: its settings and its state."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Count, Positive, Text, Timestamp


class BreakerPosition(StrEnum):
    """The position of the breaker: closed allows work, open stops it, half-open allows one attempt."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class BreakerSettings(Contract):
    """The limits of a run; each is positive, so that no limit can be switched off with a zero."""

    no_progress_threshold: Positive = 3
    same_error_threshold: Positive = 5
    output_degradation_pct: Annotated[int, Strict(), Field(ge=1, le=100)] = 70
    max_debug_attempts_per_phase: Positive = 3
    max_replan_attempts_per_phase: Positive = 1
    max_total_retries_per_run: Positive = 10
    cooldown_minutes: Positive = 5
    cost_cap_tokens_per_phase: Positive = 500_000
    cost_cap_tokens_total: Positive = 5_000_000
    wall_clock_timeout_minutes_per_phase: Positive = 120
    wall_clock_timeout_minutes_total: Positive = 1440


class BreakerConfig(Contract):
    """The document that holds the breaker's settings."""

    circuit_breaker_config: BreakerSettings


class BreakerState(Contract):
    """The breaker's state in the state file."""

    state: BreakerPosition
    consecutive_no_progress: Count
    consecutive_same_error: Count
    last_error: Text | None
    cooldown_until: Timestamp | None
