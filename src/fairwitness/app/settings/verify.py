"""The settings of `fairwitness verify`: fairwitness.toml of the checkout over that of the user configuration.

They are read once, before anything runs, from places that the change under test cannot influence, and hashed for the
record. Unknown keys are refused: a misspelt key must not mean a default. `read_table` is the only way to a table of a
repository's file: it leaves out what needs trust and has none.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import platformdirs
from pydantic import ValidationError

from fairwitness.app.settings.trust import NAME, RepositoryFile, is_trusted, refuse_needed
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.verify.checks import DeclaredCheck, ReportFormat, VerifySettings
from fairwitness.errors import NotStored, StoreError, UsageError
from fairwitness.kit import toml_text
from fairwitness.kit.files import read_given, read_plain
from fairwitness.kit.text import visible
from fairwitness.rules.evidence_worth import CHECKS, Voice, kind_of
from fairwitness.rules.problem_words import problems_of
from fairwitness.rules.repository_settings import HeldSetting, held_settings, without_held

TABLE = "verify"
_LIMIT = 256 * 1024
TABLES = (TABLE, "agents", "feature", "policy", "finish", "artifacts", "budget", "forge", "autopilot")
"""All tables of fairwitness.toml."""
_WAY_TO_A_KEY = re.compile(r"agents\.backend\.[^.]+\.key_(env|cmd)")
"""Settings that say where a key is but contain none; `fairwitness.app.settings.agents` checks them."""
_MERGED = ("setup", "sandbox")
"""Tables that are merged key by key; every other key is replaced as a whole."""
_COMMANDS = frozenset({Voice.COMMAND, Voice.DECLARED})
_SECRET = frozenset(
    {"key", "apikey", "token", "password", "passwd", "passphrase", "secret", "secrets", "credential", "credentials"}
)
_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_LISTED = " or ".join(f"[{table}]" for table in TABLES)
_READ_THE_DOCS = "see the README on fairwitness.toml"


def user_file() -> Path:
    """Return the path of the user's settings for all repositories."""
    return platformdirs.user_config_path("fairwitness", appauthor=False) / NAME


RepositoryContent: TypeAlias = Callable[[], RepositoryFile | None]
"""Returns the repository's file where the checkout's must not count: a change may not set its own rules."""
Table: TypeAlias = dict[str, Any]


class TableReading(NamedTuple):
    """One table of the user's file and of the repository's, without the settings that are not in force."""

    layers: list[tuple[str, Table]]
    """The file's name and its table, in the form of the contract; the user's first."""
    digest: str
    """The SHA-256 of what was read; another one if settings are held back."""
    file: RepositoryFile | None
    """The repository's file, if there is one."""
    asking: tuple[HeldSetting, ...]
    """The settings of the repository's file that need trust."""
    is_trusted: bool
    """Whether the file is trusted; True if nothing needs trust."""

    @property
    def held(self) -> tuple[HeldSetting, ...]:
        """The settings that are not in force."""
        return () if self.is_trusted else self.asking


def verify_settings(
    top: Path | None, *, user: Path | None = None, instead: RepositoryContent | None = None
) -> tuple[VerifySettings, str]:
    """Return the effective settings and the SHA-256 of what was read; `top` is the checkout, if there is one.

    Raises `NotReady` if the repository's file has settings without trust that the result depends on.
    """
    reading = read_verify_table(top, user=user, instead=instead)
    refuse_needed(reading.file, reading.held)
    merged: Table = {}
    for _, table in reading.layers:
        inner = {key: {**merged.get(key, {}), **table[key]} for key in _MERGED if key in table}
        merged |= {**table, **inner}
    return _validated(reading.layers[-1][0] if reading.layers else NAME, merged), reading.digest


def read_verify_table(
    top: Path | None, *, user: Path | None = None, instead: RepositoryContent | None = None
) -> TableReading:
    """Return the `[verify]` table of each file."""

    def checked(where: str, table: Table) -> Table:
        _validated(where, table)
        return table

    return read_table(TABLE, top, checked, VerifySettings().plain(), user=user, instead=instead)


def read_table(
    name: str,
    top: Path | None,
    shape: Callable[[str, Table], Table],
    defaults: Table,
    *,
    user: Path | None = None,
    instead: RepositoryContent | None = None,
) -> TableReading:
    """Return one table of each existing file, the user's first.

    `shape` gets the name of a file and its table; it raises `UsageError` for an invalid one, and returns it in the form
    of the contract. `defaults` are in force if no file says anything else.
    """
    layers: list[tuple[str, Table]] = []
    digest = hashlib.sha256()
    where, content = _user_content(user or user_file())
    if content is not None:
        digest.update(len(content).to_bytes(8, "big") + content)
        layers.append((where, shape(where, _table(where, content, name))))
    file = checkout_file(top) if instead is None else instead()
    if file is None:
        return TableReading(layers, digest.hexdigest(), None, (), True)
    digest.update(len(file.content).to_bytes(8, "big") + file.content)
    said = shape(NAME, _table(NAME, file.content, name))
    below = overlaid(defaults, layers[0][1]) if layers else defaults
    asking = held_settings(name, said, below)
    trusted = not asking or is_trusted(file)
    if not trusted:
        digest.update(b"without trust")  # other settings are in force than after the file was trusted
        said = without_held(name, said, asking)
    return TableReading([*layers, (NAME, said)], digest.hexdigest(), file, asking, trusted)


