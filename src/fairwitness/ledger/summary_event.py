"""An event as a summary reads it: a row of the table, without a contract; and the base of a summary's lines."""

from typing import Any, NamedTuple, Self

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


class SummaryLine:
    """One line of a summary, such as a node, a phase or a call. Its slots are its fields, and all are JSON values."""

    __slots__: tuple[str, ...] = ()

    def plain(self) -> Plain:
        """Return the line as plain JSON values."""
        return {slot: getattr(self, slot) for slot in self.__slots__}

    @classmethod
    def restored(cls, plain: Plain) -> Self:
        """Return the line of plain values."""
        line = cls.__new__(cls)
        for slot in cls.__slots__:
            setattr(line, slot, plain[slot])
        return line
