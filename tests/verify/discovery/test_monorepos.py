"""Several projects in one repository: which folders are projects, and who runs whose tests."""

import json

import pytest

from fairwitness.contracts.verify.checks import CheckSpec, Language, VerifySettings
from fairwitness.verify.discovery.roots import MOST_PROJECTS
from verify.discovery.repository import Files, check_of, look, offers, reasons

BARE = "def test_it():\n    assert True\n"
PYTEST = "[tool.pytest.ini_options]\n"


def run_as_tests(found_checks: tuple[CheckSpec, ...]) -> set[str]:
    """The ids of the checks that are tests."""
    return {check.id for check in found_checks if check.name == "tests"}


def package(test: str | None = None, **fields: object) -> str:
    """The text of a package.json."""
    return json.dumps({"name": "x", "scripts": {"test": test} if test else {}, **fields})


@pytest.mark.parametrize(
    ("files", "roots"),
    [
        ({"api/pyproject.toml": "", "web/package.json": package()}, ["api", "web"]),
        ({"pyproject.toml": "", "package.json": package(), "Cargo.toml": ""}, [".", ".", "."]),
        ({"api/pyproject.toml": "", "api/tests/demo/pyproject.toml": ""}, ["api"]),
        ({"setup.py": "", "fixtures/a/package.json": package(), "examples/b/Cargo.toml": ""}, ["."]),
        ({"setup.py": "", "samples/a/setup.py": "", "testdata/b/go.mod": ""}, ["."]),
        ({"go.mod": "", "vendor/x/go.mod": "", "third_party/y/go.mod": "", "tools/go.mod": ""}, [".", "tools"]),
        ({"package.json": package(), "node_modules/y/package.json": package()}, ["."]),
        ({"package.json": package(), "dist/package.json": package(), "build/package.json": package()}, ["."]),
        ({"pom.xml": "<modules>", "core/pom.xml": "", "web/pom.xml": ""}, ["."]),
        ({"pom.xml": "", "tool/pom.xml": ""}, [".", "tool"]),
        ({"settings.gradle": "", "build.gradle": "", "app/build.gradle": ""}, ["."]),
        ({"CMakeLists.txt": "project(a)\nadd_subdirectory(b)", "b/CMakeLists.txt": "project(b)"}, ["."]),
        ({"CMakeLists.txt": "project(a)", "b/CMakeLists.txt": "project(b)"}, [".", "b"]),
        ({"a/Makefile": "test:\n\t./t\n", "docs/Makefile": "html:\n\tsphinx-build\n"}, ["a"]),
        ({"Makefile": "test:\n\tmake -C a test\n", "a/Makefile": "test:\n\t./t\n"}, ["."]),
        ({"docs/requirements.txt": "sphinx\n", "docs/conf.py": ""}, []),
        ({"jobs/requirements.txt": "", "jobs/test_a.py": BARE}, ["jobs"]),
    ],
)
def test_a_folder_with_a_manifest_of_its_own_is_a_project(files: Files, roots: list[str]) -> None:
    assert [project.root for project in look(files).projects] == roots


@pytest.mark.req("X5")
def test_checks_of_a_project_carry_its_folder() -> None:
    found = look({"api/pyproject.toml": PYTEST + "[tool.ruff]\n", "web/app/package.json": package("jest")})
    assert set(offers(found)) == {"api/pytest", "api/ruff", "web/app/jest"}
    assert {check.root for check in found.checks} == {"api", "web/app"}


def test_ids_are_safe_and_apart_whatever_folders_are_called() -> None:
    names = ["my app", "my-app", "my\tapp", "@scope", "ünïcode", "_x", "x" * 200, "a{b}"]
    found = look({f"{name}/pyproject.toml": PYTEST for name in names})
    ids = [check.id for check in found.checks]
    assert len(set(ids)) == len(names)
    assert "my-app/pytest" in ids
    assert [project.root for project in found.projects] == sorted(names)
    assert ids == [check.id for check in look({f"{name}/pyproject.toml": PYTEST for name in names}).checks]


