"""JSON and JSON lines to plain values and back, strictly: no duplicate keys, no NaN, bounded numbers and depth.

The fast path is the standard parser. Only when something looks wrong does `_scan` walk the text token by token, to
say exactly where and what.
"""

import json
import re
from typing import Any, NoReturn

from assay.errors import BadDocument, Position
from assay.kit.limits import DEFAULT_LIMITS, Limits
from assay.kit.scalars import Unrepresentable, decimal, integer
from assay.kit.text import Lines
from assay.kit.yaml_text import Marks

_ODD_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_TOKEN = re.compile(
    r"""[ \t\n]*(?:(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<number>-?[0-9][0-9.eE+-]*)|(?P<word>[A-Za-z-]+)"""
    r"|(?P<sign>[][{}:,]))"
)


class _Suspicious(Exception):
    """Something is wrong; the scan will say what and where."""


def parse(text: str, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The value of a JSON document; `BadDocument` with the place and the reason otherwise."""
    if _may_exceed(text, limits) or _ODD_ESCAPE.search(text):
        _scan(text, limits, None)
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
        _scan(text, limits, None)
        raise BadDocument("not an acceptable JSON document", Position(1, 1)) from None


def _may_exceed(text: str, limits: Limits) -> bool:
    # Counting signs is an upper bound for both, and C-fast; strings that hold signs only cost a scan.
    opened = text.count("[") + text.count("{")
    return opened > limits.depth or opened + text.count(",") + text.count(":") + 1 > limits.nodes


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _Suspicious
    return value


def _number(convert: Any, digits: str, limits: Limits) -> Any:
    try:
        return convert(digits, limits)
    except Unrepresentable:
        raise _Suspicious from None


def _constant(_word: str) -> NoReturn:
    raise _Suspicious


def marks(text: str) -> Marks:
    """Where each value of an accepted document stands."""
    found: Marks = {}
    _scan(text, DEFAULT_LIMITS, found)
    return found


def _scan(text: str, limits: Limits, found: Marks | None) -> None:
    """Walks the tokens; raises at the first thing that is refused, fills `found` on the way.

    It leaves grammar to the standard parser: where the text stops being JSON it simply stops.
    """
    # A frame is [path, next list index or None, key waiting for its value, keys seen so far]
    stack: list[list[Any]] = []
    lines = Lines(text)
    offset, nodes = 0, 0
    while (token := _TOKEN.match(text, offset)) is not None:
        kind = str(token.lastgroup)
        start, offset = token.start(kind), token.end()
        word = token.group(kind)
        if kind == "sign" and word in ",:":
            continue
        if kind == "sign" and word in "]}":
            if not stack:
                return
            stack.pop()
            continue
        frame = stack[-1] if stack else None
        here = lines.at(start)
        if frame is not None and frame[1] is None and frame[2] is None:
            if kind != "string":
                return
            frame[2] = _key(word, here, frame[3])
            if found is not None:
                found[(*frame[0], frame[2])] = here
            continue
        path = _step(frame)
        if found is not None:
            found.setdefault(path, here)
        nodes += 1
        if nodes > limits.nodes:
            raise BadDocument(f"more than {limits.nodes} values", here)
        if kind == "sign":
            if len(stack) >= limits.depth:
                raise BadDocument(f"nested deeper than {limits.depth} levels", here)
            stack.append([path, 0 if word == "[" else None, None, set()])
        elif kind == "string":
            _refuse_odd_text(word, here)
        else:
            _refuse_odd_number(word, here, limits)


def _step(frame: list[Any] | None) -> tuple[str | int, ...]:
    """The path of the value that comes next in a frame."""
    if frame is None:
        return ()
    if frame[1] is None:
        path = (*frame[0], frame[2])
        frame[2] = None
        return path
    path = (*frame[0], frame[1])
    frame[1] += 1
    return path


def _key(word: str, here: Position, seen: set[str]) -> str:
    _refuse_odd_text(word, here)
    try:
        key = str(json.loads(word))
    except json.JSONDecodeError:
        return word
    if key in seen:
        raise BadDocument(f"the key {key[:80]!r} stands twice", here)
    seen.add(key)
    return key


def _refuse_odd_text(word: str, here: Position) -> None:
    if _ODD_ESCAPE.search(word) is None:
        return
    try:
        value = str(json.loads(word))
    except json.JSONDecodeError:
        return
    if "\0" in value:
        raise BadDocument("a NUL character is refused", here)
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise BadDocument("half of a surrogate pair is refused", here)


def _refuse_odd_number(word: str, here: Position, limits: Limits) -> None:
    if word in ("NaN", "Infinity", "-Infinity"):
        raise BadDocument("a number that is not finite is refused", here)
    try:
        if re.fullmatch(r"-?[0-9]+", word):
            integer(word, limits)
        elif word[-1].isdigit():
            decimal(word, limits)
    except Unrepresentable as error:
        raise BadDocument(str(error), here) from None
    except ValueError:
        return  # not a number at all: the parser will say so


def render(value: Any) -> str:
    """The JSON text of plain values: two spaces, keys in the order given, real letters."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def render_line(value: Any) -> str:
    """One line of JSON lines, without its line end."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse_lines(text: str, limits: Limits = DEFAULT_LIMITS) -> list[Any]:
    """The values of a JSON lines document; every line must hold exactly one."""
    values = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        try:
            values.append(parse(line, limits))
        except BadDocument as error:
            raise BadDocument(error.reason, Position(number, error.position.column)) from None
    return values


def marks_of_lines(text: str) -> Marks:
    """Where each value of an accepted JSON lines document stands; the first step of a path is the line's index."""
    found: Marks = {(): Position(1, 1)}
    for index, line in enumerate(text.removesuffix("\n").split("\n")):
        for path, position in marks(line).items():
            found[(index, *path)] = Position(index + 1, position.column)
    return found
