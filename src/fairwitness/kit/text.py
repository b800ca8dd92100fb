"""Decode documents (UTF-8 only, bounded size, no control characters, uniform newlines) and find positions in them."""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from fairwitness.errors import BadDocument, Position
from fairwitness.kit.limits import DocumentLimits

Way = tuple[str | int, ...]
"""The path to a value in a document, through keys and list indexes."""
Marks = dict[Way, Position]

_BOM = b"\xef\xbb\xbf"
_PATH = 1000
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def decode(data: bytes, limits: DocumentLimits) -> str:
    """Return the text of a document, with `\\n` as newline and without a byte order mark."""
    if len(data) > limits.bytes:
        raise BadDocument(f"{len(data)} bytes are more than the limit of {limits.bytes}", Position(1, 1))
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    try:
        text = _with_equal_line_ends(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = _with_equal_line_ends(data[: error.start].decode("utf-8"))
        raise BadDocument("the bytes here are not UTF-8", position_at(before, len(before))) from None
    refuse_control(text)
    return text


def _with_equal_line_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def refuse_control(text: str) -> None:
    """Raise `BadDocument` at the first control character, which a terminal would interpret."""
    control = _CONTROL.search(text)
    if control is not None:
        raise BadDocument(
            f"control character U+{ord(control.group()):04X} is refused", position_at(text, control.start())
        )


def position_at(text: str, offset: int) -> Position:
    """Return the line and column of an offset in a text."""
    line = text.count("\n", 0, offset) + 1
    return Position(line, offset - text.rfind("\n", 0, offset))


class Lines:
    """Converts increasing offsets in a text to positions, counting each newline only once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._line_start = 0

    def at(self, offset: int) -> Position:
        """Return the position of an offset, which must not be smaller than the previous one."""
        while (newline := self._text.find("\n", self._line_start, offset)) >= 0:
            self._line += 1
            self._line_start = newline + 1
        return Position(self._line, offset - self._line_start + 1)


@dataclass(slots=True)
class _Inside:
    """A list or mapping that has not ended yet; `way` is None if no position inside it is wanted."""

    way: Way | None
    index: int | None
    key: tuple[str, Position] | None = None


class Places:
    """Follows a parser through a document and collects the positions of some values and of their parents."""

    def __init__(self, ways: Iterable[Way]) -> None:
        self.found: Marks = {}
        self._wanted = {way[:length] for way in ways for length in range(len(way) + 1)}
        self._inside: list[_Inside] = []
        self._way: Way | None = None

    @property
    def awaits_key(self) -> bool:
        """True if the next token of the document is a key."""
        return bool(self._inside) and self._inside[-1].index is None and self._inside[-1].key is None

    def key(self, key: str, here: Position) -> None:
        """Record a key; the following value gets its position."""
        self._inside[-1].key = (key, here)

    def value(self, here: Position) -> None:
        """Record a value."""
        self._way, here = self._next(here)
        if self._way is not None:
            self.found[self._way] = here

    def enter(self, *, is_list: bool) -> None:
        """Enter the list or mapping that began with the last value."""
        self._inside.append(_Inside(self._way, 0 if is_list else None))

    def leave(self) -> None:
        """Leave the innermost list or mapping."""
        self._inside.pop()

    def _next(self, here: Position) -> tuple[Way | None, Position]:
        if not self._inside:
            return (), here
        outer = self._inside[-1]
        step: str | int
        if outer.key is not None:
            (step, here), outer.key = outer.key, None
        else:
            step = outer.index or 0
            outer.index = step + 1
        way = None if outer.way is None else (*outer.way, step)
        return (way if way in self._wanted else None), here


HIDDEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0e\uffa0\U000e0100-\U000e01ef]")
"""Characters that count as printable and are invisible."""


def visible(text: str) -> str:
    """Return the text with everything escaped that a terminal would interpret or hide.

    >>> visible("a\\x1b[31m\\u202eb🟢")
    'a\\\\x1b[31m\\\\u202eb🟢'
    """
    if not text.isascii():
        text = HIDDEN.sub(lambda sign: sign[0].encode("unicode_escape").decode("ascii"), text)
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)


def visible_path(path: str) -> str:
    """Return a path for a report: names that are no UTF-8 are escaped, and a very long path is cut in the middle.

    >>> visible_path("/tmp/a\\udcff\\n")
    '/tmp/a\\\\xff\\\\n'
    """
    text = visible(path.encode("utf-8", "surrogateescape").decode(errors="backslashreplace"))
    return text if len(text) <= _PATH else f"{text[: _PATH // 2]}…{text[-_PATH // 2 :]}"


def visible_lines(text: str) -> str:
    """Return a text of several lines, each made visible; tabs become spaces."""
    return "\n".join(visible(line.expandtabs()) for line in text.split("\n"))


_SENTENCE = re.compile(r"[.!?…؟۔։।]+[\"'”’»)\]]*(?=\s|$)|[。！？｡]+[」』”’）]*")
"""The end of a sentence, in the scripts that mark it."""
_JOINERS = "\u200c\u200d"
_EMOJI_PARTS = re.compile("[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")


def cells(text: str) -> int:
    """Return the number of columns that a text takes in a terminal.

    >>> [cells(text) for text in ("abc", "進捗", "e\\u0301", "👍🏽")]
    [3, 4, 1, 2]
    """
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(sign: str) -> int:
    if unicodedata.category(sign) in ("Mn", "Me", "Cf") or _EMOJI_PARTS.match(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def bounded(text: str, width: int) -> str:
    """Return a line in at most `width` columns: all of it, its first sentences, or else its first words and `…`.

    Text without spaces is cut between two characters, never inside one that consists of several.

    >>> bounded("Pay by card. Refunds stay as they are, also those of last year.", 30)
    'Pay by card.'
    >>> bounded("Pay by card and by voucher", 18), bounded("礼品券可以在结账时使用", 9)
    ('Pay by card and…', '礼品券可…')
    """
    if cells(text) <= width:
        return text
    ends = [found.end() for found in _SENTENCE.finditer(text)]
    whole = [end for end in ends if cells(text[:end]) <= width]
    if whole:
        return text[: whole[-1]].rstrip()
    taken = used = 0
    for place, sign in enumerate(text):
        used += _columns(sign)
        if used > width - 1:
            break
        taken = place + 1
    head = text[:taken]
    while taken and not _is_border(text, taken):
        taken -= 1
    words = head.rpartition(" ")[0]
    # a text of few long words, or of none, has no better place than between two characters
    cut = words if cells(words) * 2 >= width else text[:taken]
    return f"{cut.rstrip(' ,;:-–—،、，；：')}…"


def _is_border(text: str, place: int) -> bool:
    """Return whether a text may be cut before this place: not inside a letter with marks, an emoji or a flag."""
    before, after = text[place - 1], text[place]
    if unicodedata.combining(after) or unicodedata.category(after) in ("Mn", "Mc", "Me") or _EMOJI_PARTS.match(after):
        return False
    if before in _JOINERS or after in _JOINERS:
        return False
    flags = [sign for sign in text[:place][::-1] if "\U0001f1e6" <= sign <= "\U0001f1ff"]
    is_in_flag = "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff"
    return not (is_in_flag and len(flags) % 2)
