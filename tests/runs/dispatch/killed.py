"""A dispatch in a process of its own, to be killed: `python -m runs.dispatch.killed ROOT`."""

import sys
from pathlib import Path

from fairwitness.agents.base import AgentJob
from fairwitness.contracts.agents.dispatch import OutcomeStatus
from runs.dispatch.world import World, builder, writes


def main(root: Path) -> None:
    """Asks once; whoever is asked leaves a mark outside of the worktree, where no dispatch puts anything back."""

    def paid(_job: AgentJob) -> None:
        with (root / "asked").open("a") as marks:
            marks.write("asked\n")

    world = World.open(root)
    done = world.run(builder(paid, writes("src/new.py"), writes("src/shop.py", "price = 2\n")))
    assert done.outcome.status is OutcomeStatus.OK, done.outcome
    world.ledger.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
