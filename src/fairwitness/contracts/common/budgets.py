"""What a run may spend, what is promised to dispatches that are under way, and what was spent.

Money is counted in millionths of the currency's unit and time in milliseconds, so that sums are exact.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Count, Maybe, Positive
from fairwitness.contracts.common.ids import PhaseId, SafeName


class Resource(StrEnum):
    """What is counted."""

    TOKENS = "tokens"
    MONEY = "money_micros"
    TIME = "milliseconds"


class BudgetLevel(StrEnum):
    """For what a cap holds, narrowest first."""

    DISPATCH = "dispatch"
    PHASE = "phase"
    RUN = "run"


class Amounts(Contract):
    """So much of each resource."""

    tokens: Count = 0
    money_micros: Count = 0
    milliseconds: Count = 0


class Caps(Contract):
    """The most of each resource; `None` is the explicit word for "not limited"."""

    tokens: Positive | None
    money_micros: Positive | None
    milliseconds: Positive | None


class BudgetCaps(Contract):
    """The caps of one dispatch, of one phase, and of the whole run."""

    dispatch: Caps
    phase: Caps
    run: Caps


class BudgetTable(Contract):
    """`[budget]`: what one run may use; what is not set is not limited beyond each role's own share."""

    tokens: Maybe[Positive] = None
    dollars: Maybe[Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = None
    minutes: Maybe[Positive] = None


class Reservation(Contract):
    """What a dispatch may use up; it counts in full until the dispatch is settled or released."""

    id: SafeName
    phase: Maybe[PhaseId] = None
    asked: Amounts


class Spending(Contract):
    """What a dispatch did use up."""

    phase: Maybe[PhaseId] = None
    used: Amounts


class Budget(Contract):
    """The whole account of a run."""

    caps: BudgetCaps
    reserved: Mapping[SafeName, Reservation] = Field(default_factory=dict)
    spent: Mapping[SafeName, Spending] = Field(default_factory=dict)


class Reserved(Contract):
    """The dispatch may start; the account now counts what it asked for."""

    answer: Literal["reserved"] = "reserved"
    budget: Budget


class OverBudget(Contract):
    """The dispatch may not start: at this level there is too little left of this resource."""

    answer: Literal["over_budget"] = "over_budget"
    level: BudgetLevel
    what: Resource
    cap: Positive
    used: Count
    asked: Count
