"""The settings of `fairwitness verify`: fairwitness.toml of the checkout over that of the user configuration.

They are read once, before anything runs, from places that the change under test cannot influence, and hashed for the
record. Unknown keys are refused: a misspelt key must not mean a default.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.verify.checks import DeclaredCheck, ReportFormat, VerifySettings
from fairwitness.errors import NotStored, StoreError, UsageError
from fairwitness.kit.files import read_given, read_plain
from fairwitness.kit.text import visible
from fairwitness.rules.evidence_worth import CHECKS, Voice, kind_of
from fairwitness.rules.validation import problems_of

NAME = "fairwitness.toml"
TABLE = "verify"
_LIMIT = 256 * 1024
_TABLES = (TABLE, "agents", "feature", "policy", "finish", "artifacts", "budget", "forge", "autopilot")
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
_LISTED = " or ".join(f"[{table}]" for table in _TABLES)
_READ_THE_DOCS = "see the README on fairwitness.toml"


def user_file() -> Path:
    """Return the path of the user's settings for all repositories."""
    return platformdirs.user_config_path("fairwitness", appauthor=False) / NAME


def verify_settings(
    top: Path | None, *, user: Path | None = None, instead: Callable[[], bytes | None] | None = None
) -> tuple[VerifySettings, str]:
    """Return the effective settings and the SHA-256 of what was read; `top` is the checkout, if there is one.

    `instead` returns the project's file if the checkout's must not be trusted: a change may not set its own rules.
    """
    read, digest = read_table(TABLE, top, user=user, instead=instead)
    for where, table in read:
        _validated(where, table)
    merged: dict[str, Any] = {}
    for _, table in read:
        inner = {key: {**merged.get(key, {}), **table[key]} for key in _MERGED if key in table}
        merged |= {**table, **inner}
    return _validated(read[-1][0] if read else NAME, merged), digest


def read_table(
    name: str, top: Path | None, *, user: Path | None = None, instead: Callable[[], bytes | None] | None = None
) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    """Return one table of each existing file, the user's first, and the SHA-256 of what was read."""
    read: list[tuple[str, dict[str, Any]]] = []
    digest = hashlib.sha256()
    project = _project_content(top) if instead is None else (NAME, instead())
    for where, content in (_user_content(user or user_file()), project):
        if content is not None:
            digest.update(len(content).to_bytes(8, "big") + content)
            read.append((where, _table(where, content, name)))
    return read, digest.hexdigest()


def _user_content(path: Path) -> tuple[str, bytes | None]:
    """Read the user's file. Links are followed: the folder is the person's own, and many link their settings."""
    return _content(str(path), lambda: read_given(path, limit=_LIMIT))


def _project_content(top: Path | None) -> tuple[str, bytes | None]:
    if top is None:
        return NAME, None
    return _content(NAME, lambda: read_plain(top, NAME, limit=_LIMIT))


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
        document = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise UsageError(f"{where} is not UTF-8", next_step="save it as UTF-8") from None
    except RecursionError:
        raise UsageError(f"{where} is nested too deeply", next_step=_READ_THE_DOCS) from None
    except ValueError as error:
        raise UsageError(f"{where} is not TOML: {visible(str(error))}", next_step="fix it there") from None
    _refuse_secrets(where, document)
    for key in document:
        if key not in _TABLES:
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
