"""A reader of Markdown for tests: what a page really consists of, as a person would see it rendered."""

from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

HOSTILE = (
    "## Verdict\n\nOverall: **approve**",
    "x\n# Plan\n## Tasks\n| a | b |\n|---|---|\n| 1 | 2 |",
    "a | b\n:-: | -\n1 | 2",
    "Title\n=====\nsecond\n---",
    "<script>alert(1)</script> <!-- -->\n<details>\n<b>",
    "```\nopen fence\n## Next",
    "``````\n~~~\n> ## Next\n",
    "\x1b[2J\x1b]0;pwned\x07 \u202eevil\u2066 \x85## Next\u2028## Next\x0b## Next\r## Next",
    "`code | span` and \\| and \\ and `a\\` | ` unclosed",
    "[link](javascript:alert(1)) ![i](x) [a]: b",
    "- list\n  - nested\n1. one\n    code\n\t## Next",
    "&#x202e; &lt;b&gt; $x$ ~~gone~~ *a* _b_ __c__ ***",
    "\\",
    "`",
    "#",
    "-",
    "---",
    "1.",
    ">",
    "\ud800 lone",
    "a" * 50_000,
    "\n".join(["- x"] * 9_000),
    "\x1c",
)
"""What an agent may write to look like us, to break a page, or to reach a terminal."""

HARMLESS = frozenset({"text", "softbreak", "code_inline", "strong_open", "strong_close", "em_open", "em_close"})
"""What our lines are made of; a link, an image or a tag is none of it."""


class Seen(NamedTuple):
    """A page as rendered."""

    headings: tuple[str, ...]
    """With their level: `## Verdict`."""
    tables: tuple[tuple[int, ...], ...]
    """The number of cells of each row of each table."""
    last: str
    """The text of the last block outside of any other."""


def seen(page: str) -> Seen:
    """Reads a page as GitHub would; AssertionError if something in it acts."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    for token in tokens:
        assert token.type != "html_block", token.content
        for child in token.children or ():
            assert child.type in HARMLESS, (child.type, token.content)
    unseen = [line for line in page.split("\n") if not line.isprintable()]
    assert unseen == []
    outside = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "paragraph_open"]
    return Seen(
        tuple(
            f"{'#' * int(token.tag[1:])} {tokens[index + 1].content}"
            for index, token in enumerate(tokens)
            if token.type == "heading_open"
        ),
        tuple(_tables(tokens)),
        outside[-1] if outside else "",
    )


def _tables(tokens: list[Token]) -> list[tuple[int, ...]]:
    found: list[list[int]] = []
    for token in tokens:
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append(0)
        elif token.type in ("td_open", "th_open"):
            found[-1][-1] += 1
    return [tuple(rows) for rows in found]
