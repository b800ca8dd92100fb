"""A command runs in the environment of the project it is about: by the folder it names and the programs it calls."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.verify.checks import Discovered, Language, Project
from fairwitness.runs.shared.shell_checks import NOBODYS, project_of_line

GENERATED = settings(max_examples=200)


def project(root: str, language: Language) -> Project:
    return Project(root=root, language=language, manifests=())


TOP_NODE = project(".", Language.NODE)
TOP_PYTHON = project(".", Language.PYTHON)
API = project("api", Language.PYTHON)
DEEP = project("api/tool", Language.GO)
WEB = project("web", Language.NODE)


def found(*projects: Project) -> Discovered:
    return Discovered(projects=projects, checks=(), undiscovered=())


@pytest.mark.req("A15")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("npm run build", TOP_NODE),
        ("python3.11 -m pytest -q", TOP_PYTHON),
        ("cd web && npm test", WEB),
        ("pytest api/tests", API),
        ("./api/run.sh", API),
        ("cd api/tool; ./run.sh", DEEP),
        ("cd api/tool; python3 x.py", API),
        ("go test ./...", DEEP),
        ("grep -q x README.md", TOP_NODE),
        ("make test", TOP_NODE),
        ("cargo test", TOP_NODE),
        ("grep -q apiary webs", TOP_NODE),
        ("! node_modules/.bin/eslint . || .venv/bin/pytest", TOP_NODE),
        (".venv/bin/pytest && npx jest", TOP_PYTHON),
        ("", TOP_NODE),
    ],
)
def test_a_command_belongs_to_the_project_it_is_about(command: str, expected: Project) -> None:
    assert project_of_line(command, found(TOP_NODE, WEB, API, DEEP, TOP_PYTHON)) == expected


def test_without_a_project_there_are_the_tools_of_the_machine() -> None:
    assert project_of_line("pytest -q", found()) == NOBODYS
    assert (NOBODYS.root, NOBODYS.language) == (".", Language.OTHER)


@GENERATED
@given(st.text(max_size=60), st.permutations([TOP_NODE, API, WEB, DEEP]))
def test_any_text_has_a_project_and_the_only_one_has_all(command: str, projects: list[Project]) -> None:
    assert project_of_line(command, found(*projects)) in projects
    assert project_of_line(command, found(API)) == API
