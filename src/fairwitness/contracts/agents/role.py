"""A role of an agent: its purpose, its answer contract, its time limit and its budget.

The tools of a role are in `contracts.common.tools`; its prompt is one Markdown file.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.common.base import Contract, Flag, Maybe, OneLine, Positive, Text, Texts
from fairwitness.contracts.common.budgets import Amounts
from fairwitness.contracts.common.ids import SafeName
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CompletionStatus, Workflow


class ModelClass(StrEnum):
    """The class of model that a role needs; the settings map each class to a model."""

    STRONG = "strong"
    FAST = "fast"


class PromptVariants(Contract):
    """Text that only one form of a role gets: `agents/prompts/<folder>/<value of the parameter>.md`."""

    folder: SafeName
    parameter: SafeName


class RoleSpec(Contract):
    """One role: `agents/roles/<role>.toml`."""

    role: Role
    workflow: Workflow
    title: OneLine
    purpose: OneLine
    """One sentence for lists and for people who choose a role."""
    prompt: SafeName
    """The Markdown file of its prompt: `agents/prompts/<prompt>.md`."""
    answer: Maybe[Text] = None
    """The name of the contract it returns; None only for a role that is never dispatched."""
    statuses: tuple[CompletionStatus, ...] = ()
    """The statuses that its completion may have; empty if the answer has no completion."""
    instances: Texts = ()
    """The forms in which it is called (three perspectives, four foci); empty if there is one."""
    parameters: Annotated[tuple[SafeName, ...], Field()] = ()
    """Values that a brief must give it by name."""
    variants: Maybe[PromptVariants] = None
    """Where the text of each of its forms is."""
    documents: dict[Text, Text] = Field(default_factory=dict)
    """Documents that it writes beside its answer: the glob of its tool policy, and the contract of each document."""
    unasked: Texts = ()
    """Optional fields of its answer that it is not asked for: this program knows them, or does not need them."""
    timeout_s: Seconds
    budget: Amounts
    """The budget of one dispatch, reserved before it starts."""
    turns: Positive
    """The maximum number of model calls in one dispatch."""
    model: ModelClass
    prompt_tokens: Positive
    """The maximum size of its prompt in tokens, including the schema and excluding the inputs."""
    is_dispatched: Flag = True
    """False for the orchestrator, which is this program and no agent."""
