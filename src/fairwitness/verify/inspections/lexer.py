"""Separate comments, strings and code of a text, for every inspected language.

No grammar, only what is needed to know that a word stands in a comment or in a string. A string ends with its line
where the language says so, so one that is misread spoils one line. Python is left to its own tokenizer.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from fairwitness.verify.inspections.languages import Lang

SOURCE_LENGTH = 1_000_000
"""Maximum length of a text that is analysed."""

_START = {
    Lang.SCRIPT: re.compile(r"""//|/\*|["'`/]"""),
    Lang.RUST: re.compile(r"""//|/\*|\bb?r#*"|["']"""),
    Lang.GO: re.compile(r"""//|/\*|["'`]"""),
    Lang.NATIVE: re.compile(r"""//|/\*|\bR"[^\s()\\]{0,16}\(|["']"""),
    Lang.JAVA: re.compile(r"""//|/\*|\"\"\"|["']"""),
}
_QUOTED = {sign: re.compile(rf"(?:\\.|[^{sign}\\\n])*{sign}?", re.DOTALL) for sign in "\"'"}
_RUST_STRING = re.compile(r'(?:\\.|[^"\\])*"?', re.DOTALL)
_TEMPLATE = re.compile(r"(?:\\.|[^`\\])*`?", re.DOTALL)
_CHARACTER = re.compile(r"(?:\\[^\n]{1,10}?|[^\\'\n])'")
_REGEX = re.compile(r"(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*")
_NESTED = re.compile(r"/\*|\*/")
_BEFORE_REGEX = re.compile(
    r"(?:[=(,:\[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|in|of|void|delete|throw|do|else)|^)\s*$"
)


class TokenKind(Enum):
    COMMENT = "comment"
    STRING = "string"


@dataclass(frozen=True, slots=True)
class Lexed:
    """A text, line by line; index 0 is line 1."""

    code: tuple[str, ...]
    """Comments blanked out."""
    bare: tuple[str, ...]
    """Comments and the insides of strings blanked out."""
    comments: tuple[tuple[int, str], ...]
    """The line of each piece of a comment, and what it says."""


def lexed(text: str, language: Lang) -> Lexed:
    """Return the parts of a text; a text that is too long counts as code."""
    if len(text) > SOURCE_LENGTH:
        lines = tuple(text.split("\n"))
        return Lexed(lines, lines, ())
    spans = list(_python_spans(text) if language is Lang.PYTHON else _spans(text, language))
    comments: list[tuple[int, str]] = []
    line, counted = 1, 0
    for kind, start, end in spans:
        if kind is TokenKind.COMMENT:
            line += text.count("\n", counted, start)
            counted = start
            comments.extend((line + number, piece) for number, piece in enumerate(text[start:end].split("\n")))
    code = _blanked(text, [(start, end) for kind, start, end in spans if kind is TokenKind.COMMENT])
    bare = _blanked(text, [(start, end) for _, start, end in spans])
    return Lexed(tuple(code.split("\n")), tuple(bare.split("\n")), tuple(comments))


_NOT_NEWLINE = re.compile(r"[^\n]")


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    pieces: list[str] = []
    here = 0
    for start, end in spans:
        pieces.append(text[here:start])
        pieces.append(_NOT_NEWLINE.sub(" ", text[start:end]))
        here = end
    pieces.append(text[here:])
    return "".join(pieces)


def _spans(text: str, language: Lang) -> Iterator[tuple[TokenKind, int, int]]:
    """Yield where comments are, and the insides of strings."""
    here = 0
    while (start := _START[language].search(text, here)) is not None:
        sign, at, inside = start.group(), start.start(), start.end()
        if sign == "//":
            here = _end(text, "\n", inside)
            yield TokenKind.COMMENT, at, here
        elif sign == "/*":
            here = _nested_end(text, inside) if language is Lang.RUST else _end(text, "*/", inside, after=True)
            yield TokenKind.COMMENT, at, here
        elif sign == "/":
            here = _regex_end(text, at)
        else:
            here = _string_end(text, sign, inside, language)
            if here > inside:
                yield TokenKind.STRING, inside, here - 1


def _end(text: str, sign: str, start: int, *, after: bool = False) -> int:
    found = text.find(sign, start)
    if found < 0:
        return len(text)
    return found + len(sign) if after else found


def _nested_end(text: str, start: int) -> int:
    depth = 1
    for sign in _NESTED.finditer(text, start):
        depth += 1 if sign.group() == "/*" else -1
        if depth == 0:
            return sign.end()
    return len(text)


def _regex_end(text: str, at: int) -> int:
    # a slash is a division unless what precedes it cannot be divided
    before = text[max(text.rfind("\n", 0, at) + 1, at - 80) : at]
    if _BEFORE_REGEX.search(before) and (literal := _REGEX.match(text, at + 1)):
        return literal.end()
    return at + 1


def _string_end(text: str, sign: str, inside: int, language: Lang) -> int:
    if sign == "`":
        return _TEMPLATE.match(text, inside).end()  # type: ignore[union-attr]  # the pattern also matches nothing
    if sign == '"""':
        return _end(text, '"""', inside, after=True)
    if "r" in sign:
        return _end(text, '"' + "#" * sign.count("#"), inside, after=True)
    if "R" in sign:
        return _end(text, f'){sign[2:-1]}"', inside, after=True)
    if sign == "'" and language is not Lang.SCRIPT:
        # in Rust a quotation mark may also begin a lifetime, in C++ it separates digits
        character = _CHARACTER.match(text, inside)
        return character.end() if character else inside
    pattern = _RUST_STRING if language is Lang.RUST else _QUOTED[sign]
    return pattern.match(text, inside).end()  # type: ignore[union-attr]  # the pattern also matches nothing


def _python_spans(text: str) -> Iterator[tuple[TokenKind, int, int]]:
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    reached = 0
    try:
        for token in tokens:
            if token.start[0] > len(starts) or token.end[0] > len(starts):
                break
            if token.type == tokenize.ERRORTOKEN:
                # before Python 3.12 it goes on sign by sign, in a time that grows with the square of the line
                raise tokenize.TokenError(token.string)
            start = starts[token.start[0] - 1] + token.start[1]
            reached = starts[token.end[0] - 1] + token.end[1]
            if token.type == tokenize.COMMENT:
                yield TokenKind.COMMENT, start, reached
            elif token.type == tokenize.STRING:
                quote = 3 if token.string.endswith(('"""', "'''")) and len(token.string) >= 6 else 1
                opening = re.match(r"\w*", token.string).end() + quote  # type: ignore[union-attr]  # also matches nothing
                yield TokenKind.STRING, start + opening, max(start + opening, reached - quote)
    except (tokenize.TokenError, SyntaxError):
        # what the tokenizer could not read: a comment wherever a line could have one
        for comment in re.compile(r"#[^\n]*").finditer(text, reached):
            yield TokenKind.COMMENT, comment.start(), comment.end()
