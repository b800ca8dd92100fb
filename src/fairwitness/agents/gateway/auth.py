"""Authentication of the gateway: a request needs a local host name and a token that is valid for a dispatch."""

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl, urlencode

from fairwitness.agents.gateway.modes import Grant

Grants = Callable[[str], Grant | None]
"""Returns the grant of a token, or None; called for every request, so that a token can be revoked."""

_NAMES = frozenset({"127.0.0.1", "[::1]", "gateway", "localhost"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:]+\]|[^:\[\]]+)(:[0-9]{1,5})?")
_SECRET_HEADERS = frozenset(
    {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)


def is_local(host: str) -> bool:
    """Return whether the Host header names this machine; this stops DNS rebinding by a web page."""
    found = _HOST.fullmatch(host.lower())
    return found is not None and found["name"] in _NAMES


def granted(headers: Mapping[str, str], query: str, grants: Grants) -> Grant | None:
    """Return the grant of the first valid token in a request, or None."""
    return next((grant for token in _tokens(headers, query) if (grant := grants(token)) is not None), None)


def _tokens(headers: Mapping[str, str], query: str) -> Iterator[str]:
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    found = [
        credentials.strip() if scheme.lower() == "bearer" else "",
        headers.get("x-api-key", ""),
        headers.get("x-goog-api-key", ""),
        *(value for name, value in parse_qsl(query) if name == "key"),
    ]
    yield from (token for token in found if token)


def without_secrets(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers without credentials, for a mode."""
    return {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}


def without_key(query: str) -> str:
    """Return the query without a key, for a mode."""
    return urlencode([(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "key"])
