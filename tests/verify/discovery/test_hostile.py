"""Repositories written to break whoever reads them: discovery answers in time, and never with an exception."""

import json
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairwitness.contracts.verify.checks import Discovered, VerifySettings
from fairwitness.verify.discovery.documents import UnreadableDocument, ini_of, json_of, toml_of
from fairwitness.verify.discovery.files import PATHS_LIMIT, READ_LIMIT, UNSEEN
from fairwitness.verify.discovery.programs import NODE_REPORTER, NODE_SYNTAX, PYTHON_IMPORTS, PYTHON_SYNTAX
from fairwitness.verify.discovery.repository_checks import discover
from verify.discovery.repository import look, offers, reasons
from verify.discovery.tree_files import MappingFiles

PATIENCE_S = 20.0
MEGABYTE = READ_LIMIT - 100
NAMES = [
    *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "pytest.ini", "requirements.txt", "Pipfile", "mypy.ini"),
    *("package.json", "tsconfig.json", "pnpm-workspace.yaml", "lerna.json", "Cargo.toml", "go.mod", "pom.xml"),
    *("build.gradle", "CMakeLists.txt", "Makefile", ".pre-commit-config.yaml", "ruff.toml", "test_a.py", "tests/t.c"),
]


def found_in(files: dict[str, bytes]) -> Discovered:
    """What discovery finds, in a bounded time."""
    began = time.process_time()  # of this process alone: the machine may be busy
    found = discover(MappingFiles(files), VerifySettings())
    assert time.process_time() - began < PATIENCE_S
    return found


def filled(pattern: str) -> bytes:
    """A megabyte of a pattern."""
    return (pattern * (MEGABYTE // len(pattern))).encode()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 1000,
        b"\xff\xfe\x00[tool]",
        b"\xef\xbb\xbf{}",
        b"x" * (READ_LIMIT + 1),
        b"[" * 100_000,
        b"{" * 100_000,
        b'{"a":' * 50_000,
        b"a = 1\na = 2\n",
        b'{"scripts": {"test": 5}, "workspaces": 7, "name": []}',
        b'{"scripts": [], "dependencies": ["x"], "workspaces": {"packages": {}}}',
        b"[tool]\npytest = 1\nruff = 2\nmypy = []\nblack = 'x'\npoetry = 1\nhatch = 1\nsetuptools = 1\n",
        b"[tool.setuptools]\npackages = 'x'\npackage-dir = []\n[tool.poetry]\npackages = 3\n",
        b"[project]\ndependencies = 1\n[dependency-groups]\ndev = 1\n",
        b"[workspace]\nmembers = 1\nexclude = 2\n",
        b"test: test\n\t$(MAKE) test\n",
        b"packages: &a [*a]\n",
    ],
    ids=lambda content: repr(content[:20]),
)
def test_a_manifest_of_any_content_is_survived(name: str, content: bytes) -> None:
    found_in({name: content, "pkg/__init__.py": b"", f"sub/{name}": content})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("pyproject.toml", filled("a.") + b"b = 1"),
        ("pyproject.toml", filled("[[a.b]]\n")),
        ("pyproject.toml", b"a = " + b"1" * 500_000),
        ("setup.cfg", b"[tool:pytest]\nx" + filled(" ") + b"y"),
        ("setup.cfg", b"[a]\n" + filled("x   y\n")),
        ("tox.ini", filled("[")),
        ("tsconfig.json", filled("/*")),
        ("tsconfig.json", filled('"files" : [ ')),
        ("Makefile", filled("test")),
        ("Makefile", filled("test:\n\tcargo x\n")),
        ("Makefile", filled("\n") + b"test:\n\t./x\n"),
        ("CMakeLists.txt", filled("include ( ")),
        ("test_a.py", filled("\n \t")),
        ("test_a.py", b"class " + filled("A(")),
        ("tests/t.c", filled("\n")),
        ("test/a.js", b"from" + filled(" ")),
        ("one.py", filled("a.")),
        ("setup.py", filled('"a')),
        ("package.json", json.dumps({"name": "x", "scripts": {"test": "a " * 400_000}}).encode()),
        ("package.json", json.dumps({"name": "x", "scripts": {"test": "npm run test && npm run test"}}).encode()),
        ("package.json", json.dumps({"name": "x", "workspaces": ["*a" * 100 + "/**" * 60] * 3000}).encode()),
    ],
    ids=lambda value: repr(value[:25]),
)
def test_no_file_takes_longer_than_its_size(name: str, content: bytes) -> None:
    around = {"Cargo.toml": b"", "package.json": b'{"name": "x"}', "Makefile": b"test:\n\t./x\n", "setup.py": b""}
    found_in({**around, "/".join(["a" * 50] * 10) + "/package.json": b'{"name": "y"}', name: content})


def test_a_manifest_that_cannot_be_read_counts_as_missing_and_the_rest_is_found() -> None:
    found = look({"pyproject.toml": "[tool.pytest\n", "test_a.py": "def test_a(): pass\n", "api/setup.cfg": "[mypy]\n"})
    assert {"pytest", "api/mypy"} <= set(offers(found))
    (told,) = found.undiscovered
    assert (told.id, told.required) == ("pyproject.toml", True)
    assert "line 1" in told.reason


