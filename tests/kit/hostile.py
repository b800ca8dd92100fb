"""Documents made to hurt a reader, and the child process that measures what reading each of them costs.

Run as a program with the name of a group it reads each document of the group in a process of its own, forked for it:
only a fork begins with a fresh high-water mark of memory; a started program inherits the mark of its parent.
"""

import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairwitness.errors import BadDocument
from fairwitness.kit.documents import Format, read

MIB = 1024 * 1024
_ROOM = 2 * MIB
_NEARLY = 1_900_000


@dataclass(frozen=True)
class Hostile:
    """A document, and what must come of it: a part of the reason it is refused for, or None if it is taken."""

    name: str
    form: Format
    make: Callable[[], bytes]
    refused: str | None


def _fill(piece: bytes, size: int = _ROOM) -> bytes:
    return (piece * (size // len(piece) + 1))[:size]


def _numbered(pattern: bytes, count: int, *, head: bytes = b"", tail: bytes = b"") -> bytes:
    # Grown in place: a list of pieces would raise the memory mark that the measurement starts from.
    grown = bytearray(head)
    for number in range(count):
        grown += pattern % number
    return bytes(grown + tail)


def _laughs() -> bytes:
    lines = [b"a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 9)]
    return b"\n".join(lines)


def _merges() -> bytes:
    lines = [b"m0: &m0 {a: 1}"]
    lines += [b"m%d: &m%d {<<: [*m%d, *m%d]}" % (n, n, n - 1, n - 1) for n in range(1, 23)]
    return b"\n".join(lines)


def _yaml(name: str, make: Callable[[], bytes], refused: str | None) -> Hostile:
    return Hostile(f"yaml: {name}", Format.YAML, make, refused)


def _json(name: str, make: Callable[[], bytes], refused: str | None) -> Hostile:
    return Hostile(f"json: {name}", Format.JSON, make, refused)


def _lines(name: str, make: Callable[[], bytes], refused: str | None) -> Hostile:
    return Hostile(f"jsonl: {name}", Format.JSONL, make, refused)


def _markdown(name: str, make: Callable[[], bytes], refused: str | None) -> Hostile:
    return Hostile(f"markdown: {name}", Format.MARKDOWN, make, refused)


YAML_MACHINERY = (
    _yaml("billion laughs", _laughs, "anchors"),
    _yaml("22 nested merge keys", _merges, "anchors"),
    _yaml("merge key without an anchor", lambda: b"a:\n  <<: {b: 1}\n", "merge keys"),
    _yaml("anchor to itself", lambda: b"a: &x [*x]\n", "anchors"),
    _yaml("anchored root", lambda: b"&a [*a, *a]", "anchors"),
    _yaml("alias to nothing", lambda: b"a: *nobody\n", "aliases"),
    _yaml("2 MiB of anchors", lambda: _fill(b"- &a x\n"), "anchors"),
    _yaml("python object", lambda: b"a: !!python/object/apply:os.system ['true']\n", "tags"),
    _yaml("binary tag", lambda: b"a: !!binary aGVsbG8=\n", "tags"),
    _yaml("bare tag", lambda: b"a: ! b\n", "tags"),
    _yaml("tag of a megabyte", lambda: b"a: !" + b"t" * MIB + b" b\n", "tags"),
    _yaml("verbatim tag never closed", lambda: b"!<" + b"t" * _NEARLY, "not YAML"),
    _yaml("YAML directive", lambda: b"%YAML 1.2\n---\na: 1\n", "directives"),
    _yaml("TAG directive", lambda: b"%TAG !e! tag:example.org,2000:\n---\na: 1\n", "directives"),
    _yaml("2 MiB of directives", lambda: _fill(b"%TAG !e! tag:e,2000:\n"), "not YAML"),
    _yaml("duplicate key", lambda: b"a: 1\na: 2\n", "twice"),
    _yaml("mapping as a key", lambda: b"? {a: 1}\n: 2\n", "a key must be"),
    _yaml("list as a key", lambda: b"? [a]\n: 2\n", "a key must be"),
    _yaml("2 MiB of question marks", lambda: _fill(b"? "), "a key must be"),
    _yaml("second document", lambda: b"a: 1\n---\nb: 2\n", "second document"),
    _yaml("2 MiB of documents", lambda: _fill(b"---\n"), "second document"),
)

YAML_SIZE = (
    _yaml("2 MiB of opened lists", lambda: _fill(b"["), "nested deeper"),
    _yaml("2 MiB of opened mappings", lambda: _fill(b"{a: "), "nested deeper"),
    _yaml("2 MiB of opened keys", lambda: _fill(b"{? "), "a key must be"),
    _yaml("2 MiB of dashes", lambda: _fill(b"- "), "nested deeper"),
    _yaml("20 000 nested lists", lambda: b"[" * 20_000 + b"]" * 20_000, "nested deeper"),
    _yaml("a staircase of keys", lambda: b"".join(b" " * n + b"a:\n" for n in range(1500)), "nested deeper"),
    _yaml("200 000 keys", lambda: _numbered(b"k%d: v\n", 200_000 * 9 // 10), "more than 100000 values"),
    _yaml("200 000 keys in one line", lambda: _numbered(b"k%d, ", 200_000, head=b"{", tail=b"}"), "more than"),
    _yaml("a million entries", lambda: b"[" + b",".join([b"1"] * 1_000_000) + b"]", "more than"),
    _yaml("2 MiB of empty lists", lambda: _fill(b"- []\n"), "more than"),
    _yaml("2 MiB of empty mappings", lambda: _fill(b"- {}\n"), "more than"),
    _yaml("2 MiB of bare dashes", lambda: _fill(b"-\n"), "more than"),
    _yaml("as many values as are allowed", lambda: _fill(b"- {a: b}\n", 30_000 * 9), None),
    _yaml("one plain word", lambda: b"a: " + b"x" * _NEARLY, None),
    _yaml("one plain text", lambda: b"a: " + _fill(b"word ", _NEARLY), None),
    _yaml("one plain text of many lines", lambda: b"a: " + _fill(b"word\n  ", _NEARLY), None),
    _yaml("one block", lambda: b"a: |\n" + _fill(b"  line\n", _NEARLY), None),
    _yaml("one folded block", lambda: b"a: >\n" + _fill(b"  line\n\n", _NEARLY), None),
    _yaml("an indented block without end", lambda: b"a: |9\n" + _fill(b" ", _NEARLY), None),
    _yaml("one key", lambda: b"k" * _NEARLY + b": 1\n", "not YAML"),
    _yaml("one explicit key", lambda: b"? " + b"k" * _NEARLY + b"\n: 1\n", None),
    _yaml("one explicit key twice", lambda: (b"? " + b"k" * 900_000 + b"\n: 1\n") * 2, "appears twice"),
    _yaml("one quoted key", lambda: b'"' + b"k" * _NEARLY + b'": 1\n', "not YAML"),
    _yaml("comments only", lambda: _fill(b"# nothing\n"), "empty"),
    _yaml("one comment", lambda: b"#" + b"x" * _NEARLY, "empty"),
    _yaml("2 MiB of empty lines", lambda: _fill(b"\n"), "empty"),
    _yaml("2 MiB of spaces", lambda: _fill(b" "), "empty"),
    _yaml("2 MiB of tabs", lambda: _fill(b"\t"), ""),
    _yaml("2 MiB of emoji", lambda: "🟢".encode() * (_NEARLY // 4), None),
)

YAML_SCALARS = (
    _yaml("tab as indentation", lambda: b"a:\n\tb: 1\n", "not YAML"),
    _yaml("1.9 MiB of digits", lambda: b"a: " + b"9" * _NEARLY, "a number of"),
    _yaml("100 000 digits", lambda: b"a: " + b"9" * 100_000, "a number of"),
    _yaml("a million hex digits", lambda: b"a: 0x" + b"f" * 1_000_000, "a number of"),
    _yaml("a million octal digits", lambda: b"a: 0o" + b"7" * 1_000_000, "a number of"),
    _yaml("four million binary digits, cut", lambda: b"a: 0b" + b"1" * _NEARLY, None),
    _yaml("a million decimals", lambda: b"a: 0." + b"1" * 1_000_000, "a number of"),
    _yaml("a huge exponent", lambda: b"a: 1e999999999\n", "too large"),
    _yaml("a whole number beyond 64 bits", lambda: b"a: 9223372036854775808\n", "64 bits"),
    _yaml("1:59:59 and so on", lambda: b"a: 1" + b":59" * 100_000, None),
    _yaml("infinity", lambda: b"a: .inf\n", "not finite"),
    _yaml("not a number", lambda: b"a: .nan\n", "not finite"),
    _yaml("words of YAML 1.1", lambda: b"[no, 12:30:45, 010, 1_000, 2020-01-01, =]", None),
    _yaml("a long run of double quotes", lambda: _fill(b'"'), "not YAML"),
    _yaml("a long run of single quotes", lambda: _fill(b"'"), None),
    _yaml("pairs of double quotes", lambda: b"[" + _fill(b'"",', 400_000) + b"]", "more than"),
    _yaml("a long run of escapes", lambda: b'"' + _fill(b'\\"', _NEARLY) + b'"', None),
    _yaml("a long run of wide escapes", lambda: b'"' + _fill(b"\\U0001F7E2", 1_900_000) + b'"', None),
    _yaml("a quote that is never closed", lambda: b'"' + b"x" * _NEARLY, "not YAML"),
    _yaml("half of a surrogate pair", lambda: b'a: "\\ud800"\n', "not YAML"),
    _yaml("NUL by escape", lambda: b'a: "\\0"\n', "NUL"),
    _yaml("a raw line separator", lambda: "a: x\u2028b: y\n".encode(), "U+2028"),
    _yaml("a mark within", lambda: "a: 1\n\ufeffb: 2\n".encode(), "U+FEFF"),
    _yaml("a reserved sign", lambda: b"a: @b\n", "not YAML"),
)

JSON = (
    _json("2 MiB of opened lists", lambda: _fill(b"["), "nested deeper"),
    _json("2 MiB of opened mappings", lambda: _fill(b'{"a":'), "nested deeper"),
    _json("20 000 nested lists", lambda: b"[" * 20_000 + b"]" * 20_000, "nested deeper"),
    _json("deep behind a mistake", lambda: b"[x" + b"[" * MIB, "nested deeper"),
    _json("500 000 commas", lambda: b"[" + b"," * 500_000 + b"]", "not JSON"),
    _json("2 MiB of colons", lambda: b"{" + _fill(b":", _NEARLY), "not JSON"),
    _json("500 000 entries", lambda: b"[" + b"1," * 500_000 + b"1]", "more than"),
    _json("2 MiB of empty lists", lambda: b"[" + _fill(b"[],", _NEARLY) + b"[]]", "more than"),
    _json("200 000 keys", lambda: _numbered(b'"%d":1,', 180_000, head=b"{", tail=b'"":1}'), "more than"),
    _json("as many values as are allowed", lambda: b"[" + b'{"a":1},' * 30_000 + b"1]", None),
    _json("one key", lambda: b'{"' + b"k" * _NEARLY + b'":1}', None),
    _json("one text", lambda: b'"' + b"x" * _NEARLY + b'"', None),
    _json("one text full of signs", lambda: b'"' + _fill(b"[{,:", _NEARLY) + b'"', None),
    _json("a long run of escapes", lambda: b'["' + _fill(b'\\"', _NEARLY) + b'",[]]', None),
    _json("escapes that must be scanned", lambda: b'["' + _fill(b"\\\\u0000", 1_900_003) + b'"]', None),
    _json("a quote that is never closed", lambda: b'["' + _fill(b"\\u0000", _NEARLY), "not JSON"),
    _json("2 MiB of quotes", lambda: _fill(b'"'), "not JSON"),
    _json("1.9 MiB of digits", lambda: b"9" * _NEARLY, "a number of"),
    _json("a million decimals", lambda: b"0." + b"1" * 1_000_000, "a number of"),
    _json("1.9 MiB of minus signs", lambda: b"-" * _NEARLY, "not JSON"),
    _json("1.9 MiB of letters", lambda: b"a" * _NEARLY, "not JSON"),
    _json("a number and 1.9 MiB of signs", lambda: b"[1" + b"+-" * 950_000, "not JSON"),
    _json("a huge exponent", lambda: b"[1e999]", "too large"),
    _json("NaN", lambda: b'{"a": NaN}', "not finite"),
    _json("-Infinity", lambda: b"[-Infinity]", "not finite"),
    _json("duplicate key by escape", lambda: b'{"a": 1, "\\u0061": 2}', "twice"),
    _json("half of a surrogate pair", lambda: b'["\\ud83d"]', "surrogate"),
    _json("two halves in the wrong order", lambda: b'["\\ude00\\ud83d"]', "surrogate"),
    _json("NUL by escape", lambda: b'["\\u0000"]', "NUL"),
    _json("nothing", lambda: b"", "not JSON"),
    _json("a second value", lambda: b"{} {}", "not JSON"),
    _json("a comment", lambda: b"{} // no", "not JSON"),
)

BYTES_AND_LINES = (
    _yaml("one byte too much", lambda: b" " * (_ROOM + 1), "more than the limit"),
    _yaml("100 MB in one line", lambda: b"x" * 100_000_000, "more than the limit"),
    _json("100 MB in one line", lambda: b"1" * 100_000_000, "more than the limit"),
    _yaml("NUL", lambda: b"a: b\0c\n", "U+0000"),
    _json("NUL", lambda: b'{"a": "b\0"}', "U+0000"),
    _yaml("2 MiB of NUL", lambda: bytes(_ROOM), "U+0000"),
    _yaml("terminal escape", lambda: b"a: \x1b[31mred\x1b[0m\n", "U+001B"),
    _json("terminal escape", lambda: b'"\x1b]0;title\x07"', "U+001B"),
    _json("one-byte terminal escape", lambda: '"\u009b31m"'.encode(), "U+009B"),
    _yaml("UTF-16 with a mark", lambda: "a: 1\n".encode("utf-16"), "not UTF-8"),
    _yaml("UTF-16 without a mark", lambda: "a: 1\n".encode("utf-16-le"), "U+0000"),
    _json("UTF-32", lambda: '{"a": 1}'.encode("utf-32"), "not UTF-8"),
    _yaml("UTF-7", lambda: b"a: +ADw-script+AD4-\n", None),
    _yaml("overlong slash", lambda: b"a: ..\xc0\xaf\n", "not UTF-8"),
    _yaml("overlong NUL", lambda: b"a: \xc0\x80\n", "not UTF-8"),
    _yaml("lone continuation", lambda: b"a: \x80\x80\n", "not UTF-8"),
    _yaml("encoded surrogate", lambda: b"a: \xed\xa0\x80\n", "not UTF-8"),
    _yaml("beyond Unicode", lambda: b"a: \xf4\x90\x80\x80\n", "not UTF-8"),
    _yaml("cut letter", lambda: "a: é".encode()[:-1], "not UTF-8"),
    _yaml("bad byte at the very end", lambda: b"a" * (_ROOM - 1) + b"\xff", "not UTF-8"),
    _yaml("byte order mark", lambda: b"\xef\xbb\xbfa: 1\n", None),
    _json("byte order mark", lambda: b'\xef\xbb\xbf{"a": 1}', None),
    _json("two byte order marks", lambda: b"\xef\xbb\xbf" * 2 + b"{}", "not JSON"),
    _yaml("CRLF", lambda: _fill(b"- a\r\n", 150_000), None),
    _yaml("2 MiB of CR", lambda: _fill(b"\r"), "empty"),
    _lines("a million lines", lambda: _fill(b"1\n"), "more than"),
    _lines("2 MiB of empty lines", lambda: _fill(b"\n"), ""),
    _lines(
        "20 000 long lines", lambda: _fill(b'{"a":[1,2,3,4,5,6,7,8,9,10,11,12,13]}\n', _NEARLY // 38 * 38), "more than"
    ),
    _lines("as many lines as are allowed", lambda: b'{"a":1}\n' * 30_000, None),
    _lines("one deep line", lambda: b"{}\n" + b"[" * MIB, "nested deeper"),
    _lines("a torn last line", lambda: b'{"a": 1}\n{"a', "not JSON"),
    _markdown("2 MiB of fences", lambda: _fill(b"---\n"), "empty"),
    _markdown("a fence that never ends", lambda: b"---" + b" " * _NEARLY + b"x", "must begin"),
    _markdown("a head that is never closed", lambda: b"---\n" + _fill(b"a: b\n", _NEARLY), "never closed"),
    _markdown("almost fences", lambda: b"---\n" + b"---          x\n" * 120_000, "never closed"),
    _markdown("a head of anchors", lambda: b"---\n" + _laughs() + b"\n---\n", "anchors"),
    _markdown("a long body", lambda: b"---\na: 1\n---\n" + _fill(b"## x\n```\n", _NEARLY), None),
)

GROUPS: dict[str, tuple[Hostile, ...]] = {
    "yaml machinery": YAML_MACHINERY,
    "yaml size": YAML_SIZE,
    "yaml scalars": YAML_SCALARS,
    "json": JSON,
    "bytes and lines": BYTES_AND_LINES,
}


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _outcome(form: Format, data: bytes) -> dict[str, Any]:
    try:
        document = read(data, form)
        places = document.positions([(), ("missing", "too"), (29_999, "a")])
        return {"refused": None, "positions": [(place.line, place.column) for place in places]}
    except BadDocument as error:
        return {"refused": error.reason, "positions": [(error.position.line, error.position.column)]}


def measured(action: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What an action returned in a process of its own, with the processor time and memory it took."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            base, began = _peak(), time.process_time()
            result = action()
            result["seconds"] = time.process_time() - began
            result["mib"] = (_peak() - base) / MIB
        except BaseException:  # noqa: BLE001  # whatever it was, the parent tells
            result = {"crash": traceback.format_exc(limit=-3)}
        os.write(theirs, json.dumps(result).encode())
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    return dict(json.loads(said)) if said else {"crash": "the process died"}


def _allocate() -> dict[str, Any]:
    return {"bytes": len(b"x" * (80 * MIB))}


def main(group: str) -> None:
    """Prints one line of JSON for each document of a group; `gauge` measures the measurement."""
    if group == "gauge":
        sys.stdout.write(json.dumps(measured(_allocate)) + "\n")
        return
    for hostile in GROUPS[group]:
        data = hostile.make()
        result = measured(lambda form=hostile.form, data=data: _outcome(form, data))  # type: ignore[misc]  # bound now
        sys.stdout.write(json.dumps({"name": hostile.name, **result}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