def overlaid(below: Table, above: Table) -> Table:
    """Return two tables as one, merged key by key."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = overlaid(merged[key], value) if both else value
    return merged


def _user_content(path: Path) -> tuple[str, bytes | None]:
    """Read the user's file. Links are followed: the folder is the person's own, and many link their settings."""
    return _content(str(path), lambda: read_given(path, limit=_LIMIT))


def checkout_file(top: Path | None) -> RepositoryFile | None:
    """Return the file of the checkout, or None if it has none."""
    if top is None:
        return None
    _, content = _content(NAME, lambda: read_plain(top, NAME, limit=_LIMIT))
    return None if content is None else RepositoryFile(top, content)


def _content(where: str, read: Any) -> tuple[str, bytes | None]:
    try:
        content: bytes = read()
        return where, content
    except NotStored:
        return where, None
    except StoreError as error:
        raise UsageError(error.what, next_step=error.next_step) from error


def _table(where: str, content: bytes, name: str) -> dict[str, Any]:
    """Return one table of one file; empty if it has none."""
    try:
        document = toml_text.parse(content.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{where} is not UTF-8", next_step="save it as UTF-8") from None
    except ValueError as error:
        raise UsageError(f"{where} is not TOML: {visible(str(error))}", next_step="fix it there") from None
    _refuse_secrets(where, document)
    for key in document:
        if key not in TABLES:
            known = key in VerifySettings.model_fields
            hint = f"write it under [{TABLE}]" if known else "remove it, or correct its name"
            expected = f"[{TABLE}.{key}] or {TABLE}.{key}" if known else f"only the table {_LISTED}"
            raise refused(where, key, expected, next_step=hint)
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise refused(where, name, "a table")
    return table


def refused(where: str, key: str, expected: str, *, next_step: str = _READ_THE_DOCS) -> UsageError:
    """Return the error for an invalid key."""
    return UsageError(f"{where}: {visible(key)}: expected {expected}", next_step=next_step)


def _refuse_secrets(where: str, document: dict[str, Any]) -> None:
    """Refuse secrets in settings, which are committed, hashed and shown."""
    waiting: list[tuple[str, Any]] = [("", document)]
    while waiting:
        way, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(f"{way}[{index}]", inner) for index, inner in enumerate(value)]
        elif isinstance(value, dict):
            for key, inner in value.items():
                name = f"{way}.{key}" if way else key
                parts = {part.lower() for part in _PARTS.findall(key)}
                if _WAY_TO_A_KEY.fullmatch(name) is None and _SECRET.intersection(parts):
                    step = "remove it, and give it to the tool by its own environment variable or key store"
                    raise refused(
                        where, name, "no key, token, password or other secret in fairwitness.toml", next_step=step
                    )
                waiting.append((name, inner))


def _validated(where: str, table: dict[str, Any]) -> VerifySettings:
    try:
        # as JSON: strict mode then accepts a list as a tuple, but no "5" as a number
        settings = VerifySettings.model_validate_json(json.dumps(table, allow_nan=False), strict=True)
    except ValidationError as error:
        problems = problems_of(table, error.errors(include_url=False))
        first = problems[0]
        rest = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        key = spell_path((TABLE, *first.where))
        raise refused(where, key, f"{first.expected}, found {first.found}{rest}") from None
    except (TypeError, ValueError, RecursionError):  # a date, NaN, or deep nesting
        raise refused(where, TABLE, "only texts, finite numbers, truth values, lists and tables") from None
    _refuse_nonsense(where, settings)
    return settings


def _refuse_nonsense(where: str, settings: VerifySettings) -> None:
    """Check what a schema cannot."""
    for index, root in enumerate(settings.roots or ()):
        if not _is_folder(root):
            raise refused(where, f"{TABLE}.roots[{index}]", "a folder of the repository, such as services/api")
    seen: set[str] = set()
    for index, check in enumerate(settings.check):
        key = f"{TABLE}.check[{index}]"
        _refuse_check(where, key, check)
        name = check.id or f"{check.root}/{check.name}"
        if name in seen:
            raise refused(where, f"{key}.id", "an id that no other check has")
        seen.add(name)


def _refuse_check(where: str, key: str, check: DeclaredCheck) -> None:
    kind = kind_of(check.name, Phase.AFTER)
    if kind is None or kind.voice not in _COMMANDS:
        names = ", ".join(each.name for each in CHECKS if each.voice in _COMMANDS and each.phase is Phase.AFTER)
        raise refused(where, f"{key}.name", f"one of {names}")
    if not _is_folder(check.root):
        raise refused(where, f"{key}.root", "a folder of the repository, such as services/api")
    if any("\0" in word for word in (*check.argv, *(check.select or ()))):
        raise refused(where, f"{key}.argv", "words without a NUL")
    is_written = check.report is not ReportFormat.EXIT and check.report_on == "file"
    if is_written and not any("{report}" in word for word in check.argv):
        raise refused(where, f"{key}.argv", "{report} in one of its words, since the report is on a file")
    if check.select is not None and "{ids}" not in check.select:
        raise refused(where, f"{key}.select", "{ids} as one of its words")


def _is_folder(root: str) -> bool:
    if root == ".":
        return True
    sound = root.isprintable() and "\\" not in root
    return sound and not any(part in ("", ".", "..") for part in root.split("/"))
