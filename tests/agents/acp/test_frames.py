"""What goes over the streams: frames, and everything else that comes along, within bounds."""

import asyncio
import json
import os
from typing import Any

import pytest

from fairwitness.agents.backends.acp.agent_process import _pipes, _streams
from fairwitness.agents.backends.acp.frames import Frames

pytestmark = pytest.mark.req("X3")


def received(
    *lines: bytes, total: int = 1 << 20, limit: int = 1 << 16
) -> tuple[list[dict[str, Any]], Frames, list[str]]:
    """The frames that come of some lines."""
    notes: list[str] = []

    async def read() -> tuple[list[dict[str, Any]], Frames]:
        reader = asyncio.StreamReader(limit=limit)
        reader.feed_data(b"".join(lines))
        reader.feed_eof()
        ours, theirs = _pipes()
        _, writer, transport = await _streams(*ours)
        frames = Frames(reader, writer, notes.append, total_limit=total)
        found = []
        while (frame := await frames.receive()) is not None:
            found.append(frame)
        await frames.close()
        transport.close()
        for handle in theirs:
            os.close(handle)
        return found, frames

    found, frames = asyncio.run(read())
    return found, frames, notes


def test_frames_come_in_order_and_the_last_needs_no_line_end() -> None:
    found, frames, _ = received(b'{"method": "a"}\n\n  \n', b'{"id": 1, "result": null}')
    assert found == [{"method": "a"}, {"id": 1, "result": None}]
    assert (frames.received, frames.strays, frames.broken) == (2, 0, None)


@pytest.mark.parametrize(
    "line",
    [
        *(b"Welcome!", b"[1]", b'"x"', b"null", b"{}", b"{", b"\xff\xfe", b'{"id": {}, "result": 1}', b'{"id": 1}'),
        *(b'{"method": 3}', b'{"method": null}', b"[" * 100_000, b'{"id": [], "method": "a"}'),
    ],
)
def test_what_is_no_frame_is_skipped_and_noted(line: bytes) -> None:
    found, frames, notes = received(line + b"\n", b'{"method": "a"}\n', limit=1 << 20)
    assert found == [{"method": "a"}]
    assert frames.strays == 1
    assert len(notes) == 1


def test_a_flood_of_strays_is_not_a_flood_of_notes() -> None:
    _, frames, notes = received(*[b"noise\n"] * 1000)
    assert frames.strays == 1000
    assert len(notes) < 10


def test_what_a_stray_says_cannot_act_on_a_terminal() -> None:
    _, _, notes = received(b"\x1b[31mred\x07\n")
    assert "\x1b" not in notes[0]


def test_two_hundred_thousand_signs_pass() -> None:
    frame = {"method": "a", "params": {"text": "x" * 200_000}}
    found, _, _ = received(json.dumps(frame).encode() + b"\n", limit=1 << 20)
    assert found == [frame]


def test_a_line_beyond_the_bound_ends_the_talk() -> None:
    found, frames, _ = received(b'{"method": "a"}\n' + b"x" * 200_000)
    assert found == [{"method": "a"}]
    assert frames.broken is not None
    assert "MiB" in frames.broken


def test_more_than_a_session_may_hold_ends_the_talk() -> None:
    found, frames, _ = received(*[b'{"method": "a"}\n'] * 100, total=160)
    assert len(found) == 10
    assert frames.broken is not None


def test_halves_of_signs_are_made_whole() -> None:
    found, _, _ = received(b'{"method": "a", "params": {"x\\udc00": ["\\ud800", "\\ud83d\\ude00"]}}\n')
    assert found == [{"method": "a", "params": {"x\ufffd": ["\ufffd", "😀"]}}]


@pytest.mark.parametrize("error", ["no", None, 5, {"code": "x"}, {"message": [1]}, {"code": True, "message": "m"}])
def test_an_odd_error_becomes_one_with_a_number_and_words(error: Any) -> None:
    found, _, _ = received(json.dumps({"id": 1, "error": error}).encode() + b"\n")
    assert found[0]["error"]["code"] == -32_603
    assert isinstance(found[0]["error"]["message"], str)


def test_an_agent_that_does_not_listen_ends_the_talk() -> None:
    async def talk() -> Frames:
        ours, theirs = _pipes()
        reader, writer, transport = await _streams(*ours)
        os.close(theirs[0])  # its output stays open
        frames = Frames(reader, writer, lambda _note: None)
        waiting = asyncio.ensure_future(frames.receive())
        for _ in range(5):
            await frames.send({"method": "x", "params": {"text": "y" * 10_000}})
        assert await asyncio.wait_for(waiting, 5) is None
        os.close(theirs[1])
        await frames.close()
        transport.close()
        return frames

    assert asyncio.run(talk()).broken == "it does not listen any more"
