"""Durations: measured between two recorded moments, and spelled for people. None is negative."""

from datetime import datetime


def seconds_between(start: str | datetime, end: str | datetime) -> float:
    """Return the seconds from one moment to another; zero if the clock was set back in between.

    >>> seconds_between("2026-02-26T14:30:00Z", "2026-02-26T14:31:05.5Z")
    65.5
    >>> seconds_between("2026-02-26T14:30:00Z", "2026-02-26T14:29:00Z")
    0.0
    """
    first, last = (datetime.fromisoformat(moment) if isinstance(moment, str) else moment for moment in (start, end))
    return max(0.0, (last - first).total_seconds())


def took(seconds: float) -> str:
    """Return a duration in words.

    >>> [took(value) for value in (0.44, 12.3, 75, 3700, 200_000, -3)]
    ['0.4s', '12s', '1m 15s', '1h 1m', '2d 7h', '0.0s']
    """
    seconds = max(0.0, seconds)
    if seconds < 9.95:  # so that it is never spelled 10.0s
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest}s"
    if minutes < 60:
        return f"{minutes}m {rest}s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h {minutes}m" if hours < 48 else f"{hours // 24}d {hours % 24}h"
