"""The repository of the demo with its one commit, and the request that is made of it."""

from pathlib import Path

from fairwitness.app.demo_forge.library import FILES
from fairwitness.app.demo_repository import lay_out_files

SLUG = "everyday-measures"
REQUEST = """\
Everyday measures

The library knows lengths only. It should know masses and times as well, read quantities as people write them ("1.5 km",
"90min", "2 hours") and write them as people read them, add several up, find the largest, take a time apart into hours
and minutes, and answer a whole question such as "1.5 km in metres". Results stay exact until they are shown.
"""
CHECKS = (("python3", "-m", "unittest"), ("python3", "tools/check_types.py", "measure"))
"""The checks of the repository as a person runs them; `fairwitness.toml` declares the last one, the first is found."""
MOMENT = "2026-01-01T00:00:00Z"


def lay_out(folder: Path) -> Path:
    """The repository in a new folder."""
    return lay_out_files(folder, FILES, subject="feat: lengths", moment=MOMENT)
