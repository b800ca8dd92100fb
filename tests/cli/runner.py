"""Runs the installed `fairwitness` as a person would."""

import os
import subprocess
import sys
from pathlib import Path

FAIRWITNESS = Path(sys.executable).with_name("fairwitness")


def fairwitness(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command prints and how it leaves."""
    return subprocess.run(
        [FAIRWITNESS, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
