"""Inspect changed and new configuration of tests, linters, builds and CI, setting by setting.

Each finding names the section and the key. What lets more pass than before, or makes fewer tests run, blocks; what is
stricter or has nothing to do with checks is said and does not.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath

from fairwitness.rules.oracle import PathKind, kind_of_path
from fairwitness.verify.inspections.build_files import ci_changes, cmake_changes, line_judgements, makefile_changes
from fairwitness.verify.inspections.config_changes import (
    SettingChange,
    SettingJudgement,
    changes_between,
    judge,
    keeps_command,
    loosens_text,
)
from fairwitness.verify.inspections.config_values import NotRead, Settings, settings_of
from fairwitness.verify.inspections.config_words import CHECKING
from fairwitness.verify.inspections.conftest_hooks import conftest_changes, shadowing
from fairwitness.verify.inspections.model import (
    FINDINGS_PER_FILE,
    ChangedText,
    FindingRule,
    InspectionFinding,
    bounded,
    finding_at,
)

_CHECKING_TOOLS = frozenset(
    {"pytest", "coverage", "tox", "nox", "ruff", "mypy", "pyright", "basedpyright", "pylint", "flake8", "bandit"}
    | {"pydocstyle", "importlinter", "hatch", "poe", "taskipy", "pdm", "ty", "interrogate", "doit", "unittest"}
)
_SETUP_SECTIONS = ("tool:pytest", "pytest", "flake8", "mypy", "coverage", "testenv", "tox", "pylint", "pycodestyle")
_PACKAGE_SECTIONS = frozenset(
    {"jest", "mocha", "ava", "c8", "nyc", "eslintConfig", "vitest", "tap", "lint-staged", "husky"}
)
_HOOK_SCRIPTS = ("pre", "post")
_DEPENDENCIES = re.compile(
    r"(requirements|constraints).*|environment\.ya?ml|pipfile|go\.(mod|work)|manifest\.in|\.gitattributes|\.npmrc|"
    r"\.(python|node)-version|\.tool-versions|\.nvmrc|rust-toolchain.*|.*dockerfile.*|.*compose.*\.ya?ml|\.dockerignore"
)
_OVERRIDING = frozenset({"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml"})
"""Files whose presence overrides other test settings."""


def oracle_files(changes: Iterable[ChangedText]) -> tuple[InspectionFinding, ...]:
    """Return findings about every changed or new file that configures checks."""
    return bounded(finding for change in changes for finding in _of_file(change))


def _of_file(change: ChangedText) -> Iterator[InspectionFinding]:
    name = PurePosixPath(change.path).name
    yield from shadowing(change)
    if name == "conftest.py":
        yield from conftest_changes(change)
        return
    kind = kind_of_path(change.path)
    if kind is PathKind.TEST:
        kind = kind_of_path(name)  # a Makefile among the tests is a Makefile first
    if kind not in {
        PathKind.TEST_CONFIG, PathKind.LINT_CONFIG, PathKind.CI, PathKind.BUILD_CONFIG, PathKind.MIXED_CONFIG
    }:  # fmt: skip
        return
    if change.after is None:
        blocks = kind is not PathKind.BUILD_CONFIG or name.lower() in {"makefile", "cmakelists.txt"}
        yield finding_at(FindingRule.CONFIG_CHANGED, change.path, None, "the file is gone", blocks=blocks)
        return
    if change.before is None and name in _OVERRIDING:
        yield finding_at(
            FindingRule.CONFIG_CHANGED, change.path, None, "it replaces all other settings of pytest", blocks=True
        )
    for number, judged in enumerate(_judged(change, name, kind)):
        line = _line(change, judged) if number < FINDINGS_PER_FILE else None
        yield finding_at(FindingRule.CONFIG_CHANGED, change.path, line, judged.text, blocks=judged.blocks)


def _judged(change: ChangedText, name: str, kind: PathKind) -> Iterator[SettingJudgement]:
    low = name.lower()
    if low in {"makefile", "gnumakefile"} or low.endswith(".mk"):
        yield from makefile_changes(change)
    elif low == "cmakelists.txt" or low.endswith(".cmake"):
        yield from cmake_changes(change)
    elif low == "fairwitness.toml":
        yield SettingJudgement(
            "the checks that Fair Witness runs changed; this change was judged by the old ones", blocks=True
        )
    elif _DEPENDENCIES.fullmatch(low):
        yield SettingJudgement("what is installed or packed changed", blocks=False)
    elif kind is PathKind.BUILD_CONFIG and low != "cargo.toml":
        yield from line_judgements(change, unsure=False)
    else:
        yield from _by_settings(change, name, kind)


def _by_settings(change: ChangedText, name: str, kind: PathKind) -> Iterator[SettingJudgement]:
    try:
        before, after = settings_of(change.path, change.before), settings_of(change.path, change.after)
    except NotRead:
        settings = kind in {PathKind.TEST_CONFIG, PathKind.LINT_CONFIG}
        yield from line_judgements(change, unsure=kind is not PathKind.BUILD_CONFIG, settings=settings)
        return
    if kind is PathKind.CI or name.startswith(".pre-commit-config"):
        yield from ci_changes(before, after)
        return
    judges: dict[str, Callable[[SettingChange], SettingJudgement | None]] = {
        "pyproject.toml": _pyproject,
        "setup.cfg": _setup_cfg,
        "tox.ini": _setup_cfg,
        "package.json": _package,
        "Cargo.toml": _cargo,
    }
    decide = judges.get(name)
    yield from _all(before, after, decide, unsure=change.before is not None or kind is PathKind.TEST_CONFIG)


def _all(
    before: Settings,
    after: Settings,
    decide: Callable[[SettingChange], SettingJudgement | None] | None,
    *,
    unsure: bool,
) -> Iterator[SettingJudgement]:
    others = 0
    for changed in changes_between(before, after):
        judged = judge(changed, unsure=unsure) if decide is None else decide(changed)
        if judged is None:
            others += 1
        else:
            yield judged
    if others:
        yield SettingJudgement(f"{others} settings that no check reads changed", blocks=False)


def _pyproject(change: SettingChange) -> SettingJudgement | None:
    if change.way[0] != "tool" or len(change.way) < 3:
        return None
    if change.way[1] in _CHECKING_TOOLS:
        layout = {"format", "isort", "pydocstyle"} & set(change.way[2:-1])
        return judge(change, unsure=not layout and any(change.there))
    return judge(change, unsure=False) if change.way[1] in {"black", "isort"} else None


def _setup_cfg(change: SettingChange) -> SettingJudgement | None:
    if change.way[0].split(":")[0] in _SETUP_SECTIONS or change.way[0].startswith(_SETUP_SECTIONS):
        if change.name in {"commands", "commands_pre", "commands_post"}:
            return SettingJudgement(str(change), blocks=not keeps_command(change.before, change.after))
        return judge(change, unsure=change.name not in {"envlist", "deps", "extras", "basepython", "isolated_build"})
    return None


def _package(change: SettingChange) -> SettingJudgement | None:
    if change.way[0] == "scripts" and len(change.way) == 2:
        name = change.name
        if not change.there[0]:
            around = name.startswith(_HOOK_SCRIPTS) and CHECKING.search(name) is not None
            return SettingJudgement(str(change), blocks=around or loosens_text("", change.after))
        checks = CHECKING.search(name) is not None or CHECKING.search(str(change.before)) is not None
        return SettingJudgement(str(change), blocks=checks and not keeps_command(change.before, change.after))
    return judge(change, unsure=True) if change.way[0] in _PACKAGE_SECTIONS else None


def _cargo(change: SettingChange) -> SettingJudgement | None:
    if "lints" in change.way or change.way[0] == "profile":
        return judge(change, unsure=change.way[0] == "lints")
    if change.way[0] in {"lib", "bin", "test", "bench", "package"} and change.name in {
        "test",
        "harness",
        "doctest",
        "autotests",
    }:
        return SettingJudgement(str(change), blocks=change.after is not True)
    if change.way[0] == "test":
        return SettingJudgement(str(change), blocks=change.there[0])
    return None


def _line(change: ChangedText, judged: SettingJudgement) -> int | None:
    """Return the first added line that holds the key a finding names."""
    key = judged.text.partition(":")[0].rpartition(" ")[2]
    lines = (change.after or "").split("\n")
    if len(key) < 2:
        return None
    return next((number for number in change.added if number <= len(lines) and key in lines[number - 1]), None)
