"""Finding files and lines: what is there, what is closed, and a pattern that would never come to an end."""

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from inline_snapshot import snapshot

from agents.toolset.kit import Bench
from fairwitness.agents.toolset import matcher
from fairwitness.agents.toolset.arguments import FileSearch, GrepSearch
from fairwitness.agents.toolset.globs import Ignored
from fairwitness.agents.toolset.model import ToolCancelled, ToolFailed
from fairwitness.agents.toolset.search import file_search, grep_search, listing, matched
from fairwitness.agents.toolset.tree import Walk, WorktreeFiles
from sandbox.kit import eventually, living

NEVER = r"(a+)+$"
"""Looks at every way to split a run of letters."""


def _matchers() -> list[int]:
    """Matchers that this very process has started."""
    ours = f"PPid:\t{os.getpid()}\n"
    return [pid for pid in living("matcher.py") if ours in Path(f"/proc/{pid}/status").read_text()]


def _plant_endless(bench: Bench) -> None:
    (bench.root / "src/endless.txt").write_text("a" * 64 + "b\n")


def test_lines_are_found_with_their_place(bench: Bench) -> None:
    assert bench.good("grep_search", query="one") == snapshot(
        """\
src/a.py:1: def one() -> int:
src/deep/b.py:1: from src.a import one
src/deep/b.py:3: print(one())
tests/test_a.py:1: from src.a import one
tests/test_a.py:4: def test_one() -> None:
tests/test_a.py:5:     assert one() == 1\
"""
    )


def test_a_text_is_a_text_and_a_pattern_a_pattern(bench: Bench) -> None:
    assert bench.good("grep_search", query="one()", path="src/deep") == "src/deep/b.py:3: print(one())"
    assert bench.good("grep_search", query="on.\\(\\)$", is_regex=True) == "no match"
    assert bench.good("grep_search", query="^def \\w+\\(", is_regex=True) == snapshot(
        """\
src/a.py:1: def one() -> int:
tests/test_a.py:4: def test_one() -> None:\
"""
    )
    assert bench.good("grep_search", query="DEF ONE", ignore_case=True) == "src/a.py:1: def one() -> int:"
    assert bench.good("grep_search", query="DEF ONE") == "no match"


def test_a_search_can_be_narrowed(bench: Bench) -> None:
    assert bench.good("grep_search", query="one", path="src/a.py") == "src/a.py:1: def one() -> int:"
    assert bench.good("grep_search", query="one", include="tests/**", max_results=1) == snapshot(
        """\
tests/test_a.py:1: from src.a import one
[there are more than these 1 matches]\
"""
    )
    assert bench.good("grep_search", query="one", include="*.md") == "no match"
    assert bench.bad("grep_search", query="one", path="none") == "there is no file or folder none"


def test_what_git_ignores_is_searched_when_it_is_named(bench: Bench) -> None:
    assert "build/" not in bench.good("grep_search", query="one = 1")
    assert bench.good("grep_search", query="one = 1", path="build") == "build/out.py:1: one = 1"
    assert bench.good("grep_search", query="one", path="src/run.log") == "src/run.log:1: one"


@pytest.mark.req("X3")
def test_nothing_is_found_in_closed_folders_or_behind_links(bench: Bench) -> None:
    outside = bench.root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("hidden = 1\n")
    (bench.root / "src/out").symlink_to(outside)
    (bench.root / "src/out.py").symlink_to(outside / "a.py")
    (bench.root / "sub/.git").mkdir(parents=True)
    (bench.root / "sub/.git/a.py").write_text("hidden = 1\n")
    os.link(outside / "a.py", bench.root / "src/hard.py")
    assert bench.good("grep_search", query="hidden") == snapshot(
        """\
no match
[1 files could not be searched: too large, links, or gone]\
"""
    )
    assert "a link" in bench.bad("grep_search", query="hidden", path="src/out")
    assert bench.refused("grep_search", query="core", path=".git") == ".git: it is in .git"
    assert bench.refused("grep_search", query="x", path="/etc") == "/etc: it is absolute"
    found = bench.good("file_search", pattern="**").split("\n")
    assert not [path for path in found if path.startswith((".git/", ".fairwitness", "sub", "src/out"))]


def test_files_are_found_by_a_glob(bench: Bench) -> None:
    assert bench.good("file_search", pattern="*.py") == snapshot(
        """\
src/a.py
src/deep/b.py
tests/test_a.py\
"""
    )
    assert bench.good("file_search", pattern="src/*.{py,md}") == "src/a.py"
    assert bench.good("file_search", pattern="*.rs") == "no file fits *.rs"
    assert bench.good("file_search", pattern="../*") == "no file fits ../*"
    assert bench.good("file_search", pattern="**", max_results=1) == snapshot(
        """\
.gitignore
[there are more than these 1]\
"""
    )


