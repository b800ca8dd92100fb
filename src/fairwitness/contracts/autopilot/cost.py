"""The constants from which the cost of a phase is estimated."""

from typing import Annotated

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Positive


class TaskTokens(Contract):
    """Tokens of one task, by its complexity."""

    simple: Positive = 15_000
    medium: Positive = 30_000
    complex: Positive = 60_000


class DefaultEstimates(Contract):
    """Tokens of a phase that has no plan yet, by its type."""

    protocol: Positive = 150_000
    ui: Positive = 250_000
    data: Positive = 100_000
    mixed: Positive = 200_000


class CostEstimation(Contract):
    """How an estimate is put together."""

    task_tokens: TaskTokens = TaskTokens()
    pipeline_overhead: Positive = 50_000
    buffer_multiplier: Annotated[float, Strict(), Field(ge=1, allow_inf_nan=False)] = 1.20
    warning_threshold_pct: Annotated[int, Strict(), Field(ge=1, le=100)] = 80  # of the cap per phase
    default_estimates: DefaultEstimates = DefaultEstimates()


class CostConstants(Contract):
    """The constants as a document."""

    cost_estimation: CostEstimation
