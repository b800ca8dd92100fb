"""Which files judge a change rather than make it: tests, and what steers tests, linters, builds and CI.

Judged by the path alone, so that nothing a file says about itself counts. In doubt a file is an oracle: a change to one
is shown, a change to production code is what was asked for.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from fairwitness.rules.mixed_config import Section, Turn, mixed_sections
from fairwitness.rules.risk import is_documentation

__all__ = [
    "ORACLES",
    "PROTECTIONS",
    "PathKind",
    "Protected",
    "Protection",
    "Section",
    "Status",
    "Turn",
    "is_oracle",
    "kind_of_path",
    "mixed_sections",
    "protected_paths",
]


class PathKind(StrEnum):
    """What a path is to a change."""

    TEST = "test"
    """Tests and everything in their folders: helpers, fixtures, data, snapshots."""
    TEST_CONFIG = "test-config"
    LINT_CONFIG = "lint-config"
    CI = "ci"
    BUILD_CONFIG = "build-config"
    MIXED_CONFIG = "mixed-config"
    """Dependencies, tests and linters in one file: `mixed_sections` tells its parts apart."""
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
    """One pattern of shell-like names: `*` is anything."""
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
    """What a path, relative to the repository, is to a change.

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
    """Whether a file judges the change."""
    return kind_of_path(path) in ORACLES


class Status(StrEnum):
    """What a change did to a path, as git spells it."""

    ADDED = "A"
    MODIFIED = "M"
    DELETED = "D"


class Protection(StrEnum):
    """What stands at an oracle's path when the new code is judged by the old rules."""

    OLD = "the base's version"
    ABSENT = "nothing"


PROTECTIONS: Mapping[Status, Protection] = {
    Status.ADDED: Protection.ABSENT,
    Status.MODIFIED: Protection.OLD,
    Status.DELETED: Protection.OLD,
}


class Protected(NamedTuple):
    """One oracle file that the change touches."""

    path: str
    kind: PathKind
    status: Status
    protection: Protection


def protected_paths(changes: Sequence[tuple[str, Status]]) -> tuple[Protected, ...]:
    """What the protected tree does with each changed oracle file, in the order of the paths.

    >>> changes = [("tests/t.py", Status.ADDED), ("src/a.py", Status.ADDED)]
    >>> [(one.path, one.protection.value) for one in protected_paths(changes)]
    [('tests/t.py', 'nothing')]
    """
    return tuple(
        Protected(path, kind_of_path(path), status, PROTECTIONS[status])
        for path, status in sorted(changes)
        if is_oracle(path)
    )
