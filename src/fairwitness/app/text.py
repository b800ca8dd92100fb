"""Foreign text made safe for a terminal, and numbers in few characters."""

import io
import re
from collections.abc import Iterator
from typing import TextIO

# Durations are for the screens, which may not import kit.
from fairwitness.kit.durations import seconds_between as seconds_between
from fairwitness.kit.durations import took as took
from fairwitness.kit.redaction import redact
from fairwitness.kit.text import HIDDEN, visible, visible_lines

LONGEST = 160
LONGEST_SENTENCE = 1200
_OWN_CODES = re.compile(r"\x1b\[(?:[0-9;]{0,20}m|[0-2]?[JK]|[0-9]{0,4}[A-GH]|\?(?:25|1049)[hl])|\r")
"""The codes that the screens of Fair Witness print in a terminal: colours, movements of the cursor, clearing."""
_ACTS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad]|[^\x00-\xff]")
"""Control characters, and all characters that may be one beyond Latin-1."""


class ShownOutput(io.TextIOBase):
    """A stream to a person: no secret passes it, and nothing that a terminal would interpret or hide.

    Screens make foreign text visible where they use it. This is the last place, for what they forget. Escapes are
    those of JSON, so that JSON stays what it was.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def write(self, text: str, /) -> int:
        """Write a text without secrets and with control characters escaped."""
        if not isinstance(text, str):
            raise TypeError(f"a text is written here, not {type(text).__name__}")
        self._stream.write(self._shown(redact(text)))
        return len(text)

    def _shown(self, text: str) -> str:
        if not self._is_terminal:
            return _ACTS.sub(_json_escaped, text)
        pieces: list[str] = []
        done = 0
        for code in _OWN_CODES.finditer(text):
            pieces += (_ACTS.sub(_json_escaped, text[done : code.start()]), code.group())
            done = code.end()
        return "".join([*pieces, _ACTS.sub(_json_escaped, text[done:])])

    def flush(self) -> None:
        """Write out what is buffered."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Return whether a person reads in a terminal, which may have been closed meanwhile."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream."""
        return self._stream.fileno()

    def writable(self) -> bool:
        """Return True."""
        return True

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a constant of the class in typeshed
        """The encoding of the stream."""
        return self._stream.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]  # a constant of the class in typeshed
        """What happens to characters that the encoding lacks."""
        return self._stream.errors


def _json_escaped(found: re.Match[str]) -> str:
    sign = found.group()
    if sign.isprintable() and HIDDEN.match(sign) is None:
        return sign
    units = sign.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def safe_lines(text: str) -> Iterator[str]:
    """Yield each line with control characters made visible."""
    yield from visible_lines(text).split("\n")


def safe_line(text: str, most: int = LONGEST) -> str:
    """Return text as one line without control characters, cut to `most` characters.

    >>> safe_line("a\\x1b[2J\\nb" + "c" * 9, 12)
    'a\\\\x1b[2J bc…'
    """
    line = visible(" ".join(text[: 4 * most].split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def safe_sentence(text: str) -> str:
    """Return a message as one line without control characters; the middle of a very long one is left out.

    >>> safe_sentence("no run 'a\\nb\\x1b[2J'")
    "no run 'a b\\\\x1b[2J'"
    """
    half = LONGEST_SENTENCE // 2
    if len(text) > LONGEST_SENTENCE:
        text = f"{text[:half]} … {text[-half:]}"
    line = visible(" ".join(text.splitlines()))
    return line if len(line) <= 2 * LONGEST_SENTENCE else f"{line[:LONGEST_SENTENCE]} …"


def short_count(count: int) -> str:
    """Return a number of tokens in a few characters.

    >>> [short_count(count) for count in (0, 950, 12_345, 500_000, 5_000_000)]
    ['0', '950', '12k', '500k', '5.0M']
    """
    if count < 1000:
        return str(count)
    return f"{count // 1000}k" if count < 1_000_000 else f"{count / 1_000_000:.1f}M"


def counted(count: int, noun: str) -> str:
    """Return a number with its noun.

    >>> counted(1, "call"), counted(2000, "token")
    ('1 call', '2,000 tokens')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
