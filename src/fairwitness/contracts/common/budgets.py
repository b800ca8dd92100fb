"""Budgets of a run: caps, reservations of running dispatches, and spending.

Money is counted in millionths of the currency unit and time in milliseconds, so that sums are exact.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field, Strict

from fairwitness.contracts.common.base import Contract, Count, Maybe, Positive, Text
from fairwitness.contracts.common.ids import PhaseId, SafeName


class Resource(StrEnum):
    """The resources that a budget counts."""

    TOKENS = "tokens"
    MONEY = "money_micros"
    TIME = "milliseconds"


class BudgetLevel(StrEnum):
    """The scope of a cap, narrowest first."""

    DISPATCH = "dispatch"
    PHASE = "phase"
    RUN = "run"


class Amounts(Contract):
    """An amount of each resource."""

    tokens: Count = 0
    money_micros: Count = 0
    milliseconds: Count = 0


class Caps(Contract):
    """The maximum of each resource; null means unlimited."""

    tokens: Positive | None
    money_micros: Positive | None
    milliseconds: Positive | None


class BudgetCaps(Contract):
    """The caps of a dispatch, of a phase and of the whole run."""

    dispatch: Caps
    phase: Caps
    run: Caps


NO_CAP = Caps(tokens=None, money_micros=None, milliseconds=None)
NO_CAPS = BudgetCaps(dispatch=NO_CAP, phase=NO_CAP, run=NO_CAP)
"""No limits beyond the budget of each role."""


class BudgetTable(Contract):
    """The `[budget]` table: what one run may use; unset values are limited only by each role's own budget."""

    tokens: Maybe[Positive] = None
    dollars: Maybe[Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)]] = None
    minutes: Maybe[Positive] = None
    ask_above_dollars: Annotated[float, Strict(), Field(gt=0, allow_inf_nan=False)] = 10.0
    """At a terminal, a run whose estimate may be higher is confirmed first."""
    ask_above_tokens: Positive = 3_000_000
    """The same for a run whose dollars are unknown."""


class Reservation(Contract):
    """The amount reserved for a dispatch; it counts in full until the dispatch is settled or released."""

    id: SafeName
    phase: Maybe[PhaseId] = None
    asked: Amounts


class Spending(Contract):
    """The amount that a dispatch used."""

    phase: Maybe[PhaseId] = None
    used: Amounts


class Budget(Contract):
    """The budget account of a run."""

    caps: BudgetCaps
    reserved: Mapping[SafeName, Reservation] = Field(default_factory=dict)
    spent: Mapping[SafeName, Spending] = Field(default_factory=dict)


class Reserved(Contract):
    """The dispatch may start; the account includes its reservation."""

    answer: Literal["reserved"] = "reserved"
    budget: Budget


class OverBudget(Contract):
    """The dispatch may not start: too little of this resource is left at this level."""

    answer: Literal["over_budget"] = "over_budget"
    level: BudgetLevel
    what: Resource
    cap: Positive
    used: Count
    asked: Count


class BudgetHalt(Contract):
    """The budget is used up, so the run starts nothing more."""

    reason: Text
    refused: Maybe[OverBudget] = None
    """The refused reservation; None if the call was cut off while it ran."""
