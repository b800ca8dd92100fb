"""Runs the installed `assay` as a person would."""

import os
import subprocess
import sys
from pathlib import Path

ASSAY = Path(sys.executable).with_name("assay")


def assay(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command prints and how it leaves."""
    return subprocess.run(
        [ASSAY, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
