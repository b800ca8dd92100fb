"""Removes secrets from what is stored: transcripts, recordings, denials.

Secrets of a known form and those that the caller knows are removed everywhere. Values behind a name like `password` are
removed if they look like values; a type, a call or a placeholder stays, so that a recording still makes sense.
Redacting twice changes nothing more.
"""

import base64
import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from fairwitness.errors import UsageError
from fairwitness.kit.secret_forms import SECRET_FORMS

SHORTEST_KNOWN = 6
"""A shorter secret occurs by chance in any text, and removing it would leave nothing readable."""
_EDGE = r"(?:\b|(?<=\\[nrt]))"
"""A word boundary; in JSON within a text, a line end is two characters."""
_SIGNS: Mapping[str, tuple[str, ...]] = {
    "putty key": ("PuTTY-User-Key-File-",),
    "netrc line": ("machine",),
    "AWS access key": ("AKIA", "ASIA", "AGPA", "AROA", "ABIA", "ACCA"),
    "GitHub token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "GitLab token": ("glpat-", "glptt-", "glrt-", "gldt-", "glsoat-"),
    "Slack token": ("xox", "xapp-"),
    "Slack webhook": ("hooks.slack.com",),
    "Anthropic key": ("sk-ant-",),
    "OpenAI key": ("sk-",),
    "Stripe key": ("k_live_",),
    "Google key": ("AIza",),
    "npm token": ("npm_", ":_authToken="),
    "PyPI token": ("pypi-AgE",),
    "Hugging Face token": ("hf_",),
    "JSON web token": ("eyJ",),
    "password in an address": ("://",),
}
"""A substring of every secret of a kind: texts without it are not searched."""
_FORMS = tuple(
    (kind, _SIGNS[kind], re.compile(form.pattern.replace(r"\b", _EDGE)))
    for kind, form in SECRET_FORMS
    if kind != "private key"
)
_BLOCKS = (
    re.compile(
        r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:(?!-----).){0,16384}-----END [A-Z0-9 ]{0,48}-----|(?:\s|\\[nr]|[A-Za-z0-9+/=]{16,}){0,4096})",
        re.DOTALL,
    ),
    re.compile(r"PuTTY-User-Key-File-\d.{0,8192}?Private-MAC: ?[0-9a-f]{1,128}", re.DOTALL),
)
_HEADERS = re.compile(
    r"(?P<head>\b(?:proxy-)?authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:basic|bearer|token|digest)?\s{0,3})"
    r"(?P<secret>[A-Za-z0-9+/_=.~:-]{8,4096})"
    r"|(?P<cookie>\b(?:set-)?cookie\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?)(?P<jar>[^\s\"'\\\[][^\r\n\"'\\]{5,4096})",
    re.IGNORECASE,
)
_BEARER = re.compile(r"(?P<head>\bbearer\s{1,3})(?P<secret>[A-Za-z0-9+/_=.~-]{8,4096})", re.IGNORECASE)
_SECRET_NAME = (
    r"(?:secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|auth[_-]?key"
    r"|token|credentials?)(?:_?(?:base|value|\d{1,3}))?"
)
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{0,60}}{_SECRET_NAME}", re.IGNORECASE)
_NAMED = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9_-])(?P<name>[A-Za-z0-9_-]{{0,60}}?{_SECRET_NAME})\\?[\"']?\s{{0,5}}"
    r"(?P<sign>:=|=>|=|:(?:\s{0,3}\w{1,20}\s{0,3}=)?)\s{0,5})"
    r"(?:(?P<mark>\\?[\"'])(?P<quoted>[^\"'\s\\]{6,2000})(?P=mark)|(?P<bare>[A-Za-z0-9+/_=.~!@#%^*-]{6,2000})(?![\w(\[.]))",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_PLACEHOLDERS = ("{", "$", "<", "[", "%", "*", "...")


def _mark(kind: str) -> str:
    return f"[redacted: {kind}]"


class Redactor:
    """Removes secrets; `known` are secret values of any form."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        spellings = {spelling for secret in known for spelling in _spellings(secret)}
        longest_first = sorted(spellings, key=lambda each: (-len(each), each))
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def redact(self, text: str) -> str:
        """Return the text without secrets."""
        if self._known is not None:
            text = self._known.sub(_mark("known"), text)
        if "PRIVATE KEY" in text or "PuTTY-User-Key-File-" in text:
            for block in _BLOCKS:
                text = block.sub(_mark("private key"), text)
        for kind, signs, form in _FORMS:
            if any(sign in text for sign in signs):
                text = form.sub(functools.partial(_without, kind), text)
        folded = _folded(text)
        if "authorization" in folded or "cookie" in folded:
            text = _HEADERS.sub(_without_header, text)
        if "bearer" in folded:
            text = _BEARER.sub(_without_bearer, text)
        return _NAMED.sub(_without_named, text)

    def redact_all(self, value: Any) -> Any:
        """Return plain values, such as the arguments of a call, with every text redacted."""
        if isinstance(value, str):
            return self.redact(value)
        if isinstance(value, list | tuple):
            return [self.redact_all(each) for each in value]
        if isinstance(value, dict):
            return {self.redact(str(key)): self._beneath(str(key), each) for key, each in value.items()}
        return value

    def _beneath(self, key: str, value: Any) -> Any:
        if isinstance(value, str) and _NAME.fullmatch(key) and _is_value(value):
            return _mark("secret")
        return self.redact_all(value)


def _folded(text: str) -> str:
    """Return the text as a case-insensitive pattern reads it, which also matches a dotless i and a long s."""
    return text.casefold().replace("\u0131", "i")


_PLAIN = Redactor()


def redact(text: str) -> str:
    """Return the text without secrets of a known form or name."""
    return _PLAIN.redact(text)


def _spellings(secret: str) -> Iterator[str]:
    """Yield the forms of a secret in a text: plain, in JSON, in a URL, in base64; of a long one also its lines."""
    if len(secret) < SHORTEST_KNOWN:
        raise UsageError(
            f"a secret of {len(secret)} characters cannot be told from other text",
            next_step=f"use one of at least {SHORTEST_KNOWN}",
        )
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="", errors="surrogatepass")
    if len(secret) > 8:
        data = secret.encode("utf-8", "surrogatepass")
        yield base64.b64encode(data).decode().rstrip("=")
        yield base64.urlsafe_b64encode(data).decode().rstrip("=")
    yield from (line.strip() for line in secret.splitlines() if len(line.strip()) >= 16)


def _without(kind: str, found: re.Match[str]) -> str:
    whole = found.group()
    if found.groupdict().get("secret") is None:
        return _mark(kind)
    start, end = (place - found.start() for place in found.span("secret"))
    return whole if whole[start:].startswith("[redacted") else f"{whole[:start]}{_mark(kind)}{whole[end:]}"


def _without_header(found: re.Match[str]) -> str:
    if found["cookie"] is not None:
        return f"{found['cookie']}{_mark('cookie')}"
    return f"{found['head']}{_mark('credentials')}"


def _without_bearer(found: re.Match[str]) -> str:
    secret = found["secret"]
    if len(secret) < 20 and not any(sign.isdigit() for sign in secret):
        return found.group()  # prose about bearer tokens
    return f"{found['head']}{_mark('bearer token')}"


def _without_named(found: re.Match[str]) -> str:
    value = found["quoted"] or found["bare"]
    if not _is_value(value) or (found["quoted"] is None and not _is_bare_value(found, value)):
        return found.group()
    mark = found["mark"] or ""
    return f"{found['head']}{mark}{_mark('secret')}{mark}"


def _is_value(value: str) -> bool:
    return len(value) >= SHORTEST_KNOWN and not value.startswith(_PLACEHOLDERS)


def _is_bare_value(found: re.Match[str], value: str) -> bool:
    """Return whether an unquoted word is a value and not a name: in an environment, or with letters and digits."""
    if _ATTRIBUTE.fullmatch(value):
        return False
    in_environment = found["name"].isupper() and found["sign"] == "="
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return in_environment or (mixed and len(value) >= 8)
