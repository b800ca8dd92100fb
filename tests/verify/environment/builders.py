"""Separate processes that make environments, to be raced and to be killed.

python builders.py slow FOLDER DIGEST LOG     one build that takes its time and notes that it ran
python builders.py shop STATE TREE            the environment of a tree
"""

import os
import sys
import time
from pathlib import Path
from typing import Any

from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.verify.checks import SetupSettings
from fairwitness.verify.environment.environment_store import BuiltEnvironment, EnvironmentStore
from fairwitness.verify.environment.model import Environment
from fairwitness.verify.environment.preparation import prepare
from verify.discovery.tree_files import FolderFiles
from verify.environment.shops import SHOP, machine


def slow(folder: str, digest: str, log: str) -> None:
    """Builds in two parts with a pause between, so that a second builder would be seen."""

    def build(place: Path) -> dict[str, Any]:
        with Path(log).open("a") as noted:
            noted.write(f"{os.getpid()}\n")
        (place / "first").write_text("1")
        time.sleep(0.5)
        (place / "second").write_text("2")
        return {"by": os.getpid()}

    built = EnvironmentStore(Path(folder), runner(), 60.0).kept(digest, build)
    assert isinstance(built, BuiltEnvironment)
    assert (built.folder / "second").read_text() == "2"
    sys.stdout.write(f"{built.folder}\n")


def of_shop(state: str, tree: str) -> None:
    """Prepares the environment of a tree and says where its python is."""
    made = prepare(
        SHOP,
        FolderFiles(Path(tree)),
        None,
        state=Path(state),
        user_checkout=None,
        settings=SetupSettings(),
        runner=runner(),
        environ=machine(),
    )
    assert isinstance(made, Environment)
    sys.stdout.write(f"{made.python}\n")


if __name__ == "__main__":
    if sys.argv[1] == "slow":
        slow(*sys.argv[2:5])
    else:
        of_shop(*sys.argv[2:4])
