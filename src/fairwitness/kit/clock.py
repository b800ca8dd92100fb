"""The only place that reads the time; all other code receives a clock."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def spell(moment: datetime) -> str:
    """Return a time as written in documents: ISO 8601, UTC, microseconds.

    >>> spell(datetime(2026, 2, 26, 14, 30, tzinfo=UTC))
    '2026-02-26T14:30:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def spell_sql(moment: datetime) -> str:
    """Return a time in the format of SQLite's datetime('now').

    >>> spell_sql(datetime(2026, 2, 26, 14, 30, tzinfo=UTC))
    '2026-02-26 14:30:00'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
