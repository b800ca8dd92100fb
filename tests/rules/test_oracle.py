"""Which files judge a change, what the protected tree does with them, and which settings of mixed files differ."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.rules.oracle import (
    ORACLES,
    PROTECTIONS,
    WHOLE,
    PathChange,
    PathKind,
    Protection,
    SettingTurn,
    is_oracle,
    kind_of_path,
    mixed_sections,
    protected_paths,
)

PATHS = (
    *("tests/test_a.py", "tests/data/a.json", "tests/pyproject.toml", "src/pkg/test_b.py", "pkg/b_test.py", "tests.py"),
    *("src/a.test.ts", "src/a.spec.jsx", "web/test-util.mjs", "cypress/e2e/x.cy.js", "src/__snapshots__/a.snap"),
    *("pkg/sum_test.go", "src/tests.rs", "src/sum_tests.rs", "test/sum.c", "unittest.cpp", "src/sum_test.cc"),
    *(
        "src/test/java/org/SumTest.java",
        "src/main/java/org/TestKit.java",
        "lib/SumSpec.scala",
        "spec/a_spec.rb",
        "t/a.t",
    ),
    *(
        "conftest.py",
        "tests/conftest.py",
        "pytest.ini",
        "noxfile.py",
        ".coveragerc",
        "jest.config.js",
        "vitest.config.ts",
    ),
    *("vitest.workspace.json", "playwright.config.ts", "src/setupTests.ts", ".mocharc.json", "sitecustomize.py"),
    *(
        "ruff.toml",
        ".flake8",
        "mypy.ini",
        "eslint.config.mjs",
        ".eslintrc.json",
        "tsconfig.json",
        "tsconfig.build.json",
    ),
    *(".pre-commit-config.yaml", "clippy.toml", ".clang-tidy", ".golangci.yml", ".secrets.baseline", "web/biome.json"),
    *(".github/workflows/ci.yml", ".gitlab-ci.yml", "Jenkinsfile", "ci/run.sh", ".circleci/config.yml", "CODEOWNERS"),
    *("pyproject.toml", "sub/package.json", "setup.cfg", "tox.ini"),
    *("Makefile", "rules.mk", "CMakeLists.txt", "cmake/find.cmake", "setup.py", "Cargo.toml", "build.rs", "go.mod"),
    *(
        "pom.xml",
        "build.gradle.kts",
        "Dockerfile",
        "Dockerfile.dev",
        "requirements-dev.txt",
        "vite.config.ts",
        "fairwitness.toml",
    ),
    *(".cargo/config.toml", "gradle/wrapper/gradle-wrapper.properties", ".npmrc"),
    *("uv.lock", "package-lock.json", "go.sum", "Cargo.lock", "pnpm-lock.yaml"),
    *("README.md", "docs/conf.py", "LICENSE", ".editorconfig", ".gitignore", ".vscode/settings.json"),
    *("src/latest.py", "src/contest.js", "app/tasks.py", "src/testing/kit.py", "locales/it/a.json", "src/attest.c", ""),
)


@pytest.mark.req("P9", "X1")
def test_what_each_path_is_to_a_change() -> None:
    table: dict[str, list[str]] = {kind.value: [] for kind in PathKind}
    for path in PATHS:
        table[kind_of_path(path).value].append(path)
    assert table == snapshot(
        {
            "test": [
                "tests/test_a.py",
                "tests/data/a.json",
                "tests/pyproject.toml",
                "src/pkg/test_b.py",
                "pkg/b_test.py",
                "tests.py",
                "src/a.test.ts",
                "src/a.spec.jsx",
                "web/test-util.mjs",
                "cypress/e2e/x.cy.js",
                "src/__snapshots__/a.snap",
                "pkg/sum_test.go",
                "src/tests.rs",
                "src/sum_tests.rs",
                "test/sum.c",
                "unittest.cpp",
                "src/sum_test.cc",
                "src/test/java/org/SumTest.java",
                "src/main/java/org/TestKit.java",
                "lib/SumSpec.scala",
                "spec/a_spec.rb",
                "t/a.t",
            ],
            "test-config": [
                "conftest.py",
                "tests/conftest.py",
                "pytest.ini",
                "noxfile.py",
                ".coveragerc",
                "jest.config.js",
                "vitest.config.ts",
                "vitest.workspace.json",
                "playwright.config.ts",
                "src/setupTests.ts",
                ".mocharc.json",
                "sitecustomize.py",
            ],
            "lint-config": [
                "ruff.toml",
                ".flake8",
                "mypy.ini",
                "eslint.config.mjs",
                ".eslintrc.json",
                "tsconfig.json",
                "tsconfig.build.json",
                ".pre-commit-config.yaml",
                "clippy.toml",
                ".clang-tidy",
                ".golangci.yml",
                ".secrets.baseline",
                "web/biome.json",
            ],
            "ci": [
                ".github/workflows/ci.yml",
                ".gitlab-ci.yml",
                "Jenkinsfile",
                "ci/run.sh",
                ".circleci/config.yml",
                "CODEOWNERS",
            ],
            "build-config": [
                "Makefile",
                "rules.mk",
                "CMakeLists.txt",
                "cmake/find.cmake",
                "setup.py",
                "Cargo.toml",
                "build.rs",
                "go.mod",
                "pom.xml",
                "build.gradle.kts",
                "Dockerfile",
                "Dockerfile.dev",
                "requirements-dev.txt",
                "vite.config.ts",
                "fairwitness.toml",
                ".cargo/config.toml",
                "gradle/wrapper/gradle-wrapper.properties",
                ".npmrc",
            ],
            "mixed-config": ["pyproject.toml", "sub/package.json", "setup.cfg", "tox.ini"],
            "lock": ["uv.lock", "package-lock.json", "go.sum", "Cargo.lock", "pnpm-lock.yaml"],
            "docs": ["README.md", "docs/conf.py", "LICENSE", ".editorconfig", ".gitignore", ".vscode/settings.json"],
            "production": [
                "src/latest.py",
                "src/contest.js",
                "app/tasks.py",
                "src/testing/kit.py",
                "locales/it/a.json",
                "src/attest.c",
                "",
            ],
        }
    )


@pytest.mark.req("X1")
def test_what_judges_a_change_is_an_oracle_and_what_it_is_made_of_is_not() -> None:
    assert set(PathKind) - ORACLES == {PathKind.LOCK, PathKind.DOCS, PathKind.PRODUCTION}
    for path in PATHS:
        assert is_oracle(path) == (kind_of_path(path) in ORACLES)


@pytest.mark.req("X1")
@settings(max_examples=300)
@given(st.text(max_size=40), st.sampled_from(["tests", "__tests__", "spec", "TESTS"]))
def test_every_path_has_a_kind_and_everything_in_a_test_folder_judges(path: str, folder: str) -> None:
    kind_of_path(path)
    assert is_oracle(f"{folder}/{path}")
    assert is_oracle(f"a/{folder}/{path}")


@pytest.mark.req("X1")
def test_the_protected_tree_has_the_bases_oracles_and_none_that_are_new() -> None:
    assert set(PROTECTIONS) == set(PathChange)
    changes = [
        ("tests/test_old.py", PathChange.MODIFIED),
        ("tests/test_gone.py", PathChange.DELETED),
        ("conftest.py", PathChange.ADDED),
        ("src/a.py", PathChange.MODIFIED),
        ("pyproject.toml", PathChange.MODIFIED),
        ("uv.lock", PathChange.MODIFIED),
        ("docs/a.md", PathChange.ADDED),
    ]
    told = [
        f"{one.path} ({one.kind.value}, {one.status.value}): {one.protection.value}" for one in protected_paths(changes)
    ]
    assert told == snapshot(
        [
            "conftest.py (test-config, A): nothing",
            "pyproject.toml (mixed-config, M): the base's version",
            "tests/test_gone.py (test, D): the base's version",
            "tests/test_old.py (test, M): the base's version",
        ]
    )
    assert protected_paths([]) == ()
    assert all(
        (one.protection is Protection.ABSENT) == (one.status is PathChange.ADDED) for one in protected_paths(changes)
    )


def _told(path: str, before: str | None, after: str | None) -> list[str]:
    return [f"{'oracle' if one.oracle else 'project'}: {one.text}" for one in mixed_sections(path, before, after)]


PYPROJECT = """
top = 1
[project]
name = "a"
dependencies = ["x"]
[build-system]
requires = ["hatchling"]
[dependency-groups]
dev = ["pytest"]
[tool.ruff.lint]
ignore = []
select = ["E"]
[tool.pytest.ini_options]
addopts = "-q"
[tool.coverage.report]
fail_under = 90
[tool.hatch.version]
path = "a.py"
[tool.hatch.envs.default.scripts]
test = "pytest"
[tool.poetry.group.dev.dependencies]
pytest = "^8"
[tool.pdm.scripts]
test = "pytest"
"""


@pytest.mark.req("X1")
def test_settings_of_pyproject_are_named_and_only_those_that_judge_are_oracles() -> None:
    new = (
        PYPROJECT.replace("ignore = []", 'ignore = ["E501"]')
        .replace('select = ["E"]\n', "")
        .replace('"-q"', '"-q --co"')
        .replace("fail_under = 90", "fail_under = 90\nomit = ['a']")
        .replace('["x"]', '["x", "y"]')
        .replace('"hatchling"', '"flit"')
        .replace('dev = ["pytest"]', "dev = []")
        .replace('path = "a.py"', 'path = "b.py"')
        .replace('"^8"', '"^9"')
        .replace('test = "pytest"', 'test = "true"')
        .replace("top = 1", "top = true")
    )
    assert _told("sub/pyproject.toml", PYPROJECT, new) == snapshot(
        [
            "project: [build-system] requires changed",
            "project: [dependency-groups] dev changed",
            "project: [project] dependencies changed",
            "oracle: [tool.coverage.report] omit added",
            "oracle: [tool.hatch.envs.default.scripts] test changed",
            "project: [tool.hatch.version] path changed",
            "oracle: [tool.pdm.scripts] test changed",
            "project: [tool.poetry.group.dev.dependencies] pytest changed",
            "oracle: [tool.pytest.ini_options] addopts changed",
            "oracle: [tool.ruff.lint] ignore changed",
            "oracle: [tool.ruff.lint] select removed",
            "oracle: top changed",
        ]
    )


@pytest.mark.req("X1")
def test_settings_of_package_json_are_named_and_what_nobody_knows_is_an_oracle() -> None:
    old = {"name": "a", "scripts": {"test": "jest"}, "dependencies": {"x": "1"}, "jest": {"bail": False}, "odd": 1}
    new = {
        "name": "b",
        "scripts": {"test": "true"},
        "dependencies": {},
        "jest": {"bail": 0},
        "odd": 2,
        "eslintConfig": {},
    }
    assert _told("package.json", json.dumps(old), json.dumps(new)) == snapshot(
        [
            "project: dependencies added",
            "project: dependencies.x removed",
            "oracle: eslintConfig added",
            "oracle: jest.bail changed",
            "project: name changed",
            "oracle: odd changed",
            "oracle: scripts.test changed",
        ]
    )


@pytest.mark.req("X1")
def test_settings_of_setup_cfg_and_tox_ini_are_named() -> None:
    old = "[metadata]\nname = a\n[options.extras_require]\nx = y\n[tool:pytest]\naddopts = -q\n[flake8]\nignore =\n"
    new = "[metadata]\nname = b\n[options.extras_require]\nx = z\n[tool:pytest]\naddopts = %s\n"
    assert _told("setup.cfg", old, new) == snapshot(
        [
            "oracle: [flake8] ignore removed",
            "project: [metadata] name changed",
            "project: [options.extras_require] x changed",
            "oracle: [tool:pytest] addopts changed",
        ]
    )
    assert _told("tox.ini", "[testenv]\ndeps = a\n", "[testenv]\ndeps = b\ncommands\n") == snapshot(
        ["oracle: [testenv] commands added", "oracle: [testenv] deps changed"]
    )


@pytest.mark.req("X1")
def test_a_file_that_comes_or_goes_has_all_its_settings_added_or_removed() -> None:
    text = "[tool.mypy]\nstrict = true\n[project]\nname = 'a'\n"
    assert _told("pyproject.toml", None, text) == snapshot(
        ["project: [project] name added", "oracle: [tool.mypy] strict added"]
    )
    assert _told("pyproject.toml", text, None) == snapshot(
        ["project: [project] name removed", "oracle: [tool.mypy] strict removed"]
    )
    assert _told("pyproject.toml", None, None) == []
    assert _told("package.json", "{}", None) == snapshot(["oracle: the whole file removed"])


@pytest.mark.req("X1")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pyproject.toml", "[tool"),
        ("pyproject.toml", "a = " + "[" * 100_000),
        ("package.json", "{"),
        ("package.json", "[1]"),
        ("package.json", "[" * 100_000),
        ("setup.cfg", "no section"),
        ("tox.ini", "[a]\nx = 1\nx = 2\n"),
    ],
)
def test_a_file_that_cannot_be_read_differs_as_a_whole_and_is_an_oracle(path: str, text: str) -> None:
    (section,) = mixed_sections(path, text, "")
    assert (section.name, section.turn, section.oracle) == (WHOLE, SettingTurn.UNREADABLE, True)
    assert mixed_sections(path, text, text) == ()


@pytest.mark.req("X1")
def test_an_order_of_keys_a_comment_and_nothing_else_is_no_difference() -> None:
    assert (
        _told(
            "package.json", '{"jest": {"a": 1, "b": [{"c": 1, "d": 2}]}}', '{"jest": {"b": [{"d": 2, "c": 1}], "a": 1}}'
        )
        == []
    )
    assert _told("pyproject.toml", "[tool.ruff]\na = nan", "# why\n[tool.ruff]\na = nan") == []


@pytest.mark.req("X1")
def test_tables_below_the_depth_that_is_taken_apart_differ_as_one() -> None:
    old, new = (f"[tool.x.a.b.c.d]\ne = {value}\nf = {value}\n" for value in (1, 2))
    assert _told("pyproject.toml", old, new) == snapshot(["oracle: [tool.x.a.b.c] d changed"])


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "scripts", "jest", "name"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.req("X1")
@settings(max_examples=200)
@given(
    st.dictionaries(st.sampled_from(["name", "jest", "scripts", "dependencies"]), VALUES),
    st.dictionaries(st.sampled_from(["name", "jest", "scripts", "dependencies"]), VALUES),
)
def test_two_files_differ_exactly_if_some_setting_does_and_both_ways_alike(
    old: dict[str, object], new: dict[str, object]
) -> None:
    there = mixed_sections("package.json", json.dumps(old), json.dumps(new))
    back = mixed_sections("package.json", json.dumps(new), json.dumps(old))
    assert (there == ()) == (json.dumps(old, sort_keys=True) == json.dumps(new, sort_keys=True))
    assert [one.name for one in there] == [one.name for one in back]
    assert {one.name.split(".")[0] for one in there if not one.oracle} <= {"name", "dependencies"}
