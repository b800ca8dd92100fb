"""The captain's first move in a process of its own, to be killed: `python -m runs.forge.planning ROOT`."""

import sys
from pathlib import Path

from runs.forge.planroom import PlanRoom


def main(root: Path) -> None:
    """Plans."""
    room = PlanRoom.open(root)
    room.plan()
    room.ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
