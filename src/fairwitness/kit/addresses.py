"""Addresses of the network, and whether one is this machine's own; what cannot be read is nobody's."""

import ipaddress
from urllib.parse import SplitResult, urlsplit


def split(url: str) -> SplitResult:
    """The parts of an address; of one that cannot be read, none."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def is_loopback(url: str) -> bool:
    """Whether an address leads to this machine and no further.

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
