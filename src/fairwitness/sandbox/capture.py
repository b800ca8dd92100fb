"""Capture one output stream: count and hash every byte, keep the head and the tail."""

import hashlib
from collections import deque

from fairwitness.contracts.common.sandbox import OutputStream


class Capture:
    """An output stream's size, hash, head and tail; uses bounded memory whatever the size of the output."""

    def __init__(self, kept: int) -> None:
        self.total = 0
        self._digest = hashlib.sha256()
        self._head = bytearray()
        self._head_limit = kept - kept // 2
        self._tail: deque[bytes] = deque()
        self._tail_limit = kept // 2
        self._tail_size = 0

    def take(self, piece: bytes) -> None:
        """Add the next piece of output."""
        self.total += len(piece)
        self._digest.update(piece)
        fits = self._head_limit - len(self._head)
        if fits > 0:
            self._head += piece[:fits]
            piece = piece[fits:]
        if not piece or not self._tail_limit:
            return
        self._tail.append(piece[-self._tail_limit :])
        self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0]) >= self._tail_limit:
            self._tail_size -= len(self._tail.popleft())

    @property
    def kept(self) -> bytes:
        """The head and the tail of the output; all of it if nothing was dropped."""
        return bytes(self._head) + b"".join(self._tail)[-self._tail_limit :] if self._tail else bytes(self._head)

    def stream(self) -> OutputStream:
        """Return the stream's entry in the command's result."""
        return OutputStream(
            total=self.total,
            sha256=f"sha256:{self._digest.hexdigest()}",
            truncated=self.total > len(self.kept),
        )
