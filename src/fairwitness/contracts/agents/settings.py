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

GatewaySeconds = Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)]


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


class GatewayLimits(Contract):
    """The `[agents.gateway]` table: how long the gateway waits for an agent and for a provider, and for how many
    connections."""

    request_s: GatewaySeconds = 60.0
    """For a whole request, from its first byte or the opening of the connection on."""
    unread_s: GatewaySeconds = 60.0
    """For an agent that reads nothing of its answer."""
    idle_s: GatewaySeconds = 60.0
    """For another request on the same connection."""
    connections: Annotated[int, Field(ge=1, le=1000)] = 100
    """Connections at the same time."""
    provider_wait_s: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 900.0
    """For a provider that refuses for a while or does not answer; then the run is interrupted."""


Dollars = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class ModelPrice(Contract):
    """The price of a model in dollars for a million tokens; 0 for one that costs nothing."""

    input: Dollars
    output: Dollars
    cached: Maybe[Dollars] = None
    """For input that is read from a cache; None if it costs as much as other input."""


class PriceFile(ModelPrice):
    """A person's file about a price: `prices/<any>.toml` of the user configuration."""

    model: OneLine


class AgentsSettings(Contract):
    """The `[agents]` table."""

    default: Maybe[AgentName] = None
    models: dict[ModelClass, OneLine] = Field(default_factory=dict)
    """The default agent's model for each model class."""
    roles: dict[Role, RoleChoice] = Field(default_factory=dict)
    backend: dict[AgentName, BackendSettings] = Field(default_factory=dict)
    gateway: GatewayLimits = GatewayLimits()
    prices: dict[OneLine, ModelPrice] = Field(default_factory=dict)
    """Prices of models by name; they come before the built-in list."""


class ModelChoice(Contract):
    """The agent and model chosen for a role."""

    agent: AgentName
    model: Maybe[OneLine] = None
    """None leaves the choice to the agent or its backend."""
