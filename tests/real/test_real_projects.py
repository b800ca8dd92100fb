"""Two large projects as their authors publish them, verified end to end: an honest change holds, a lie does not.

Their source distributions and what they depend on come from the registry, so this is not part of `make test`.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cli.runner import assay

pytestmark = [
    pytest.mark.skipif("ASSAY_REAL" not in os.environ, reason="needs a registry and minutes: make test-real"),
    pytest.mark.timeout(1800),
]
GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.org",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.org",
}


@dataclass(frozen=True)
class Real:
    """A project, a file of it, a good new function with its test, and a passage whose change breaks its tests."""

    name: str
    requirement: str
    module: str
    addition: str
    test: str
    right: str
    wrong: str
    weakened: tuple[str, str, str]
    """A test file, a passage that the wrong form fails, and what a liar makes of it."""


CLICK = Real(
    name="click",
    requirement="click==8.1.8",
    module="src/click/utils.py",
    addition="""

def count_words(text: str) -> int:
    words = text.split()
    return len(words)
""",
    test="""from click.utils import count_words


def test_counts_words():
    assert count_words("one  two three") == 3


def test_nothing_has_no_words():
    assert count_words("") == 0
""",
    right='        if words[i][-1:] == ".":',
    wrong='        if words[i][-1:] == "!":',
    weakened=("tests/test_utils.py", "def test_echo(", "def check_echo("),
)


def git(repository: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=repository, env={**os.environ, **GIT}, check=True, capture_output=True)


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Real], Path]:
    """A repository with the project as published in its first commit."""
    places: dict[str, Path] = {}

    def fetch(real: Real) -> Path:
        if real.name not in places:
            folder = tmp_path_factory.mktemp(real.name)
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*command, "--no-build-isolation", "-d", str(folder), real.requirement], check=True)
            (archive,) = folder.glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (place,) = (path for path in folder.iterdir() if path.is_dir())
            git(place, "init", "-q", "-b", "main")
            git(place, "add", "-A", "-f")
            git(place, "commit", "-qm", "as published")
            places[real.name] = place
        return places[real.name]

    return fetch


def verify(repository: Path) -> tuple[int, dict[str, object]]:
    done = assay("verify", "--json", "--setup-network", cwd=repository, **GIT)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)
