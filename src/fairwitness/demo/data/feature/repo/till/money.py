"""Money is a whole number of cents; only what people read has a point in it."""


def cents(text: str) -> int:
    """The cents of an amount as people write it: "12.5" is 1250."""
    whole, _, part = text.strip().partition(".")
    if not whole.isdigit() or not (part + "0").isdigit() or len(part) > 2:
        raise ValueError(f"{text!r} is no amount of money")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def shown(amount: int) -> str:
    """An amount as people read it: 1250 is "12.50"."""
    sign = "-" if amount < 0 else ""
    return f"{sign}{abs(amount) // 100}.{abs(amount) % 100:02d}"
