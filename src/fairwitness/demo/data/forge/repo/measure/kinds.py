"""Every kind of quantity, and which one a unit belongs to."""

from measure.length import LENGTH

KINDS = (LENGTH,)


def kind_of(unit: str) -> dict[str, int]:
    """The units that a unit can be converted into, each with its size."""
    for kind in KINDS:
        if unit in kind:
            return kind
    raise ValueError(f"{unit!r} is no unit")
