"""Planted keys, and a search of everything that a run leaves for them.

The keys are assembled when a test runs, so that no scanner finds one in this repository. The search walks folders and
tables: a new place where something is kept is searched without a change here.
"""

import base64
import contextlib
import gzip
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

KNOWN = "".join(("plain-", "value-", "9x7q", "-of-this-process"))
"""A secret without a form, which the process knows from its environment."""
PLANTED: dict[str, str] = {
    "github": "".join(("gh", "p_", "9aZ8bY7cX6dW" * 3)),
    "aws": "".join(("AK", "IA", "Q7W6E5R4T3Y2U1I9")),
    "anthropic": "".join(("sk", "-ant-", "api03-", "Zz9Yy8Xx7Ww6Vv5Uu4")),
    "jwt": ".".join(("ey" + "JhbGciOiJIUzI1NiJ9", "ey" + "JzdWIiOiJwbGFudGVkIn0", "s1Gn4tUr3s1Gn4tUr3")),
    "address": "".join(("tr0ub4dor", "-and-3")),
    "pem": "".join(("MIIEvQIBADANBgkqhkiG9w0B", "AQEFAASCBKcwggSjAgEAAoIBAQ")),
    "known": KNOWN,
}
"""By kind what must not be found; of a private key its only line."""
PRINTED = """
def pieces() -> list[str]:
    pem = "-----BEGIN " + "PRIVATE KEY-----\\n" + "".join({pem}) + "\\n-----END " + "PRIVATE KEY-----"
    keys = ["".join({github}), "".join({aws}), "".join({anthropic}), "".join({jwt}), "".join({known})]
    return [*keys, pem, "postgres://me:" + "".join({address}) + "@db/x", "ordinary text"]


def planted() -> str:
    return "\\n".join(pieces())
"""


def printing_module() -> str:
    """The text of a module whose `planted()` returns every key, none of which it holds."""
    halves = {kind: repr((key[: len(key) // 2], key[len(key) // 2 :])) for kind, key in PLANTED.items()}
    return PRINTED.format(**halves)


def said_by_an_agent() -> str:
    """A sentence with every key as it is printed."""
    module: dict[str, Any] = {}
    exec(printing_module(), module)
    return f"I saw {' and '.join(module['pieces']())}"


def found_in(data: bytes) -> set[str]:
    """The kinds of the keys that bytes hold: as they are, in base64, in hexadecimal, reversed, in UTF-16."""
    return {kind for kind, key in PLANTED.items() if any(spelling in data for spelling in _spellings(key.encode()))}


def _spellings(key: bytes) -> tuple[bytes, ...]:
    encoded = (base64.b64encode(b"x" * shift + key)[4:-4] for shift in range(3))
    return (key, *encoded, key.hex().encode(), key[::-1], key.decode().encode("utf-16-le"))


def keys_below(folder: Path, *, except_for: tuple[Path, ...] = ()) -> dict[str, set[str]]:
    """Where keys are below a folder: by path, or by path and table of a database."""
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.is_symlink() or any(path.is_relative_to(left) for left in except_for):
            continue
        content = path.read_bytes()
        for name, data in (("", content), *_unpacked(content)):
            if kinds := found_in(data) | found_in(str(path).encode()):
                found[f"{path}{name}"] = kinds
        if content.startswith(b"SQLite format 3\0"):
            found |= {f"{path} {table}": kinds for table, data in _rows(path) if (kinds := found_in(data))}
    return found


def _unpacked(content: bytes) -> Iterator[tuple[str, bytes]]:
    """What compressed bytes hold, such as an object of git."""
    for name, unpack in ((" (zlib)", zlib.decompress), (" (gzip)", gzip.decompress)):
        with contextlib.suppress(zlib.error, OSError, EOFError):
            yield name, unpack(content)


def _rows(path: Path) -> Iterator[tuple[str, bytes]]:
    """Every row of every table: a value may lie in pieces in the file."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                yield (
                    table,
                    b"\n".join(
                        value if isinstance(value, bytes) else str(value).encode("utf-8", "replace") for value in row
                    ),
                )


def too_open(folder: Path) -> dict[str, str]:
    """By path the mode of each stored output that others may read, and of its folder."""
    places = [path for outputs in folder.rglob("outputs") for path in (outputs, *outputs.rglob("*"))]
    places += [path for path in folder.glob("*.db*") if path.is_file()]
    modes = {str(path): path.stat().st_mode & 0o777 for path in places}
    return {path: oct(mode) for path, mode in modes.items() if mode & 0o077}
