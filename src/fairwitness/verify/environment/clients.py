"""Settings of package clients on this machine: package sources and trusted certificates, never a secret.

Their own configuration lies in a home that the sandbox does not show. The few settings that say where packages are,
and which certificates count, are read here and passed on as variables; anything that looks like a credential stays.
"""

import configparser
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from fairwitness.errors import StoreError
from fairwitness.kit.files import read_given
from fairwitness.verify.environment.machine import is_wide

_ALLOWED = re.compile(
    r"(PIP|UV|npm_config|NPM_CONFIG)_[A-Za-z0-9_]+|(https?|no|all|HTTPS?|NO|ALL)_(proxy|PROXY)"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
)
_SECRET = re.compile(r"TOKEN|PASSW|AUTH|SECRET|CREDENTIAL|KEY", re.IGNORECASE)
_PLACES = re.compile(
    r"PIP_(CONFIG_FILE|CACHE_DIR|TARGET|PREFIX|ROOT|USER|REQUIRE_VIRTUALENV|LOG|SRC|PYTHON)|UV_(CACHE|PROJECT|PYTHON|TOOL|WORKING|CONFIG).*|(npm_config|NPM_CONFIG)_(cache|prefix|userconfig|globalconfig)",
    re.IGNORECASE,
)
"""Variables that would move an installation, or that point to a file which does not exist in the sandbox."""
_PIP_KEYS = ("index-url", "extra-index-url", "find-links", "trusted-host", "cert", "proxy", "no-index", "timeout")
_NPM_KEY = re.compile(r"(registry|@[A-Za-z0-9._-]+:registry|cafile|strict-ssl|proxy|https-proxy|noproxy)")
_LIMIT = 1 << 20


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Variables for a package client, and paths that it must read besides the system's folders."""

    env: dict[str, str]
    read: tuple[Path, ...]


def clients(environ: Mapping[str, str], *, network: bool) -> ClientSettings:
    """Return the settings of this machine's package clients; without network only sources that are folders remain."""
    env = {name: value for name, value in environ.items() if _is_passed(name, value)}
    pip = {
        **_pip_files(environ),
        **{key: env.pop(_pip_variable(key)) for key in _PIP_KEYS if _pip_variable(key) in env},
    }
    pip = {key: " ".join(word for word in value.split() if not _has_user(word)) for key, value in pip.items()}
    if not network:
        pip = _offline(pip)
        env = {name: value for name, value in env.items() if not name.lower().endswith("_proxy")}
    env |= {_pip_variable(key): value for key, value in pip.items() if value}
    env |= {
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_INPUT": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COLOR": "1",
    }
    return ClientSettings(env, _folders(pip) + _certificates(env))


def npm_lines(text: str) -> list[str]:
    """Return only those lines of an .npmrc that name package sources and trusted certificates."""
    kept = []
    for line in text.splitlines():
        key, separator, value = (part.strip() for part in line.partition("="))
        if separator and _NPM_KEY.fullmatch(key) and not _has_user(value) and "${" not in value:
            kept.append(f"{key}={value}")
    return kept


def user_npmrc(environ: Mapping[str, str]) -> list[str]:
    """Return the lines about registries of the user's own .npmrc."""
    home = environ.get("HOME")
    return npm_lines(_text(Path(home) / ".npmrc")) if home else []


def _is_passed(name: str, value: str) -> bool:
    return (
        _ALLOWED.fullmatch(name) is not None
        and _SECRET.search(name) is None
        and _PLACES.fullmatch(name) is None
        and not _has_user(value)
    )


def _pip_variable(key: str) -> str:
    return "PIP_" + key.upper().replace("-", "_")


def _pip_files(environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's configuration; more personal files override general ones."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return {}
    home = Path(environ.get("HOME", "/nonexistent"))
    personal = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    files = [Path("/etc/xdg/pip/pip.conf"), Path("/etc/pip.conf"), home / ".pip/pip.conf", personal / "pip/pip.conf"]
    told: dict[str, str] = {}
    for file in [*files, *([Path(named)] if named else [])]:
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(_text(file))
        except configparser.Error:
            continue  # pip itself reports this error to the user
        for section in ("global", "install"):
            if parser.has_section(section):
                told |= {key: value for key, value in parser.items(section) if key in _PIP_KEYS}
    return told


def _offline(pip: dict[str, str]) -> dict[str, str]:
    """Return only sources on this machine: folders of wheels, and indexes that are folders."""
    indexes = [word for key in ("index-url", "extra-index-url") for word in pip.get(key, "").split() if _folder(word)]
    links = [word for word in pip.get("find-links", "").split() if _folder(word)]
    kept = {"find-links": " ".join(links), "retries": "0"}
    if not indexes or pip.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        return {**kept, "no-index": "1"}
    return {**kept, "index-url": indexes[0], "extra-index-url": " ".join(indexes[1:])}


def _folder(word: str) -> Path | None:
    """Return the local folder that a package source names; None for a remote source."""
    parts = urlsplit(word)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return Path(unquote(parts.path))
    return Path(word) if not parts.scheme and Path(word).is_absolute() else None


def _folders(pip: dict[str, str]) -> tuple[Path, ...]:
    found = []
    for key, above in (("index-url", True), ("extra-index-url", True), ("find-links", False)):
        for word in pip.get(key, "").split():
            folder = _folder(word)
            if folder is not None:
                # the pages of an index link to files beside their folder
                found += [place for place in (folder, folder.parent if above else folder) if place.exists()]
    return tuple(dict.fromkeys(place for place in found if not is_wide(place)))


def _certificates(env: Mapping[str, str]) -> tuple[Path, ...]:
    names = ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
    files = [Path(env[name]) for name in names if env.get(name)]
    return tuple(dict.fromkeys(file for file in files if file.is_absolute() and file.is_file()))


def _has_user(value: str) -> bool:
    """Return True if a value contains an address with a user name or password."""
    return re.search(r"//[^/\s]*@", value) is not None


def _text(path: Path) -> str:
    try:
        return read_given(path, limit=_LIMIT).decode(errors="replace")
    except StoreError:
        return ""
