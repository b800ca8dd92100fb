"""Read and write JSON and JSON lines strictly: no duplicate keys, no NaN, bounded numbers and depth.

The standard parser does the reading. Only if something looks wrong does `_scan` go through the text token by token, to
report exactly what is wrong and where.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NoReturn

from fairwitness.errors import BadDocument, Position
from fairwitness.kit.limits import DEFAULT_LIMITS, DocumentLimits
from fairwitness.kit.scalars import Unrepresentable, decimal, integer
from fairwitness.kit.text import Lines, Marks, Places, Way

_ODD_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_TOKEN = re.compile(
    # A scan does not need commas and colons, so they are skipped like white space.
    r"""[ \t\r\n,:]*(?:(?P<string>")|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<word>[A-Za-z-]+)|(?P<sign>[][{}]))"""
)
_HALF = re.compile("[\ud800-\udfff]")
_WHOLE = re.compile(r"-?[0-9]+")
_UNWRITTEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")
_DECODER = json.JSONDecoder()


class _Suspicious(Exception):
    """Something is wrong; the scan finds out what and where."""


def parse(text: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Any:
    """Return the value of a JSON document; raise `BadDocument` with position and reason if it is not acceptable."""
    if _opened(text) > limits.depth or _most_nodes(text) > limits.nodes or _has_odd_text(text):
        _scan(text, limits)
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=lambda digits: _number(integer, digits, limits),
            parse_float=lambda digits: _number(decimal, digits, limits),
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise BadDocument(
            f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}", Position(error.lineno, error.colno)
        ) from None
    except (_Suspicious, RecursionError):
        _scan(text, limits)
        raise BadDocument("not an acceptable JSON document", Position(1, 1)) from None


def _opened(text: str) -> int:
    return text.count("[") + text.count("{")


def _most_nodes(text: str) -> int:
    # Counting characters gives an upper bound quickly; the same characters inside strings only cause a needless scan.
    return _opened(text) + text.count(",") + text.count(":") + 1


def _has_odd_text(text: str) -> bool:
    return _ODD_ESCAPE.search(text) is not None or (not text.isascii() and _HALF.search(text) is not None)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Suspicious
    return value


def _number(convert: Any, digits: str, limits: DocumentLimits) -> Any:
    try:
        return convert(digits, limits)
    except Unrepresentable:
        raise _Suspicious from None


def _constant(_word: str) -> NoReturn:
    raise _Suspicious


def _scan(text: str, limits: DocumentLimits) -> int:
    """Raise at the first token that is refused; return the number of keys and values.

    The grammar is left to the standard parser: where the text is not JSON, the scan stops.
    """
    # For each enclosing list or mapping: the keys seen so far (None for a list), and whether a key comes next.
    stack: list[tuple[set[str] | None, bool]] = []
    lines = Lines(text)
    offset, nodes = 0, 0
    while (token := _TOKEN.match(text, offset)) is not None:
        kind = str(token.lastgroup)
        start, offset = token.start(kind), token.end()
        word = token.group(kind)
        if kind == "sign" and word in "]}":
            if stack:
                stack.pop()
        else:
            here = lines.at(start)
            nodes += 1
            if nodes > limits.nodes:
                raise BadDocument(f"more than {limits.nodes} values", here)
            keys, is_key = stack[-1] if stack else (None, False)
            if keys is not None:
                stack[-1] = (keys, not is_key)
            if kind == "string":
                try:
                    word, offset = _DECODER.raw_decode(text, start)
                except json.JSONDecodeError:
                    break
                _refuse_odd_text(word, here)
                if is_key and keys is not None:
                    _refuse_twice(word, here, keys)
            elif is_key:
                break
            elif kind == "sign":
                if len(stack) >= limits.depth:
                    raise BadDocument(f"nested deeper than {limits.depth} levels", here)
                stack.append((None, False) if word == "[" else (set(), True))
            else:
                _refuse_odd_number(word, here, limits)
        if not stack:
            break  # the document has only one value, which ends here
    return nodes


def _refuse_twice(key: str, here: Position, seen: set[str]) -> None:
    if key in seen:
        raise BadDocument(f"the key {key[:80]!r} appears twice", here)
    seen.add(key)


def _refuse_odd_text(value: str, here: Position) -> None:
    if "\0" in value:
        raise BadDocument("a NUL character is refused", here)
    if not value.isascii() and _HALF.search(value):
        raise BadDocument("half of a surrogate pair is refused", here)


def _refuse_odd_number(word: str, here: Position, limits: DocumentLimits) -> None:
    if word in ("NaN", "Infinity", "-Infinity"):
        raise BadDocument("a number that is not finite is refused", here)
    try:
        if _WHOLE.fullmatch(word):
            integer(word, limits)
        elif word[-1].isdigit():
            decimal(word, limits)
    except Unrepresentable as error:
        raise BadDocument(str(error), here) from None
    except ValueError:
        return  # not a number: the parser will report it


def marks(text: str, ways: Iterable[Way]) -> Marks:
    """Return the positions of some values of an accepted document and of their parents."""
    places = Places(ways)
    lines = Lines(text)
    offset = 0
    while (token := _TOKEN.match(text, offset)) is not None:
        kind = str(token.lastgroup)
        start, offset = token.start(kind), token.end()
        word = token.group(kind)
        if kind == "string":
            word, offset = _DECODER.raw_decode(text, start)
        if kind == "sign" and word in "]}":
            places.leave()
        elif kind == "string" and places.awaits_key:
            places.key(word, lines.at(start))
        else:
            places.value(lines.at(start))
            if kind == "sign":
                places.enter(is_list=word == "[")
    return places.found


def render(value: Any) -> str:
    """Return plain values as JSON, indented by two spaces, with keys in the given order and without ASCII escapes."""
    return _written(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)) + "\n"


def render_line(value: Any) -> str:
    """Return one line of JSON lines, without the newline."""
    return _written(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _written(text: str) -> str:
    """Escape the characters that this module's reader refuses or that other readers treat as a newline."""
    return _UNWRITTEN.sub(lambda sign: f"\\u{ord(sign.group()):04x}", text)


def parse_lines(text: str, limits: DocumentLimits = DEFAULT_LIMITS) -> list[Any]:
    """Return the values of a JSON lines document, one per line; none for an empty text."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if _most_nodes(text) + len(lines) > limits.nodes:
        _refuse_many(lines, limits)
    values = []
    for number, line in enumerate(lines, start=1):
        try:
            values.append(parse(line, limits))
        except BadDocument as error:
            raise BadDocument(error.reason, Position(number, error.position.column)) from None
    return values


def _refuse_many(lines: list[str], limits: DocumentLimits) -> None:
    """Raise if all lines together have more keys and values than allowed."""
    nodes = 0
    for number, line in enumerate(lines, start=1):
        try:
            nodes += max(1, _scan(line, limits))  # an empty line counts too
        except BadDocument as error:
            raise BadDocument(error.reason, Position(number, error.position.column)) from None
        if nodes > limits.nodes:
            raise BadDocument(f"more than {limits.nodes} values", Position(number, 1))


def marks_of_lines(text: str, ways: Iterable[Way]) -> Marks:
    """Return the positions of some values of an accepted JSON lines document; a way begins with the line's index."""
    found: Marks = {(): Position(1, 1)}
    asked: dict[str | int, list[Way]] = defaultdict(list)
    for way in ways:
        asked[way[0] if way else 0].append(way[1:])
    for index, line in enumerate(text.removesuffix("\n").split("\n")):
        if index in asked:
            for way, position in marks(line, asked[index]).items():
                found[index, *way] = Position(index + 1, position.column)
    return found
