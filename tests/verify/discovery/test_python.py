"""What a Python repository offers: its tests by the runner it uses, and every check it configures."""

import pytest

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.verify.checks import LONG_S, QUICK_S, Language
from fairwitness.rules.evidence_worth import kind_of
from verify.discovery.repository import Offer, check_of, look, offers

PYTEST = {"pytest": ("tests", "junit")}
UNITTEST = {"unittest": ("tests", "unittest")}
SYNTAX = {"python-syntax": ("syntax-check", "compiler")}
IMPORTS = {"python-imports": ("import-check", "compiler")}
BARE = "def test_it():\n    assert True\n"
CASE = "import unittest\n\nclass TestIt(unittest.TestCase):\n    def test_it(self):\n        pass\n"
PACKAGE = {"pkg/__init__.py": ""}

OFFERS = [
    Offer("nothing", {}, {}),
    Offer("prose only", {"README.md": "# hello"}, {}),
    Offer("a stray script below the top", {"scripts/gen.py": "print(1)"}, {}),
    Offer("pyproject with pytest", {"pyproject.toml": "[tool.pytest.ini_options]\n"}, PYTEST),
    Offer("pyproject with pytest 9's own table", {"pyproject.toml": "[tool.pytest]\nminversion = '9'\n"}, PYTEST),
    Offer("pytest.ini", {"pytest.ini": "[pytest]\n"}, PYTEST),
    Offer("pytest.toml", {"pytest.toml": "[pytest]\n"}, PYTEST),
    Offer("tox.ini with pytest", {"tox.ini": "[pytest]\ntestpaths = t\n"}, PYTEST),
    Offer("tox.ini without", {"tox.ini": "[tox]\nenvlist = py311\n"}, {}),
    Offer("setup.cfg with pytest", {"setup.cfg": "[tool:pytest]\naddopts = -q\n"}, PYTEST),
    Offer("setup.cfg without", {"setup.cfg": "[metadata]\nname = x\n"}, {}),
    Offer("a bare test function", {"test_a.py": BARE}, PYTEST | SYNTAX),
    Offer("a file named at its end", {"a_test.py": BARE}, PYTEST | SYNTAX),
    Offer("an import of pytest", {"tests/test_a.py": "import pytest\n"}, PYTEST | SYNTAX),
    Offer("test cases", {"tests/test_a.py": CASE}, UNITTEST | SYNTAX),
    Offer("test cases and a conftest", {"tests/test_a.py": CASE, "conftest.py": ""}, PYTEST | SYNTAX),
    Offer(
        "test cases, pytest required",
        {"tests/test_a.py": CASE, "pyproject.toml": "[dependency-groups]\ndev = ['pytest>=8']\n"},
        PYTEST | SYNTAX,
    ),
    Offer(
        "test cases, pytest in a list of requirements",
        {"tests/test_a.py": CASE, "requirements-dev.txt": "# tools\npytest==8.0\n"},
        PYTEST | SYNTAX,
    ),
    Offer(
        "test cases, pytest among poetry's",
        {"tests/test_a.py": CASE, "pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = '*'\n"},
        PYTEST | SYNTAX,
    ),
    Offer(
        "test cases, pytest in setup.py",
        {"tests/test_a.py": CASE, "setup.py": "setup(extras_require={'test': ['pytest']})\n"},
        PYTEST | SYNTAX,
    ),
    Offer(
        "test cases, a plugin of pytest required",
        {"tests/test_a.py": CASE, "requirements.txt": "pytest-django\n"},
        UNITTEST | SYNTAX,
    ),
    Offer(
        "test cases in two folders",
        {"tests/test_a.py": CASE, "more/test_b.py": CASE},
        {"unittest-more": ("tests", "unittest")} | UNITTEST | SYNTAX,
    ),
    Offer(
        "Django",
        {"manage.py": "main()\n", "shop/__init__.py": "", "shop/tests.py": f"from django.test import TestCase\n{CASE}"},
        {"django": ("tests", "unittest")} | SYNTAX | IMPORTS,
    ),
    Offer("tests that were copied in", {"vendor/x/test_a.py": BARE, ".venv/test_b.py": BARE}, {}),
    Offer("tests that are shown only", {"a.py": "", "tests/fixtures/test_a.py": BARE}, SYNTAX | IMPORTS),
    Offer("a package", {**PACKAGE}, SYNTAX | IMPORTS),
    Offer("a package below src", {"pyproject.toml": "", "src/pkg/__init__.py": ""}, SYNTAX | IMPORTS),
    Offer("ruff", {"pyproject.toml": "[tool.ruff]\nline-length = 100\n"}, {"ruff": ("lint", "ruff")}),
    Offer("ruff in its own file", {"ruff.toml": "", "a.py": ""}, {"ruff": ("lint", "ruff")} | SYNTAX | IMPORTS),
    Offer(
        "ruff's formatter",
        {"pyproject.toml": "[tool.ruff.format]\nquote-style = 'single'\n"},
        {"ruff": ("lint", "ruff"), "ruff-format": ("lint", "exit")},
    ),
    Offer("black", {"pyproject.toml": "[tool.black]\n"}, {"black": ("lint", "exit")}),
    Offer("flake8", {"pyproject.toml": "", ".flake8": "[flake8]\n"}, {"flake8": ("lint", "flake8")}),
    Offer("flake8 in tox.ini", {"tox.ini": "[flake8]\n"}, {"flake8": ("lint", "flake8")}),
    Offer("mypy", {"pyproject.toml": "[tool.mypy]\nstrict = true\n"}, {"mypy": ("type-check", "mypy")}),
    Offer("mypy in its own file", {"mypy.ini": "[mypy]\n"}, {"mypy": ("type-check", "mypy")}),
    Offer("mypy in setup.cfg", {"setup.cfg": "[mypy]\n"}, {"mypy": ("type-check", "mypy")}),
    Offer("pyright", {"pyproject.toml": "[tool.pyright]\n"}, {"pyright": ("type-check", "pyright")}),
    Offer(
        "pyright in its own file",
        {"setup.py": "", "pyrightconfig.json": "{}"},
        {"pyright": ("type-check", "pyright")} | SYNTAX,
    ),
    Offer("basedpyright", {"pyproject.toml": "[tool.basedpyright]\n"}, {"basedpyright": ("type-check", "pyright")}),
    Offer(
        "a build", {"pyproject.toml": "[build-system]\nrequires = ['hatchling']\n"}, {"python-build": ("build", "exit")}
    ),
    Offer(
        "tools nobody configured", {"pyproject.toml": "[project]\nname = 'x'\ndependencies = ['ruff', 'mypy']\n"}, {}
    ),
    Offer("pre-commit", {".pre-commit-config.yaml": "repos: []\n"}, {"pre-commit": ("lint", "exit")}),
]


