"""Who may come in: only by a name of this machine, and only with a token that is good for a dispatch."""

import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import parse_qsl, urlencode

from fairwitness.agents.gateway.modes import Grant

Grants = Callable[[str], Grant | None]
"""What a token is good for; None if for nothing. Asked anew for every request, so that a token can be taken back."""

_NAMES = frozenset({"127.0.0.1", "[::1]", "gateway", "localhost"})
_HOST = re.compile(r"(?P<name>\[[0-9a-f:]+\]|[^:\[\]]+)(:[0-9]{1,5})?")
_SECRET_HEADERS = frozenset(
    {"api-key", "authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)


def is_local(host: str) -> bool:
    """Whether a request was addressed to this machine; a page that had its own name point here was not."""
    found = _HOST.fullmatch(host.lower())
    return found is not None and found["name"] in _NAMES


def granted(headers: Mapping[str, str], query: str, grants: Grants) -> Grant | None:
    """What the request may do, by the first token in it that is good for something."""
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
    """The headers that a mode may see."""
    return {name: value for name, value in headers.items() if name not in _SECRET_HEADERS}


def without_key(query: str) -> str:
    """The query that a mode may see."""
    return urlencode([(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if name != "key"])
