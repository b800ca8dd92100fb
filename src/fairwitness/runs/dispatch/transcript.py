"""The transcript of a dispatch: everything that happened, one JSON line each, bounded and redacted."""

import threading
from collections import deque
from typing import Any

from fairwitness.contracts.agents.dispatch import Happening, Kind
from fairwitness.kit.json_text import render_line
from fairwitness.kit.redaction import redact
from fairwitness.store.artifacts import Store, content_hash

TEXT = 64_000
"""The most characters of one text."""
MARGIN = 16_000
"""Characters read beyond that, so that a secret which begins before the cut is recognized."""
HALF = 4 << 20
"""The most bytes kept of the beginning, and of the end."""


class Transcript:
    """Collects what happens in a dispatch. It is thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._head: list[str] = []
        self._head_bytes = 0
        self._tail: deque[str] = deque()
        self._tail_bytes = 0
        self._dropped = 0
        self._last_ms = 0

    def tell(self, happening: Happening) -> None:
        """Add something that happened."""
        line = render_line(clean(happening.plain()))
        size = len(line.encode())
        with self._lock:
            self._last_ms = happening.ms
            if not self._tail and self._head_bytes + size <= HALF:
                self._head.append(line)
                self._head_bytes += size
                return
            self._tail.append(line)
            self._tail_bytes += size
            while self._tail_bytes > HALF and len(self._tail) > 1:
                self._tail_bytes -= len(self._tail.popleft().encode())
                self._dropped += 1

    def content(self) -> bytes:
        """Return everything that was kept."""
        with self._lock:
            lines = [*self._head]
            if self._dropped:
                note = Happening(
                    kind=Kind.NOTE, ms=self._last_ms, text=f"{self._dropped} lines were too many to be kept"
                )
                lines.append(render_line(note.plain()))
            return "".join(f"{line}\n" for line in [*lines, *self._tail]).encode()


def keep(store: Store, content: bytes) -> str:
    """Store bytes under their hash and return the hash; the same bytes give the same file."""
    digest = content_hash(content)
    store.create(f"outputs/{digest.removeprefix('sha256:')}", content)
    return digest


def clean(value: Any, *, limit: int | None = TEXT, redacted: bool = True) -> Any:
    """Return a plain value with every text in it cleaned."""
    match value:
        case str():
            return cleaned(value, limit=limit, redacted=redacted)
        case dict():
            return {
                cleaned(key, limit=limit, redacted=redacted): clean(inner, limit=limit, redacted=redacted)
                for key, inner in value.items()
            }
        case list():
            return [clean(inner, limit=limit, redacted=redacted) for inner in value]
        case _:
            return value


def cleaned(text: str, *, limit: int | None = TEXT, redacted: bool = True) -> str:
    """Return a text without secrets and lone surrogates, cut to the limit."""
    plain = text.encode("utf-8", "replace").decode()
    more = 0
    if limit is not None and len(plain) > limit + MARGIN:  # do not scan what is not kept
        more, plain = len(plain) - limit - MARGIN, plain[: limit + MARGIN]
    if redacted:
        plain = redact(plain)
    if limit is not None and len(plain) + more > limit:
        return f"{plain[:limit]}… [{len(plain) + more - limit} more characters]"
    return plain