@pytest.mark.req("P9")
@pytest.mark.req("X5")
@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.says)
def test_a_python_repository_offers_what_it_configures(offer: Offer) -> None:
    assert offers(look(offer.files)) == offer.checks


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.says)
def test_every_check_has_a_name_that_the_registry_knows(offer: Offer) -> None:
    for check in look(offer.files).checks:
        kind = kind_of(check.name, Phase.AFTER)
        assert kind is not None
        assert kind.tier == check.tier


def test_only_tests_are_required_and_slow_things_have_time() -> None:
    found = look({"pyproject.toml": "[tool.pytest.ini_options]\n[tool.mypy]\n[tool.ruff]\n[build-system]\n", **PACKAGE})
    assert {check.id for check in found.checks if check.required} == {"pytest"}
    assert {check.id for check in found.checks if check.timeout_s == LONG_S} == {"pytest", "mypy", "python-build"}
    assert {check.timeout_s for check in found.checks} == {LONG_S, QUICK_S}
    assert {check.id for check in found.checks if check.writes} == {"pytest", "python-build"}


def test_pytest_is_told_last_to_run_everything_and_to_report() -> None:
    check = check_of(look({"pytest.ini": "[pytest]\naddopts = -x --junitxml=elsewhere.xml\n"}), "pytest")
    assert check.argv[:7] == ("{python}", "-m", "pytest", "-o", "junit_family=xunit1", "--junitxml={report}", "-q")
    assert {"no:cacheprovider", "--maxfail=0", "--continue-on-collection-errors", "--rootdir={root}"} <= set(check.argv)
    assert check.report_on == "file"
    assert check.select == (*check.argv, "{ids}")


@pytest.mark.parametrize("option", ["--lf", "--failed-first", "--stepwise"])
def test_a_project_that_asks_for_the_cache_has_one_outside_the_tree(option: str) -> None:
    argv = check_of(look({"pytest.ini": f"[pytest]\naddopts = -q {option}\n"}), "pytest").argv
    assert "cache_dir={tmp}/pytest" in argv
    assert "no:cacheprovider" not in argv


def test_unittest_starts_above_the_outermost_package() -> None:
    packaged = {"tests/__init__.py": "", "tests/unit/__init__.py": "", "tests/unit/test_a.py": CASE}
    whole = check_of(look(packaged), "unittest")
    assert whole.argv == ("{python}", "-m", "unittest", "discover", "-v", "-s", ".")
    assert whole.select == ("{python}", "-m", "unittest", "-v", "{ids}")
    assert whole.report_on == "stderr"
    loose = check_of(look({"tests/test_a.py": CASE}), "unittest")
    assert loose.argv[-2:] == ("-s", "tests")
    assert loose.select is None
    ended = check_of(look({"tests/a_test.py": CASE}), "unittest-suffixed")
    assert ended.argv[-4:] == ("-s", "tests", "-p", "*_test.py")


