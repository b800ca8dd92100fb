"""Capture one output stream: count and hash every byte, keep the head and the tail, and remove secrets from them."""

import hashlib
from collections import deque

from fairwitness.contracts.common.sandbox import OutputStream
from fairwitness.kit.redaction import LONGEST, redact_bytes


class Capture:
    """An output stream's size, hash, head and tail; uses bounded memory whatever the size of the output.

    A little more than the head and the tail is held, so that a secret is also recognized where the output is cut.
    """

    def __init__(self, kept: int) -> None:
        self.total = 0
        self._digest = hashlib.sha256()
        self._head = bytearray()
        self._head_limit = kept - kept // 2
        self._tail: deque[bytes] = deque()
        self._tail_limit = kept // 2
        self._tail_size = 0
        self._stored: tuple[int, bytes] | None = None
        """The stored form and the size of the output that it was made from."""

    def take(self, piece: bytes) -> None:
        """Add the next piece of output."""
        self.total += len(piece)
        self._digest.update(piece)
        fits = self._head_limit + LONGEST - len(self._head)
        if fits > 0:
            self._head += piece[:fits]
            piece = piece[fits:]
        if not piece:
            return
        held = self._tail_limit + LONGEST
        self._tail.append(piece[-held:])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= held:
            self._tail_size -= len(self._tail.popleft())

    @property
    def is_cut(self) -> bool:
        """Whether there was more output than is kept."""
        return self.total > self._head_limit + self._tail_limit

    def raw(self) -> bytes:
        """Return the head and the tail with the secrets in them, for the reader of a report."""
        held = bytes(self._head) + b"".join(self._tail)
        if not self.is_cut:
            return held
        return held[: self._head_limit] + (held[-self._tail_limit :] if self._tail_limit else b"")

    def stored(self) -> bytes:
        """Return the head and the tail without secrets, with a line in between if something was left out."""
        if self._stored is None or self._stored[0] != self.total:
            self._stored = (self.total, self._redacted())
        return self._stored[1]

    def _redacted(self) -> bytes:
        held = bytes(self._head) + b"".join(self._tail)
        if not self.is_cut:
            return redact_bytes(held)
        # A secret that begins in the head or ends in the tail is whole in these parts. One that is cut at the other
        # end of a part is not recognized, and lies in the bytes that are dropped.
        first = held[: self._head_limit + LONGEST]
        last = (held if len(held) == self.total else b"".join(self._tail))[-(self._tail_limit + LONGEST) :]
        head = redact_bytes(first)[: None if len(first) == self.total else -LONGEST]
        tail = redact_bytes(last)[0 if len(last) == self.total else LONGEST :]
        left_out = self.total - self._head_limit - self._tail_limit
        return b"".join(
            (
                head[: self._head_limit],
                f"\n[… {left_out} bytes left out …]\n".encode(),
                tail[-self._tail_limit :] if self._tail_limit else b"",
            )
        )

    def stream(self) -> OutputStream:
        """Return the stream's entry in the command's result."""
        stored = self.stored()
        return OutputStream(
            total=self.total,
            sha256=f"sha256:{self._digest.hexdigest()}",
            truncated=self.is_cut,
            stored_sha256=f"sha256:{hashlib.sha256(stored).hexdigest()}",
        )
