"""A role as data: what an agent is for, what it must return, how long it may take and what it may cost.

Its tools are in `contracts.common.tools`; its prompt is one Markdown file.
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
    """Which kind of model a role wants; the settings say which model that is."""

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
    """One sentence, for lists and for a person who chooses a role."""
    prompt: SafeName
    """The Markdown file of its prompt: `agents/prompts/<prompt>.md`."""
    answer: Maybe[Text] = None
    """The name of the contract it returns; None only for a role that is never dispatched."""
    statuses: tuple[CompletionStatus, ...] = ()
    """What its completion may say; empty where the answer has no completion."""
    instances: Texts = ()
    """The forms in which it is called (three perspectives, four foci); empty if there is one."""
    parameters: Annotated[tuple[SafeName, ...], Field()] = ()
    """Values that a brief must give it by name."""
    variants: Maybe[PromptVariants] = None
    """Where the text of each of its forms is."""
    documents: dict[Text, Text] = Field(default_factory=dict)
    """Documents that it writes beside its answer: the glob of its tool policy, and the contract of each document."""
    timeout_s: Seconds
    budget: Amounts
    """What one dispatch may use up; reserved before it starts."""
    turns: Positive
    """Calls of the model in one dispatch, at most."""
    model: ModelClass
    prompt_tokens: Positive
    """The most tokens that its prompt may take up, with the schema and without the inputs."""
    is_dispatched: Flag = True
    """False for the orchestrator, which is this program and no agent."""
