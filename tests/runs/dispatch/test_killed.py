"""A dispatch that is killed anywhere is made again where nobody was asked for good, and never where it had ended."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairwitness.agents.roles import ROLES
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.tools import Role
from fairwitness.ledger.verify import verify
from fairwitness.rules.fold_feature import fold_feature
from runs.dispatch.world import RUN, World, builder

BEFORE = ("ledger.record.inserted", "ledger.record.linked")
"""Inside the first record, which then does not stand."""
BETWEEN = ("dispatch.started", "dispatch.driven")
AFTER = ("dispatch.answered", "dispatch.audited", "dispatch.kept", "dispatch.finished")
"""When the answer is on disk: the agent is not asked again, though it is not recorded before the last of these."""


def played(root: Path, kill_at: str | None = None) -> int:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    if kill_at is not None:
        environment["FAIRWITNESS_KILL_AT"] = kill_at
    command = [sys.executable, "-m", "runs.dispatch.killed", str(root)]
    return subprocess.run(command, env=environment, check=False).returncode


def asked(root: Path) -> int:
    return len((root / "asked").read_text().splitlines()) if (root / "asked").exists() else 0


@pytest.mark.req("P16", "P13")
@pytest.mark.parametrize("point", [*BEFORE, *BETWEEN, *AFTER])
def test_whoever_is_killed_leaves_a_dispatch_that_is_made_exactly_once(tmp_path: Path, point: str) -> None:
    World.make(tmp_path).ledger.close()
    assert played(tmp_path, kill_at=point) == -signal.SIGKILL
    asked_before = asked(tmp_path)
    assert played(tmp_path) == 0
    world = World.open(tmp_path)
    try:
        assert asked(tmp_path) == (1 if point in (*BEFORE, "dispatch.started", *AFTER) else 2)
        left = list((tmp_path / "state" / "answers").iterdir())
        assert len(left) == (point == "dispatch.finished")  # the next start removes it
        assert asked_before == (0 if point in (*BEFORE, "dispatch.started") else 1)
        assert world.rows("pipeline_telemetry", "status") == [("DONE",)]
        assert len(world.rows("claims")) == 1
        assert world.events().count("dispatch_finished") == 1
        state = fold_feature(world.ledger.events(RUN))
        assert not isinstance(state, Problem)
        assert verify(world.ledger.database, RUN) == []
        ended = world.ledger.observation(RUN, "dispatch:d-1:ended")
        assert ended is not None
        assert [each["path"] for each in ended.detail["changed"]] == ["src/new.py", "src/shop.py"]
        tokens = ended.detail["spending"]["used"]["tokens"]
        assert tokens == (ROLES[Role.IMPLEMENTER].budget.tokens if point in BETWEEN else 1000)
    finally:
        world.ledger.close()


def test_what_a_killed_try_left_is_kept_and_put_back(tmp_path: Path) -> None:
    World.make(tmp_path).ledger.close()
    assert played(tmp_path, kill_at="dispatch.driven") == -signal.SIGKILL
    world = World.open(tmp_path)
    assert (world.folder / "src/new.py").exists()
    done = world.run(builder())
    assert done.changed == ()
    assert not (world.folder / "src/new.py").exists()
    assert (world.folder / "src/shop.py").read_text() == "price = 1\n"
    second = world.ledger.observation(RUN, "dispatch:d-1:try-2")
    assert second is not None
    assert world.shadow.read(second.detail["left_by_killed_try"], "src/new.py") == b"x = 1\n"
    world.ledger.close()
