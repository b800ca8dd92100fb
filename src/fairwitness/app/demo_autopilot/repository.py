"""The repository of the demo with its one commit, and what is asked of it."""

from pathlib import Path

from fairwitness.app.demo_autopilot import library, roadmap
from fairwitness.app.demo_repository import lay_out_files

PHASES = "all"
FLAGS = ("complete",)
"""The run goes on beside a phase that fails, so that everything is done that does not rest on it."""
FILES = {**library.FILES, **roadmap.FILES}
CHECKS = tuple(tuple(line.split()) for line in roadmap.COMMANDS.values() if line is not None)
"""The checks of the repository as a person runs them."""
ASKED = "5"
"""The phase that is put to a person."""
ENDS = {"1": "completed", "2": "completed", "3": "failed", "4": "skipped", "5": "completed"}
"""How the phases stand when the run is over."""
MOMENT = "2026-03-05T09:00:00Z"


def lay_out(folder: Path) -> Path:
    """The repository in a new folder."""
    return lay_out_files(folder, FILES, subject="feat: names of things in a larder", moment=MOMENT)
