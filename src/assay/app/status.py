"""Which runs a repository holds, read from its evidence database without the engine and without writing to it."""

from pathlib import Path

from assay.ledger.glance import RunGlance, glance

DATABASE = Path(".assay") / "evidence.db"


def repository_root(start: Path) -> Path:
    """The nearest folder above that is a repository or holds a ledger; the start itself if there is none."""
    for folder in (start, *start.parents):
        if (folder / ".git").exists() or (folder / ".assay").is_dir():
            return folder
    return start


def runs_of(root: Path) -> tuple[RunGlance, ...]:
    """The runs of a repository, newest first."""
    database = root / DATABASE
    return glance(database) if database.exists() else ()
