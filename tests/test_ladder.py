"""Each width takes what it should of every family, and ten slices together leave nothing out."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.fixtures import ROOT

CASES = """
import pytest

@pytest.mark.parametrize("number", range(40))
def test_many(number): ...

@pytest.mark.parametrize("number", [1, pytest.param(2, marks=pytest.mark.width("sweep"))])
def test_few(number): ...

def test_dear(): ...

@pytest.mark.width("sample")
def test_dear_and_wanted(): ...

@pytest.mark.width("full")
def test_wide(): ...

@pytest.mark.width("sweep")
def test_long(): ...

def test_plain(): ...
"""


SHARED = """
def test_first(): ...

def test_second(): ...
"""
COSTS = {"test_many": 0.7, "test_dear": 4.0, "test_dear_and_wanted": 40.0}
CHOOSE = f"""
COSTS = {COSTS}
"""
CHOOSE += """
import json
import pytest
from support import ladder

class Keep:
    def pytest_collection_modifyitems(self, items):
        self.items = list(items)

keep = Keep()
options = ["--collect-only", "-q", "-n", "0", "-p", "no:randomly", "-p", "no:cacheprovider", "-c", "pytest.ini"]
assert pytest.main(options, plugins=[keep]) == 0
ladder.SECONDS.update({ladder.Width.SAMPLE: 1.5, ladder.Width.FULL: 4.0})
ladder.COSTS.update({f"test_cases.py::{name}": cost for name, cost in COSTS.items()})
ladder.COSTS["test_shared.py"] = 6.0
widths = {width.value: ladder.choose(keep.items, width=width, number=None) for width in ladder.Width}
slices = {str(number): ladder.choose(keep.items, number=number) for number in range(ladder.SLICES)}
families = {item.nodeid.partition("[")[0] for item in keep.items}
turns = [f"{family.partition('::')[2]} {ladder.turn(family)}" for family in families]
names = {"turns": turns} | {key: [item.name for item in taken] for key, (taken, _left) in (widths | slices).items()}
json.dump(names, open("chosen.json", "w"))
"""


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What every width and every slice takes of `CASES`."""
    folder = tmp_path_factory.mktemp("ladder")
    (folder / "test_cases.py").write_text(CASES)
    (folder / "test_shared.py").write_text(SHARED)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = family\n  width\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FAIRWITNESS_")}
    environment["PYTHONPATH"] = str(ROOT / "tests")
    subprocess.run([sys.executable, "-c", CHOOSE], cwd=folder, env=environment, capture_output=True, check=True)
    read: dict[str, list[str]] = json.loads((folder / "chosen.json").read_text())
    return read


def test_a_sample_takes_a_few_of_each_family_and_nothing_long(chosen: dict[str, list[str]]) -> None:
    assert set(chosen["sample"]) == {
        "test_many[0]",
        "test_many[9]",
        "test_few[1]",
        "test_plain",
        "test_dear_and_wanted",
    }


def test_a_costly_fixture_counts_for_the_tests_that_share_it(chosen: dict[str, list[str]]) -> None:
    assert not {"test_first", "test_second"} & set(chosen["sample"]), "3 seconds each are more than a sample spends"
    assert {"test_first", "test_second"} <= set(chosen["full"])


def test_the_full_width_takes_more_of_each_family(chosen: dict[str, list[str]]) -> None:
    taken = chosen["full"]
    assert sum(name.startswith("test_many") for name in taken) == 5
    others = {
        "test_few[1]",
        "test_wide",
        "test_plain",
        "test_dear",
        "test_dear_and_wanted",
        "test_first",
        "test_second",
    }
    assert {name for name in taken if not name.startswith("test_many")} == others


def test_ten_slices_are_what_the_full_width_leaves_out(chosen: dict[str, list[str]]) -> None:
    slices = [chosen[str(number)] for number in range(10)]
    assert set().union(*slices) == set(chosen["sweep"]) - set(chosen["full"])


def test_a_slice_begins_with_the_families_whose_turn_it_is(chosen: dict[str, list[str]]) -> None:
    for number in range(10):
        families = [name.partition("[")[0] for name in chosen[str(number)][:3]]
        is_due = [f"{family} {number}" in chosen["turns"] for family in families]
        assert is_due == sorted(is_due, reverse=True)


def test_every_slice_takes_a_case_of_each_family_before_a_second_of_one(chosen: dict[str, list[str]]) -> None:
    for number in range(10):
        families = [name.partition("[")[0] for name in chosen[str(number)]]
        assert sorted(families[:3]) == ["test_few", "test_long", "test_many"]


def test_a_test_that_is_named_runs_whatever_it_costs(tmp_path: Path) -> None:
    (tmp_path / "test_cases.py").write_text(CASES)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = width\n")
    options = ("-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "support.collecting")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_cases.py::test_long"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 passed" in done.stdout
