"""Checks of this machine: what is missing, the effect, and the command that fixes it."""

import platform
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.backends import probe_agent
from fairwitness.app.assembly.models import PERSONS, SELLERS
from fairwitness.app.repository import repository_root
from fairwitness.app.settings.agents import ORDER, agents_settings
from fairwitness.app.settings.review import review_settings
from fairwitness.app.settings.trust import listed
from fairwitness.app.settings.verify import user_file
from fairwitness.contracts.agents.dispatch import EnforcementTier, Probe
from fairwitness.contracts.agents.settings import AgentsSettings, ProviderKind
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Features
from fairwitness.errors import FairWitnessError


class Health(StrEnum):
    """The state of a requirement."""

    OK = "ok"
    DEGRADED = "degraded"
    MISSING = "missing"
    BROKEN = "broken"
    """No evidence can be produced without it."""


@dataclass(frozen=True, slots=True)
class MachineFinding:
    """The result of one check."""

    what: str
    health: Health
    found: str
    costs: str = ""
    mend: str = ""
    more: dict[str, Any] = field(default_factory=dict)
    """Further data for programs."""


_WEAK = frozenset({EnforcementTier.C, EnforcementTier.D})
_KEYS = (ProviderKind.ANTHROPIC, ProviderKind.OPENAI, ProviderKind.GOOGLE)


def examine_agents(where: Path, sandbox: SandboxTier) -> tuple[MachineFinding, ...]:
    """Check agent settings, keys, and every agent in the order of choice."""
    own = user_file()
    file = f"{own}{'' if own.exists() else ' (not created yet)'}"
    try:
        root = repository_root(where)
        settings = agents_settings(root, ROLES).settings
        said = _settings_finding(root, file)
    except FairWitnessError as error:
        settings = AgentsSettings()
        said = MachineFinding(
            "agents: settings", Health.DEGRADED, error.what, "no agent can be dispatched", error.next_step
        )
    names = (*ORDER, *(name for name in settings.backend if name not in ORDER))
    with ThreadPoolExecutor(max_workers=4) as pool:  # each may start a program to read its version
        probes = tuple(pool.map(lambda name: probe_agent(name, settings), names))
    none = not any(probe.found and not probe.missing for probe in probes)
    return (said, *map(_key, _KEYS), *(_agent(probe, sandbox) for probe in probes), *((_NOBODY,) if none else ()))


def _settings_finding(root: Path, file: str) -> MachineFinding:
    """Say which settings of the repository are not in force."""
    review = review_settings(root)
    if review.is_trusted or review.file is None:
        return MachineFinding("agents: settings", Health.OK, file)
    costs = f"not in force until you trust {review.file.place}: {listed(review.asking)}"
    return MachineFinding("agents: settings", Health.DEGRADED, file, costs, review.file.command)


_NOBODY = MachineFinding(
    "agents",
    Health.MISSING,
    "none can be used",
    "only `fairwitness verify`, recordings and `fairwitness demo` work",
    "install an agent, or set a key for `api`",
)


def _key(kind: ProviderKind) -> MachineFinding:
    what = f"key: {kind.value}"
    try:
        key = PERSONS.of(kind)
    except FairWitnessError as error:
        return MachineFinding(what, Health.DEGRADED, error.what, "it is not used", error.next_step)
    if key is None:
        variable = SELLERS[kind].variable
        return MachineFinding(what, Health.MISSING, "not found", "no model of this provider", f"set {variable}")
    return MachineFinding(what, Health.OK, f"from {key.source}")


