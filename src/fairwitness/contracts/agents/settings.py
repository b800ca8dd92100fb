"""The `[agents]` table of fairwitness.toml: the agent and model of each role, and where models are served.

The table never holds a key; a backend names the environment variable or the command that provides it.
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
"""The name of an environment variable; upper case only, so that a pasted key is refused."""


class ProviderKind(StrEnum):
    """The provider of a model; it decides the API dialect and the default address."""

    ANTHROPIC = "anthropic"
    OPENAI = "openai"
    """The chat completions API, which most self-hosted servers also offer."""
    OPENAI_RESPONSES = "openai-responses"
    GOOGLE = "google"


class BackendSettings(Contract):
    """Where the models of an agent are served; the name is that of a profile or of a new backend."""

    provider: ProviderKind
    base_url: Maybe[OneLine] = None
    """None for the provider's own address."""
    model: Maybe[OneLine] = None
    key_env: Maybe[Variable] = None
    key_cmd: Maybe[Annotated[tuple[OneLine, ...], Field(min_length=1)]] = None
    """A command that prints the key; allowed only in the user's own configuration."""


class AgentChoice(Contract):
    """An agent, a model, or both; what is missing is taken from the next higher level."""

    agent: Maybe[AgentName] = None
    model: Maybe[OneLine] = None


class RoleChoice(AgentChoice):
    """The agent and model of a role, with exceptions for some of its instances."""

    instances: dict[str, AgentChoice] = Field(default_factory=dict)


class AgentsSettings(Contract):
    """The `[agents]` table."""

    default: Maybe[AgentName] = None
    models: dict[ModelClass, OneLine] = Field(default_factory=dict)
    """The default agent's model for each model class."""
    roles: dict[Role, RoleChoice] = Field(default_factory=dict)
    backend: dict[AgentName, BackendSettings] = Field(default_factory=dict)


class ModelChoice(Contract):
    """The agent and model chosen for a role."""

    agent: AgentName
    model: Maybe[OneLine] = None
    """None leaves the choice to the agent or its backend."""
