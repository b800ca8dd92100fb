"""Parse network addresses and recognize loopback ones; an invalid address has no parts and is not loopback."""

import ipaddress
from urllib.parse import SplitResult, urlsplit


def split(url: str) -> SplitResult:
    """Return the parts of a URL; all are empty if it cannot be parsed."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine only.

    >>> [is_loopback(url) for url in ("http://127.0.0.1:8000", "http://[::1]/v1", "http://localhost", "http://[bad")]
    [True, True, True, False]
    >>> is_loopback("https://127.0.0.1.example.com")
    False
    """
    host = split(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
