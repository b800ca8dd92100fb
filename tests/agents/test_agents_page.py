"""docs/agents.md, the profiles and the versions that are installed for the test say the same."""

import json
import re
from pathlib import Path

import pytest

from fairwitness.agents.profiles import PROFILES
from live.page import PAGE, PINNED, Row, page, sizes, tiers

PACKAGES: dict[str, str] = json.loads((Path(__file__).parents[2] / "scripts" / "agents" / "package.json").read_text())[
    "dependencies"
]


@pytest.mark.req("X3")
def test_the_page_tells_the_tier_and_the_versions_of_every_profile() -> None:
    assert tiers(PAGE.read_text()) == {
        name: (", ".join(found.tested), found.tier.value) for name, found in PROFILES.items()
    }


def test_the_page_is_what_its_own_numbers_come_to() -> None:
    text = PAGE.read_text()
    rows = {
        name: Row(*tiers(text)[name], held, cases, sizes(text)[name] * 1000)
        for name, held, cases in (
            (found[1], int(found[2]), int(found[3]))
            for found in re.finditer(r"^\| ([a-z-]+) \| [^|]+ \| [A-D] \| (\d+) of (\d+) \|", text, re.MULTILINE)
        )
    }
    assert set(rows) == set(PINNED)
    assert page(rows, text) == text


def test_a_size_that_has_hardly_moved_stays_as_it_was_told() -> None:
    rows = {"goose": Row("1", "B", 1, 1, 20_400)}
    first = page(rows, "")
    assert sizes(first) == {"goose": 20}
    assert page({"goose": Row("1", "B", 1, 1, 20_900)}, first) == first
    assert sizes(page({"goose": Row("1", "B", 1, 1, 22_000)}, first)) == {"goose": 22}


def test_the_versions_for_the_test_are_exact_and_those_that_were_tested() -> None:
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in PACKAGES.values())
    assert set(PACKAGES) == {PROFILES[name].package for name in PINNED} | {"node"}
    # the package of goose has a number of its own, beside that of the program in it
    for name in set(PINNED) - {"goose"}:
        assert PACKAGES[PROFILES[name].package] in PROFILES[name].tested
