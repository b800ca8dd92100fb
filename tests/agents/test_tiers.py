"""The measure of enforcement tiers tells three agents apart that differ in nothing else."""

import asyncio
from pathlib import Path

import pytest

from fairwitness.agents.backends.acp.backend import AcpBackend
from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.agents.dispatch import EnforcementTier
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.sandbox.probe import probe
from fairwitness.testing.conformance import run_on_gateway
from fairwitness.testing.enforcement_tiers import Measured, Unmeasured, measure_tier
from fairwitness.testing.scripted_agent import scripted_profile

needs_namespaces = pytest.mark.skipif(
    SandboxTier.NAMESPACES not in probe().tiers, reason="the ns tier does not work on this machine"
)


def measured(variant: str, folder: Path) -> Measured:
    ours, backend = runner(SandboxTier.NAMESPACES), AcpBackend(scripted_profile(variant))
    return asyncio.run(
        measure_tier(
            lambda ground, toolbox: run_on_gateway(
                backend, ground, dialect=ApiDialect.OPENAI_CHAT, runner=ours, tcp=False, toolbox=toolbox
            ),
            folder,
        )
    )


@needs_namespaces
@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("variant", "tier"),
    [("works", EnforcementTier.B), ("asks", EnforcementTier.C), ("acts", EnforcementTier.D)],
)
def test_a_tier_is_what_lands_when_we_say_no(variant: str, tier: EnforcementTier, tmp_path: Path) -> None:
    found = measured(variant, tmp_path)
    assert found.tier is tier
    assert bool(found.landed) is (tier is not EnforcementTier.B)


@needs_namespaces
@pytest.mark.req("X3")
def test_an_agent_that_does_nothing_is_not_taken_for_one_that_asks(tmp_path: Path) -> None:
    with pytest.raises(Unmeasured, match="never asked for step 0"):
        measured("answers", tmp_path)
