"""Reads observations and claims back, inside a record's transaction or outside of any."""

import json
from collections.abc import Callable, Sequence

from fairwitness.contracts.common.evidence import Claim, Observation
from fairwitness.db.base import Row, Value
from fairwitness.ledger.tables import CHAINED

Read = Callable[[str, Sequence[Value]], list[Row]]
"""A function that reads rows, from a database or in an open transaction."""

_OBSERVATION = CHAINED["observations"].columns[1:]
_CLAIM = CHAINED["claims"].columns[1:]


def observation(read: Read, run_id: str, key: str) -> Observation | None:
    """Return the observation with a key, or None."""
    rows = read(f"SELECT {', '.join(_OBSERVATION)} FROM observations WHERE run_id = ? AND key = ?", (run_id, key))
    return _observation(rows[0]) if rows else None


def observations(read: Read, run_id: str, kind: str, *, subject: str | None = None) -> tuple[Observation, ...]:
    """Return all observations of one kind in a run, or only those about one subject; oldest first."""
    of_subject = "" if subject is None else " AND subject = ?"
    rows = read(
        f"SELECT {', '.join(_OBSERVATION)} FROM observations WHERE run_id = ? AND kind = ?{of_subject} ORDER BY id",
        (run_id, kind, *(() if subject is None else (subject,))),
    )
    return tuple(_observation(row) for row in rows)


def claim(read: Read, run_id: str, key: str) -> Claim | None:
    """Return the claim with a key, or None."""
    rows = read(f"SELECT {', '.join(_CLAIM)} FROM claims WHERE run_id = ? AND key = ?", (run_id, key))
    if not rows:
        return None
    row = dict(zip(_CLAIM, rows[0], strict=True))
    return Claim.model_validate({**row, "body": json.loads(row["body"])})


def _observation(values: Row) -> Observation:
    row = dict(zip(_OBSERVATION, values, strict=True))
    return Observation.model_validate({**row, "holds": bool(row["holds"]), "detail": json.loads(row["detail"])})
