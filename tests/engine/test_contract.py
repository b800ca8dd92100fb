"""Every engine keeps every promise of the kit, on its own database."""

import asyncio

import pytest

from engine.grounds import Ground
from fairwitness.testing.engine_case import Case
from fairwitness.testing.engine_kit import CASES, check_engine


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_engine_keeps_the_contract(ground: Ground, case: Case) -> None:
    (verdict,) = asyncio.run(check_engine(lambda _name: ground.make, [case]))
    assert verdict.problem == ""
