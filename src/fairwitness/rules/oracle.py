"""Oracle files: the files that judge a change (tests, and the configuration of tests, linters, builds and CI).

Only the path decides, so a file's content cannot exempt it. In doubt a file is an oracle: a change to an oracle is
reported, a change to production code is expected. Files that mix dependencies with tool settings are compared setting
by setting.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from configparser import ConfigParser
from configparser import Error as BadIni
from enum import StrEnum
from typing import Any, NamedTuple

from fairwitness.rules.risk import is_documentation

WHOLE = "the whole file"
_DEPTH = 6


class SettingTurn(StrEnum):
    """How one setting changed."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNREADABLE = "cannot be read"


class Section(NamedTuple):
    """One setting that differs between the two versions."""

    name: str
    """`[tool.ruff.lint] ignore`, `scripts.test`."""
    turn: SettingTurn
    oracle: bool
    """Whether it affects how the change is judged; dependencies and metadata do not."""

    @property
    def text(self) -> str:
        return f"{self.name} {self.turn.value}"


_TOML_PROJECT = frozenset({"project", "build-system", "dependency-groups"})
_PACKAGING_TOOLS = frozenset(
    {"poetry", "pdm", "uv", "hatch", "setuptools", "setuptools_scm", "setuptools-scm", "flit", "rye", "maturin"}
    | {"scikit-build", "versioneer", "towncrier", "commitizen", "bumpversion", "semantic_release", "hatch-vcs"}
)
_STEERS = frozenset({"scripts", "envs", "tasks"})
"""Tables of packaging tools that define how tests are run."""
_JSON_PROJECT = frozenset(
    {"dependencies", "devDependencies", "peerDependencies", "peerDependenciesMeta", "optionalDependencies"}
    | {"bundledDependencies", "bundleDependencies", "overrides", "resolutions", "engines", "engineStrict", "os", "cpu"}
    | {"name", "version", "description", "keywords", "homepage", "bugs", "license", "author", "contributors", "funding"}
    | {"files", "main", "module", "browser", "bin", "man", "directories", "repository", "private", "publishConfig"}
    | {"exports", "imports", "types", "typings", "sideEffects", "type", "packageManager", "unpkg", "typesVersions"}
)
_INI_PROJECT = frozenset({"metadata", "options", "bdist_wheel", "egg_info", "sdist", "install", "build_ext", "upload"})


def mixed_sections(path: str, before: str | None, after: str | None) -> tuple[Section, ...]:
    """Return the settings of a file that differ; None stands for no file. An unreadable file differs as a whole.

    >>> old, new = "[tool.ruff.lint]\\nignore = []", "[tool.ruff.lint]\\nignore = ['E501']"
    >>> [section.text for section in mixed_sections("pyproject.toml", old, new)]
    ['[tool.ruff.lint] ignore changed']
    """
    if before == after:
        return ()
    try:
        old, new = _settings(path, before), _settings(path, after)
        return tuple(_differences(path, old, new))
    except (ValueError, BadIni, RecursionError):
        return (Section(WHOLE, SettingTurn.UNREADABLE, oracle=True),)


Settings = Mapping[tuple[str, ...], str]
"""Every setting by its path in the file, with its value as text."""


def _settings(path: str, text: str | None) -> Settings:
    if text is None:
        return {}
    name = path.rpartition("/")[2].lower()
    if name.endswith(".toml"):
        return dict(_leaves((), tomllib.loads(text)))
    if name.endswith(".json"):
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("not an object")
        return dict(_leaves((), value))
    ini = ConfigParser(interpolation=None, default_section="", allow_no_value=True)
    ini.read_string(text)
    return {(section, key): repr(value) for section in ini.sections() for key, value in ini.items(section)}


