"""What processes do that open one new file at the same moment."""

from multiprocessing.synchronize import Barrier
from pathlib import Path

from fairwitness.db.sqlite import SqliteDatabase


def open_together(gate: Barrier, path: str) -> None:
    """Opens the file when everybody is there."""
    gate.wait(60)
    SqliteDatabase(Path(path)).close()
