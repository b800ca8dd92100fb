"""Patterns of paths: what fits, what git ignores, and no pattern that takes long."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.agents.toolset.globs import Ignored, alternatives, matches

GENERATED = settings(max_examples=300)


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("a", "src/a", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/*.py", "lib/src/a.py", False),
        ("/a.py", "a.py", True),
        ("/a.py", "src/a.py", False),
        ("./a.py", "a.py", True),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("**/deep/**", "src/deep/a.py", True),
        ("**/deep/**", "src/shallow/a.py", False),
        ("src/**", "src/a", True),
        ("src/**/x/**/a.py", "src/x/y/x/b/a.py", True),
        ("**/*.{ts,tsx}", "src/a.tsx", True),
        ("**/*.{ts,tsx}", "src/a.py", False),
        ("{src,lib}/a.{py,pyi}", "lib/a.pyi", True),
        ("[ab].py", "a.py", True),
        ("[!ab].py", "a.py", False),
        ("?.py", "ab.py", False),
        ("*", "..", True),
    ],
)
def test_a_glob_fits_what_people_mean_by_it(pattern: str, path: str, fits: bool) -> None:
    assert matches(pattern, path) is fits


def test_braces_are_written_out_and_never_without_end() -> None:
    assert alternatives("a{b,c}d") == ("abd", "acd")
    assert alternatives("{a,b}{c,d}") == ("ac", "ad", "bc", "bd")
    assert alternatives("{a") == ("{a",)
    assert alternatives("{a}") == ("{a}",)
    assert len(alternatives("{a,b}" * 60)) == 64


@pytest.mark.parametrize(
    "pattern", ["*a" * 200 + "b", "**/" * 150 + "b", "{a,b}" * 90, "[" * 400, "*" * 500, "**a**" * 80, "?" * 500]
)
def test_no_pattern_takes_long(pattern: str) -> None:
    path = "/".join(["a" * 200] * 5)
    began = time.perf_counter()
    for _ in range(20):
        matches(pattern, path)
        Ignored(pattern).names(path, is_folder=False)
    assert time.perf_counter() - began < 5


@GENERATED
@given(st.lists(st.text("ab.*?", min_size=1, max_size=4), min_size=1, max_size=4))
def test_a_path_without_signs_fits_itself_and_everything(parts: list[str]) -> None:
    path = "/".join(part.replace("*", "c").replace("?", "d") for part in parts)
    names = [name for name in path.split("/") if name not in (".",)]
    assert matches("**", "/".join(names) or "a")
    if len(names) == len(path.split("/")):
        assert matches(f"/{path}", path)
        assert matches(f"**/{names[-1]}", path)


IGNORE = """
# dependencies
node_modules/
*.log
!keep.log
/dist
docs/*.html

src/**/gen
"""


@pytest.mark.parametrize(
    ("path", "is_folder", "ignored"),
    [
        ("node_modules", True, True),
        ("sub/node_modules", True, True),
        ("node_modules", False, False),
        ("a.log", False, True),
        ("sub/a.log", False, True),
        ("keep.log", False, False),
        ("dist", True, True),
        ("sub/dist", True, False),
        ("docs/a.html", False, True),
        ("docs/deep/a.html", False, False),
        ("src/a/b/gen", True, True),
        ("# dependencies", False, False),
        ("src/a.py", False, False),
    ],
)
def test_the_ignore_file_is_read_as_git_reads_it(path: str, is_folder: bool, ignored: bool) -> None:
    assert Ignored(IGNORE).names(path, is_folder=is_folder) is ignored


def test_lines_that_are_no_pattern_are_passed_over() -> None:
    assert not Ignored("/\n//\n!\n" + "x" * 600).names("x" * 600, is_folder=True)
