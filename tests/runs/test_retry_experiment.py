"""A model that answers only from its request repairs its mistake in the second attempt, if it is told the reason."""

import re
from pathlib import Path

import pytest
from retry_experiment import FAULTS, Fault, Ground, Row, compare, projects_of, repository_of, table, withheld

from fairwitness.agents.prompt_text import render
from fairwitness.agents.roles import ROLES
from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.shared.retry_sections import TITLES
from support.fixtures import ROOT

FILES = {
    "pyproject.toml": '[project]\nname = "till"\nversion = "1"\n',
    "till/__init__.py": '"""A till."""\n',
    "till/prices.py": (
        '"""Prices."""\n\n\ndef total(prices):\n    """Return the sum."""\n    return sum(prices)\n\n\n'
        'def dearest(prices):\n    """Return the largest."""\n    return max(prices)\n'
    ),
    "tests/__init__.py": "",
    "tests/test_prices.py": (
        "import unittest\n\nfrom till.prices import dearest, total\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_total_of_two(self):\n        self.assertEqual(total([1, 2]), 3)\n\n"
        "    def test_dearest_of_two(self):\n        self.assertEqual(dearest([5, 7]), 7)\n"
    ),
}
BUNDLED = (
    Fault(
        "total",
        "till/prices.py",
        "    return sum(prices)\n",
        "    return len(prices)\n",
        "    return sum(iter(prices))\n",
        ("test_total_of_two", "2 != 3"),
    ),
    Fault(
        "dearest",
        "till/prices.py",
        "    return max(prices)\n",
        "    return prices[0]\n",
        "    return sorted(prices)[-1]\n",
        ("test_dearest_of_two", "5 != 7"),
    ),
)


@pytest.mark.req("P9", "F3")
@pytest.mark.enable_socket
@pytest.mark.timeout(600)
def test_a_second_attempt_succeeds_with_the_material_and_fails_without_it(tmp_path: Path, own_home: None) -> None:
    for path, text in FILES.items():
        (tmp_path / "files" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / path).write_text(text)
    ground = Ground(repository_of(tmp_path / "repository", tmp_path / "files"), tmp_path / "home")
    rows = compare("till", ground, BUNDLED)
    assert rows == tuple(Row("till", name, False, True, False) for name in ("total", "dearest"))
    assert table(rows).endswith("| all | 2 faults | 0 succeed | 2 succeed | 0 succeed |")


def _prompt(brief: Brief) -> str:
    """Return the prompt; the name of the fences depends on all inputs."""
    return re.sub(r"data-[0-9a-f]+", "data", render(ROLES[brief.role], brief, tools=()))


@pytest.mark.req("P9")
def test_without_the_material_a_prompt_is_that_of_a_first_attempt() -> None:
    first = Brief(
        dispatch_id="task-001-1",
        run_id="run-2026-02-26-143000",
        role=Role.WORKER,
        instance="task-001-1",
        task="Carry out task-001.",
        parameters={"task_id": "task-001"},
        inputs=(PromptSection(title="Task task-001", text="Rework total in till/prices.py."),),
    )
    told = tuple(PromptSection(title=title, text="### a heading\n2 != 3") for title in TITLES.values())
    second = first.model_copy(update={"inputs": (*first.inputs, *told)})
    assert "2 != 3" in _prompt(second)
    assert withheld(_prompt(second)).split() == withheld(_prompt(first)).split()


def test_there_are_faults_enough_and_no_repair_is_the_mistake() -> None:
    projects = projects_of(FAULTS.read_text())
    faults = [fault for project in projects for fault in project.faults]
    assert len(projects) >= 3
    assert len(faults) >= 20
    assert all(len({fault.old, fault.wrong, fault.right}) == 3 and len(fault.words) >= 2 for fault in faults)
    assert FAULTS.is_relative_to(ROOT)
