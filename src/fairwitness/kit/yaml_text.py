"""Read and write YAML strictly, as plain values.

Reading takes the events of PyYAML's C parser and builds plain values itself. Every feature of YAML beyond plain values
is refused: anchors, aliases, tags, merge keys, directives, duplicate or non-scalar keys, second documents. Unescaped
characters that some readers treat as a newline or ignore are refused too; in quotes they can be written as escapes.
Keys are always text. Writing quotes every text that this reader would take for something else.
"""

import math
import re
from collections.abc import Iterable
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from fairwitness.errors import BadDocument, Position
from fairwitness.kit.limits import DEFAULT_LIMITS, DocumentLimits
from fairwitness.kit.scalars import Unrepresentable, resolve
from fairwitness.kit.text import Marks, Places, Way, position_at

_NO_KEY: Any = object()
_UNCLEAR = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def _at(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def parse(text: str, limits: DocumentLimits = DEFAULT_LIMITS) -> Any:
    """Return the value of a YAML document; raise `BadDocument` if it is not a single plain document."""
    if not text.isascii():
        _refuse_unclear(text)
    loader = yaml.CSafeLoader(text)
    try:
        return _build(loader.get_event, limits)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadDocument(f"not YAML: {error.problem or error.context}", _at(mark)) from None
    except yaml.YAMLError as error:
        _refuse_unclear(text)
        raise BadDocument(f"not YAML: {error}".splitlines()[0], Position(1, 1)) from None
    finally:
        loader.dispose()


def _refuse_unclear(text: str) -> None:
    unclear = _UNCLEAR.search(text)
    if unclear is not None:
        raise BadDocument(
            f"character U+{ord(unclear.group()):04X} is refused outside of an escape",
            position_at(text, unclear.start()),
        )


def _build(next_event: Any, limits: DocumentLimits) -> Any:
    # A loop instead of recursion: `container` is being filled, `stack` holds the containers around it.
    next_event()  # stream start
    event = next_event()
    if type(event) is StreamEndEvent:
        raise BadDocument("the document is empty", Position(1, 1))
    if event.version or event.tags:
        raise BadDocument("directives (%YAML, %TAG) are refused", _at(event.start_mark))
    stack: list[tuple[Any, Any]] = []
    container: Any = None
    key: Any = _NO_KEY
    root: Any = None
    nodes = 0
    while True:
        event = next_event()
        kind = type(event)
        if kind is ScalarEvent:
            if event.anchor is not None or event.tag is not None:
                raise _decorated(event)
            value = event.value
            nodes += 1
            if nodes > limits.nodes:
                raise BadDocument(f"more than {limits.nodes} values", _at(event.start_mark))
            is_key = type(container) is dict and key is _NO_KEY
            if not event.style:  # unquoted: only then can the value be anything but text
                if is_key:
                    if value == "<<":
                        raise BadDocument("merge keys (<<) are refused", _at(event.start_mark))
                else:
                    try:
                        value = resolve(value, limits)
                    except Unrepresentable as error:
                        raise BadDocument(str(error), _at(event.start_mark)) from None
            elif "\0" in value:
                raise BadDocument("a NUL character is refused", _at(event.start_mark))
            if is_key:
                if value in container:
                    raise BadDocument(f"the key {value[:80]!r} appears twice", _at(event.start_mark))
                key = value
                continue
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            if event.anchor is not None or event.tag is not None:
                raise _decorated(event)
            if type(container) is dict and key is _NO_KEY:
                raise BadDocument("a key must be plain text, not a list or mapping", _at(event.start_mark))
            nodes += 1
            if nodes > limits.nodes:
                raise BadDocument(f"more than {limits.nodes} values", _at(event.start_mark))
            if len(stack) >= limits.depth:
                raise BadDocument(f"nested deeper than {limits.depth} levels", _at(event.start_mark))
            stack.append((container, key))
            container, key = ({} if kind is MappingStartEvent else []), _NO_KEY
            continue
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            value = container
            container, key = stack.pop()
        elif kind is AliasEvent:
            raise BadDocument("aliases (*name) are refused", _at(event.start_mark))
        else:  # end of the document
            break
        if container is None:
            root = value
        elif key is _NO_KEY:
            container.append(value)
        else:
            container[key] = value
            key = _NO_KEY
    event = next_event()
    if type(event) is DocumentStartEvent:
        raise BadDocument("a second document is refused", _at(event.start_mark))
    return root


def _decorated(event: Any) -> BadDocument:
    what = "anchors (&name)" if event.anchor is not None else "tags (!name)"
    return BadDocument(f"{what} are refused", _at(event.start_mark))


def marks(text: str, ways: Iterable[Way]) -> Marks:
    """Return the positions of some values of an accepted document and of their parents; used for error messages."""
    places = Places(ways)
    loader = yaml.CSafeLoader(text)
    while loader.check_event():
        event = loader.get_event()
        match event:
            case ScalarEvent() if places.awaits_key:
                places.key(event.value, _at(event.start_mark))
            case ScalarEvent():
                places.value(_at(event.start_mark))
            case MappingStartEvent() | SequenceStartEvent():
                places.value(_at(event.start_mark))
                places.enter(is_list=isinstance(event, SequenceStartEvent))
            case MappingEndEvent() | SequenceEndEvent():
                places.leave()
            case _:
                pass  # start and end of stream and document
    loader.dispose()
    return places.found


class _Writer(yaml.SafeDumper):
    """Writes text of several lines as block strings, and quotes text that would not be read back as text."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


_LARGEST = DocumentLimits(number_length=1 << 30)


def _reads_as_text(value: str) -> bool:
    try:
        return isinstance(resolve(value, _LARGEST), str)
    except (Unrepresentable, ValueError):
        return False


def _fits_block(value: str) -> bool:
    """Return True for printable lines without unusual white space; all other text needs quotes."""
    if not value.strip() or value[0] in " \n\t":
        return False
    return all(line == line.rstrip() and (not line or line.isprintable()) for line in value.split("\n"))


def _text(writer: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = None
    if "\n" in value:
        style = "|" if _fits_block(value) else '"'
    elif not value.isprintable() or not _reads_as_text(value):
        style = '"'
    return writer.represent_scalar("tag:yaml.org,2002:str", value, style=style)


def _decimal(writer: yaml.SafeDumper, value: float) -> yaml.ScalarNode:
    if not math.isfinite(value):
        raise ValueError("a number that is not finite cannot be written")
    return writer.represent_float(value)


_Writer.add_representer(str, _text)
_Writer.add_representer(float, _decimal)


def render(value: Any) -> str:
    """Return plain values as YAML in block style, with keys in the given order."""
    return yaml.dump(value, Dumper=_Writer, sort_keys=False, allow_unicode=True, width=110, indent=2)
