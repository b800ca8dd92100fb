"""An event as a summary reads it: a row of the table, without a contract."""

from typing import Any, NamedTuple

EVENT_VERSION = 1
"""The version of all events; a test compares it with the folds."""
Plain = dict[str, Any]


class SummaryEvent(NamedTuple):
    """One event as in the table; its data is not validated."""

    event_id: str
    seq: int
    timestamp: str
    workflow: str
    run_id: str
    phase: str | None
    task: str | None
    attempt: int | None
    type: str
    version: int
    data: dict[str, Any]

    def plain(self) -> Plain:
        """Return the event as plain JSON values."""
        return {name: value for name, value in self._asdict().items() if value is not None}
