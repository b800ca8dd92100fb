"""The programs that samples need: where they are looked for, and which are missing."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.fixtures import works
from verify.samples import Sample, export

TOOLS = Path(sys.executable).parent
"""Where pytest, ruff and mypy are sure to be."""


def search_path() -> str:
    """Our own tools first, then the machine's."""
    return os.pathsep.join([str(TOOLS), os.environ["PATH"]])


def require(sample: Sample) -> None:
    """Skips by name what this machine cannot run."""
    missing = [program for program in sample.needs if not (works(program) or shutil.which(program, path=str(TOOLS)))]
    if missing:
        pytest.skip(f"{sample.name} needs {', '.join(missing)}, which does not run here")


def run(sample: Sample, argv: tuple[str, ...], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a person sees who types the command in the project's folder."""
    return subprocess.run(
        argv,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={
            **{
                name: value
                for name, value in os.environ.items()
                if not name.startswith(("PYTEST_", "COV_", "NODE_TEST"))
            },
            "PATH": search_path(),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            **environment,
            **sample.environment,
        },
    )


def installed(sample: Sample, kept: Path) -> Path | None:
    """The folder of fetched dependencies, fetched once for all tests; None if the sample has none."""
    if not sample.install:
        return None
    manifests = {path: content for path, content in sample.tree().items() if path.startswith("package")}
    folder = kept / f"{sample.name}-{hashlib.sha256(repr(sorted(manifests.items())).encode()).hexdigest()[:16]}"
    ready = folder / ".ready"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        export(manifests, folder)
        done = run(sample, sample.install, folder)
        if done.returncode:
            pytest.skip(f"{sample.name} needs packages of a registry that cannot be reached: {done.stderr[-300:]}")
        ready.touch()
    return folder / "node_modules"
