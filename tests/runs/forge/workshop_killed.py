"""An attempt in a process of its own, to be killed: `python -m runs.forge.workshop_killed ROOT NODE`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from fairwitness.contracts.common.tools import Role
from runs.forge.workshop import Workshop, agent, create, part, walkthrough

NODE = "task-002"


def record(shop: Workshop, first: str = "src/a.py", *, number: int = 1) -> None:
    """The agent writes, hands out a part, and writes again; its helper writes, too."""
    calls = [create(first), part("subtask-001"), agent("worker-1", "subtask-001"), create("src/c.py", "c = 1\n")]
    shop.script(Role.SUB_EXECUTOR, f"{NODE}-1", calls, {"walkthrough": walkthrough(first, "src/b.py", "src/c.py")})
    shop.script(Role.THROWAWAY, f"{NODE}-1-h1", [create("src/b.py", "b = 1\n")], number=number)


def killed(root: Path, point: str, node: str = NODE) -> None:
    """Makes the attempt up to a point, and not beyond."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FAIRWITNESS_KILL_AT": point}
    command = [sys.executable, "-m", "runs.forge.workshop_killed", str(root), node]
    assert subprocess.run(command, env=environment, check=False).returncode == -signal.SIGKILL


def main(root: Path, node: str) -> None:
    """Makes the attempt."""
    shop = Workshop.open(root)
    assert shop.work(node).done
    shop.ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
