"""Which contract a document means to follow, judged by the document itself and, failing that, by its file's name."""

from pathlib import PurePath
from typing import Any

from fairwitness.contracts.catalog import CATALOG, Entry
from fairwitness.errors import UsageError
from fairwitness.kit.documents import Format

_ENOUGH = 0.5
"""A damaged document still shows at least half of its signs."""

_SAME_FAMILY = {
    Format.YAML: ("yaml", "json"),
    Format.JSON: ("json", "yaml", "jsonl"),
    Format.JSONL: ("jsonl", "json"),
    Format.MARKDOWN: ("markdown",),
}


def recognise(value: Any, form: Format, source: str) -> Entry:
    """The contract of a document; `UsageError` if none, or more than one, fits."""
    sample = value[0] if form is Format.JSONL and value else value
    ranked = sorted(
        ((_likeness(entry, sample), entry) for entry in CATALOG if entry.written_as in _SAME_FAMILY[form]),
        key=lambda pair: pair[0],
        reverse=True,
    )
    best = ranked[0][0]
    likely = [entry for likeness, entry in ranked if likeness == best and likeness[0] >= _ENOUGH]
    if len(likely) == 1:
        return likely[0]
    stem = PurePath(source).stem
    named = [entry for entry in (likely or CATALOG) if stem in (entry.name, entry.name.removeprefix("autopilot-"))]
    if len(named) == 1:
        return named[0]
    fitting = f" (it could be {' or '.join(entry.name for entry in likely)})" if likely else ""
    raise UsageError(
        f"{source}: cannot tell which contract this document follows{fitting}",
        next_step="name it with --as NAME; `fairwitness schema list` shows the names",
    )


def _likeness(entry: Entry, value: Any) -> tuple[float, int]:
    """How many of a contract's signs a document shows, as a share and as a number."""
    shown = sum(_shows(value, sign) for sign in entry.signs)
    positive = sum(_shows(value, sign) for sign in entry.signs if not sign.startswith("!"))
    if positive == 0:
        return (0.0, 0)
    return (shown / len(entry.signs), shown)


def _shows(value: Any, sign: str) -> bool:
    if sign.startswith("!"):
        return not _shows(value, sign[1:])
    way, _, wanted = sign.partition("=")
    for part in way.split("."):
        if part == "[]" and isinstance(value, list) and value:
            value = value[0]
        elif part == "*" and isinstance(value, dict) and value:
            value = next(iter(value.values()))
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            return False
    return not wanted or value in wanted.split("|")
