"""Reads observations and claims back, inside a record's transaction or outside of any.

What a ledger contains can be wrong without being a bug of this program: it may be forged, or written by another
version. Everything that does not fit its shape is therefore an `EventsBroken`, which names the run and the place.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Never, TypeVar

from pydantic import ValidationError

from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.evidence import Claim, Observation
from fairwitness.contracts.common.problems import spell_path
from fairwitness.db.base import Row, Value
from fairwitness.errors import EventsBroken
from fairwitness.ledger.tables import CHAINED

Read = Callable[[str, Sequence[Value]], list[Row]]
"""A function that reads rows, from a database or in an open transaction."""

C = TypeVar("C", bound=Contract)
T = TypeVar("T")
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
    return shaped(
        Claim.model_validate, {**row, "body": parsed(row["body"], run_id, f"claim {key}")}, run_id, f"claim {key}"
    )


def _observation(values: Row) -> Observation:
    row = dict(zip(_OBSERVATION, values, strict=True))
    run_id, what = str(row["run_id"]), f"observation {row['key']}"
    detail = parsed(row["detail"], run_id, what)
    found = shaped(Observation.model_validate, {**row, "holds": bool(row["holds"]), "detail": detail}, run_id, what)
    return found.model_copy(update={"detail": _Detail(detail, run_id, what)})


def recorded(shape: type[C], row: Observation, *names: str) -> C:
    """Return the document in the detail of an observation, or in a field below it; `EventsBroken` if it is none."""
    value: Any = row.detail
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return shaped(shape.model_validate, value, row.run_id, f"observation {row.key}", *names)


def shaped(validate: Callable[[Any], T], value: object, run_id: str, what: str, *names: str) -> T:
    """Return a recorded value as `validate` returns it; `what` names its place if it does not fit."""
    try:
        return validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        refuse_broken(run_id, what, f"{spell_path((*names, *first['loc']))}: {first['msg']}")


def parsed(text: str, run_id: str, what: str) -> Any:
    """Return the value of a JSON column."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        refuse_broken(run_id, what, "it is not JSON")


class _Detail(dict[str, Any]):
    """A recorded mapping; a field that is missing is an error of the record, not of the reader."""

    def __init__(self, value: Mapping[str, Any], run_id: str, what: str) -> None:
        super().__init__(value)
        self._run_id, self._what = run_id, what

    def __missing__(self, name: str) -> Never:
        refuse_broken(self._run_id, self._what, f"{name} is missing")


def refuse_broken(run_id: str, what: str, why: str) -> Never:
    """Raise `EventsBroken`, which names the run and the place of what does not fit."""
    raise EventsBroken(
        f"run {run_id}: {what} does not fit this version of Fair Witness: {why}",
        next_step="fairwitness ledger verify; if it finds nothing, another version wrote this run",
    )
