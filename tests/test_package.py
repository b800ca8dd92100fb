"""What is installed is whole: wheel and sdist build, and a demo runs from the wheel in an environment of its own."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from support.fixtures import ROOT

pytestmark = [pytest.mark.width("full"), pytest.mark.timeout(600)]


def _run(*command: str | Path, cwd: Path, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, the wheel made from it, and nothing else."""
    folder = tmp_path_factory.mktemp("dist")
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT, cwd=folder)
    return folder


def test_sdist_and_wheel_hold_every_file_of_the_package(built: Path) -> None:
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert wheel.name.startswith("fairwitness-")
    tracked = _run("git", "ls-files", "-co", "--exclude-standard", "src/fairwitness", cwd=ROOT).splitlines()
    wanted = {name.removeprefix("src/") for name in tracked if (ROOT / name).exists()}
    assert wanted - set(zipfile.ZipFile(wheel).namelist()) == set()
    with tarfile.open(sdist) as archive:
        held = {name.partition("/src/")[2] for name in archive.getnames()}
    assert wanted - held == set()


def test_the_demo_runs_from_the_wheel_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    place = tmp_path / "venv"
    venv.create(place, with_pip=False)
    (wheel,) = built.glob("*.whl")
    python = place / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check")
    _run(*pip, "install", "--no-index", "--no-deps", wheel, cwd=tmp_path)
    # the libraries come from this environment: there is no network, and a .pth file is not read from PYTHONPATH
    libraries = {"PYTHONPATH": sysconfig.get_path("purelib"), "HOME": str(tmp_path)}
    where = _run(python, "-c", "import fairwitness; print(fairwitness.__file__)", cwd=tmp_path, **libraries)
    assert Path(where.strip()).is_relative_to(place)
    printed = _run(place / "bin" / "fairwitness", "demo", "--dir", tmp_path / "demo", cwd=tmp_path, **libraries)
    assert "COMMITTED" in printed
