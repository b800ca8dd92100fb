"""Text in columns: nothing is wider than it may be, and nothing but what does not fit is missing."""

from hypothesis import given
from hypothesis import strategies as st

from fairwitness.cli.screens.columns import age, cells, cut, padded, wrapped

TEXT = st.text("ab進捗é\u0301🟢 ", max_size=80)
WIDTH = st.integers(6, 40)


@given(TEXT, WIDTH)
def test_wrapped_lines_fit_and_hold_every_word(text: str, width: int) -> None:
    lines = wrapped(text, width, first="- ", rest="  ")
    assert all(cells(line) <= width for line in lines)
    assert "".join("".join(lines)[2:].split()) == "".join(text.split())


@given(TEXT, WIDTH)
def test_cut_text_fits_and_says_that_something_is_missing(text: str, width: int) -> None:
    fitted = cut(text, width)
    assert cells(fitted) <= width
    assert fitted == text or fitted.endswith("…")
    assert cells(padded(text, width)) == width


def test_what_is_two_columns_wide_counts_as_two() -> None:
    assert [cells(text) for text in ("abc", "進捗", "e\u0301", "🟢")] == [3, 4, 1, 2]
    assert wrapped("to be or not to be", 9, first="- ", rest="  ") == ["- to be", "  or not", "  to be"]
    assert cut("進捗 ok", 4) == "進…"


def test_ages_as_people_say_them() -> None:
    assert [age(value) for value in (0.4, 12.9, 75, 3700, 200_000)] == [
        "just now",
        "12s ago",
        "1m ago",
        "1h ago",
        "2d ago",
    ]
