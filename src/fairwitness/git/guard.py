"""The files that decide what git would run in a repository, hashed when it is opened and compared afterwards."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from fairwitness.errors import NotStored, StoreError
from fairwitness.git.process import GitFailed
from fairwitness.kit.files import read_given

_CONFIG_LIMIT = 8 << 20


@dataclass(frozen=True, slots=True)
class Guard:
    """Files that decide what git runs, and what they held when the repository was opened."""

    files: tuple[Path, ...]
    digest: str

    @classmethod
    def over(cls, files: tuple[Path, ...]) -> "Guard":
        """Remembers what the files hold now."""
        return cls(files, _digest(files))

    def check(self) -> None:
        """`GitFailed` if one of them holds something else now."""
        if _digest(self.files) != self.digest:
            raise GitFailed(
                f"the repository's configuration changed while we worked ({self.files[0]})",
                next_step="find out who changed it, then start again",
            )


def _digest(files: tuple[Path, ...]) -> str:
    sum_ = hashlib.sha256()
    for file in files:
        try:
            held = b"holds " + hashlib.sha256(read_given(file, limit=_CONFIG_LIMIT)).digest()
        except NotStored:
            held = b"missing"
        except StoreError as error:
            held = error.what.encode(errors="replace")
        sum_.update(os.fsencode(file) + b"\0" + held + b"\0")
    return sum_.hexdigest()