def _leaves(way: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and value and len(way) < _DEPTH:
        for key, inner in value.items():
            yield from _leaves((*way, key), inner)
    else:
        # as text, because true equals 1 in Python, and the order of keys is irrelevant
        yield way, json.dumps(value, sort_keys=True, default=repr)


def _differences(path: str, old: Settings, new: Settings) -> Iterator[Section]:
    for way in sorted({*old, *new}):
        if old.get(way) != new.get(way):
            turn = (
                SettingTurn.ADDED if way not in old else SettingTurn.REMOVED if way not in new else SettingTurn.CHANGED
            )
            yield Section(_name(path, way), turn, oracle=_steers(path, way))


def _name(path: str, way: tuple[str, ...]) -> str:
    if not way:
        return WHOLE
    if path.endswith(".json"):
        return ".".join(way)
    *table, key = way
    return f"[{'.'.join(table)}] {key}" if table else key


def _steers(path: str, way: tuple[str, ...]) -> bool:
    """Return True if a setting may change a verdict; unknown settings may."""
    if not way:
        return True
    name = path.rpartition("/")[2].lower()
    if name.endswith(".json"):
        return way[0] not in _JSON_PROJECT
    if name.endswith(".toml"):
        if way[0] in _TOML_PROJECT:
            return False
        return way[:1] != ("tool",) or len(way) < 2 or way[1] not in _PACKAGING_TOOLS or not _STEERS.isdisjoint(way[2:])
    return name == "tox.ini" or way[0].split(".", 1)[0] not in _INI_PROJECT


class PathKind(StrEnum):
    """The kind of a path."""

    TEST = "test"
    """Tests and everything in their folders: helpers, fixtures, data, snapshots."""
    TEST_CONFIG = "test-config"
    LINT_CONFIG = "lint-config"
    CI = "ci"
    BUILD_CONFIG = "build-config"
    MIXED_CONFIG = "mixed-config"
    """Dependencies, tests and linters in one file; `mixed_sections` separates them."""
    LOCK = "lock"
    DOCS = "docs"
    PRODUCTION = "production"


ORACLES = frozenset(
    {
        PathKind.TEST,
        PathKind.TEST_CONFIG,
        PathKind.LINT_CONFIG,
        PathKind.CI,
        PathKind.BUILD_CONFIG,
        PathKind.MIXED_CONFIG,
    }
)


def _names(*words: str) -> re.Pattern[str]:
    """Return one pattern for names in which `*` matches anything."""
    return re.compile("|".join(re.escape(word).replace(r"\*", ".*") for word in words))


_SCRIPT = r"[cm]?[jt]s"
_MIXED = _names("pyproject.toml", "setup.cfg", "package.json", "tox.ini")
_TEST_CONFIG = re.compile(
    _names(
        *("conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "noxfile.py", ".coveragerc*"),
        *("codecov.yml", ".codecov.yml", ".mocharc*", ".nycrc*", ".taprc", "karma.conf.*", "wdio.conf.*", ".rspec"),
        *("phpunit.xml*", "ctestconfig.cmake", "ctestcustom.cmake*", "sitecustomize.py", "usercustomize.py"),
        *("nextest.toml", "tarpaulin.toml", ".tarpaulin.toml", "mutmut_config.py", ".testcaferc*", "cypress.json"),
    ).pattern
    + r"|(?:jest|vitest|playwright|cypress|ava|nyc|c8)\.(?:config|setup|workspace|projects)(?:\..+)?"
    + rf"\.(?:{_SCRIPT}|json)"
    + rf"|(?:setup-?tests?|test-?setup|global-?setup|global-?teardown)\.{_SCRIPT}x?"
)
_LINT_CONFIG = _names(
    *("ruff.toml", ".ruff.toml", ".flake8", "mypy.ini", ".mypy.ini", ".pylintrc", "pylintrc", "pyrightconfig.json"),
    *(".pydocstyle*", ".bandit", ".isort.cfg", ".style.yapf", ".yamllint*", ".importlinter", ".pre-commit-config.y*ml"),
    *("tslint.json", "tsconfig.json", "tsconfig.*.json", "jsconfig.json", ".eslintrc*", ".eslintignore", "biome.json*"),
    *("eslint.config.*", ".prettierrc*", ".prettierignore", "prettier.config.*", ".stylelintrc*", "stylelint.config.*"),
    *("clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml", "deny.toml", ".clang-tidy", ".clang-format"),
    *(".cppcheck*", ".golangci.*", ".semgrepignore", ".semgrep.yml", "checkstyle*.xml", "pmd*.xml", "spotbugs*.xml"),
    *(".markdownlint*", ".shellcheckrc", ".gitleaks.toml", ".secrets.baseline", "sonar-project.properties"),
    *(".hadolint.yaml", "commitlint.config.*"),
)
_CI_FOLDERS = (".github", ".circleci", ".buildkite", ".gitlab", ".woodpecker", ".ci", "ci")
_CI_NAMES = _names(
    *(".gitlab-ci.yml", ".gitlab-ci.yaml", "jenkinsfile*", ".travis.yml", "azure-pipelines*.yml", ".drone.yml"),
    *("bitbucket-pipelines.yml", "appveyor.yml", ".appveyor.yml", ".cirrus.yml", "cloudbuild.yaml", "buildspec.yml"),
    *(".woodpecker.yml", "dependabot.yml", "codeowners", "renovate.json"),
)
_BUILD_NAMES = _names(
    *("makefile", "gnumakefile", "*.mk", "cmakelists.txt", "*.cmake", "cmakepresets.json", "configure.ac", "*.am"),
    *("meson.build", "meson_options.txt", "build.ninja", "justfile", "taskfile.y*ml", "rakefile", "vite.config.*"),
    *("setup.py", "manifest.in", "hatch.toml", "pdm.toml", "requirements*.txt", "constraints*.txt", "requirements*.in"),
    *(
        "environment.y*ml",
        "pipfile",
        ".python-version",
        "cargo.toml",
        "build.rs",
        "rust-toolchain*",
        "go.mod",
        "go.work",
    ),
    *(
        "pom.xml",
        "build.gradle*",
        "settings.gradle*",
        "gradle.properties",
        "gradlew*",
        "mvnw*",
        "build.sbt",
        "build.xml",
    ),
    *(
        "gemfile",
        "composer.json",
        "*.csproj",
        "*.sln",
        "directory.build.props",
        "global.json",
        "mix.exs",
        "package.swift",
    ),
    *("dockerfile*", "*.dockerfile", "containerfile*", "docker-compose*.y*ml", "compose.y*ml", ".dockerignore"),
    *("webpack.config.*", "rollup.config.*", "babel.config.*", ".babelrc*", "esbuild.*js", "tsup.config.*", ".swcrc"),
    *("lerna.json", "nx.json", "turbo.json", "pnpm-workspace.yaml", "deno.json*", "gruntfile.*", "gulpfile.*"),
    *("build.zig", "workspace", "workspace.bazel", "build.bazel", "module.bazel", ".bazelrc", "fairwitness.toml"),
    *(".npmrc", ".yarnrc*", ".nvmrc", ".node-version", ".tool-versions", ".gitattributes", "flake.nix", "shell.nix"),
)
_BUILD_FOLDERS = (".cargo", ".mvn", "gradle/wrapper")
_FOR_PEOPLE = _names(".editorconfig", ".gitignore", ".mailmap", ".gitkeep", ".git-blame-ignore-revs")
_LOCK_NAMES = _names(
    *("*.lock", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "go.sum", "go.work.sum", "*.lockb"),
    *("gradle.lockfile", "*.lock.hcl", "package.resolved", "pylock*.toml", "flake.lock", "composer.lock"),
)
_TEST_FOLDERS = frozenset(
    {"test", "tests", "__tests__", "spec", "testdata", "test-data", "test_data", "testsuite", "unittests"}
    | {"__snapshots__", "__mocks__", "e2e", "cypress", "playwright", "integration-tests", "integration_tests"}
)
_TEST_NAMES = re.compile(
    r"test_.+\.pyi?|.+_tests?\.pyi?|tests?\.py"
    rf"|.+\.(?:test|spec|e2e|cy)\.{_SCRIPT}x?|(?:.+[-_])?tests?\.{_SCRIPT}x?|test[-_].+\.{_SCRIPT}x?"
    r"|.+_test\.go|tests?\.rs|test_.+\.rs|.+_tests?\.rs"
    r"|(?:.+[-_.])?(?:unit)?tests?\.(?:c|cc|cpp|cxx|h|hpp|hh)|tests?[-_].+\.(?:c|cc|cpp|cxx|h|hpp|hh)"
    r"|.+_spec\.rb|.+_test\.rb|.+_test\.exs?|.+\.bats|.+\.t"
    r"|.+\.(?:snap|ambr|golden|approved(?:\.\w+)?)"
)
_TEST_CLASSES = re.compile(
    r"(?:Test[A-Z0-9_].*|.+(?:Tests?|TestCase|IT|Spec))\.(?:java|kt|kts|scala|groovy|cs|swift|php)"
)


def kind_of_path(path: str) -> PathKind:
    """Return the kind of a path, relative to the repository.

    >>> [kind_of_path(path).value for path in ("tests/data/a.json", "src/a.py", "pyproject.toml", "Jenkinsfile")]
    ['test', 'production', 'mixed-config', 'ci']
    """
    folders, name = path.lower().split("/")[:-1], path.rpartition("/")[2]
    low = name.lower()
    if _TEST_CONFIG.fullmatch(low):
        return PathKind.TEST_CONFIG
    if _is_below(folders, _CI_FOLDERS) or _CI_NAMES.fullmatch(low):
        return PathKind.CI
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(low) or _TEST_CLASSES.fullmatch(name):
        return PathKind.TEST
    if _MIXED.fullmatch(low):
        return PathKind.MIXED_CONFIG
    if _LINT_CONFIG.fullmatch(low):
        return PathKind.LINT_CONFIG
    if _LOCK_NAMES.fullmatch(low):
        return PathKind.LOCK
    if _BUILD_NAMES.fullmatch(low) or _is_below(folders, _BUILD_FOLDERS):
        return PathKind.BUILD_CONFIG
    if is_documentation(path) or _FOR_PEOPLE.fullmatch(low) or _is_below(folders, (".vscode", ".idea")):
        return PathKind.DOCS
    return PathKind.PRODUCTION


def _is_below(folders: Sequence[str], known: Sequence[str]) -> bool:
    place = "/".join(folders) + "/"
    return any(place.startswith(folder + "/") for folder in known)


def is_oracle(path: str) -> bool:
    """Return True if a file judges the change."""
    return kind_of_path(path) in ORACLES


class PathChange(StrEnum):
    """How a change affected a path, in git's letters."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"


class Protection(StrEnum):
    """What is placed at an oracle's path when new code is judged by the old rules."""

    OLD = "the base's version"
    ABSENT = "nothing"


PROTECTIONS: Mapping[PathChange, Protection] = {
    PathChange.ADDED: Protection.ABSENT,
    PathChange.MODIFIED: Protection.OLD,
    PathChange.DELETED: Protection.OLD,
}


class Protected(NamedTuple):
    """One oracle file that the change touches."""

    path: str
    kind: PathKind
    status: PathChange
    protection: Protection


def protected_paths(changes: Sequence[tuple[str, PathChange]]) -> tuple[Protected, ...]:
    """Return how the protected tree treats each changed oracle file, ordered by path.

    >>> changes = [("tests/t.py", PathChange.ADDED), ("src/a.py", PathChange.ADDED)]
    >>> [(one.path, one.protection.value) for one in protected_paths(changes)]
    [('tests/t.py', 'nothing')]
    """
    return tuple(
        Protected(path, kind_of_path(path), status, PROTECTIONS[status])
        for path, status in sorted(changes)
        if is_oracle(path)
    )
