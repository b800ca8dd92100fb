"""The `[agents]` table of fairwitness.toml: which agent plays which role, with which model, and where models are.

No key ever stands here; a backend may name the environment variable or the command that has it.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from fairwitness.contracts.agents.role import ModelClass
from fairwitness.contracts.common.base import Contract, Maybe, OneLine
from fairwitness.contracts.common.ids import SafeName
from fairwitness.contracts.common.tools import Role

AgentName = SafeName
"""A profile, `api`, `cassette`, or a backend of the settings."""
Variable = Annotated[str, Field(pattern=r"^[A-Z_][A-Z0-9_]{0,127}$")]
"""The name of an environment variable, in the capitals that no key is written in."""


class ProviderKind(StrEnum):
    """How a model is spoken to; where nothing else is said, also where it is."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """Chat completions: also what most servers of one's own speak."""
    OPENAI_RESPONSES = "openai-responses"
    GOOGLE = "google"


class BackendSettings(Contract):
    """Where the models of an agent are: of the profile of that name, or else of a backend that is called so."""

    provider: ProviderKind
    base_url: Maybe[OneLine] = None
    """None where the provider's own is meant."""
    model: Maybe[OneLine] = None
    key_env: Maybe[Variable] = None
    key_cmd: Maybe[Annotated[tuple[OneLine, ...], Field(min_length=1)]] = None
    """A command that prints the key; only in the person's own configuration."""


class AgentChoice(Contract):
    """An agent, a model, or both; what is not said is looked for one level up."""

    agent: Maybe[AgentName] = None
    model: Maybe[OneLine] = None


class RoleChoice(AgentChoice):
    """What a role is played by, and some of its instances by another."""

    instances: dict[str, AgentChoice] = Field(default_factory=dict)


class AgentsSettings(Contract):
    """The whole table."""

    default: Maybe[AgentName] = None
    models: dict[ModelClass, OneLine] = Field(default_factory=dict)
    """Models of the default agent, by what a role wants of one."""
    roles: dict[Role, RoleChoice] = Field(default_factory=dict)
    backend: dict[AgentName, BackendSettings] = Field(default_factory=dict)


class ModelChoice(Contract):
    """Who plays a role."""

    agent: AgentName
    model: Maybe[OneLine] = None
    """None leaves it to the agent, or to its backend."""
