"""Format durations for people."""


def took(length: float) -> str:
    """Return a duration in words.

    >>> took(4.25), took(3725)
    ('4.2 s', '1 h 02 min 05 s')
    """
    if length < 60:
        return f"{length:.1f} s"
    minutes, rest = divmod(round(length), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min {rest:02} s" if hours else f"{minutes} min {rest:02} s"
