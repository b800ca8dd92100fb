"""What a model is shown: nothing that commands, nothing that hides, nothing of this machine, and not too much."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.agents.toolset.plain import PathVeil, head_and_tail, one_line, short_line, spelled, without_codes

GENERATED = settings(max_examples=500)


@GENERATED
@given(st.text())
def test_no_sign_that_commands_or_hides_is_left(text: str) -> None:
    shown = spelled(text)
    left = {sign for sign in shown if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")}
    assert left <= {"\n", "\t"}
    assert spelled(shown) == shown
    assert "\n" not in one_line(text)
    assert len(one_line(text)) <= 401


@GENERATED
@given(st.text(st.sampled_from("\x1b[]0;1mPX^_\\\x07\x9b\r\nabc?"), max_size=60))
def test_output_without_codes_keeps_its_lines(text: str) -> None:
    assert "\r" not in without_codes(text)
    assert without_codes("x\n" + text.replace("\x1b", "").replace("\x9b", "")).startswith("x\n")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Btext\x1b=", "text"),
        ("\x1bPsecret\x1b\\text", "text"),
        ("10%\r20%\r100%", "100%"),
        ("10%\r20%\r", "20%"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("plain\n", "plain\n"),
    ],
)
def test_codes_are_taken_out_and_overwritten_text_goes(text: str, shown: str) -> None:
    assert without_codes(text) == shown


@GENERATED
@given(st.text("ab\n", max_size=400), st.integers(10, 100))
def test_a_text_is_cut_in_the_middle(text: str, limit: int) -> None:
    cut = head_and_tail(text, limit)
    assert len(cut) <= limit + 60
    if len(text) <= limit:
        assert cut == text
    else:
        assert "left out" in cut


def test_what_is_left_out_is_counted() -> None:
    assert (
        head_and_tail("".join(f"{n}\n" for n in range(100)), 20)
        == "0\n1\n2\n3\n4\n[… 92 lines left out …]\n97\n98\n99\n"
    )
    assert head_and_tail("x" * 100, 20) == "x" * 10 + "\n[… 80 characters left out …]\n" + "x" * 10
    assert short_line("x" * 2005) == "x" * 2000 + "… [5 more characters]"


def test_the_worktrees_place_is_taken_out_and_its_neighbours_is_not(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to(real)
    veil = PathVeil(linked)
    assert (
        veil.over(f"{linked}/a.py {real}/b.py at {linked}. -I{linked}/x '{linked}'") == "./a.py ./b.py at .. -I./x '.'"
    )
    assert veil.over(f"{linked}-2/a.py {linked}.git {linked}s") == f"{linked}-2/a.py {linked}.git {linked}s"


@pytest.mark.parametrize(
    ("path", "relative"),
    [
        ("{root}/src/a.py", "src/a.py"),
        ("{root}", "."),
        ("{root}/", "."),
        ("{root}//src", "src"),
        ("./src//a.py", "src/a.py"),
        ("src/", "src"),
        ("./", "."),
        ("", ""),
        ("/etc", "/etc"),
        ("{root}/../x", "../x"),
        ("{root}2/a", "{root}2/a"),
        ("a/../b", "a/../b"),
        ("~/x", "~/x"),
    ],
)
def test_a_path_is_made_one_of_the_worktree_and_never_leads_elsewhere(tmp_path: Path, path: str, relative: str) -> None:
    assert PathVeil(tmp_path).relative(path.format(root=tmp_path)) == relative.format(root=tmp_path)
