"""Removes secrets from texts and bytes: on the way to models, reports and screens, and before output is stored.

A secret is what has a form of `secret_forms`, and what this process knows to be one (`know`). These are removed
everywhere, by `redact_forms`. `redact` also removes values that a name or header announces (`password=…`,
`Authorization: …`) if they look like values; a type, a call or a placeholder stays. It is for what people read and
programs store. Source code that an agent edits keeps such values: a test's `password = "x"` is no secret, and an edit
would put the mark in its place.

Redacting twice changes nothing more, and no line gets another number. It is a guard against accidents: a program that
wants to print a secret so that nothing recognizes it (backwards, in pieces) can.
"""

import base64
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from fairwitness.errors import UsageError
from fairwitness.kit.secret_forms import SECRET_FORMS, SecretForm, is_placeholder

SHORTEST_KNOWN = 6
"""A shorter secret occurs by chance in any text, and removing it would leave nothing readable."""
_SHORTEST_VALUE = 8
"""The same for what only its name calls a secret."""
LONGEST = 16_500
"""Characters of the longest secret: who cuts a text cuts it this far behind the cut, redacts, and cuts again."""
MARK = re.compile(r"\[redacted: [A-Za-z ]{2,40}\]")
"""What stands in the place of a secret."""
_HEADERS = re.compile(
    r"(?P<head>\b(?:proxy-)?authorization\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?(?:basic|bearer|token|digest)?\s{0,3})"
    r"(?P<secret>[A-Za-z0-9+/_=.~:-]{8,4096})"
    r"|(?P<cookie>\b(?:set-)?cookie\\?[\"']?\s{0,3}:\s{0,3}\\?[\"']?)(?P<jar>[^\s\"'\\\[][^\r\n\"'\\]{5,4096})",
    re.IGNORECASE | re.ASCII,
)
_BEARER = re.compile(r"(?P<head>\bbearer\s{1,3})(?P<secret>[A-Za-z0-9+/_=.~-]{8,4096})", re.IGNORECASE | re.ASCII)
_SECRET_NAME = (
    r"(?:secret|passw(?:or)?d|passphrase|pwd|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key|auth[_-]?key"
    r"|token|credentials?)(?:_?(?:base|value|\d{1,3}))?"
)
_NAME_SIGNS = ("secret", "passw", "passphrase", "pwd", "key", "token", "credential")
_NAME = re.compile(rf"[A-Za-z0-9_.-]{{0,60}}{_SECRET_NAME}", re.IGNORECASE | re.ASCII)
_NAMED = re.compile(
    rf"(?P<head>(?<![A-Za-z0-9_-])(?P<name>[A-Za-z0-9_-]{{0,60}}?{_SECRET_NAME})\\?[\"']?\s{{0,5}}"
    r"(?P<sign>:=|=>|=|:(?:\s{0,3}\w{1,20}\s{0,3}=)?)\s{0,5})"
    r"(?:(?P<mark>\\?[\"'])(?P<quoted>[^\"'\s\\]{6,2000})(?P=mark)|(?P<bare>[A-Za-z0-9+/_=.~!@#%^*-]{6,2000})(?![\w(\[.]))",
    re.IGNORECASE | re.ASCII,
)
_BEFORE, _AFTER = 100, 4_400
"""Characters before and behind a sign that a pattern may match."""
_ATTRIBUTE = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_VARIABLE = re.compile(r"[a-z]+(?:_[a-z0-9]+)+")
_PLACEHOLDERS = ("{", "$", "<", "[", "%", "*", "...")


def _mark(kind: str, secret: str = "") -> str:
    """Return the mark in the place of a secret, with as many line ends, so that later lines keep their numbers."""
    return f"[redacted: {kind}]" + "\n" * secret.count("\n")


class Redactor:
    """Removes secrets; `known` are secret values of any form."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        spellings = {spelling for secret in known for spelling in _spellings(secret)}
        self._known = tuple(sorted(spellings, key=lambda each: (-len(each), each)))

    def redact_forms(self, text: str) -> str:
        """Return the text without known secrets and without those of a known form."""
        for spelling in self._known:
            if spelling in text:
                text = text.replace(spelling, _mark("known", spelling))
        for form in SECRET_FORMS:
            text = _without_form(text, form)
        return text

    def redact(self, text: str) -> str:
        """Return the text also without the values that a name or a header announces."""
        text = self.redact_forms(text)
        folded = _folded(text)
        for signs, pattern, without in _ANNOUNCED:
            if any(sign in folded for sign in signs):
                text = _replaced(text, signs, pattern, without)
        return text

    def redact_bytes(self, data: bytes) -> bytes:
        """Return bytes of any encoding that contains ASCII, as `redact` returns a text."""
        return self.redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

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


def secrets_in(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of an environment that their names call secret; a path, a number or a word is none."""
    for name, value in environment.items():
        values = [value] if _NAME.fullmatch(name) else []
        values += [found["secret"] for found in _PASSWORD.finditer(value)]
        for each in values:
            is_word = each.isalpha() or each.isdecimal() or each.startswith("/")
            if len(each) >= _SHORTEST_VALUE and not is_word and not is_placeholder(each, may_be_word=False):
                yield each


