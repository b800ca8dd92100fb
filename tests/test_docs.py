"""Generated pages tell the truth, every link leads somewhere, and every command is written down."""

import ast
import re
from pathlib import Path

import architecture
import pytest
from docs import DOCS, PAGES, REQUIREMENTS, marked_tests

from fairwitness.cli.command_list import COMMANDS
from support.fixtures import ROOT

ROW = re.compile(r"^\| ([PAFX]\d+) \| (\S+) \|$", re.MULTILINE)
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("page", PAGES)
def test_a_generated_page_is_what_the_code_says(page: str) -> None:
    assert (DOCS / page).read_text() == PAGES[page](), "next: make docs-write"


def test_every_test_in_the_conformance_table_exists() -> None:
    rows = ROW.findall((DOCS / "conformance.md").read_text())
    assert {requirement for requirement, _ in rows} == set(REQUIREMENTS)
    assert [test for _, test in rows if test != "none" and not _exists(test)] == []


def test_every_test_that_a_page_names_exists() -> None:
    named = {test for page in DOCS.rglob("*.md") for test in NAMED_TEST.findall(page.read_text())}
    assert len(named) > 10
    assert [test for test in sorted(named) if not _exists(test)] == []


def _exists(test: str) -> bool:
    file, name = test.split("::")
    nodes = ast.walk(ast.parse((ROOT / file).read_text())) if (ROOT / file).is_file() else ()
    return any(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name for node in nodes)


def test_a_mark_for_a_requirement_that_does_not_exist_fails(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_x.py").write_text('@pytest.mark.req("Q1")\ndef test_x(): ...\n')
    with pytest.raises(KeyError):
        marked_tests(tmp_path)


@pytest.mark.parametrize(
    "page", sorted(str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *DOCS.rglob("*.md")))
)
def test_every_link_leads_to_a_file(page: str) -> None:
    dead = [link for link in LINK.findall((ROOT / page).read_text()) if not ((ROOT / page).parent / link).exists()]
    assert dead == []


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_is_in_the_readme(command: str) -> None:
    assert f"fairwitness {command}" in (ROOT / "README.md").read_text()


def test_no_index_address_and_no_path_of_a_machine_is_committed() -> None:
    constraints = (ROOT / "constraints.txt").read_text()
    assert "://" not in constraints
    assert "index" not in constraints
    assert "--find-links" not in constraints
    assert all("--hash=sha256:" in line for line in constraints.replace("\\\n", "").splitlines() if "==" in line)


PLACES = sorted(
    {step["at"] for path in architecture.words()["path"] for step in path["step"]}
    | {row["at"] for row in architecture.words()["want"]}
)


@pytest.mark.parametrize("place", PLACES)
def test_every_place_on_the_architecture_page_exists(place: str) -> None:
    assert architecture.resolve(place).exists()


SOURCE = ROOT / "src" / "fairwitness"
OURS = re.compile(rf"`((?:{'|'.join(path.name for path in SOURCE.iterdir() if path.is_dir())})/[\w/.-]+\.py)`")


def test_every_module_that_a_page_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    named = {(page.name, path) for page in pages for path in OURS.findall(page.read_text())}
    assert len(named) > 20
    assert [each for each in named if not (SOURCE / each[1]).exists()] == []


def test_a_place_that_does_not_exist_is_refused() -> None:
    for place in ("fairwitness.rules.nothing", "fairwitness.rules.gates:nothing", "tests/nothing"):
        with pytest.raises(LookupError):
            architecture.resolve(place)


def test_the_architecture_page_says_where_to_go_for_at_least_25_things() -> None:
    assert len({row["to"] for row in architecture.words()["want"]}) >= 25


def test_the_readme_is_short_and_shows_a_picture() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    (picture,) = re.findall(r"!\[[^]]*\]\(([^)]+)\)", text)
    assert (ROOT / picture).read_text().startswith("<svg")
