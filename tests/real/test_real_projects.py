"""Two large projects as their authors publish them, verified end to end: an honest change holds, a lie does not.

Their source distributions and what they depend on come from the registry, so this is not part of `make test`.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from cli.runner import fairwitness
from real.projects import CLICK, HTTPX, WHOLE, Edit, Lie, Real

pytestmark = [
    pytest.mark.skipif("FAIRWITNESS_REAL" not in os.environ, reason="needs a registry and minutes: make test-real"),
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
REAL = [pytest.param(real, id=real.name) for real in (CLICK, HTTPX)]
LIES = [pytest.param(real, lie, id=f"{real.name}-{lie.name}") for real in (CLICK, HTTPX) for lie in real.lies]
WORSE = ("broken", "new and failing")


@dataclass
class Clone:
    """A project in a repository of its own, with its first commit as published."""

    real: Real
    folder: Path
    honest: dict[str, Any] = field(default_factory=dict)
    """The report of the honest change, once there is one."""

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=self.folder, env={**os.environ, **GIT}, check=True, capture_output=True)

    def change(self, branch: str, edits: tuple[Edit, ...]) -> None:
        """A branch with one commit over what was published."""
        self.git("checkout", "-q", "-B", branch, "main")
        for edit in edits:
            file = self.folder / edit.path
            text = file.read_text() if file.exists() else ""
            assert edit.old == WHOLE or text.count(edit.old) == 1, f"{edit.path} is not the one that was published"
            file.write_text(text + edit.new if edit.old == WHOLE else text.replace(edit.old, edit.new))
            self.git("add", edit.path)
        self.git("commit", "-qm", branch)

    def verify(self) -> tuple[int, dict[str, Any]]:
        """The exit code and the report for the branch that is checked out."""
        # fairwitness.toml is the person's: it is neither committed nor part of the change
        done = fairwitness(
            "verify", "--base", "main", "--head", "HEAD", "--setup-network", "--json", cwd=self.folder, **GIT
        )
        assert done.returncode in (0, 1), done.stderr
        return done.returncode, json.loads(done.stdout)

    def verify_honest(self) -> dict[str, Any]:
        """The report of the honest change; run on first demand."""
        if not self.honest:
            self.change("honest", self.real.honest)
            code, self.honest = self.verify()
            assert code == 0, (self.honest["answer"], self.honest["missing"])
        return self.honest


@pytest.fixture(scope="module")
def cloned() -> Iterator[Callable[[Real], Clone]]:
    """Fetches and unpacks a project once.

    Not in pytest's own temporary folder: the projects' pytest makes one of the same name, and what it writes beside
    the repository counts as an attempt to get out.
    """
    clones: dict[str, Clone] = {}
    top = Path(tempfile.mkdtemp(prefix="fairwitness-real-"))

    def clone(real: Real) -> Clone:
        if real.name not in clones:
            folder = top / real.name
            folder.mkdir()
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            subprocess.run([*command, "-d", str(folder), real.requirement], check=True)
            (archive,) = folder.glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
            (place,) = (path for path in folder.iterdir() if path.is_dir())
            made = clones[real.name] = Clone(real, place)
            made.git("init", "-q", "-b", "main")
            made.git("add", "-A", "-f")
            made.git("commit", "-qm", "as published")
            if real.settings:
                (place / "fairwitness.toml").write_text(real.settings)
        return clones[real.name]

    yield clone
    shutil.rmtree(top)


def line_of(report: dict[str, Any], check: str = "pytest") -> dict[str, Any]:
    (found,) = (line for line in report["checks"] if line["id"] == check)
    assert isinstance(found, dict)
    assert found["after"] != "no evidence", found["reason"]
    return found


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("real", REAL)
def test_an_honest_change_of_a_published_project_holds(
    real: Real, cloned: Callable[[Real], Clone], capsys: pytest.CaptureFixture[str]
) -> None:
    report = cloned(real).verify_honest()
    line = line_of(report)
    counts = line["counts"]
    assert sum(counts.values()) >= real.fewest
    assert counts["new"] > 1
    assert not any(counts[move] for move in ("broken", "new and failing", "vanished", "silenced"))
    # without a network some are red before and after; a race that is lost now and then is red now and then
    assert counts["still broken"] + counts["flaky"] >= real.red
    assert any("mutants of the change" in note for note in report["notes"])
    with capsys.disabled():
        told = {move: count for move, count in counts.items() if count}
        print(f"\n{real.requirement}: {told}, cold {report['duration_ms'] / 1000:.0f} s")  # noqa: T201


@pytest.mark.req("P9")
@pytest.mark.parametrize("real", REAL)
def test_the_same_question_is_not_run_twice(
    real: Real, cloned: Callable[[Real], Clone], capsys: pytest.CaptureFixture[str]
) -> None:
    clone = cloned(real)
    cold = clone.verify_honest()
    clone.git("checkout", "-q", "honest")
    code, report = clone.verify()
    assert code == 0, report["answer"]
    assert [line["id"] for line in report["checks"] if not line["cached"]] == []
    assert [(line["id"], line["counts"]) for line in report["checks"]] == [
        (line["id"], line["counts"]) for line in cold["checks"]
    ]
    assert report["duration_ms"] < cold["duration_ms"] / 2
    with capsys.disabled():
        print(f"\n{real.requirement}: cached {report['duration_ms'] / 1000:.1f} s")  # noqa: T201


@pytest.mark.req("X1")
@pytest.mark.parametrize(("real", "lie"), LIES)
def test_a_lie_that_the_projects_own_tests_call_green_is_blocked_for_the_right_reason(
    real: Real, lie: Lie, cloned: Callable[[Real], Clone], capsys: pytest.CaptureFixture[str]
) -> None:
    clone = cloned(real)
    clone.change(lie.name, lie.edits)
    code, report = clone.verify()
    line = line_of(report)
    assert not any(line["counts"][move] for move in WORSE), "its own tests see it: that is no lie"
    assert code == 1, report["answer"]
    blocked_by = {missing.removesuffix(" (failed)") for missing in report["answer"]["missing"]}
    assert lie.blocked_by <= blocked_by, report["answer"]
    assert lie.says in line["reason"]
    with capsys.disabled():
        print(f"\n{real.requirement} {lie.name}: {', '.join(sorted(blocked_by))}")  # noqa: T201
