"""Patterns of paths: what they stand for, and that none takes long."""

import fnmatch
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.rules.globs import covers, fits, overlap

NAME = st.text(alphabet="ab.*?", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "path", "stands"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**", "src/deep/a.py", True),
        ("src/**", "src", False),
        ("**", "a", True),
        ("**/**", "a", True),
        ("a/**/b/**", "a/b", False),
        ("**/a.py", "a.py", True),
        ("**/a.py", "x/y/a.py", True),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "other/a.py", False),
        ("src", "src/a.py", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
    ],
)
@pytest.mark.req("P2")
def test_a_pattern_stands_for_what_people_mean_by_it(pattern: str, path: str, stands: bool) -> None:
    assert covers(pattern.split("/"), path.split("/")) is stands


@given(NAME, st.text(alphabet="ab.", max_size=8))
def test_a_name_fits_as_the_standard_library_says(pattern: str, name: str) -> None:
    assert fits(pattern, name) is fnmatch.fnmatchcase(name, pattern)


def test_a_hostile_pattern_takes_no_longer_than_a_good_one() -> None:
    began = time.monotonic()
    assert not fits("*a" * 200 + "b", "a" * 5000)
    assert not covers(["**", "a"] * 100 + ["b"], ["a"] * 1000)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("src/a.py", "src/a.py", True),
        ("src/*.py", "src/a?.py", True),
        ("src/*.py", "src/*.md", False),
        ("src/*.py", "src/deep/a.py", False),
        ("**/a.py", "src/**", True),
        ("src/**", "src/**/b/**", True),
        ("src/**", "docs/**", False),
        ("src/**", "src", False),
        ("**", "a", True),
        ("b/a", "**/a/**", True),  # as `covers` reads it
        ("a*b*c", "ab?c", True),
        ("a*", "b*", False),
    ],
)
def test_patterns_overlap_if_some_path_fits_both(one: str, other: str, is_shared: bool) -> None:
    assert overlap(one, other) is is_shared
    assert overlap(other, one) is is_shared


SEGMENT = st.sampled_from(["a", "b", "ab", "*", "**", "?", "a*", "*b"])
PATH = st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=4)


@given(st.lists(SEGMENT, min_size=1, max_size=4), st.lists(SEGMENT, min_size=1, max_size=4), PATH)
def test_a_path_that_fits_two_patterns_is_an_overlap(one: list[str], other: list[str], path: list[str]) -> None:
    if covers(one, path) and covers(other, path):
        assert overlap("/".join(one), "/".join(other))