def test_a_new_folder_of_tests_renames_no_other() -> None:
    one = {"tests/test_a.py": CASE, "zoo/test_z.py": CASE}
    assert {check.id for check in look(one).checks if check.required} == {"unittest", "unittest-zoo"}
    two = {**one, "apart/test_b.py": CASE}
    assert {check.id for check in look(two).checks if check.required} == {"unittest", "unittest-zoo", "unittest-apart"}
    assert check_of(look(one), "unittest") == check_of(look(two), "unittest")


def test_test_cases_that_cannot_be_started_are_said() -> None:
    found = look({f"d{number}/test_a.py": CASE for number in range(12)} | {"with space/test_b.py": CASE})
    assert len([check for check in found.checks if check.name == "tests"]) == 10
    assert [told.required for told in found.undiscovered] == [True, True, True]


@pytest.mark.parametrize(
    ("files", "targets"),
    [
        ({"pyproject.toml": "[tool.mypy]\nfiles = ['lib']\n", **PACKAGE}, ()),
        ({"mypy.ini": "[mypy]\npackages = pkg\n", **PACKAGE}, ()),
        ({"pyproject.toml": "[tool.mypy]\n", **PACKAGE}, ("pkg",)),
        ({"pyproject.toml": "[tool.mypy]\n", "a.py": "", **PACKAGE}, ("a.py", "pkg")),
        ({"pyproject.toml": "[tool.mypy]\n", "src/pkg/a.py": ""}, ("src",)),
        (
            {"pyproject.toml": "[tool.mypy]\n[tool.setuptools.packages.find]\nwhere=['lib']\n", "lib/p/a.py": ""},
            ("lib",),
        ),
        ({"pyproject.toml": "[tool.mypy]\n"}, (".",)),
    ],
)
def test_mypy_looks_at_what_is_configured_or_at_the_projects_own_packages(
    files: dict[str, str], targets: tuple[str, ...]
) -> None:
    argv = check_of(look(files), "mypy").argv
    assert argv[argv.index("--cache-dir={tmp}/mypy") + 1 :] == targets


@pytest.mark.parametrize(
    ("files", "packages", "sources"),
    [
        ({"setup.py": "", "pkg/__init__.py": "", "tests/__init__.py": "", "docs/__init__.py": ""}, ("pkg",), (".",)),
        ({"pyproject.toml": "", "src/a/__init__.py": "", "src/b/c.py": "", "src/d.py": ""}, ("a", "b", "d"), ("src",)),
        ({"setup.py": "", "one.py": "", "manage.py": "", "test_one.py": "", "conftest.py": ""}, ("one",), (".",)),
        ({"setup.cfg": "[options]\npackage_dir =\n    = lib\n", "lib/pkg/__init__.py": ""}, ("pkg",), ("lib",)),
        (
            {"pyproject.toml": "[tool.poetry]\npackages = [{include = 'pkg', from = 'code'}]\n", "code/pkg/a.py": ""},
            ("pkg",),
            ("code",),
        ),
        (
            {"pyproject.toml": "[tool.hatch.build.targets.wheel]\npackages = ['lib/pkg']\n", "lib/pkg/__init__.py": ""},
            ("pkg",),
            ("lib",),
        ),
        ({"pyproject.toml": "", "src/build/__init__.py": ""}, ("build",), ("src",)),
        ({"pyproject.toml": "", "not-a-name/__init__.py": "", "with space/__init__.py": ""}, (), (".",)),
    ],
)
def test_a_projects_own_packages_and_their_folders_are_found(
    files: dict[str, str], packages: tuple[str, ...], sources: tuple[str, ...]
) -> None:
    (project,) = look(files).projects
    assert (project.language, project.packages, project.sources) == (Language.PYTHON, packages, sources)


def test_every_file_that_decides_the_environment_is_named() -> None:
    names = [
        "pyproject.toml",
        "setup.py",
        "setup.cfg",
        "requirements.txt",
        "requirements-dev.txt",
        "uv.lock",
        "poetry.lock",
    ]
    names += ["Pipfile", "Pipfile.lock", "requirements/base.txt", "constraints.txt", "pdm.lock"]
    (project,) = look(dict.fromkeys([*names, "README.md", "a.py"], "")).projects
    assert sorted(project.manifests) == sorted(names)


def test_only_what_can_be_imported_without_doing_anything_is_imported() -> None:
    found = look(
        {
            "setup.py": "",
            "pkg/__init__.py": "",
            "quiet.py": "import os\n\ndef main():\n    print(1)\n\nif __name__ == '__main__':\n    main()\n",
            "loud.py": "import os\nos.remove('x')\n",
            "manage.py": "",
            "tests/__init__.py": "",
        }
    )
    argv = check_of(found, "python-imports").argv
    assert argv[argv.index("--") + 1 :] == ("pkg", "quiet")