def test_reasons_are_harmless_to_a_terminal() -> None:
    found = look({"a\x1b[31m/pyproject.toml": "[\x1b]0;x\x07", "b\x1bc/package.json": "{"})
    assert len(found.undiscovered) == 2
    for told in found.undiscovered:
        assert (told.reason + told.found_in + told.id).isprintable()


def test_paths_that_lead_out_are_not_looked_at() -> None:
    odd = [
        "../pyproject.toml",
        "/etc/pyproject.toml",
        "a//pyproject.toml",
        "a/../pyproject.toml",
        "\udcff/setup.py",
        "",
    ]
    assert found_in(dict.fromkeys(odd, b"[tool.ruff]")) == discover(MappingFiles({}), VerifySettings())


@pytest.mark.parametrize("folder", sorted(UNSEEN))
def test_folders_that_hold_nothing_of_the_repositorys_own_are_not_looked_at(folder: str) -> None:
    assert found_in({f"a/{folder}/package.json": b"{}"}) == discover(MappingFiles({}), VerifySettings())


def test_no_name_of_a_folder_becomes_an_option_of_a_command() -> None:
    files = {"-x/__init__.py": "", "--help/__init__.py": "", "pyproject.toml": "[tool.mypy]\n[tool.pytest]\n"}
    files |= {
        "-p/tests/test_a.py": "import unittest\nclass A(unittest.TestCase): pass\n",
        "{python}/pyproject.toml": "",
    }
    for check in look(files).checks:
        assert not {"-x", "--help", "-p/tests", "-p/tests/test_a.py"} & set(check.argv), check.argv


def test_a_huge_tree_is_cut_and_that_counts_as_missing() -> None:
    found = found_in(dict.fromkeys((f"d{number}/f" for number in range(PATHS_LIMIT + 1)), b""))
    (told,) = found.undiscovered
    assert told.required
    assert f"more than {PATHS_LIMIT} files" in told.reason


def test_a_forest_of_manifests_is_survived() -> None:
    names = ("package.json", "Cargo.toml", "pom.xml", "CMakeLists.txt")
    files = {f"p{number}/{'q/' * (number % 20)}{name}": b"{}" for number in range(5_000) for name in names}
    found = found_in({**files, "package.json": b'{"name": "x", "workspaces": ["**"], "scripts": {"test": "jest"}}'})
    assert "more-projects" in reasons(found)


def test_no_program_of_ours_holds_a_placeholder() -> None:
    for program in (NODE_REPORTER, NODE_SYNTAX, PYTHON_IMPORTS, PYTHON_SYNTAX):
        for place in ("{python}", "{report}", "{tmp}", "{root}", "{ids}", "{node_modules}", "{env}"):
            assert place not in program
        assert "\0" not in program


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["scripts", "test", "name", "workspaces", "packages", "devDependencies", "lint"])
            | st.text(max_size=8),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)
TOML_WORDS = st.lists(
    st.sampled_from(
        [
            *("[tool.pytest.ini_options]", "[tool.mypy]", "[tool.ruff]", "[workspace]", "[build-system]", "[project]"),
            *("[[", "]", "files = 1", "dependencies = [1, {}]", "where = ['..', '/', '']", "a.b.c = 1", "x = [[]]"),
            *("[tool.setuptools.packages.find]", "[[tool.poetry.packages]]", "from = 3", "[tool.hatch.envs]"),
        ]
    ),
    max_size=8,
).map("\n".join)
MAKE_WORDS = st.lists(
    st.sampled_from(
        ["test:", "check: test", "\t./x", "\tpytest", "lint :: all", "\t$(MAKE) test", "all: ; cc", "#", "\\"]
    ),
    max_size=10,
).map("\n".join)
CONTENT = st.one_of(
    st.binary(max_size=200),
    PLAIN.map(json.dumps).map(str.encode),
    TOML_WORDS.map(str.encode),
    MAKE_WORDS.map(str.encode),
    st.text(max_size=200).map(lambda text: text.encode(errors="replace")),
)
FOLDERS = st.sampled_from(["", "src/", "api/", "api/tests/", "packages/a/", "pkg/", "node_modules/x/", "ü b/", "-x/"])


@pytest.mark.req("X5")
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.builds("{}{}".format, FOLDERS, st.sampled_from([*NAMES, "__init__.py", "a.js"])), CONTENT, max_size=8
    ),
    st.none() | st.lists(FOLDERS, max_size=3).map(tuple),
)
def test_discovery_never_raises(files: dict[str, bytes], roots: tuple[str, ...] | None) -> None:
    wanted = VerifySettings(roots=roots)
    found = discover(MappingFiles(files), wanted)
    ids = [check.id for check in found.checks]
    assert len(set(ids)) == len(ids)
    assert found == discover(MappingFiles(dict(reversed(files.items()))), wanted)


@given(st.text())
def test_readers_of_manifests_answer_or_say_why(text: str) -> None:
    assert isinstance(toml_of(text), dict | UnreadableDocument)
    json_of(text)
    assert isinstance(ini_of(text), dict)


def test_an_ini_file_is_read_as_its_tools_read_it() -> None:
    text = "junk\n[a]\nk = v\n  more\n; c\n# c\nE: x = y\nalone\n[b ] ]\n[a]\nk2=\n"
    assert ini_of(text) == {"a": {"k": "v\nmore", "e": "x = y", "alone": "", "k2": ""}, "b": {}}
