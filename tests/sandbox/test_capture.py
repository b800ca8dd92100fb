"""What is kept of an output holds no secret, wherever it is cut and however it arrives."""

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.kit.redaction import LONGEST
from fairwitness.sandbox.capture import Capture

KEY = b"".join((b"gh", b"p_", b"9aZ8bY7cX6dW" * 3))
GENERATED = settings(max_examples=150, deadline=None)


def captured(data: bytes, kept: int, pieces: list[int]) -> Capture:
    capture = Capture(kept)
    at = 0
    for size in pieces:
        capture.take(data[at : at + size])
        at += size
    capture.take(data[at:])
    return capture


@GENERATED
@given(
    before=st.integers(0, 400),
    after=st.integers(0, 400),
    kept=st.integers(1, 600),
    pieces=st.lists(st.integers(1, 60), max_size=30),
)
def test_no_part_of_a_key_is_kept_wherever_it_is_cut(before: int, after: int, kept: int, pieces: list[int]) -> None:
    data = b"." * before + b" " + KEY + b" " + b"," * after
    capture = captured(data, kept, pieces)
    stored = capture.stored()
    for start in range(0, len(KEY) - 12, 4):
        assert KEY[start : start + 12] not in stored
    stream = capture.stream()
    assert stream.sha256 == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert stream.stored_sha256 == f"sha256:{hashlib.sha256(stored).hexdigest()}"
    assert stream.truncated == (len(data) > kept)


@pytest.mark.parametrize("at", [0, 900, 990, 1000, 1010, 50_000, 98_990, 99_010, 99_950])
def test_a_key_at_the_cuts_of_a_long_output_is_not_kept(at: int) -> None:
    line = b"0123456789 abcdefghij\n"
    data = (line * 5000)[:at] + b" " + KEY + b" " + (line * 5000)[: 100_000 - at]
    stored = captured(data, 2000, [997] * 120).stored()
    assert not any(KEY[start : start + 12] in stored for start in range(0, len(KEY) - 12))
    assert b"bytes left out" in stored
    assert len(stored) < 2200


def test_an_output_without_secrets_is_stored_as_it_was() -> None:
    data = bytes(range(256)) * 10
    capture = captured(data, 10_000, [7] * 50)
    assert capture.stored() == capture.raw() == data
    assert capture.stream().sha256 == capture.stream().stored_sha256


def test_head_and_tail_are_those_of_the_output() -> None:
    data = b"".join(b"%06d\n" % number for number in range(20_000))
    capture = captured(data, 1000, [4096] * 40)
    assert capture.raw() == data[:500] + data[-500:]
    head, _, tail = capture.stored().partition(b"\n[")
    assert data.startswith(head)
    assert len(head) == 500
    assert data.endswith(tail.partition(b"]\n")[2])
    assert LONGEST > 16_384
