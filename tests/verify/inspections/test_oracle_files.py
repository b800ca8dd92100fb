"""Configuration of checks: what may be edited in it, and what lets more pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.oracle_files import oracle_files
from verify.inspections.changes import blocking, change, said

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

PYPROJECT = """
[project]
name = "shop"
version = "1.0"
dependencies = ["click"]

[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = "-ra --strict-markers"
filterwarnings = ["error"]
xfail_strict = true

[tool.ruff]
line-length = 100

[tool.ruff.lint]
select = ["E", "F"]
ignore = ["E501"]

[tool.ruff.lint.per-file-ignores]
"tests/**" = ["S"]

[tool.mypy]
strict = true
warn_unreachable = true

[tool.coverage.report]
fail_under = 90

[tool.black]
line-length = 100
"""
PACKAGE = """
{
  "name": "shop",
  "version": "1.0.0",
  "scripts": {"test": "jest", "lint": "eslint .", "start": "node ."},
  "dependencies": {"left-pad": "1.0.0"},
  "jest": {"testMatch": ["**/*.test.js"], "coverageThreshold": {"global": {"lines": 90}}},
  "eslintConfig": {"rules": {"no-unused-vars": "error", "eqeqeq": ["error", "always"]}}
}
"""
TSCONFIG = """
{
  // what we compile
  "compilerOptions": {"strict": true, "noUnusedLocals": true, "skipLibCheck": false, "target": "es2022",},
  "include": ["src"],
}
"""
WORKFLOW = """
name: ci
on:
  push:
    branches: [main]
  pull_request:
jobs:
  test:
    runs-on: ubuntu-latest
    strategy:
      matrix:
        python: ["3.11", "3.12"]
    steps:
      - uses: actions/checkout@v3
      - name: install
        run: pip install .
      - name: run tests
        run: pytest
      - run: ruff check .
  docs:
    runs-on: ubuntu-latest
    steps:
      - run: mkdocs build
"""
MAKEFILE = """
CFLAGS = -Wall -Werror
SRCS = shop.c

all: test lint

test: test_shop
	./test_shop

test_shop: test_shop.c shop.c
	$(CC) $(CFLAGS) -o test_shop test_shop.c shop.c

lint:
	ruff check .

clean:
	rm -f test_shop
"""
CMAKE = """
cmake_minimum_required(VERSION 3.20)
project(shop)
add_library(shop shop.cpp)
target_compile_options(shop PRIVATE -Wall -Werror)
enable_testing()
add_executable(test_shop test_shop.cpp)
add_test(NAME shop COMMAND test_shop)
"""
PRE_COMMIT = """
repos:
  - repo: https://github.com/astral-sh/ruff-pre-commit
    rev: v0.1.0
    hooks:
      - id: ruff
      - id: ruff-format
"""
CARGO = """
[package]
name = "shop"
version = "0.1.0"

[lints.clippy]
unwrap_used = "deny"
"""

LOOSER = [
    (
        "pyproject.toml",
        PYPROJECT,
        'ignore = ["E501"]',
        'ignore = ["E501", "F401"]',
        "[tool.ruff.lint] ignore: added 'F401'",
    ),
    ("pyproject.toml", PYPROJECT, 'select = ["E", "F"]', 'select = ["E"]', "[tool.ruff.lint] select: removed 'F'"),
    ("pyproject.toml", PYPROJECT, '["S"]', '["S", "F"]', "[tool.ruff.lint.per-file-ignores] tests/**: added 'F'"),
    (
        "pyproject.toml",
        PYPROJECT,
        '"tests/**" = ["S"]',
        '"tests/**" = ["S"]\n"src/a.py" = ["ALL"]',
        "src/a.py: added 'ALL'",
    ),
    (
        "pyproject.toml",
        PYPROJECT,
        "line-length = 100\n\n[tool.ruff.lint]",
        'line-length = 100\nexclude = ["src"]\n\n[tool.ruff.lint]',
        "[tool.ruff] exclude: added 'src'",
    ),
    (
        "pyproject.toml",
        PYPROJECT,
        "line-length = 100\n\n[tool.ruff.lint]",
        "line-length = 400\n\n[tool.ruff.lint]",
        "line-length",
    ),
    ("pyproject.toml", PYPROJECT, 'testpaths = ["tests"]', 'testpaths = ["tests/unit"]', "testpaths"),
    ("pyproject.toml", PYPROJECT, 'testpaths = ["tests"]', 'python_files = "check_*.py"', "python_files"),
    ("pyproject.toml", PYPROJECT, "--strict-markers", "--strict-markers -k 'not slow'", "addopts"),
    ("pyproject.toml", PYPROJECT, "--strict-markers", "--strict-markers --deselect tests/test_a.py", "addopts"),
    ("pyproject.toml", PYPROJECT, "--strict-markers", "--strict-markers --co", "addopts"),
    ("pyproject.toml", PYPROJECT, "-ra --strict-markers", "-ra", "addopts"),
    ("pyproject.toml", PYPROJECT, "--strict-markers", "--strict-markers tests/unit", "addopts"),
    ("pyproject.toml", PYPROJECT, 'filterwarnings = ["error"]', 'filterwarnings = ["ignore"]', "filterwarnings"),
    ("pyproject.toml", PYPROJECT, "xfail_strict = true", "xfail_strict = false", "xfail_strict"),
    ("pyproject.toml", PYPROJECT, "\nstrict = true", "\nstrict = false", "[tool.mypy] strict: `true` became `false`"),
    ("pyproject.toml", PYPROJECT, "\nstrict = true\n", "\n", "[tool.mypy] strict: removed"),
    (
        "pyproject.toml",
        PYPROJECT,
        "warn_unreachable = true",
        "warn_unreachable = true\nignore_errors = true",
        "ignore_errors",
    ),
    (
        "pyproject.toml",
        PYPROJECT,
        "warn_unreachable = true",
        'warn_unreachable = true\ndisable_error_code = ["attr"]',
        "disable_error_code",
    ),
    ("pyproject.toml", PYPROJECT, "fail_under = 90", "fail_under = 9", "fail_under"),
    ("pyproject.toml", PYPROJECT, "fail_under = 90", "", "fail_under"),
    ("pyproject.toml", PYPROJECT, "fail_under = 90", 'fail_under = 90\nexclude_also = ["def "]', "exclude_also"),
    (
        "setup.cfg",
        "[tool:pytest]\ntestpaths = tests\n",
        "testpaths = tests",
        "testpaths = tests/a",
        "[tool:pytest] testpaths",
    ),
    (
        "setup.cfg",
        "[flake8]\nmax-line-length = 100\n",
        "100\n",
        "100\nextend-ignore = E501, F401\n",
        "added 'E501', 'F401'",
    ),
    ("tox.ini", "[testenv]\ncommands = pytest\n", "= pytest", "= pytest tests/a", "[testenv] commands"),
    ("tox.ini", "[testenv]\ncommands = pytest\n", "= pytest", "= - pytest", "[testenv] commands"),
    (".flake8", "[flake8]\nselect = E,F\n", "E,F", "E", "select"),
    (".coveragerc", "[report]\nfail_under = 90\n", "90\n", "90\nomit = src/a.py\n", "omit"),
    ("ruff.toml", "[lint]\nselect = ['E']\n", "['E']", "['E']\nignore = ['E1']", "[lint] ignore"),
    ("mypy.ini", "[mypy]\nstrict = True\n", "True", "False", "[mypy] strict"),
    ("package.json", PACKAGE, '"test": "jest"', '"test": "jest || true"', "[scripts] test"),
    ("package.json", PACKAGE, '"test": "jest"', '"test": "exit 0"', "[scripts] test"),
    ("package.json", PACKAGE, '"test": "jest"', '"test": "echo ok"', "[scripts] test"),
    ("package.json", PACKAGE, '"test": "jest"', '"test": "jest src/a.test.js"', "[scripts] test"),
    ("package.json", PACKAGE, '"test": "jest"', '"pretest": "node patch.js", "test": "jest"', "[scripts] pretest"),
    ("package.json", PACKAGE, '"lint": "eslint ."', '"lint": "eslint src/a.js"', "[scripts] lint"),
    ("package.json", PACKAGE, '["**/*.test.js"]', '["a.test.js"]', "testMatch"),
    ("package.json", PACKAGE, '"testMatch"', '"testPathIgnorePatterns": ["b"], "testMatch"', "testPathIgnorePatterns"),
    ("package.json", PACKAGE, '{"lines": 90}', '{"lines": 10}', "lines"),
    ("package.json", PACKAGE, '"no-unused-vars": "error"', '"no-unused-vars": "off"', "no-unused-vars"),
    ("package.json", PACKAGE, '"no-unused-vars": "error"', '"no-unused-vars": "warn"', "no-unused-vars"),
    ("package.json", PACKAGE, '"no-unused-vars": "error"', '"no-unused-vars": 0', "no-unused-vars"),
    ("package.json", PACKAGE, '["error", "always"]', '["error", "smart"]', "eqeqeq"),
    ("package.json", PACKAGE, '"no-unused-vars": "error"', '"no-unused-vars": "error", "semi": "off"', "semi"),
    ("tsconfig.json", TSCONFIG, '"strict": true', '"strict": false', "[compilerOptions] strict"),
    ("tsconfig.json", TSCONFIG, '"noUnusedLocals": true, ', "", "noUnusedLocals"),
    ("tsconfig.json", TSCONFIG, '"skipLibCheck": false', '"skipLibCheck": true', "skipLibCheck"),
    ("tsconfig.json", TSCONFIG, '"include": ["src"]', '"include": ["src/a"]', "include"),
    ("tsconfig.json", TSCONFIG, '"include"', '"exclude": ["src/b"], "include"', "exclude"),
    (".eslintrc.json", '{"rules": {"eqeqeq": "error"}}', '"error"', '"off"', "[rules] eqeqeq"),
    (".eslintrc.yml", "rules:\n  eqeqeq: error\n", "error", "'off'", "[rules] eqeqeq"),
    ("eslint.config.js", 'export default [\n  { rules: { eqeqeq: "error" } },\n];\n', '"error"', '"off"', "off"),
    ("eslint.config.js", "export default [\n];\n", "[\n", '[\n  { ignores: ["src/a.js"] },\n', "ignores"),
    ("jest.config.js", "module.exports = {\n  testMatch: ['a'],\n};\n", "['a']", "['b']", "testMatch"),
    ("vitest.config.ts", "export default {\n};\n", "{\n", "{\n  passWithNoTests: true,\n", "passWithNoTests"),
    (".github/workflows/ci.yml", WORKFLOW, "run: pytest", "run: pytest || true", "run"),
    (".github/workflows/ci.yml", WORKFLOW, "run: pytest", "run: pytest -k fast", "run"),
    (".github/workflows/ci.yml", WORKFLOW, "run: pytest", "run: pytest tests/unit", "run"),
    (
        ".github/workflows/ci.yml",
        WORKFLOW,
        "run: pytest",
        "run: pytest\n        continue-on-error: true",
        "continue-on-error",
    ),
    (".github/workflows/ci.yml", WORKFLOW, "run: pytest", "run: pytest\n        if: false", "if"),
    (".github/workflows/ci.yml", WORKFLOW, "      - name: run tests\n        run: pytest\n", "", "run tests"),
    (".github/workflows/ci.yml", WORKFLOW, "      - run: ruff check .\n", "", "ruff check"),
    (".github/workflows/ci.yml", WORKFLOW, WORKFLOW[WORKFLOW.index("  docs:") :], "", "docs"),
    (".github/workflows/ci.yml", WORKFLOW, "  pull_request:\n", "", "pull_request"),
    (".github/workflows/ci.yml", WORKFLOW, '["3.11", "3.12"]', '["3.12"]', "matrix"),
    (
        ".github/workflows/ci.yml",
        WORKFLOW,
        "    runs-on: ubuntu-latest\n    strategy",
        "    if: false\n    runs-on: ubuntu-latest\n    strategy",
        "if",
    ),
    (
        ".gitlab-ci.yml",
        "test:\n  script:\n    - pytest\n",
        "- pytest\n",
        "- pytest\n  allow_failure: true\n",
        "allow_failure",
    ),
    (".pre-commit-config.yaml", PRE_COMMIT, "      - id: ruff-format\n", "", "ruff-format"),
    (".pre-commit-config.yaml", PRE_COMMIT, "- id: ruff\n", "- id: ruff\n        args: [--exit-zero]\n", "args"),
    ("Makefile", MAKEFILE, "	./test_shop\n", "	-./test_shop\n", "test"),
    ("Makefile", MAKEFILE, "	./test_shop\n", "	./test_shop || true\n", "test"),
    ("Makefile", MAKEFILE, "	./test_shop\n", "	@echo ok\n", "test"),
    ("Makefile", MAKEFILE, "	./test_shop\n", "", "test"),
    ("Makefile", MAKEFILE, "all: test lint", "all: lint", "test"),
    ("Makefile", MAKEFILE, "lint:\n	ruff check .\n\n", "", "lint"),
    ("Makefile", MAKEFILE, "-Wall -Werror", "-Wall", "CFLAGS"),
    ("Makefile", MAKEFILE, "-Wall -Werror", "-Wall -Werror -DNDEBUG", "CFLAGS"),
    ("Makefile", MAKEFILE, "-Wall -Werror", "-Wall -Werror -Wno-unused", "CFLAGS"),
    ("Makefile", MAKEFILE, "SRCS = shop.c", "SRCS = shop.c\nSHELL = /bin/true", "SHELL"),
    ("Makefile", MAKEFILE, "SRCS = shop.c", "SRCS = shop.c\n.IGNORE:", ".IGNORE"),
    ("Makefile", MAKEFILE, "clean:\n", "test:\n	true\n\nclean:\n", "twice"),
    ("CMakeLists.txt", CMAKE, "add_test(NAME shop COMMAND test_shop)\n", "", "add_test"),
    ("CMakeLists.txt", CMAKE, "COMMAND test_shop", "COMMAND true", "add_test"),
    ("CMakeLists.txt", CMAKE, "enable_testing()\n", "", "enable_testing"),
    ("CMakeLists.txt", CMAKE, "-Wall -Werror", "-Wall", "target_compile_options"),
    (
        "CMakeLists.txt",
        CMAKE,
        "COMMAND test_shop)",
        "COMMAND test_shop)\nset_tests_properties(shop PROPERTIES WILL_FAIL TRUE)",
        "WILL_FAIL",
    ),
    ("tests/CMakeLists.txt", CMAKE, "COMMAND test_shop", "COMMAND true", "add_test"),
    ("tests/Makefile", MAKEFILE, "	./test_shop\n", "	./test_shop || true\n", "test"),
    ("Cargo.toml", CARGO, '"deny"', '"allow"', "unwrap_used"),
    ("Cargo.toml", CARGO, "[lints.clippy]", "[lib]\ntest = false\n\n[lints.clippy]", "[lib] test"),
    ("pom.xml", "<plugin>surefire</plugin>\n", "</plugin>", "</plugin>\n<skipTests>true</skipTests>", "skipTests"),
    ("build.gradle", "test {\n}\n", "test {\n", "test {\n  ignoreFailures = true // tests\n", "ignoreFailures"),
    ("noxfile.py", "@nox.session\ndef tests(s):\n    s.run('pytest')\n", "'pytest'", "'true'", "pytest"),
    ("fairwitness.toml", "[verify]\nmutants = 20\n", "20", "0", "Fair Witness"),
]

HARMLESS = [
    ("pyproject.toml", PYPROJECT, '"1.0"', '"1.1"'),
    ("pyproject.toml", PYPROJECT, '["click"]', '["click", "rich"]'),
    ("pyproject.toml", PYPROJECT, 'ignore = ["E501"]', "ignore = []"),
    ("pyproject.toml", PYPROJECT, 'select = ["E", "F"]', 'select = ["E", "F", "B"]'),
    ("pyproject.toml", PYPROJECT, 'testpaths = ["tests"]', 'testpaths = ["tests", "more"]'),
    ("pyproject.toml", PYPROJECT, "--strict-markers", "--strict-markers --strict-config -v"),
    ("pyproject.toml", PYPROJECT, "xfail_strict = true", 'xfail_strict = true\nmarkers = ["slow"]'),
    ("pyproject.toml", PYPROJECT, "warn_unreachable = true", "warn_unreachable = true\nwarn_return_any = true"),
    ("pyproject.toml", PYPROJECT, "fail_under = 90", "fail_under = 95"),
    ("pyproject.toml", PYPROJECT, "[tool.black]\nline-length = 100", "[tool.black]\nline-length = 88"),
    ("pyproject.toml", PYPROJECT, "line-length = 100\n\n[tool.ruff.lint]", "line-length = 88\n\n[tool.ruff.lint]"),
    ("pyproject.toml", PYPROJECT, "[tool.mypy]", "# a comment\n[tool.mypy]"),
    ("setup.cfg", "[metadata]\nname = shop\n", "shop", "shop2"),
    ("package.json", PACKAGE, '"1.0.0",', '"1.0.1",'),
    ("package.json", PACKAGE, '"left-pad": "1.0.0"', '"left-pad": "1.0.0", "x": "1"'),
    ("package.json", PACKAGE, '"start": "node ."', '"start": "node index.js"'),
    ("package.json", PACKAGE, '"start": "node ."', '"start": "node .", "bench": "node bench.js"'),
    ("package.json", PACKAGE, '"test": "jest"', '"test": "jest --coverage"'),
    ("package.json", PACKAGE, '"no-unused-vars": "error"', '"no-unused-vars": "error", "semi": "error"'),
    ("tsconfig.json", TSCONFIG, '"target": "es2022"', '"target": "es2023"'),
    ("tsconfig.json", TSCONFIG, '"strict": true', '"strict": true, "noImplicitReturns": true'),
    ("tsconfig.json", TSCONFIG, "// what we compile", "// what we do compile"),
    (".eslintrc.json", '{"rules": {"eqeqeq": "warn"}}', '"warn"', '"error"'),
    (".github/workflows/ci.yml", WORKFLOW, "checkout@v3", "checkout@v4"),
    (".github/workflows/ci.yml", WORKFLOW, "run: pip install .", "run: pip install .[dev]"),
    (
        ".github/workflows/ci.yml",
        WORKFLOW,
        "      - run: ruff check .\n",
        "      - run: ruff check .\n      - run: mypy src\n",
    ),
    (".github/workflows/ci.yml", WORKFLOW, '["3.11", "3.12"]', '["3.11", "3.12", "3.13"]'),
    (
        ".github/workflows/ci.yml",
        WORKFLOW,
        "  docs:\n",
        "  more:\n    runs-on: x\n    steps:\n      - run: pytest\n        if: always()\n  docs:\n",
    ),
    (".pre-commit-config.yaml", PRE_COMMIT, "v0.1.0", "v0.2.0"),
    (".pre-commit-config.yaml", PRE_COMMIT, "      - id: ruff\n", "      - id: ruff\n      - id: more\n"),
    (
        "Makefile",
        MAKEFILE,
        "test: test_shop\n	./test_shop\n",
        "test: test_shop test_more\n	./test_shop\n	./test_more\n",
    ),
    ("Makefile", MAKEFILE, "test_shop.c shop.c\n\nlint", "test_shop.c shop.c till.c\n\nlint"),
    ("Makefile", MAKEFILE, "SRCS = shop.c", "SRCS = shop.c till.c"),
    ("Makefile", MAKEFILE, "-Wall -Werror", "-Wall -Werror -Wextra"),
    ("Makefile", MAKEFILE, "rm -f test_shop", "rm -rf test_shop build"),
    ("Makefile", MAKEFILE, "clean:\n", "docs:\n	mkdocs build\n\nclean:\n"),
    ("CMakeLists.txt", CMAKE, "add_library(shop shop.cpp)", "add_library(shop shop.cpp till.cpp)"),
    ("CMakeLists.txt", CMAKE, "COMMAND test_shop)", "COMMAND test_shop)\nadd_test(NAME till COMMAND test_till)"),
    ("CMakeLists.txt", CMAKE, "enable_testing()", "# tests\nENABLE_TESTING()"),
    ("Cargo.toml", CARGO, '"0.1.0"', '"0.2.0"\n\n[dependencies]\nserde = "1"'),
    ("Cargo.toml", CARGO, '"deny"', '"forbid"'),
    ("requirements-dev.txt", "pytest==8.0\n", "8.0", "8.1"),
    ("docs/guide.md", "pytest -k x\n", "x", "y"),
    ("src/app.py", "ignore = 1\n", "1", "2"),
]


@pytest.mark.parametrize(("path", "before", "old", "new", "says"), LOOSER)
def test_a_setting_that_lets_more_pass_blocks_and_is_named(
    path: str, before: str, old: str, new: str, says: str
) -> None:
    assert old in before
    findings = oracle_files([ChangedText.between(path, before, before.replace(old, new, 1))])
    assert any(says in finding.text for finding in findings if finding.blocks), findings


@pytest.mark.parametrize(("path", "before", "old", "new"), HARMLESS)
def test_a_stricter_or_unrelated_setting_does_not_block(path: str, before: str, old: str, new: str) -> None:
    assert old in before
    assert blocking(oracle_files([ChangedText.between(path, before, before.replace(old, new, 1))])) == set()


@pytest.mark.parametrize(
    ("path", "text", "rules"),
    [
        ("pytest.ini", "[pytest]\n", {"config-changed"}),
        ("ruff.toml", "line-length = 100\n", set()),
        ("ruff.toml", "[lint]\nignore = ['F']\n", {"config-changed"}),
        ("mypy.ini", "[mypy]\nstrict = True\n", set()),
        ("Makefile", "test:\n	pytest\n", set()),
        ("Makefile", "test:\n	pytest || true\n", {"config-changed"}),
        (".github/workflows/more.yml", WORKFLOW, set()),
        ("sitecustomize.py", "import sys\n", {"test-config-hook"}),
        ("src/fake.pth", "import sys\n", {"test-config-hook"}),
        ("pytest/__init__.py", "def main(): return 0\n", {"test-config-hook"}),
        ("unittest.py", "", {"test-config-hook"}),
        ("src/shop/pytester.py", "", set()),
        ("tests/pytest.py", "", {"test-config-hook"}),
        ("src/shop/reports/unittest.py", "", set()),
        ("tests/unittest/test_shop.py", "", set()),
    ],
)
def test_a_new_file_that_steers_checks(path: str, text: str, rules: set[str]) -> None:
    assert blocking(oracle_files([ChangedText.between(path, None, text)])) == rules


@pytest.mark.parametrize("path", ["pyproject.toml", "pytest.ini", "ruff.toml", ".github/workflows/ci.yml", "Makefile"])
def test_a_file_that_steers_checks_may_not_go(path: str) -> None:
    assert blocking(oracle_files([ChangedText.between(path, "x\n", None)])) == {"config-changed"}


CONFTEST = """
import pytest


@pytest.fixture
def cart():
    return [1]


def pytest_addoption(parser):
    parser.addoption("--slow")
"""
FORGED = {
    "report hook": "def pytest_runtest_makereport(item, call):\n    pass\n",
    "collection hook": "def pytest_collection_modifyitems(items):\n    items.clear()\n",
    "hook with a wrapper": "@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_call(item):\n    yield\n",
    "exit": "import os\nos._exit(0)\n",
    "exit in a fixture": "@pytest.fixture\ndef x():\n    import os\n    os._exit(0)\n",
    "exit at the end": "import atexit, os\natexit.register(lambda: os._exit(0))\n",
    "insides of pytest": "from _pytest.reports import TestReport\n",
    "insides of pytest, whole": "import _pytest.runner\n",
    "replaced attribute": "import shop\nshop.total = lambda x: 3\n",
    "replaced module": "import sys\nsys.modules['shop'] = None\n",
    "autouse patch": "@pytest.fixture(autouse=True)\ndef x(monkeypatch):\n    monkeypatch.setattr('shop.total', sum)\n",
    "autouse assignment": "@pytest.fixture(autouse=True)\ndef x():\n    shop.total = sum\n",
    "autouse mock": "@pytest.fixture(autouse=True)\ndef x():\n    with patch('shop.total'):\n        yield\n",
    "fixture of pytest": "@pytest.fixture\ndef monkeypatch():\n    return None\n",
    "ignored files": "collect_ignore = ['test_shop.py']\n",
    "ignored pattern": "collect_ignore_glob = ['*.py']\n",
    "plugins": "pytest_plugins = ['fake']\n",
    "call": "install_fake()\n",
    "path": "import sys\nsys.path.insert(0, 'fake')\n",
}


@pytest.mark.parametrize("text", FORGED.values(), ids=FORGED.keys())
@pytest.mark.parametrize("before", [None, CONFTEST])
def test_a_conftest_that_can_change_results_blocks(text: str, before: str | None) -> None:
    findings = oracle_files(
        [ChangedText.between("tests/conftest.py", before, (before or "import pytest\n") + "\n" + text)]
    )
    assert blocking(findings) == {"test-config-hook"}


def test_a_new_conftest_with_plain_fixtures_is_said_and_does_not_block() -> None:
    text = '''
    """Fixtures."""
    import pytest
    from shop import Till

    SIZE = 3


    def helper():
        return SIZE


    @pytest.fixture
    def till(tmp_path):
        return Till(tmp_path, helper())
    '''
    assert said(oracle_files([change("tests/conftest.py", None, text)])) == {("test-config-fixture", False)}


def test_a_new_fixture_beside_old_ones_does_not_block() -> None:
    more = CONFTEST + "\n\n@pytest.fixture\ndef till():\n    return 1\n"
    assert said(oracle_files([ChangedText.between("conftest.py", CONFTEST, more)])) == {("test-config-fixture", False)}


def test_a_moved_hook_is_no_finding() -> None:
    hook = CONFTEST[CONFTEST.index("def pytest_addoption") :]
    moved = CONFTEST.replace(hook, "").replace("@pytest.fixture", hook + "\n\n@pytest.fixture")
    assert oracle_files([ChangedText.between("conftest.py", CONFTEST, moved)]) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [("return [1]", "return [2]"), ('parser.addoption("--slow")', "parser.x()"), (CONFTEST, "def broken(:\n")],
)
def test_a_changed_conftest_blocks(old: str, new: str) -> None:
    findings = oracle_files([ChangedText.between("conftest.py", CONFTEST, CONFTEST.replace(old, new))])
    assert any(finding.blocks for finding in findings)


def test_a_conftest_that_is_gone_blocks() -> None:
    assert blocking(oracle_files([ChangedText.between("conftest.py", CONFTEST, None)])) == {"test-config-hook"}


def test_settings_that_cannot_be_read_are_compared_line_by_line() -> None:
    broken = "[tool.ruff.lint\nselect = ['E']\n"
    findings = oracle_files([ChangedText.between("ruff.toml", broken, broken.replace("'E'", "'F'"))])
    assert blocking(findings) == {"config-changed"}


PATHS = st.sampled_from(
    [
        "pyproject.toml",
        "setup.cfg",
        "package.json",
        "Makefile",
        "CMakeLists.txt",
        ".github/workflows/a.yml",
        "ruff.toml",
        "conftest.py",
        "tsconfig.json",
        ".eslintrc",
        "eslint.config.js",
        "Cargo.toml",
        ".pre-commit-config.yaml",
        "pom.xml",
    ]
)


@given(PATHS, st.none() | st.text(), st.none() | st.text())
def test_no_text_makes_it_raise(path: str, before: str | None, after: str | None) -> None:
    oracle_files([ChangedText.between(path, before, after)])


LINES = "\n".join([PYPROJECT, PACKAGE, WORKFLOW, MAKEFILE, CMAKE]).splitlines(keepends=True)
SHUFFLED = st.lists(st.sampled_from(LINES), max_size=20).map("".join)


@given(PATHS, SHUFFLED, SHUFFLED)
def test_no_shuffled_settings_make_it_raise(path: str, before: str, after: str) -> None:
    oracle_files([ChangedText.between(path, before, after)])


def test_a_line_that_continues_a_key_without_a_value_is_compared_by_lines() -> None:
    (finding,) = oracle_files([ChangedText.between("tox.ini", "[pytest]\nkey\n", "[pytest]\nkey\n  more\n")])
    assert finding.text == "1 lines are new"