@pytest.mark.req("X3")
def test_a_pattern_that_never_ends_is_stopped(bench: Bench) -> None:
    _plant_endless(bench)
    asked = GrepSearch(query=NEVER, is_regex=True)
    with pytest.raises(ToolFailed, match=r"the search took longer than 0.5 s and was stopped; try a simpler pattern"):
        grep_search(WorktreeFiles(bench.root), asked, threading.Event(), seconds=0.5)
    assert _matchers() == []


def test_a_cancelled_search_is_killed_before_the_call_returns(bench: Bench) -> None:
    _plant_endless(bench)

    async def give_up() -> None:
        work = asyncio.ensure_future(bench.box.call("grep_search", {"query": NEVER, "is_regex": True}))
        assert await asyncio.to_thread(eventually, lambda: bool(_matchers()))
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        assert _matchers() == []

    asyncio.run(asyncio.wait_for(give_up(), 30))
    assert bench.good("grep_search", query="return 1")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("(", "the pattern cannot be used: missing ), unterminated subpattern at position 0"),
        ("a{99999999999}", "the pattern cannot be used: "),
        ("(" * 500 + ")" * 500, "the pattern cannot be used: "),
    ],
)
def test_a_pattern_that_is_none_is_said(bench: Bench, query: str, said: str) -> None:
    assert bench.bad("grep_search", query=query, is_regex=True).startswith(said)


def test_odd_files_do_not_disturb_a_search(bench: Bench) -> None:
    (bench.root / "src/picture.png").write_bytes(b"one\0one")
    (bench.root / "src/latin.txt").write_bytes("éone".encode("latin-1"))
    (bench.root / "src/wide.txt").write_text("one" + "x" * 5000)
    (bench.root / "src/codes.txt").write_text("\x1b[31mone\u202e\r\n")
    (bench.root / "src/huge.txt").write_text("one\n" * 400_000)
    (bench.root / "src/two\nlines.txt").write_text("one\n")
    Path(os.fsdecode(os.fsencode(bench.root) + b"/src/caf\xe9.txt")).write_text("one\n")
    (bench.root / "src/tab\tname.txt").write_text("one\n")
    found = bench.good("grep_search", query="one", path="src", include="*.txt").split("\n")
    assert [line[:40] for line in found] == snapshot(
        [
            "src/codes.txt:1: \\x1b[31mone\\u202e",
            "src/latin.txt:1: �one",
            "src/wide.txt:1: onexxxxxxxxxxxxxxxxxxxxx",
            "[1 files could not be searched: too larg",
        ]
    )
    assert max(map(len, found)) < 400


def test_the_matcher_looks_at_a_bounded_part_of_a_line() -> None:
    told = io.BytesIO(b"a.txt\t12\none\nno\r\none\nb.bin\t5\none\0\n")
    assert matcher.search(re.compile("one$"), told, 5) == {
        "found": [("a.txt", 1, "one"), ("a.txt", 3, "one")],
        "more": False,
    }
    order = json.dumps({"pattern": "z", "ignore_case": True, "most": 1}).encode() + b"\n"
    line = b"x" * 20_000 + b"z\n"
    answer = io.StringIO()
    matcher.main(io.BytesIO(order + b"a\t%d\n%s" % (len(line), line)), answer)
    assert json.loads(answer.getvalue()) == {"found": [], "more": False}


def test_a_matcher_that_is_left_behind_ends_by_itself() -> None:
    words = [sys.executable, "-I", "-S", matcher.__file__]
    order = json.dumps({"pattern": "x", "ignore_case": False, "most": 1}).encode() + b"\n"
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(order)
        process.stdin.flush()
        limits = Path(f"/proc/{process.pid}/limits")
        assert eventually(lambda: re.search(r"Max cpu time +20 ", limits.read_text()) is not None)
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_walk_looks_at_so_many_names_and_ends_when_nobody_waits(bench: Bench) -> None:
    tree = WorktreeFiles(bench.root)
    walk = Walk(tree, ".", Ignored(""), threading.Event(), most=5)
    assert list(walk) == [".gitignore", "README.md"]
    assert walk.cut_short
    whole = tree.walk("src", threading.Event())
    assert list(whole) == ["src/a.py", "src/deep/b.py"]
    assert not whole.cut_short
    over = threading.Event()
    over.set()
    with pytest.raises(ToolCancelled):
        file_search(tree, FileSearch(pattern="*"), over)
    assert listing([], "nothing", [], walk) == "nothing\n[only the first 5 names were looked at]"


def test_a_search_reads_so_many_bytes(bench: Bench) -> None:
    (bench.root / "wide").mkdir()
    for number in range(50):
        (bench.root / f"wide/{number:02}.txt").write_bytes(b"x" * ((1 << 20) - 5) + b"\nlast")
    found = bench.good("grep_search", query="last", path="wide").split("\n")
    assert found[0] == "wide/00.txt:2: last"
    assert found[47:] == ["wide/47.txt:2: last", "[only the first 48 MiB were searched; name a folder or a glob]"]


def test_a_matcher_that_breaks_is_said(bench: Bench) -> None:
    with pytest.raises(ToolFailed, match="the search failed; try a simpler pattern"):
        matched(b"no order\n", threading.Event(), 10)
