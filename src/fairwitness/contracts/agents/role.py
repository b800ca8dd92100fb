"""A role as data: what an agent is for, what it must return, how long it has and what it may cost.

Which tools it has stands in `contracts.common.tools`; its words stand in one Markdown file.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Flag, Maybe, OneLine, Positive, Text, Texts
from fairwitness.contracts.common.budgets import Amounts
from fairwitness.contracts.common.ids import SafeName
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Status, Workflow


class ModelClass(StrEnum):
    """Which kind of model a role wants; the settings say which model that is."""

    STRONG = "strong"
    FAST = "fast"


class RoleSpec(Contract):
    """One role."""

    role: Role
    workflow: Workflow
    title: OneLine
    purpose: OneLine
    """One sentence, for lists and for whoever chooses a role."""
    prompt: SafeName
    """The Markdown file of its words: `agents/prompts/<prompt>.md`."""
    answer: Maybe[Text] = None
    """The name of the contract it returns; None only for a role that is never dispatched."""
    statuses: tuple[Status, ...] = ()
    """What its completion may say; empty where the answer has no completion."""
    instances: Texts = ()
    """The forms in which it is called (three perspectives, four foci); empty if there is one."""
    parameters: Annotated[tuple[SafeName, ...], Field()] = ()
    """Values that a brief must give it by name."""
    timeout_s: Seconds
    budget: Amounts
    """What one dispatch may use up; reserved before it starts."""
    turns: Positive
    """Calls of the model in one dispatch, at most."""
    model: ModelClass
    prompt_tokens: Positive
    """The most that its words may take up, the schema included and the inputs not."""
    is_dispatched: Flag = True
    """False for the orchestrator, which is this program and no agent."""
