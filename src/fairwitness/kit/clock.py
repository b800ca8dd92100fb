"""The one place that reads the time; everything else is given it."""

from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Now, in UTC."""
    return datetime.now(UTC)


def spell(moment: datetime) -> str:
    """A moment as it stands in documents: ISO 8601, UTC, microseconds.

    >>> spell(datetime(2026, 2, 26, 14, 30, tzinfo=UTC))
    '2026-02-26T14:30:00.000000Z'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def spell_sql(moment: datetime) -> str:
    """A moment as SQLite's datetime('now') writes it.

    >>> spell_sql(datetime(2026, 2, 26, 14, 30, tzinfo=UTC))
    '2026-02-26 14:30:00'
    """
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
