"""Configuration files of every format as flat values: the path of a setting and its value.

Items of a list that are mappings (jobs' steps, hooks, overrides) are found again by what they call themselves, not by
their place, so that one in front does not change all that follow.
"""

import configparser
import re
import tomllib
from collections import Counter
from pathlib import PurePosixPath
from typing import Any

from fairwitness.errors import BadDocument
from fairwitness.kit import json_text, toml_text, yaml_text
from fairwitness.verify.inspections.languages import Lang
from fairwitness.verify.inspections.lexer import lexed

TEXT_LENGTH = 500_000
LINE_LENGTH = 10_000
VALUES = 5_000

Way = tuple[str, ...]
Scalar = str | int | float | bool | None
Value = Scalar | tuple[str, ...]
"""Lists of scalars are kept whole, as texts."""
Settings = dict[Way, Value]

_TRAILING_COMMA = re.compile(r",(\s*[}\]])")
_LABELS = ("name", "id", "key", "repo", "uses", "run", "module", "files", "path", "job", "script")
_INI_LISTS = re.compile(r"[\s,]+")
_INI = frozenset({".ini", ".cfg", ".flake8", ".coveragerc", ".pylintrc", ".pydocstyle", ".isort.cfg"})
_JSON = frozenset({".json", ".jsonc", ".json5", ".eslintrc", ".babelrc", ".nycrc", ".mocharc", ".swcrc"})


class NotRead(Exception):
    """The file cannot be read setting by setting."""


def settings_of(path: str, text: str | None) -> Settings:
    """Return the settings of a file; none if there is no file. Raises `NotRead` if it cannot be read."""
    if text is None:
        return {}
    if len(text) > TEXT_LENGTH:
        raise NotRead("it is too long")
    if any(len(line) > LINE_LENGTH for line in text.split("\n")) and path.endswith(".toml"):
        raise NotRead("a line is too long")  # the parser's time grows with the square of a key's length
    flat: Settings = {}
    _flatten(_parsed(path, text), (), flat)
    if () in flat:
        raise NotRead("it holds one value and no settings")
    return flat


def _parsed(path: str, text: str) -> Any:
    place = PurePosixPath(path)
    kind = place.suffix.lower() or place.name.lower()
    try:
        if kind == ".toml":
            return toml_text.parse(text.replace("\r\n", "\n"))
        if kind in _INI:
            return _ini(text)
        if kind in _JSON:
            return _json(text) if text.lstrip()[:1] in "{[" else yaml_text.parse(text)
        if kind in {".yml", ".yaml", ".clang-tidy", ".clang-format"}:
            return yaml_text.parse(text)
    except BadDocument as error:
        raise NotRead(error.reason) from None
    except (tomllib.TOMLDecodeError, configparser.Error, ValueError) as error:
        raise NotRead(str(error).splitlines()[0] if str(error) else type(error).__name__) from None
    except RecursionError:
        raise NotRead("it is nested too deep") from None
    raise NotRead("its format is not known")


def _ini(text: str) -> dict[str, dict[str, Value]]:
    reader = configparser.RawConfigParser(strict=False, allow_no_value=True, default_section="\0")
    reader.optionxform = str  # type: ignore[assignment,method-assign]  # the documented way to keep names as they are
    try:
        reader.read_string(text)
    except AttributeError:  # how configparser fails on this
        raise NotRead("a line continues a key without a value") from None
    return {section: dict(reader.items(section)) for section in reader.sections()}


def _json(text: str) -> Any:
    try:
        return json_text.parse(text)
    except BadDocument:
        # with comments and trailing commas, as in tsconfig
        without = "\n".join(lexed(text, Lang.SCRIPT).code)
        return json_text.parse(_TRAILING_COMMA.sub(r"\1", without))


def _flatten(value: Any, way: Way, flat: Settings) -> None:
    if len(flat) >= VALUES:
        raise NotRead("it has too many settings")
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, (*way, str(key)), flat)
        if not value and way:
            flat[way] = ()
    elif isinstance(value, list):
        if any(isinstance(item, dict) for item in value):
            labels: Counter[str] = Counter()
            for number, item in enumerate(value):
                label = _label(item, number)
                labels[label] += 1
                again = f" ({labels[label]})" if labels[label] > 1 else ""
                _flatten(item, (*way, label + again), flat)
        else:
            flat[way] = tuple(_text(item) for item in value)
    elif isinstance(value, str | int | float | bool | None):
        flat[way] = value
    else:
        flat[way] = _text(value)  # dates


def _label(item: Any, number: int) -> str:
    if isinstance(item, dict):
        for name in _LABELS:
            if isinstance(item.get(name), str):
                # another version of the same action or hook is still the same one
                return f"{name} {item[name].split('@')[0]}" if name == "uses" else f"{name} {item[name]}"
    return f"item {number}"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)


def items_of(value: Value) -> tuple[str, ...]:
    """Return a setting as a list: its items, or the words of its text.

    >>> items_of("E501, W503\\nF401")
    ('E501', 'W503', 'F401')
    """
    if isinstance(value, tuple):
        return value
    if value is None:
        return ()
    return tuple(item for item in _INI_LISTS.split(_text(value)) if item)


def spelled(way: Way) -> str:
    """Return the path of a setting for display: `[tool.ruff.lint] ignore`."""
    return f"[{'.'.join(way[:-1])}] {way[-1]}" if len(way) > 1 else way[-1]