def _agent(probe: Probe, sandbox: SandboxTier) -> MachineFinding:
    what = f"agent: {probe.name}"
    if not probe.found:
        return MachineFinding(what, Health.MISSING, "not found", "", probe.next_step, more=probe.plain())
    found = f"{probe.version or 'version unknown'}, tier {probe.tier.value}{f', {probe.where}' if probe.where else ''}"
    if probe.missing:
        return MachineFinding(
            what,
            Health.DEGRADED,
            f"{found}; lacks {' and '.join(probe.missing)}",
            "",
            probe.next_step,
            more=probe.plain(),
        )
    if probe.tier in _WEAK and sandbox is not SandboxTier.NAMESPACES:
        costs = f"it acts by itself, and the sandbox {sandbox.value} cannot hold it: it is refused"
        return MachineFinding(what, Health.DEGRADED, found, costs, "fix the sandbox", more=probe.plain())
    return MachineFinding(what, Health.OK, found, more=probe.plain())


GIT_NEEDED = (2, 38)
_TOOLS: tuple[tuple[str, str], ...] = (
    ("python3", "Python projects"),
    ("uv", "fast Python environments"),
    ("node", "JavaScript and TypeScript projects"),
    ("npm", "dependencies of Node projects"),
    ("cargo", "Rust projects"),
    ("go", "Go projects"),
    ("mvn", "Maven projects"),
    ("make", "projects with a Makefile"),
    ("cmake", "C and C++ projects with CMake"),
    ("cc", "C projects"),
)


TOOLS = frozenset(name for name, _ in _TOOLS)


def examine(where: Path) -> tuple[MachineFinding, ...]:
    """Check everything that a run needs."""
    from fairwitness.sandbox.probe import probe

    features = probe()
    tools = (_tool(name, used_for) for name, used_for in _TOOLS)
    return (_git(), *_sandbox(features), _state(where), *tools, *examine_agents(where, features.tier))


def is_fit(findings: tuple[MachineFinding, ...]) -> bool:
    """Return whether evidence can be produced on this machine."""
    return not any(finding.health is Health.BROKEN for finding in findings)


def _git() -> MachineFinding:
    path = shutil.which("git")
    mend = "install git 2.38 or newer (apt-get install git)"
    if path is None:
        return MachineFinding("git", Health.BROKEN, "not found", "nothing can be verified", mend)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < GIT_NEEDED:
        return MachineFinding("git", Health.BROKEN, said or "no version", "merges cannot be tried", mend)
    return MachineFinding("git", Health.OK, said.removeprefix("git version "))


def _sandbox(features: Features) -> list[MachineFinding]:
    install = "apt-get install bubblewrap"
    if features.tier is SandboxTier.NONE:
        how = install if platform.system() == "Linux" else "run Fair Witness in a Linux container or virtual machine"
        return [MachineFinding("sandbox", Health.BROKEN, "none", "nothing that is run counts as evidence", how)]
    missing_ns = features.tier is not SandboxTier.NAMESPACES
    found = f"tier {features.tier.value} (works here: {', '.join(tier.value for tier in features.tiers)})"
    first = MachineFinding(
        "sandbox",
        Health.DEGRADED if missing_ns else Health.OK,
        found,
        "weaker isolation; no loopback network for tests" if missing_ns else "",
        install if missing_ns else "",
    )
    noted = [MachineFinding(f"sandbox: {one.code}", Health.DEGRADED, one.text) for one in features.warnings]
    return [first, *noted]


def _state(where: Path) -> MachineFinding:
    from fairwitness.app.state import state_of
    from fairwitness.errors import FairWitnessError
    from fairwitness.git.repository import Repository

    try:
        repository = Repository.open(where)
        folder = state_of(repository)
    except FairWitnessError as error:
        return MachineFinding(
            "repository", Health.MISSING, error.what, "there is nothing to verify here", error.next_step
        )
    free = shutil.disk_usage(folder).free
    health = Health.OK if free > 1 << 30 else Health.DEGRADED
    costs = "" if health is Health.OK else "checkouts may fill the disk"
    return MachineFinding("repository", health, f"state in {folder}, {free >> 30} GiB free", costs)


def _tool(name: str, used_for: str) -> MachineFinding:
    path = shutil.which(name)
    if path is None:
        return MachineFinding(name, Health.MISSING, "not found", f"used for {used_for}")
    return MachineFinding(name, Health.OK, path)
