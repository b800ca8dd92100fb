"""A quick look at a ledger file: which runs, how far, since when; it loads nothing but sqlite3 and answers at once."""

import sqlite3
from pathlib import Path

from assay.errors import DatabaseUnusable

KNOWN_VERSION = 2
"""How many migrations this program knows; held equal to the ledger's own list by a test."""

_RUNS = """
SELECT e.run_id, e.workflow, e.seq, e.timestamp, e.type, first.timestamp
FROM events e
JOIN (SELECT run_id, MAX(seq) AS seq FROM events GROUP BY run_id) last ON last.run_id = e.run_id AND last.seq = e.seq
JOIN events first ON first.run_id = e.run_id AND first.seq = 1
ORDER BY e.timestamp DESC, e.run_id
"""


class RunGlance:
    """One run: its last event, and when it began."""

    __slots__ = ("began", "events", "last_event", "last_time", "run_id", "workflow")

    def __init__(self, run_id: str, workflow: str, events: int, last_time: str, last_event: str, began: str) -> None:
        self.run_id = run_id
        self.workflow = workflow
        self.events = events
        self.last_time = last_time
        self.last_event = last_event
        self.began = began


def glance(path: Path) -> tuple[RunGlance, ...]:
    """The runs of a ledger file, newest first; the file is not written to."""
    try:
        connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
        try:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables:
                return ()
            if "migrations" not in tables:
                raise DatabaseUnusable(
                    f"{path} holds tables of something else ({', '.join(sorted(tables)[:3])})",
                    next_step="move it away; it was not touched",
                )
            (version,) = connection.execute("SELECT MAX(number) FROM migrations").fetchone()
            if version > KNOWN_VERSION:
                raise DatabaseUnusable(
                    f"{path} has version {version}, written by a newer Assay; this one knows {KNOWN_VERSION}",
                    next_step="use the newer Assay; the database was not touched",
                )
            return tuple(RunGlance(*row) for row in connection.execute(_RUNS))
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise DatabaseUnusable(
            f"{path} cannot be read as a ledger: {error}",
            next_step="restore it from a backup, or move it away to begin anew",
        ) from None
