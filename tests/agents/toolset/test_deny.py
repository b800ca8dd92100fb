"""A refusal that was found elsewhere is kept and told like one of the toolbox's own."""

import asyncio

import pytest

from agents.toolset.kit import Bench
from fairwitness.contracts.agents.dispatch import Denial, Layer

pytestmark = pytest.mark.req("X3")


def test_a_refusal_that_was_found_elsewhere_is_kept_and_told(bench: Bench) -> None:
    found = Denial(layer=Layer.SANDBOX, tool="claude", target="/etc/passwd", reason="write: openat")
    bench.box.deny(found)
    assert bench.box.denials == (found,)
    assert bench.told == [found]


def test_its_words_are_an_agents_and_are_made_harmless(bench: Bench) -> None:
    target = f"{bench.box.worktree}/x\n\x1b[31m" + "y" * 5000
    bench.box.deny(Denial(layer=Layer.DECISION, tool="a\nb" * 200, target=target, reason="why\x1b[0m"))
    (kept,) = bench.box.denials
    assert kept.tool.startswith("a\\nb")
    assert len(kept.tool) <= 201
    assert kept.target.startswith("./x\\n\\x1b[31my")
    assert len(kept.target) <= 2_001
    assert kept.reason == "why\\x1b[0m"


def test_a_toolbox_that_is_closed_still_keeps_refusals(bench: Bench) -> None:
    asyncio.run(bench.box.close())
    bench.box.deny(Denial(layer=Layer.SANDBOX, tool="claude", target="x", reason="y"))
    assert len(bench.box.denials) == 1
