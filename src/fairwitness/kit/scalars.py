"""Convert unquoted YAML scalars to values: the YAML 1.2 core schema, with bounded and finite numbers only."""

import re

from fairwitness.kit.limits import DocumentLimits

Scalar = str | int | float | bool | None

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_NUMBER_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")


class Unrepresentable(ValueError):
    """A number is too large, too long, or not finite."""


def integer(text: str, limits: DocumentLimits, base: int = 10) -> int:
    """Return a bounded whole number; the length is checked before the costly conversion."""
    if len(text) > limits.number_length:
        raise Unrepresentable(f"a number of {len(text)} characters is longer than {limits.number_length}")
    value = int(text, base)
    if abs(value) > limits.integer:
        raise Unrepresentable("a whole number beyond 64 bits is refused")
    return value


def decimal(text: str, limits: DocumentLimits) -> float:
    """Return a finite number with a fraction or an exponent."""
    if len(text) > limits.number_length:
        raise Unrepresentable(f"a number of {len(text)} characters is longer than {limits.number_length}")
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise Unrepresentable("a number too large to hold is refused")
    return value


def resolve(text: str, limits: DocumentLimits) -> Scalar:
    """Return the value of an unquoted YAML scalar.

    >>> [resolve(word, DocumentLimits()) for word in ("no", "12:30:45", "010", "1e3", "~", "TRUE", "0x1F")]
    ['no', '12:30:45', 10, 1000.0, None, True, 31]
    """
    if text[:1] not in _NUMBER_START:
        return _WORDS.get(text, text)
    if _INTEGER.fullmatch(text):
        if text[:2] in ("0x", "0o"):
            return integer(text[2:], limits, base=16 if text[1] == "x" else 8)
        return integer(text, limits)
    if _FLOAT.fullmatch(text):
        return decimal(text, limits)
    if _NOT_FINITE.fullmatch(text):
        raise Unrepresentable("a number that is not finite is refused")
    return text
