"""Which agents, keys and settings of agents this machine has, what is missing, and how to get it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fairwitness.agents.roles import ROLES
from fairwitness.app.agents_settings import ORDER, agents_settings
from fairwitness.app.health import Finding, Health
from fairwitness.app.models import PERSONS, SELLERS
from fairwitness.app.settings import user_file
from fairwitness.app.status import repository_root
from fairwitness.app.wiring import probe_agent
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe
from fairwitness.contracts.agents.settings import AgentsSettings, ProviderKind
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.errors import FairWitnessError

_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_KEYS = (ProviderKind.ANTHROPIC, ProviderKind.OPENAI, ProviderKind.GOOGLE)


def examine_agents(where: Path, sandbox: SandboxTier) -> tuple[Finding, ...]:
    """Settings, keys, and every agent in the order in which they are chosen."""
    own = user_file()
    file = f"{own} ({'there' if own.exists() else 'not there'})"
    try:
        settings, _ = agents_settings(repository_root(where), ROLES)
        said = Finding("agents: settings", Health.OK, f"your own: {file}")
    except FairWitnessError as error:
        settings = AgentsSettings()
        said = Finding("agents: settings", Health.DEGRADED, error.what, "no agent can be dispatched", error.next_step)
    names = (*ORDER, *(name for name in settings.backend if name not in ORDER))
    with ThreadPoolExecutor(max_workers=4) as pool:  # each may start a program only to hear its version
        probes = tuple(pool.map(lambda name: probe_agent(name, settings), names))
    none = not any(probe.found and not probe.missing for probe in probes)
    return (said, *map(_key, _KEYS), *(_agent(probe, sandbox) for probe in probes), *((_NOBODY,) if none else ()))


_NOBODY = Finding(
    "agents",
    Health.MISSING,
    "none can be used",
    "only `fairwitness verify`, recordings and `fairwitness demo` work",
    "install an agent, or set a key for `api`",
)


def _key(kind: ProviderKind) -> Finding:
    what = f"key: {kind.value}"
    try:
        key = PERSONS.of(kind)
    except FairWitnessError as error:
        return Finding(what, Health.DEGRADED, error.what, "it is not used", error.next_step)
    if key is None:
        variable = SELLERS[kind].variable
        return Finding(what, Health.MISSING, "not found", "no model of this provider", f"set {variable}")
    return Finding(what, Health.OK, f"from {key.source}")


def _agent(probe: Probe, sandbox: SandboxTier) -> Finding:
    what = f"agent: {probe.name}"
    if not probe.found:
        return Finding(what, Health.MISSING, "not found", "", probe.next_step, more=probe.plain())
    found = f"{probe.version or 'version unknown'}, tier {probe.tier.value}{f', {probe.where}' if probe.where else ''}"
    if probe.missing:
        return Finding(
            what,
            Health.DEGRADED,
            f"{found}; lacks {' and '.join(probe.missing)}",
            "",
            probe.next_step,
            more=probe.plain(),
        )
    if probe.tier in _WEAK and sandbox is not SandboxTier.NAMESPACES:
        costs = f"it acts by itself, and the sandbox {sandbox.value} cannot hold it: it is refused"
        return Finding(what, Health.DEGRADED, found, costs, "mend the sandbox", more=probe.plain())
    return Finding(what, Health.OK, found, more=probe.plain())
