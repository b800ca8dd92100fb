"""A home and a temporary folder that one command has for itself, where it has no view of its own."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from fairwitness.sandbox import locked_tmp


@dataclass(frozen=True)
class PrivateFolders:
    """Both folders, in one that is removed afterwards."""

    folder: str
    home: str
    temporary: str


@contextlib.contextmanager
def private_folders() -> Iterator[PrivateFolders]:
    """Made for one command; whatever it left there goes with them."""
    own = locked_tmp.make("run")
    try:
        for name in ("home", "tmp"):
            (own.path / name).mkdir(mode=0o700)
        yield PrivateFolders(str(own.path), str(own.path / "home"), str(own.path / "tmp"))
    finally:
        own.remove()
