"""Real agents, each put to every case of the kit and measured; `make test-agents` installs them and runs this.

`FAIRWITNESS_AGENTS` names a folder whose `node_modules` holds them; without it nothing here is run. The agents have no
network but the way to a scripted model; run by `scripts/agents/offline`, this process has none either. At the end
docs/agents.md is drawn anew from what was seen, and a difference is a failure.
"""

import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from fairwitness.agents.backends.acp.backend import AcpBackend
from fairwitness.agents.profiles import PROFILES
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.agents.dispatch import Happening, Kind, Usage
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.probe import probe
from fairwitness.testing.conformance import CaseFolder, CaseResult, check_backend, run_on_gateway
from fairwitness.testing.conformance_cases import CASES, CaseObservation, ConformanceCase
from fairwitness.testing.enforcement_tiers import Measured, measure_tier
from live.page import PAGE, PINNED, Row, page

FOLDER = os.environ.get("FAIRWITNESS_AGENTS", "")
PATIENCE = 3.0
"""Some of them need seconds before they can be asked anything."""
pytestmark = [
    pytest.mark.req("X3"),
    pytest.mark.skipif(not FOLDER, reason="real agents: run `make test-agents`"),
    pytest.mark.skipif(SandboxTier.NAMESPACES not in probe().tiers, reason="the ns tier does not work on this machine"),
]


def lookup(name: str) -> str | None:
    return shutil.which(name, path=f"{FOLDER}/node_modules/.bin:{os.environ.get('PATH', '')}")


FOUND = [name for name in PINNED if FOLDER and AcpBackend(PROFILES[name], lookup=lookup).probe().found]


@dataclass
class Results:
    """What was seen so far."""

    verdicts: dict[str, dict[str, CaseResult]] = field(default_factory=dict)
    tiers: dict[str, Measured] = field(default_factory=dict)

    def row(self, name: str) -> Row:
        """An agent's line of the page."""
        verdicts = self.verdicts[name]
        held = sum(not verdict.problems for verdict in verdicts.values())
        version = AcpBackend(PROFILES[name], lookup=lookup).probe().version or "unknown"
        first = next(request.size for request in verdicts["submit"].seen.requests if request.tools)
        return Row(version, self.tiers[name].tier.value, held, len(verdicts), first)

    def words(self, name: str) -> str:
        """What is worth knowing and changes with every run."""
        lines = [f"{name}:"]
        for case, verdict in self.verdicts[name].items():
            seen, counted = verdict.seen, verdict.seen.counted
            tokens = [_tokens(usage) for usage in (seen.outcome.usage, counted)]
            said = f"first answer {_first(verdict.happenings)}, done {seen.seconds:.1f} s"
            said += f", tokens: told {tokens[0]}, counted {tokens[1]}"
            lines.append(f"  {case:24}{'holds' if not verdict.problems else 'FAILS'}  {seen.outcome.status:15}{said}")
        return "\n".join(lines) + f"\n  tier {self.tiers[name].tier.value}, landed {list(self.tiers[name].landed)}\n"


def _tokens(usage: Usage | None) -> str:
    return "nothing" if usage is None or usage.tokens is None else str(usage.tokens)


def _first(happenings: tuple[Happening, ...]) -> str:
    """When the agent first said or did something."""
    ms = next((one.ms for one in happenings if one.kind in (Kind.TEXT, Kind.THOUGHT, Kind.CALL)), None)
    return "never" if ms is None else f"{ms / 1000:.1f} s"


@pytest.fixture(scope="module")
def results() -> Results:
    return Results()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short, and of the same length in every run: its path is part of what an agent sends to its model."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-live-") as made:
        yield Path(made)


async def put(
    name: str, ground: CaseFolder, toolbox: type[Toolbox] = Toolbox
) -> tuple[CaseObservation, tuple[Happening, ...]]:
    backend = AcpBackend(PROFILES[name], lookup=lookup)
    return await run_on_gateway(
        backend,
        ground,
        dialect=backend.profile.dialect,
        runner=runner(SandboxTier.NAMESPACES),
        tcp=False,
        patience=PATIENCE,
        toolbox=toolbox,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("name", FOUND)
def test_a_real_agent_is_held(name: str, case: ConformanceCase, folder: Path, results: Results) -> None:
    (verdict,) = asyncio.run(check_backend(lambda ground: put(name, ground), folder, [case]))
    results.verdicts.setdefault(name, {})[case.name] = verdict
    told = "\n".join(f"{one.kind.value} {one.tool or ''} {one.text[:300]}" for one in verdict.happenings)
    assert verdict.problems == (), f"{verdict.seen.outcome}\n{told}"


@pytest.mark.parametrize("name", FOUND)
def test_a_real_agent_is_of_the_tier_that_its_profile_says(name: str, folder: Path, results: Results) -> None:
    measured = asyncio.run(measure_tier(lambda ground, toolbox: put(name, ground, toolbox), folder))
    results.tiers[name] = measured
    assert measured.tier is PROFILES[name].tier, f"{list(measured.landed)} landed"


@pytest.mark.parametrize("name", FOUND)
def test_a_real_agent_is_of_a_version_that_its_profile_knows(name: str) -> None:
    assert AcpBackend(PROFILES[name], lookup=lookup).probe().version in PROFILES[name].tested


def test_the_page_of_agents_tells_what_was_seen(results: Results, capsys: pytest.CaptureFixture[str]) -> None:
    """Comes last, after everything that it tells of."""
    done = [name for name in FOUND if len(results.verdicts.get(name, {})) == len(CASES) and name in results.tiers]
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(results.words(name) for name in done))
    if missing := sorted(set(PINNED) - set(FOUND)):
        pytest.fail(f"not installed: {', '.join(missing)}. Next: sh scripts/agents/install {FOLDER}")
    if set(done) != set(PINNED):
        pytest.skip("only a part of the cases was run")
    before = PAGE.read_text() if PAGE.exists() else ""
    found = page({name: results.row(name) for name in PINNED}, before)
    if found != before:
        PAGE.write_text(found)
    assert found == before, "docs/agents.md no longer told the truth and was written anew: look at the difference"
