"""Manifests as plain values: TOML, JSON and INI that may be broken or hostile, in bounded time and never an exception.

A manifest is somebody else's file, so what its own tool would accept is accepted (the last of two equal JSON keys
counts, as it does for node); what cannot be read becomes a reason.
"""

import json
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from fairwitness.kit.text import visible

_DOTS = 1_000
"""Maximum of dots in one line of TOML: the parser's time grows with the square of a dotted key's parts."""
_SECTION = re.compile(r"\[([^\]]{1,200})\]")
_WORDS = 160

Ini = dict[str, dict[str, str]]
"""Sections, their keys in lower case, their values with all continuation lines."""


@dataclass(frozen=True, slots=True)
class UnreadableDocument:
    """The reason why a manifest cannot be read."""

    reason: str


def toml_of(text: str) -> dict[str, Any] | UnreadableDocument:
    """Return the tables of a TOML document."""
    if any(line.count(".") > _DOTS for line in text.split("\n")):
        return UnreadableDocument(f"a line holds more than {_DOTS} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        return UnreadableDocument("it is nested too deeply")
    except ValueError as error:  # TOMLDecodeError, and what numbers and dates refuse
        return UnreadableDocument(f"it is not TOML: {_short(error)}")


def json_of(text: str) -> Any | UnreadableDocument:
    """Return the value of a JSON document."""
    try:
        return json.loads(text)
    except RecursionError:
        return UnreadableDocument("it is nested too deeply")
    except ValueError as error:
        return UnreadableDocument(f"it is not JSON: {_short(error)}")


def ini_of(text: str) -> Ini:
    """Return the sections of an INI document, line by line; invalid lines are ignored.

    The standard parser takes the square of a line's length for some lines, so it is not used here.
    """
    sections: Ini = {}
    keys: dict[str, str] | None = None
    last: str | None = None
    for line in text.split("\n"):
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        if line[0] in " \t" and keys is not None and last is not None:
            keys[last] += f"\n{bare}"
        elif (section := _SECTION.match(bare)) is not None:
            keys, last = sections.setdefault(section.group(1).strip(), {}), None
        elif keys is not None:
            ends = [at for sign in "=:" if (at := bare.find(sign)) > 0]
            last = bare[: min(ends)].strip().lower() if ends else bare.lower()
            keys[last] = bare[min(ends) + 1 :].strip() if ends else ""
    return sections


def at(value: Any, *way: str) -> Any:
    """Return the value at a path of keys through tables; None if there is none.

    >>> at({"tool": {"ruff": {"line-length": 100}}}, "tool", "ruff", "line-length")
    100
    >>> at({"tool": ["ruff"]}, "tool", "ruff") is None
    True
    """
    for step in way:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def table(value: Any, *way: str) -> dict[str, Any]:
    """Return the table at a path of keys; an empty one if there is none."""
    found = at(value, *way)
    return found if isinstance(found, dict) else {}


def texts(value: Any) -> list[str]:
    """Return the texts of a value that is a text or a list of texts; nothing for any other value."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _short(error: Exception) -> str:
    words = visible(str(error).split("\n", 1)[0])
    return words if len(words) <= _WORDS else words[:_WORDS] + "…"
