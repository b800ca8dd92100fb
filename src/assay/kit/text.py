"""Bytes to text: UTF-8 only, size first, no NUL, no control codes, line ends made equal."""

import re

from assay.errors import BadDocument, Position
from assay.kit.limits import Limits

_BOM = b"\xef\xbb\xbf"
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def decode(data: bytes, limits: Limits) -> str:
    """The text of a document, with `\\n` line ends and without a byte order mark."""
    if len(data) > limits.bytes:
        raise BadDocument(f"{len(data)} bytes are more than the limit of {limits.bytes}", Position(1, 1))
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise BadDocument("the bytes here are not UTF-8", position_at(before, len(before))) from None
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    control = _CONTROL.search(text)
    if control is not None:
        raise BadDocument(
            f"control character U+{ord(control.group()):04X} is refused", position_at(text, control.start())
        )
    return text


def position_at(text: str, offset: int) -> Position:
    """The line and column of an offset in a text."""
    line = text.count("\n", 0, offset) + 1
    return Position(line, offset - text.rfind("\n", 0, offset))


class Lines:
    """Positions of growing offsets in one text, each newline counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = 1
        self._line_start = 0

    def at(self, offset: int) -> Position:
        """The place of an offset that is not before the last one asked for."""
        while (newline := self._text.find("\n", self._line_start, offset)) >= 0:
            self._line += 1
            self._line_start = newline + 1
        return Position(self._line, offset - self._line_start + 1)


def visible(text: str) -> str:
    """The text with everything a terminal would act on, or hide, spelled out.

    >>> visible("a\\x1b[31m\\u202eb🟢")
    'a\\\\x1b[31m\\\\u202eb🟢'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode("ascii") for sign in text)
