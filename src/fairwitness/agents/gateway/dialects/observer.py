"""Parses an answer while its bytes pass, and returns the model's turn as far as it came."""

from fairwitness.agents.gateway.dialects.base import Codec, InvalidJson, PartialTurn, a_dict, load, turn_of
from fairwitness.contracts.agents.model import ModelTurn

LONGEST = 64 * 1024 * 1024
"""Bytes of an answer; a longer one is not parsed and counts as incomplete."""


class TurnObserver:
    """Takes bytes in any pieces; the first of them tells a stream of events from one document."""

    def __init__(self, codec: Codec, *, longest: int = LONGEST) -> None:
        self._codec = codec
        self._longest = longest
        self._heard = 0
        self._is_document: bool | None = None
        self._pending: list[bytes] = []
        """Bytes since the last line end; of a document, all bytes."""
        self._data: list[bytes] = []
        """The lines of the current event."""
        self._gathered = PartialTurn()
        self._read_at = 0
        """Bytes of the document when it was last parsed."""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self._heard += len(chunk)
        if self._heard > self._longest:
            self._pending.clear()
            return
        if self._is_document is None:
            first = chunk.lstrip()[:1]
            if not first:
                return
            self._is_document = first in (b"{", b"[")
        self._pending.append(chunk)
        if not self._is_document and b"\n" in chunk:
            *lines, rest = b"".join(self._pending).split(b"\n")
            self._pending = [rest]
            for line in lines:
                self._line(line.removesuffix(b"\r"))

    def _line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._data.append(line.removeprefix(b"data:").removeprefix(b" "))
        elif not line and self._data:
            data, self._data = b"\n".join(self._data), []
            try:
                event = load(data.decode("utf-8", "replace"))
            except InvalidJson:
                return  # `[DONE]`, or something that the agent cannot parse either
            self._codec.on_event(self._gathered, a_dict(event))

    def _all(self) -> PartialTurn:
        """Return the turn; a document is parsed again whenever more of it has come."""
        if self._is_document and self._read_at < self._heard <= self._longest:
            self._read_at = self._heard
            self._gathered = self._document()
        return self._gathered

    def _document(self) -> PartialTurn:
        gathered = PartialTurn()
        try:
            body = load(b"".join(self._pending).decode("utf-8", "replace"))
        except InvalidJson:
            return gathered
        if isinstance(body, list):
            for event in body:
                self._codec.on_event(gathered, a_dict(event))
        else:
            self._codec.on_body(gathered, a_dict(body))
        return gathered

    def turn(self) -> ModelTurn | None:
        """Return the turn as far as it came; None if nothing came, or an error."""
        gathered = self._all()
        return turn_of(gathered, self._codec.usage(gathered.usage))

    @property
    def is_complete(self) -> bool:
        """Whether the model reported the end of its turn, so that the turn did not break off."""
        return self._heard <= self._longest and self._all().is_complete

    @property
    def has_begun(self) -> bool:
        """Whether a part of a turn has come."""
        return self._all().has_begun

    @property
    def error(self) -> str:
        """The provider's error, in the middle of a stream or instead of an answer."""
        return self._all().error

    @property
    def codes(self) -> tuple[str, ...]:
        """The words by which the provider names the error."""
        return self._all().codes

    @property
    def refusal(self) -> str:
        """The reason why the model, or a filter before it, would not answer; empty if it did."""
        return self._all().refusal
