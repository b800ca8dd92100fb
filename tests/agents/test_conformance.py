"""Every backend put to every case: recordings, our own loop in four dialects, agents of three tiers in the sandbox."""

import asyncio
from pathlib import Path

import pytest

from fairwitness.agents.backends.acp.backend import AcpBackend
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.probe import probe
from fairwitness.testing.conformance import RunCase, check_backend, run_on_cassette, run_on_gateway
from fairwitness.testing.conformance_cases import CASES, ConformanceCase
from fairwitness.testing.scripted_agent import scripted_profile

needs_namespaces = pytest.mark.skipif(
    SandboxTier.NAMESPACES not in probe().tiers, reason="the ns tier does not work on this machine"
)
pytestmark = pytest.mark.req("X3")
RECORDABLE = [case for case in CASES if not case.needs_model]


def names(case: ConformanceCase) -> str:
    return case.name


def holds(put: RunCase, case: ConformanceCase, folder: Path) -> None:
    (verdict,) = asyncio.run(check_backend(put, folder, [case]))
    told = "\n".join(f"{one.kind.value} {one.tool or ''} {one.text[:300]}" for one in verdict.happenings)
    assert verdict.problems == (), f"{verdict.seen.outcome}\n{told}"


@needs_namespaces
@pytest.mark.parametrize("case", RECORDABLE, ids=names)
def test_the_cassette_backend_holds(case: ConformanceCase, tmp_path: Path) -> None:
    ours = runner(SandboxTier.NAMESPACES)
    holds(lambda ground: run_on_cassette(ground, runner=ours), case, tmp_path)


@needs_namespaces
@pytest.mark.parametrize("dialect", list(ApiDialect))
@pytest.mark.parametrize("case", CASES, ids=names)
def test_the_api_backend_holds(
    case: ConformanceCase, dialect: ApiDialect, tmp_path: Path, socket_enabled: None
) -> None:
    ours = runner(SandboxTier.NAMESPACES)

    holds(lambda ground: run_on_gateway(ApiBackend(), ground, dialect=dialect, runner=ours, tcp=True), case, tmp_path)


@needs_namespaces
@pytest.mark.parametrize("variant", ["works", "asks", "acts"])
@pytest.mark.parametrize("case", CASES, ids=names)
def test_an_external_agent_of_any_tier_is_held(case: ConformanceCase, variant: str, tmp_path: Path) -> None:
    ours = runner(SandboxTier.NAMESPACES)
    backend, dialect = AcpBackend(scripted_profile(variant)), ApiDialect.OPENAI_CHAT
    holds(lambda ground: run_on_gateway(backend, ground, dialect=dialect, runner=ours, tcp=False), case, tmp_path)
