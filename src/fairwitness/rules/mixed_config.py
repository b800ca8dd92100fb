"""Files that hold dependencies, tests and linters at once, taken apart: which of their settings a change touches."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from configparser import Error as BadIni
from enum import StrEnum
from typing import Any, NamedTuple

WHOLE = "the whole file"
_DEPTH = 6


class Turn(StrEnum):
    """What became of one setting."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNREADABLE = "cannot be read"


class Section(NamedTuple):
    """One setting that differs between the two versions."""

    name: str
    """`[tool.ruff.lint] ignore`, `scripts.test`."""
    turn: Turn
    oracle: bool
    """Whether it steers what judges the change; dependencies and metadata do not."""

    @property
    def text(self) -> str:
        return f"{self.name} {self.turn.value}"


_TOML_PROJECT = frozenset({"project", "build-system", "dependency-groups"})
_PACKAGING_TOOLS = frozenset(
    {"poetry", "pdm", "uv", "hatch", "setuptools", "setuptools_scm", "setuptools-scm", "flit", "rye", "maturin"}
    | {"scikit-build", "versioneer", "towncrier", "commitizen", "bumpversion", "semantic_release", "hatch-vcs"}
)
_STEERS = frozenset({"scripts", "envs", "tasks"})
"""Parts of packaging tools that say how tests are run."""
_JSON_PROJECT = frozenset(
    {"dependencies", "devDependencies", "peerDependencies", "peerDependenciesMeta", "optionalDependencies"}
    | {"bundledDependencies", "bundleDependencies", "overrides", "resolutions", "engines", "engineStrict", "os", "cpu"}
    | {"name", "version", "description", "keywords", "homepage", "bugs", "license", "author", "contributors", "funding"}
    | {"files", "main", "module", "browser", "bin", "man", "directories", "repository", "private", "publishConfig"}
    | {"exports", "imports", "types", "typings", "sideEffects", "type", "packageManager", "unpkg", "typesVersions"}
)
_INI_PROJECT = frozenset({"metadata", "options", "bdist_wheel", "egg_info", "sdist", "install", "build_ext", "upload"})


def mixed_sections(path: str, before: str | None, after: str | None) -> tuple[Section, ...]:
    """Which settings of a file differ, None standing for no file; a file that cannot be read differs as a whole.

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
        return (Section(WHOLE, Turn.UNREADABLE, oracle=True),)


Settings = Mapping[tuple[str, ...], str]
"""Every setting by its way through the file, with its value spelled."""


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
        # spelled, because true is not 1, and an order of keys means nothing
        yield way, json.dumps(value, sort_keys=True, default=repr)


def _differences(path: str, old: Settings, new: Settings) -> Iterator[Section]:
    for way in sorted({*old, *new}):
        if old.get(way) != new.get(way):
            turn = Turn.ADDED if way not in old else Turn.REMOVED if way not in new else Turn.CHANGED
            yield Section(_name(path, way), turn, oracle=_steers(path, way))


def _name(path: str, way: tuple[str, ...]) -> str:
    if not way:
        return WHOLE
    if path.endswith(".json"):
        return ".".join(way)
    *table, key = way
    return f"[{'.'.join(table)}] {key}" if table else key


def _steers(path: str, way: tuple[str, ...]) -> bool:
    """Whether a setting may change a verdict; what nobody knows may."""
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
