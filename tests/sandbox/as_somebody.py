"""Runs one program in one tier as root or as an ordinary user, and returns what came of it.

For a user it starts itself as `python -m sandbox.as_somebody <order>` under a user id that no account has, with the
interpreter that the escape attempts use.
"""

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Confined, Confinement, SandboxLimits
from fairwitness.kit.folder_trees import remove_tree
from sandbox.escapes.starting import IDENTITIES, Unavailable, as_user, kernel_refuses, python
from sandbox.kit import PYTHON

PLACES = [("ns", "root"), ("ns", "user"), ("ll", "root"), ("ll", "user"), ("uid", "root")]
"""Every tier, as everybody who can have it."""
_PATIENCE_S = 180


class Came(NamedTuple):
    """What came of a program."""

    result: Confined
    stdout: str
    stderr: str

    def __str__(self) -> str:
        result = self.result
        facts = (result.end, result.exit_code, result.limit_hit, result.sandbox_error, result.violations)
        return "\n".join(map(str, (*facts, self.stdout, self.stderr)))


class Somebody:
    """One tier, as one person."""

    def __init__(self, tier: str, who: str, folder: Path) -> None:
        self.tier, self.who = tier, who
        self._identity = IDENTITIES[who]
        if reason := kernel_refuses(tier, self._identity):
            pytest.skip(reason)
        try:
            self._python = python(self._identity)
        except Unavailable as unavailable:
            pytest.skip(str(unavailable))
        self.outside = folder / "outside"
        self.worktree = folder / "tree"
        for path in (self.outside, self.worktree):
            path.mkdir(mode=0o755)
            self.own(path)

    def own(self, path: Path) -> None:
        """Give a path to this person."""
        if self._identity.uid is not None:
            os.lchown(path, self._identity.uid, self._identity.uid)

    def run(self, program: str, **options: Any) -> Came:
        """Run a Python program with all of its standard library; `limits` and `observe` may be given."""
        order = json.dumps({"tier": self.tier, "tree": str(self.worktree), "program": program, **options})
        if self._identity.uid is None:
            return _came(_run(order))
        done = as_user(self._identity, [self._python, "-P", "-m", __name__, order], timeout=_PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return _came(done.stdout)


@pytest.fixture(params=PLACES, ids="-".join)
def somebody(request: pytest.FixtureRequest) -> Iterator[Somebody]:
    """Each tier as root and as an ordinary user."""
    folder = Path(tempfile.mkdtemp(prefix="fairwitness-test-"))
    folder.chmod(0o755)
    try:
        tier, who = request.param
        yield Somebody(tier, who, folder)
    finally:
        remove_tree(folder)


def _run(order: str) -> str:
    given = json.loads(order)
    command = Command(
        argv=(PYTHON, "-c", given["program"]),
        confinement=Confinement(
            worktree=given["tree"], writable=True, env={"PYTHONPATH": ""}, min_tier=SandboxTier(given["tier"])
        ),
        limits=SandboxLimits(**({"wall_s": 120.0} | given.get("limits", {}))),
        purpose="test",
        observe=given.get("observe", True),
    )
    finished = runner(SandboxTier(given["tier"])).run(command)
    words = {name: getattr(finished, name).decode(errors="backslashreplace") for name in ("stdout", "stderr")}
    return json.dumps({"result": finished.result.model_dump(mode="json"), **words})


def _came(text: str) -> Came:
    found = json.loads(text)
    return Came(Confined.model_validate_json(json.dumps(found["result"])), found["stdout"], found["stderr"])


if __name__ == "__main__":
    sys.stdout.write(_run(sys.argv[1]))
