"""What starting the command line costs beside starting Python."""

import compileall
import subprocess
import sys
import tempfile
from pathlib import Path

import fairwitness
from bench.measure import medians, report

FAIRWITNESS = str(Path(sys.executable).with_name("fairwitness"))

RESUME = "fairwitness.app.runs.drive, fairwitness.app.assembly.feature_runner, fairwitness.workflows.feature, dbos"
"""What a process imports before the first new step of a feature run."""


def run() -> bool:
    """Prints the ratios of the first answer."""
    compileall.compile_dir(str(Path(fairwitness.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-") as folder:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)

        def start(*command: str) -> None:
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

        measured = medians(
            {
                "python -c pass": lambda: start(sys.executable, "-c", "pass"),
                "fairwitness --help": lambda: start(FAIRWITNESS, "--help"),
                "fairwitness status": lambda: start(FAIRWITNESS, "status"),
                "fairwitness schema list": lambda: start(FAIRWITNESS, "schema", "list"),
                "imports of a resumed feature run": lambda: start(sys.executable, "-c", f"import {RESUME}"),
            },
            rounds=30,
        )
    return report("first answer", measured, "python -c pass", {"fairwitness --help": 4.0, "fairwitness status": 8.0})