@pytest.mark.parametrize(
    "workspaces",
    [
        {"package.json": package("jest", workspaces=["packages/*"])},
        {"package.json": package("jest", workspaces={"packages": ["packages/*", "!packages/none"]})},
        {"package.json": package("jest"), "pnpm-workspace.yaml": "packages:\n  - 'packages/**'\n"},
        {"package.json": package("jest"), "lerna.json": '{"packages": ["packages/a", "packages/b"]}'},
    ],
)
def test_workspaces_belong_to_the_root_that_tests_them(workspaces: Files) -> None:
    members = {"packages/a/package.json": package("mocha"), "packages/b/package.json": package("mocha")}
    found = look({**workspaces, **members, "apart/package.json": package("mocha")})
    assert run_as_tests(found.checks) == {"jest", "apart/mocha"}
    assert "packages/a/package.json" in found.projects[0].manifests


def test_workspaces_test_themselves_if_their_root_does_not() -> None:
    root = {"package.json": package(workspaces=["packages/*"]), "package-lock.json": "{}"}
    found = look({**root, "packages/a/package.json": package("mocha"), "packages/b/package.json": package("jest")})
    assert run_as_tests(found.checks) == {"packages/a/mocha", "packages/b/jest"}
    member = next(project for project in found.projects if project.root == "packages/a")
    assert {"package-lock.json", "package.json", "packages/a/package.json"} == set(member.manifests)


def test_a_root_that_configures_pytest_runs_everything_below_it() -> None:
    found = look({"pyproject.toml": PYTEST, "libs/a/pyproject.toml": "", "libs/a/test_a.py": BARE})
    assert run_as_tests(found.checks) == {"pytest"}


def test_what_configures_its_own_pytest_runs_it_alone_and_once() -> None:
    found = look({"pyproject.toml": PYTEST, "libs/a/pyproject.toml": PYTEST, "libs/a/test_a.py": BARE})
    assert run_as_tests(found.checks) == {"pytest", "libs/a/pytest"}
    assert "--ignore=libs/a" in check_of(found, "pytest").argv


def test_one_run_of_ruff_covers_all_folders_below() -> None:
    ruff = "[tool.ruff]\n"
    assert set(offers(look({"pyproject.toml": ruff, "a/pyproject.toml": ruff}))) == {"ruff"}
    assert set(offers(look({"pyproject.toml": "", "a/pyproject.toml": ruff}))) == {"a/ruff"}


def test_the_syntax_of_a_project_below_is_its_own_affair() -> None:
    found = look({"a.py": "", "lib/setup.py": "", "lib/b.py": ""})
    assert check_of(found, "python-syntax").argv[-1] == "lib"


def test_too_many_projects_are_cut_and_that_counts_as_missing() -> None:
    found = look({f"p{number:03}/pyproject.toml": PYTEST for number in range(MOST_PROJECTS + 7)})
    assert len(found.projects) == MOST_PROJECTS
    (told,) = found.undiscovered
    assert told.required
    assert "7 were not inspected: p030" in told.reason


def test_a_person_names_the_only_folders_to_look_at() -> None:
    files = {"a/pyproject.toml": PYTEST, "b/pyproject.toml": PYTEST, "examples/c/pyproject.toml": PYTEST, "d/t.py": ""}
    found = look(files, VerifySettings(roots=("b", "examples/c", "./d/")))
    assert [(project.root, project.language) for project in found.projects] == [
        ("b", Language.PYTHON),
        ("d", Language.PYTHON),
        ("examples/c", Language.PYTHON),
    ]
    assert run_as_tests(found.checks) == {"b/pytest", "examples/c/pytest"}


def test_a_folder_that_was_named_in_vain_counts_as_missing() -> None:
    found = look({"a/pyproject.toml": PYTEST}, VerifySettings(roots=("nowhere",)))
    assert found.checks == ()
    (told,) = found.undiscovered
    assert told.required
    assert "nowhere" in reasons(found)["nowhere/named-root"]
