"""A bare word is what YAML 1.2 says it is, and a number only if it is finite and bounded."""

import pytest

from fairwitness.kit.limits import DocumentLimits
from fairwitness.kit.scalars import Unrepresentable, decimal, integer, resolve

LIMITS = DocumentLimits()


@pytest.mark.parametrize("word", ["", "~", "null", "Null", "NULL"])
def test_the_five_spellings_of_nothing(word: str) -> None:
    assert resolve(word, LIMITS) is None


@pytest.mark.parametrize("word", ["true", "True", "TRUE"])
def test_the_three_spellings_of_true(word: str) -> None:
    assert resolve(word, LIMITS) is True


@pytest.mark.parametrize("word", ["false", "False", "FALSE"])
def test_the_three_spellings_of_false(word: str) -> None:
    assert resolve(word, LIMITS) is False


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("-7", -7),
        ("010", 10),
        ("0o17", 15),
        ("0x1F", 31),
        ("0xfF", 255),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775807", -(2**63) + 1),
    ],
)
def test_whole_numbers(word: str, value: int) -> None:
    found = resolve(word, LIMITS)
    assert type(found) is int
    assert found == value


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1e5", 100_000.0),
        ("1E+5", 100_000.0),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e-1", -0.05),
        ("+1.25", 1.25),
        ("0.0", 0.0),
        ("-0.0", -0.0),
        ("1e-999", 0.0),
    ],
)
def test_decimal_numbers(word: str, value: float) -> None:
    found = resolve(word, LIMITS)
    assert type(found) is float
    assert found == value


@pytest.mark.parametrize(
    "word",
    [
        *("no", "No", "yes", "on", "off", "y", "n", "nUll", "tRue", "nil", "none", "None"),
        *("12:30:45", "1:59", "1_000", "0b101", "0o18", "0o", "0x", "0xg", "-0x1F", "+0o7", "0X1f"),
        *(".", "..", "-", "+", "--", "+-1", "1e", "e5", ".e5", "1e+", "1.2.3", "1e5.0", "0.1.", "١٢", "１"),
        *(".Nan", ".iNf", "-.nan", "+.nan", "inf", "nan", "NaN", "Infinity", "2026-02-26", "v1.0", "1 ", " 1", "1\n"),
        *("<<", "=", "a", "é", "🟢"),
    ],
)
def test_everything_else_stays_text(word: str) -> None:
    assert resolve(word, LIMITS) == word


@pytest.mark.parametrize("word", [".inf", ".Inf", ".INF", "+.inf", "-.inf", "-.INF", ".nan", ".NaN", ".NAN"])
def test_numbers_that_are_not_finite_are_refused(word: str) -> None:
    with pytest.raises(Unrepresentable, match=r"^a number that is not finite is refused$"):
        resolve(word, LIMITS)


@pytest.mark.parametrize("word", ["1e309", "-1e309", "1" + "0" * 50 + "e300"])
def test_decimals_too_large_to_hold_are_refused(word: str) -> None:
    with pytest.raises(Unrepresentable, match=r"^a number too large to hold is refused$"):
        resolve(word, LIMITS)


@pytest.mark.parametrize(
    "word", ["9223372036854775808", "-9223372036854775808", "0x8000000000000000", "0o1000000000000000000000"]
)
def test_whole_numbers_beyond_64_bits_are_refused(word: str) -> None:
    with pytest.raises(Unrepresentable, match=r"^a whole number beyond 64 bits is refused$"):
        resolve(word, LIMITS)


@pytest.mark.parametrize(
    "word", ["1" * 65, "0x" + "0" * 64 + "1", "0." + "1" * 63, "1" * 5_000, "0x" + "f" * 1_000_000]
)
def test_a_spelling_that_is_too_long_is_refused_unconverted(word: str) -> None:
    with pytest.raises(Unrepresentable, match=r"^a number of \d+ characters is longer than 64$"):
        resolve(word, LIMITS)


def test_the_longest_spelling_is_still_read() -> None:
    assert resolve("0" * 63 + "7", LIMITS) == 7
    assert resolve("0." + "5" * 62, LIMITS) == pytest.approx(5 / 9)


def test_the_bounds_are_settings() -> None:
    tight = DocumentLimits(integer=9, number_length=3)
    assert integer("-9", tight) == -9
    with pytest.raises(Unrepresentable):
        integer("10", tight)
    with pytest.raises(Unrepresentable):
        integer("0009", tight)
    with pytest.raises(Unrepresentable):
        decimal("1.25", tight)
