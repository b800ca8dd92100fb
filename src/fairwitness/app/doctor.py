"""What this machine has, what it lacks, what that costs, and the command that mends it."""

import platform
import re
import shutil
import subprocess
from pathlib import Path

from fairwitness.app.health import Finding, Health
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Features

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


def examine(where: Path) -> tuple[Finding, ...]:
    """Everything worth knowing before a run."""
    from fairwitness.app.agents_doctor import examine_agents
    from fairwitness.sandbox.probe import probe

    features = probe()
    tools = (_tool(name, used_for) for name, used_for in _TOOLS)
    return (_git(), *_sandbox(features), _state(where), *tools, *examine_agents(where, features.tier))


def is_fit(findings: tuple[Finding, ...]) -> bool:
    """Whether evidence can be made here at all."""
    return not any(finding.health is Health.BROKEN for finding in findings)


def _git() -> Finding:
    path = shutil.which("git")
    mend = "install git 2.38 or newer (apt-get install git)"
    if path is None:
        return Finding("git", Health.BROKEN, "not found", "nothing can be verified", mend)
    said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers is None or (int(numbers[1]), int(numbers[2])) < GIT_NEEDED:
        return Finding("git", Health.BROKEN, said or "no version", "merges cannot be tried", mend)
    return Finding("git", Health.OK, said.removeprefix("git version "))


def _sandbox(features: Features) -> list[Finding]:
    install = "apt-get install bubblewrap"
    if features.tier is SandboxTier.NONE:
        how = install if platform.system() == "Linux" else "run Fair Witness in a Linux container or virtual machine"
        return [Finding("sandbox", Health.BROKEN, "none", "nothing that is run counts as evidence", how)]
    missing_ns = features.tier is not SandboxTier.NAMESPACES
    found = f"tier {features.tier.value} (works here: {', '.join(tier.value for tier in features.tiers)})"
    first = Finding(
        "sandbox",
        Health.DEGRADED if missing_ns else Health.OK,
        found,
        "weaker isolation; no loopback network for tests" if missing_ns else "",
        install if missing_ns else "",
    )
    noted = [Finding(f"sandbox: {one.code}", Health.DEGRADED, one.text) for one in features.warnings]
    return [first, *noted]


def _state(where: Path) -> Finding:
    from fairwitness.app.state import state_of
    from fairwitness.errors import FairWitnessError
    from fairwitness.git.repository import Repository

    try:
        repository = Repository.open(where)
        folder = state_of(repository)
    except FairWitnessError as error:
        return Finding("repository", Health.MISSING, error.what, "there is nothing to verify here", error.next_step)
    free = shutil.disk_usage(folder).free
    health = Health.OK if free > 1 << 30 else Health.DEGRADED
    costs = "" if health is Health.OK else "checkouts may fill the disk"
    return Finding("repository", health, f"state in {folder}, {free >> 30} GiB free", costs)


def _tool(name: str, used_for: str) -> Finding:
    path = shutil.which(name)
    if path is None:
        return Finding(name, Health.MISSING, "not found", f"no evidence for {used_for}")
    return Finding(name, Health.OK, path)
