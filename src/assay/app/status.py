"""Which runs a repository holds, read from its evidence database without the engine and without writing to it."""

import hashlib
import os
from pathlib import Path

from assay.ledger.glance import RunGlance, glance

FOLDER = ".assay"
DATABASE = "evidence.db"


def repository_root(start: Path) -> Path:
    """The nearest folder above that is a repository or holds a ledger; the start itself if there is none."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists() or (folder / FOLDER).is_dir():
            return folder
    return start


def persons_folder(place: Path) -> Path:
    """Where the state of a repository is kept that cannot hold it itself."""
    from platformdirs import user_state_path

    name = f"{place.name}-{hashlib.sha256(os.fsencode(place)).hexdigest()[:12]}"
    return user_state_path("assay") / "repositories" / name


def state_in(root: Path) -> Path:
    """Where the state of a repository is, or would be; nothing is made."""
    inside = root / FOLDER
    if inside.is_dir():
        return inside
    outside = persons_folder(root)
    return outside if outside.is_dir() else inside


def runs_of(root: Path) -> tuple[RunGlance, ...]:
    """The runs of a repository, newest first."""
    database = state_in(root) / DATABASE
    return glance(database) if database.exists() else ()
