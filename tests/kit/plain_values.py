"""Plain values of every kind a document can hold, with the texts that break naive writers and readers."""

from typing import Any

from hypothesis import strategies as st

_WHITE = ["\t", " ", "  ", "\r", "\n", "\r\n", "\x85", "\u2028", "\u2029", "\u00a0", " " * 120]
_UNSEEN = ["\ufeff", "\u200b", "\u202e", "\x7f", "\x9b", "\x1b", "\x01", "\ufffe", "\uffff", "\U0010ffff"]
_SIGNS = ["'", '"', "\\", ":", ": ", " #", "#", "-", "- ", "?", "? ", "!", "&", "*", "%", "@", "`", "|", ">"]
_BRACKETS = ["{", "}", "[", "]", ",", "---", "...", "---\n", "\n...", "\n---\n", "<<", "="]
_WORDS = ["null", "~", "no", "true", "1e5", "0o17", "010", ".5", "1", "-1", ".inf", ".nan", "0x1F", "12:30"]
_LETTERS = ["a", "word word", "é", "🟢", "x" * 200]

ODD_TEXTS = [
    "",
    *_WHITE,
    *_UNSEEN,
    *_SIGNS,
    *_BRACKETS,
    *_WORDS,
    *_LETTERS,
    " leading",
    "trailing ",
    "\nleading",
    "trailing\n",
    "trailing\n\n",
    "two\nlines",
    "two \nlines",
    "tab\there",
    "- x",
    "? x",
    "#x",
    "a: b",
    "a #b",
    "word " * 60,
    "x" * 5_000,
    "line\n" * 200,
]


def texts() -> st.SearchStrategy[str]:
    """Texts without NUL and surrogate halves, which no document may hold."""
    pieces = st.sampled_from(_WHITE + _UNSEEN + _SIGNS + _BRACKETS + _WORDS + _LETTERS)
    return st.one_of(
        st.sampled_from(ODD_TEXTS),
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        st.lists(pieces, max_size=8).map("".join),
        st.lists(pieces, max_size=8).map("\n".join),
        st.lists(pieces, max_size=40).map(" ".join),
        st.text("a \n-.:#'\"", max_size=200),
    )


def plain_values() -> st.SearchStrategy[Any]:
    """Nested plain values as a reader returns them."""
    scalars = st.one_of(
        texts(),
        st.integers(-(2**63) + 1, 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts(), inner, max_size=4)),
        max_leaves=12,
    )
