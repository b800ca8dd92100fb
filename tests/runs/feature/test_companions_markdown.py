"""Words of others stay words: no heading, no table, no tag, no command for a terminal, and never too many of them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.kit.markdown import (
    LINE,
    PROSE,
    ROWS,
    Markdown,
    cell,
    code,
    fenced,
    item,
    items,
    line,
    listed,
    page,
    prose,
    table,
    texts,
)
from runs.feature.markdown_reader import HOSTILE, seen

TRICKS = st.lists(
    st.sampled_from(
        [*"#>-+=:*_`~|\\<&[]()!$ \n\t\r1.", "\n## Ours\n", "```", "~~~", "---", "|---|", "a", "    ", "\x1b["]
    ),
    max_size=40,
).map("".join)
TEXTS = st.one_of(TRICKS, st.text(max_size=60), st.sampled_from(HOSTILE))


def _framed(*blocks: Markdown) -> str:
    return "\n\n".join(("## Ours", *blocks, "## Also ours", "the end")) + "\n"


def _is_ours_alone(text: str, *, tables: tuple[tuple[int, ...], ...] = ()) -> None:
    rendered = seen(text)
    assert rendered.headings == ("## Ours", "## Also ours")
    assert rendered.tables == tables
    assert rendered.last == "the end"
    assert [each for each in text.splitlines() if each.startswith("#")] == ["## Ours", "## Also ours"]


@pytest.mark.req("P6")
@given(TEXTS)
@settings(max_examples=300)
def test_no_text_becomes_a_heading_a_tag_or_a_table(text: str) -> None:
    blocks = (line(text), prose(text), item(Markdown("**a**"), text), texts((text, text), ""), fenced(text))
    for block in (*blocks, items([item(Markdown("x"), text), Markdown("- y")], "")):
        _is_ours_alone(_framed(block))


@pytest.mark.req("P6")
@given(TEXTS, TEXTS)
@settings(max_examples=300)
def test_no_text_breaks_a_table(one: str, other: str) -> None:
    drawn = table(("A", "B", "C"), [(one, other, code(one)), (cell(other), listed((one, other)), "x")], "")
    _is_ours_alone(_framed(drawn), tables=((3, 3, 3),))
    assert len(drawn.split("\n")) == 4


@given(TEXTS)
@settings(max_examples=200)
def test_a_heading_of_ours_stays_one_line_whatever_title_it_carries(text: str) -> None:
    rendered = seen(f"### Task {line(text)}: {line(text)}\n\nthe end\n")
    assert len(rendered.headings) == 1
    assert rendered.headings[0].startswith("### Task ")
    assert rendered.last == "the end"


def test_what_is_ordinary_is_left_readable() -> None:
    assert line("Use `a_b | c` of task_id, not *this* -> that: see [1].") == snapshot(
        "Use `a_b | c` of task_id, not \\*this\\* -> that: see \\[1\\]."
    )
    assert cell("Use `a|b` or c|d") == snapshot("Use \\`a\\|b\\` or c\\|d")
    assert prose("Two layers:\n- cli\n- core\nand # no heading\n\n# none here either") == snapshot(
        """\
> Two layers:
>
> - cli
> - core
>
> and # no heading
>
> \\# none here either\
"""
    )


def test_a_text_with_a_layout_stands_as_it_was_written() -> None:
    assert prose("flow:\n```\na -> b\n    ## c\n```\n") == snapshot(
        """\
> ````text
> flow:
> ```
> a -> b
>     ## c
> ```
> ````\
"""
    )


def test_a_terminal_is_shown_what_it_would_have_obeyed() -> None:
    assert line("a\x1b[31m b\u202e") == snapshot("a\\\\x1b\\[31m b\\\\u202e")


def test_every_length_has_an_end_and_says_so() -> None:
    assert len(line("x" * 10_000)) < LINE + 40
    assert line("x" * 10_000).endswith("… (10000 characters in all)")
    assert len(prose("x\n" * PROSE)) < 4 * PROSE
    assert len(line("\x1b" * 10_000)) < 5 * LINE
    many = items([Markdown("- x")] * (ROWS + 7), "")
    assert many.endswith("- … and 7 more")
    assert table(("A",), [("x",)] * (ROWS + 7), "").endswith("\n\n… and 7 more")
    cut = page([Markdown("# A"), Markdown("x" * 90), Markdown("y"), Markdown("z")], whole="`a.yaml`", limit=50)
    assert cut == "# A\n\nThis page is cut: 3 more parts stand in `a.yaml`.\n"


def test_what_is_not_there_is_said() -> None:
    assert table(("A",), [], "No row.") == "No row."
    assert items([], "None.") == "None."
    assert cell("") == "–"
    assert listed(()) == "–"