def know(*secrets: str) -> None:
    """Have these values removed from every text of this process from now on; too short ones are ignored."""
    _change(lambda: _secrets.update(secret for secret in secrets if len(secret) >= SHORTEST_KNOWN))


def forget(*secrets: str) -> None:
    """Stop to remove these values, which are no longer valid."""
    _change(lambda: _secrets.difference_update(secrets))


def _change(change: Callable[[], None]) -> None:
    global _current
    with _lock:
        change()
        _current = Redactor(_secrets)


def knowing(*secrets: str) -> Redactor:
    """Return a redactor of what this process knows, and of these values."""
    with _lock:
        return Redactor((*_secrets, *secrets))


def redact(text: str) -> str:
    """Return the text without secrets, and without values that a name or header announces."""
    return _current.redact(text)


def redact_forms(text: str) -> str:
    """Return the text without secrets that this process knows or that have a known form."""
    return _current.redact_forms(text)


def redact_bytes(data: bytes) -> bytes:
    """Return bytes without secrets, and without values that a name or header announces."""
    return _current.redact_bytes(data)


def redact_values(value: Any) -> Any:
    """Return plain values with every text, keys included, as `redact_forms` returns it."""
    match value:
        case str():
            return redact_forms(value)
        case dict():
            return {
                redact_forms(key) if isinstance(key, str) else key: redact_values(each) for key, each in value.items()
            }
        case list() | tuple():
            return [redact_values(each) for each in value]
        case _:
            return value


def _without_form(text: str, form: SecretForm) -> str:
    """Return the text without the secrets of one form; only the places of its signs are looked at."""
    pieces: list[str] = []
    done = 0
    for sign in form.signs:
        if sign not in text:
            continue
        at = text.find(sign)
        pieces, done = [], 0
        while at >= 0:
            found = form.pattern.match(text, at)
            if found is None:
                at = text.find(sign, at + 1)
                continue
            start, end = found.span("secret") if "secret" in form.pattern.groupindex else found.span()
            if not (
                text.startswith("[redacted: ", start) or is_placeholder(text[start:end], may_be_word=form.may_be_word)
            ):
                pieces += (text[done:start], _mark(form.kind, text[start:end]))
                done = end
            at = text.find(sign, max(end, at + 1))
        if pieces:
            text = "".join(pieces) + text[done:]
    return text


def _replaced(
    text: str, signs: tuple[str, ...], pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> str:
    """Return the text with the matches of a pattern replaced; only places around the signs are looked at."""
    spans = _spans(_folded(text), signs)
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        for found in pattern.finditer(text, max(start, done), end):
            pieces += (text[done : found.start()], replace(found))
            done = found.end()
    return "".join(pieces) + text[done:]


def _folded(text: str) -> str:
    """Return the text in small letters, each at its place."""
    return text.replace("\u0130", "I").lower()  # the only letter whose small form is longer


def _spans(folded: str, signs: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return where a pattern can match, in order and disjoint."""
    places: list[int] = []
    for sign in signs:
        at = folded.find(sign)
        while at >= 0:
            places.append(at)
            at = folded.find(sign, at + len(sign))
    spans: list[tuple[int, int]] = []
    for at in sorted(places):
        start = max(0, at - _BEFORE, folded.rfind("\n", 0, at) + 1)
        line_end = folded.find("\n", at)
        next_end = folded.find("\n", line_end + 1) if line_end >= 0 else -1
        end = min(at + _AFTER, len(folded) if next_end < 0 else next_end)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


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
    if (
        not _is_value(value)
        or is_placeholder(value, may_be_word=True)
        or (found["quoted"] is None and not _is_bare_value(found, value))
    ):
        return found.group()
    mark = found["mark"] or ""
    return f"{found['head']}{mark}{_mark('secret')}{mark}"


def _is_value(value: str) -> bool:
    return len(value) >= SHORTEST_KNOWN and not value.startswith(_PLACEHOLDERS)


def _is_bare_value(found: re.Match[str], value: str) -> bool:
    """Return whether an unquoted word is a value and not a name: in an environment, or with letters and digits."""
    if _ATTRIBUTE.fullmatch(value) or _VARIABLE.fullmatch(value):
        return False
    in_environment = found["name"].isupper() and found["sign"] == "="
    mixed = any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)
    return in_environment or (mixed and len(value) >= 8)


_ANNOUNCED = (
    (("authorization", "cookie"), _HEADERS, _without_header),
    (("bearer",), _BEARER, _without_bearer),
    (_NAME_SIGNS, _NAMED, _without_named),
)
"""The signs and patterns of what a name or header announces, and how each is replaced."""

_PASSWORD = next(form.pattern for form in SECRET_FORMS if form.kind == "password in an address")
_lock = threading.Lock()
_secrets: set[str] = set(secrets_in(os.environ))
_current = Redactor(_secrets)
"""Redacts what this process knows: the secrets of its environment, and what it was told."""
