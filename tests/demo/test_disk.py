"""A disk that fills up or turns read-only while a demo runs: it is said at once, and nothing fails or is paid twice."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.small_disk import inside, require_ext4, require_mount

pytestmark = [pytest.mark.timeout(900), pytest.mark.req("P16", "X5")]
SWEEP = pytest.mark.width("sweep")


def seen(tmp_path: Path, name: str, fault: str, line: int, **environment: str) -> dict[str, Any]:
    """What a demo made of a fault at its so many-th line."""
    disk = tmp_path / "disk"
    kind = "ext4" if fault == "read-only" else "tmpfs"
    command = [sys.executable, "-m", "demo.disk_run", name, str(disk), fault, str(line), "6"]
    told = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(inside(disk, kind, 400, *command), env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("name", "line"),
    [
        pytest.param("feature", 8, marks=pytest.mark.width("sample")),
        *(pytest.param("feature", line, marks=SWEEP) for line in (2, 5, 20, 30, 37, 60)),
        *(pytest.param("forge", line, marks=SWEEP) for line in (3, 12, 30)),
        *(pytest.param("autopilot", line, marks=SWEEP) for line in (3, 20, 40)),
    ],
)
def test_a_full_disk_is_said_at_once_and_the_run_goes_on_when_there_is_room(
    tmp_path: Path, name: str, line: int
) -> None:
    require_mount()
    found = seen(tmp_path, name, "full", line)
    assert found["code"] == 0, found
    assert found["reported_s"] is not None, found
    assert found["reported_s"] < 5
    assert found["called_twice"] == []
    assert found["failed"] == []
    assert found["ledger"] == found["answers"] == 0


@SWEEP
@pytest.mark.parametrize(("name", "line"), [("feature", 8), ("forge", 12), ("autopilot", 20)])
def test_a_disk_that_stays_full_interrupts_the_run_which_can_be_resumed(tmp_path: Path, name: str, line: int) -> None:
    require_mount()
    found = seen(tmp_path, name, "stays-full", line, FAIRWITNESS_DISK_WAIT="0.05")
    assert found["code"] == 3, found
    assert any("was interrupted: the disk of" in text for text in found["told"])
    assert found["resumed"] == (4 if name == "autopilot" else 0), found
    assert found["called_twice"] == []
    assert found["ledger"] == found["answers"] == 0


@SWEEP
@pytest.mark.parametrize(("name", "line"), [("feature", 20), ("feature", 30), ("forge", 12), ("autopilot", 20)])
def test_a_file_system_that_turns_read_only_interrupts_the_run_which_can_be_resumed(
    tmp_path: Path, name: str, line: int
) -> None:
    require_ext4()
    found = seen(tmp_path, name, "read-only", line)
    assert found["code"] == 3, found
    assert any("was interrupted" in text and "is read-only" in text for text in found["told"])
    assert found["resumed"] == (4 if name == "autopilot" else 0), found
    # calls that were under way are made again: nothing can be stored any more, not even in space that was taken
    assert found["ledger"] == found["answers"] == 0
