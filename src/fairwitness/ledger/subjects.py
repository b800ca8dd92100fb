"""The subjects of a run's checks: its tasks and its reviews, and how far each has come."""

from typing import NamedTuple

from fairwitness.db.base import Database

_SQL = """
SELECT task_id, phase, MAX(round), MIN(id) FROM anvil_checks
WHERE run_id = ? AND task_id IS NOT NULL GROUP BY task_id, phase ORDER BY MIN(id)
"""


class RowSubject(NamedTuple):
    """A task or a review, with the last round of each phase that has rows."""

    task_id: str
    rounds: dict[str, int]


def subjects(database: Database, run_id: str) -> tuple[RowSubject, ...]:
    """Return all subjects of a run's checks, in the order of their first check."""
    found: dict[str, dict[str, int]] = {}
    for task_id, phase, last, _ in database.read(_SQL, (run_id,)):
        found.setdefault(task_id, {})[phase] = last
    return tuple(RowSubject(task_id, rounds) for task_id, rounds in found.items())
