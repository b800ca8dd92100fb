"""What starting the command line costs beside starting Python."""

import compileall
import subprocess
import sys
import tempfile
from pathlib import Path

import assay
from bench.measure import medians, report

ASSAY = str(Path(sys.executable).with_name("assay"))


def run() -> bool:
    """Prints the ratios of the first answer."""
    compileall.compile_dir(str(Path(assay.__file__).parent), quiet=1)
    with tempfile.TemporaryDirectory(prefix="assay-bench-") as folder:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)

        def start(*command: str) -> None:
            subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

        measured = medians(
            {
                "python -c pass": lambda: start(sys.executable, "-c", "pass"),
                "assay --help": lambda: start(ASSAY, "--help"),
                "assay status": lambda: start(ASSAY, "status"),
                "assay schema list": lambda: start(ASSAY, "schema", "list"),
            },
            rounds=30,
        )
    return report("first answer", measured, "python -c pass", {"assay --help": 4.0, "assay status": 8.0})
