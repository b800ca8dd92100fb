"""What a forge run was begun with, and what a person may set about such runs in `fairwitness.toml`."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Count, Maybe, Positive, Prose, Text
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, Sha256, Slug
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.documents import ForgeTask
from fairwitness.contracts.forge.returns import SpecFile
from fairwitness.contracts.graph.orders import DEFAULT_ATTEMPTS, DEFAULT_CAP, GraphOptions


class Decider(StrEnum):
    """Who answers change requests."""

    CAPTAIN = "captain"
    PERSON = "person"


class ForgeTable(Contract):
    """`[forge]`."""

    cap: Positive = DEFAULT_CAP
    """How many attempts work at a time."""
    max_attempts: Annotated[Positive, Field(le=99)] = DEFAULT_ATTEMPTS
    """How often a node is tried."""
    interview_rounds: Count = 3
    """How often the captain may ask before he has to plan with what he knows."""
    plan_rounds: Positive = 3
    """How many plans a person may send back."""
    change_requests: Decider = Decider.CAPTAIN
    helpers: Count = 8
    """How many helpers one dispatch may start."""
    depth: Count = 3
    """How deep helpers may start helpers of their own."""


class ForgeSettings(Contract):
    """The tables of `fairwitness.toml` that a forge run reads."""

    forge: ForgeTable = ForgeTable()
    budget: BudgetTable = BudgetTable()


class ForgeOrder(Contract):
    """One forge run, as a person asked for it and as the machine stood then."""

    request: Prose
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    options: GraphOptions
    limits: ForgeTable = ForgeTable()
    budget: BudgetTable = BudgetTable()
    verify: dict[str, Any]
    """The person's settings of the checks."""
    settings_hash: Sha256
    agents: Maybe[Text] = None
    """The agent that was asked for on the command line; None for what each role's settings say."""
    cassettes: Maybe[Text] = None
    started_by: Text


class ForgePlan(Contract):
    """A plan as it is reviewed and sealed: reference documents, tasks, and the graph that orders them."""

    specs: tuple[SpecFile, ...]
    tasks: tuple[ForgeTask, ...]
    dag: Dag
    assumptions: tuple[Text, ...] = ()
    questions: tuple[Text, ...] = ()
    """What the captain would still like to know."""
