"""A private home and temporary folder for one command, in tiers without a mount namespace."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from fairwitness.sandbox import locked_tmp


@dataclass(frozen=True)
class PrivateFolders:
    """The home and the temporary folder, inside a folder that is removed afterwards."""

    folder: str
    home: str
    temporary: str

    @property
    def shared(self) -> str:
        """The folder that stands for /dev/shm."""
        return f"{self.folder}/shm"


@contextlib.contextmanager
def private_folders() -> Iterator[PrivateFolders]:
    """Create the folders for one command and remove them with their contents afterwards."""
    own = locked_tmp.make("run")
    try:
        for name in ("home", "tmp", "shm"):
            (own.path / name).mkdir(mode=0o700)
        yield PrivateFolders(str(own.path), str(own.path / "home"), str(own.path / "tmp"))
    finally:
        own.remove()
