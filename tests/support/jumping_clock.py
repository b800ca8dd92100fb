"""A wall clock that a test sets for one process, while its monotonic clock goes on."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

HAS_COMPILER = shutil.which("cc") is not None
MISSING = "there is no C compiler on this machine (apt-get install gcc)"


class JumpingClock:
    """The clock of one process: start the process with `environment`, then let the clock `jump`."""

    def __init__(self, folder: Path, name: str = "clock") -> None:
        self._file = folder / name
        self._library = folder / "jumping_clock.so"
        self.jump(0)
        if not self._library.exists():
            partial = self._library.with_suffix(f".{os.getpid()}")
            source = Path(__file__).with_suffix(".c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", str(partial), str(source), "-ldl"], check=True)
            partial.replace(self._library)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the process needs in its environment."""
        return {"LD_PRELOAD": str(self._library), "FAIRWITNESS_TEST_CLOCK": str(self._file)}

    def jump(self, seconds: int) -> None:
        """Set the clock to so many seconds after the true time."""
        # one write of one length: a reader sees the old or the new number
        with self._file.open("r+" if self._file.exists() else "w") as file:
            file.write(f"{seconds:+012d}\n")
