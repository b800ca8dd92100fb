"""The captain's first move in a process of its own, to be killed: `python -m runs.forge.planning ROOT`."""

import sys
from pathlib import Path

from runs.forge.planroom import PlanRoom


def main(root: Path) -> None:
    """Plans."""
    context = PlanRoom.open(root)
    context.plan()
    context.ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
