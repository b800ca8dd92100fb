"""Every engine keeps every promise of the kit, on its own database."""

import asyncio

import pytest

from engine.grounds import Ground
from support.engine.case import Case
from support.engine.kit import CASES, check_engine


@pytest.mark.req("P16")
@pytest.mark.req("X4")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_engine_keeps_the_contract(ground: Ground, case: Case) -> None:
    (verdict,) = asyncio.run(check_engine(lambda _name: ground.make, [case]))
    assert verdict.problem == ""
