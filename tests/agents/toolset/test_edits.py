"""Replacing text: exactly once, all or nothing."""

import pytest
from inline_snapshot import snapshot

from agents.toolset.kit import Bench


def _replace(bench: Bench, old: str, new: str, path: str = "src/a.py") -> dict[str, str]:
    return {"path": path, "old_string": old, "new_string": new}


def test_what_stands_once_is_replaced(bench: Bench) -> None:
    assert bench.good("replace_string_in_file", **_replace(bench, "return 1", "return 2")) == (
        "replaced in src/a.py at line 2"
    )
    assert bench.text("src/a.py") == "def one() -> int:\n    return 2\n"
    assert bench.good("replace_string_in_file", **_replace(bench, "    return 2\n", "")) == (
        "replaced in src/a.py at line 2"
    )
    assert bench.text("src/a.py") == "def one() -> int:\n"


def test_what_stands_nowhere_or_more_than_once_is_counted_and_left_alone(bench: Bench) -> None:
    before = bench.text("src/deep/b.py")
    said = [
        bench.bad("replace_string_in_file", **_replace(bench, old, "x", "src/deep/b.py"))
        for old in ("one", "three", "1\tfrom src.a import one\n2\t")
    ]
    assert said == snapshot(
        [
            "src/deep/b.py: old_string occurs 2 times; give more of what is around it",
            "src/deep/b.py: old_string does not stand there (0 times)",
            "src/deep/b.py: old_string does not stand there; leave out the line numbers",
        ]
    )
    (bench.root / "src/aaa.txt").write_text("aaa")
    assert "2 times" in bench.bad("replace_string_in_file", **_replace(bench, "aa", "b", "src/aaa.txt"))
    (bench.root / "src/aaa.txt").write_text("a" * 5000)
    assert "1000 times or more" in bench.bad("replace_string_in_file", **_replace(bench, "a", "b", "src/aaa.txt"))
    assert bench.text("src/deep/b.py") == before


def test_a_replacement_that_cannot_be_meant_is_said(bench: Bench) -> None:
    assert "are the same" in bench.bad("replace_string_in_file", **_replace(bench, "one", "one"))
    assert "old_string: string should have at least 1 character" in bench.bad(
        "replace_string_in_file", **_replace(bench, "", "x")
    )
    assert bench.bad("replace_string_in_file", **_replace(bench, "a", "b", "src/none.py")) == (
        "there is no file src/none.py"
    )
    assert bench.bad("replace_string_in_file", **_replace(bench, "one", "o\0e")) == "the text has a NUL character"


def test_a_file_keeps_its_kind_of_line_ends(bench: Bench) -> None:
    (bench.root / "src/dos.txt").write_bytes(b"one\r\ntwo\r\nthree\r\n")
    bench.good("replace_string_in_file", **_replace(bench, "one\ntwo", "1\n2\n2.5", "src/dos.txt"))
    assert (bench.root / "src/dos.txt").read_bytes() == b"1\r\n2\r\n2.5\r\nthree\r\n"
    bench.good("replace_string_in_file", **_replace(bench, "2\r\n2.5", "2", "src/dos.txt"))
    assert (bench.root / "src/dos.txt").read_bytes() == b"1\r\n2\r\nthree\r\n"


def test_several_replacements_see_each_other(bench: Bench) -> None:
    changes = [
        _replace(bench, "return 1", "return 2"),
        _replace(bench, "return 2", "return 3"),
        _replace(bench, "print(one())", "print(one() + 1)", "src/deep/b.py"),
    ]
    assert bench.good("multi_replace_string_in_file", replacements=changes) == snapshot(
        """\
replaced in src/a.py at line 2
replaced in src/a.py at line 2
replaced in src/deep/b.py at line 3\
"""
    )
    assert "return 3" in bench.text("src/a.py")
    assert "one() + 1" in bench.text("src/deep/b.py")


def test_one_that_does_not_fit_undoes_all(bench: Bench) -> None:
    changes = [_replace(bench, "return 1", "return 2"), _replace(bench, "nowhere", "x", "src/deep/b.py")]
    assert bench.bad("multi_replace_string_in_file", replacements=changes) == (
        "nothing was replaced: number 2: src/deep/b.py: old_string does not stand there (0 times)"
    )
    assert "return 1" in bench.text("src/a.py")
    assert "replacements: tuple should have at least 1 item" in bench.bad(
        "multi_replace_string_in_file", replacements=[]
    )


def test_a_file_that_cannot_be_written_leaves_the_ones_before_it_as_they_were(bench: Bench) -> None:
    (bench.root / "src/big.txt").write_text("mark" + "x" * (1 << 20) + "\n")
    changes = [_replace(bench, "return 1", "return 2"), _replace(bench, "mark", "y" * (1 << 20), "src/big.txt")]
    said = bench.bad("multi_replace_string_in_file", replacements=changes)
    assert said.startswith("nothing was replaced: ")
    assert "are more than" in said
    assert "return 1" in bench.text("src/a.py")


@pytest.mark.req("X3")
def test_one_file_that_is_not_a_roles_refuses_the_whole_call(bench: Bench) -> None:
    changes = [_replace(bench, "return 1", "return 2"), _replace(bench, "Login", "x", "README.md")]
    told = bench.refused("multi_replace_string_in_file", replacements=changes)
    assert told.startswith("README.md is not among the files this role may write: ")
    assert "return 1" in bench.text("src/a.py")
    assert bench.box.denials[-1].target == "src/a.py README.md"
