"""Which agent plays a role in a repository: settings, probes and the choice between them."""

from functools import cache
from pathlib import Path

from fairwitness.agents.data_files import own_prices
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.backends import probe_agent
from fairwitness.app.repository import repository_root
from fairwitness.app.settings.agents import AgentsReading, agents_settings, choose
from fairwitness.contracts.agents.dispatch import Probe
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.agents.settings import AgentsSettings, ModelChoice
from fairwitness.errors import UsageError


def settings_of(where: Path) -> AgentsReading:
    """Return the agent settings for a folder, which need not be a repository; `UsageError` if a price is wrong."""
    own_prices()
    return agents_settings(repository_root(where), ROLES)


class Prober:
    """Probes agents, each at most once."""

    def __init__(self, settings: AgentsSettings) -> None:
        self._ask = cache(lambda name: probe_agent(name, settings))

    def __call__(self, name: str) -> Probe:
        return self._ask(name)


def chosen(spec: RoleSpec, instance: str, settings: AgentsSettings, override: str | None, probe: Prober) -> ModelChoice:
    """Return the agent and model for a role instance."""
    if spec.instances and instance not in spec.instances:
        listed = ", ".join(spec.instances)
        raise UsageError(f"{spec.role.value} has no instance {instance!r}", next_step=f"choose one of {listed}")
    return choose(spec, instance, settings, override, probe)


def instance_of(spec: RoleSpec, wanted: str | None) -> str:
    """Return the wanted instance of a role, or its first."""
    return wanted or (spec.instances[0] if spec.instances else spec.role.value)
