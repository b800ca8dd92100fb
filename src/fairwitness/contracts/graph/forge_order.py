"""The order of a forge run, and the settings of forge in `fairwitness.toml`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.base import Contract, Count, Positive, Prose, Text
from fairwitness.contracts.common.budgets import BudgetTable
from fairwitness.contracts.common.ids import Commit, Slug
from fairwitness.contracts.common.policy import Policy, RetryPolicy
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.documents import ForgeTask
from fairwitness.contracts.forge.returns import SpecFile
from fairwitness.contracts.graph.orders import DEFAULT_ATTEMPTS, DEFAULT_CAP, GraphOptions
from fairwitness.contracts.verify.run_settings import RunSettings


class Decider(StrEnum):
    """Who answers change requests."""

    CAPTAIN = "captain"
    PERSON = "person"


class ForgeTable(Contract):
    """The `[forge]` table of the settings."""

    cap: Positive = DEFAULT_CAP
    """The maximum number of concurrent attempts."""
    max_attempts: Annotated[Positive, Field(le=99)] = DEFAULT_ATTEMPTS
    """The maximum number of attempts of a node."""
    interview_rounds: Count = 3
    """How many rounds of questions the captain may ask before planning."""
    plan_rounds: Positive = 3
    """How many times a person may return a plan."""
    change_requests: Decider = Decider.CAPTAIN
    """Who answers change requests; if the settings do not say, a person does in a run that asks persons."""
    helpers: Count = 8
    """The maximum number of helpers of one dispatch."""
    depth: Count = 3
    """The maximum nesting depth of helpers."""


class ForgeSettings(Contract):
    """The settings of a forge run in `fairwitness.toml`."""

    forge: ForgeTable = ForgeTable()
    policy: Policy = Policy()
    budget: BudgetTable = BudgetTable()


class ForgeOrder(RunSettings):
    """The order of a forge run: the request, and the repository and settings when it was given."""

    request: Prose
    slug: Slug
    mode: ApprovalMode
    base_commit: Commit
    options: GraphOptions
    limits: ForgeTable = ForgeTable()
    retry: RetryPolicy = RetryPolicy()
    budget: BudgetTable = BudgetTable()
    started_by: Text


class ForgePlan(Contract):
    """A plan for review and approval: reference documents, tasks, and the graph that orders them."""

    specs: tuple[SpecFile, ...]
    tasks: tuple[ForgeTask, ...]
    dag: Dag
    assumptions: tuple[Text, ...] = ()
    questions: tuple[Text, ...] = ()
    """Open questions of the captain."""
