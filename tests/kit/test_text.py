"""Bytes become text only if every reader would see the same characters; places in a text are counted as people do."""

import pytest

from fairwitness.errors import BadDocument, Position
from fairwitness.kit.limits import DocumentLimits
from fairwitness.kit.text import Lines, Places, decode, position_at, refuse_control, visible

LIMITS = DocumentLimits()


def _refusal(data: bytes, limits: DocumentLimits = LIMITS) -> tuple[str, Position]:
    with pytest.raises(BadDocument) as caught:
        decode(data, limits)
    return caught.value.reason, caught.value.position


def test_plain_utf8_is_taken_as_it_is() -> None:
    assert decode("größe: 🟢\n".encode(), LIMITS) == "größe: 🟢\n"


def test_a_byte_order_mark_is_taken_off_once() -> None:
    assert decode(b"\xef\xbb\xbfa", LIMITS) == "a"
    assert decode(b"\xef\xbb\xbf" * 2 + b"a", LIMITS) == "\ufeffa"


@pytest.mark.parametrize("data", [b"a\r\nb\r\n", b"a\rb\r", b"a\nb\n", b"a\r\nb\r"])
def test_all_line_ends_become_one_newline(data: bytes) -> None:
    assert decode(data, LIMITS) == "a\nb\n"


def test_size_is_checked_before_anything_else() -> None:
    assert decode(b"12345", DocumentLimits(bytes=5)) == "12345"
    assert _refusal(b"\xff12345", DocumentLimits(bytes=5)) == ("6 bytes are more than the limit of 5", Position(1, 1))


def test_the_default_size_limit_is_two_mebibytes() -> None:
    assert len(decode(b" " * 2_097_152, LIMITS)) == 2_097_152
    assert _refusal(b" " * 2_097_153)[0] == "2097153 bytes are more than the limit of 2097152"


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"\xff", Position(1, 1)),
        (b"a: \x80\n", Position(1, 4)),
        (b"a\nbb\xc0\xaf", Position(2, 3)),
        ("é🟢".encode() + b"\xf4\x90\x80\x80", Position(1, 3)),
        (b"a\r\nb\r\xed\xa0\x80", Position(3, 1)),
        (b"a\rb\xff", Position(2, 2)),
        (b"\xef\xbb\xbfab\xfe", Position(1, 3)),
        ("é".encode()[:1], Position(1, 1)),
    ],
)
def test_bytes_that_are_not_utf8_are_refused_where_they_stand(data: bytes, position: Position) -> None:
    assert _refusal(data) == ("the bytes here are not UTF-8", position)


@pytest.mark.parametrize("code", [*range(0x00, 0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)])
def test_every_control_character_is_refused_where_it_stands(code: int) -> None:
    assert _refusal(f"one\n  {chr(code)}".encode()) == (f"control character U+{code:04X} is refused", Position(2, 3))


def test_the_first_of_several_control_characters_is_named() -> None:
    assert _refusal(b"a\x1b[0m\x00")[0] == "control character U+001B is refused"


@pytest.mark.parametrize("text", ["a\tb", "a\nb", "\u00a0", "\u2028", "a\ufeff", "\u202e", "\U0010ffff"])
def test_white_space_and_unusual_letters_are_no_control_characters(text: str) -> None:
    refuse_control(text)
    assert decode(text.encode(), LIMITS) == text


@pytest.mark.parametrize(
    ("offset", "position"), [(0, (1, 1)), (2, (1, 3)), (3, (2, 1)), (4, (3, 1)), (5, (3, 2)), (6, (3, 3))]
)
def test_a_place_is_counted_from_one_in_characters(offset: int, position: tuple[int, int]) -> None:
    assert position_at("🟢b\n\nde", offset) == Position(*position)


def test_growing_offsets_get_the_same_places_one_by_one() -> None:
    text = "ab\n\n\ncd\ne"
    lines = Lines(text)
    assert [lines.at(offset) for offset in range(len(text))] == [
        position_at(text, offset) for offset in range(len(text))
    ]
    assert lines.at(len(text)) == lines.at(len(text))


def test_a_position_reads_as_line_and_column() -> None:
    assert str(Position(3, 14)) == "3:14"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("größe 🟢", "größe 🟢"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("\u202eabc", "\\u202eabc"),
        ("a\u200bb", "a\\u200bb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\U000e0041", "\\U000e0041"),
        ("\x00\x7f\x9b", "\\x00\\x7f\\x9b"),
        ("", ""),
    ],
)
def test_what_a_terminal_would_act_on_or_hide_is_spelled_out(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_only_asked_places_and_what_holds_them_are_kept() -> None:
    places = Places([("a", 1, "b"), ("z",)])
    places.value(Position(1, 1))
    places.enter(is_list=False)
    for key, line in (("a", 2), ("c", 9)):
        places.key(key, Position(line, 1))
        places.value(Position(line, 5))
        places.enter(is_list=True)
        for column in (1, 2):
            places.value(Position(line + 1, column))
            places.enter(is_list=False)
            places.key("b", Position(line + 2, column))
            places.value(Position(line + 2, column + 5))
            places.leave()
        places.leave()
    places.leave()
    assert places.found == {
        (): Position(1, 1),
        ("a",): Position(2, 1),
        ("a", 1): Position(3, 2),
        ("a", 1, "b"): Position(4, 2),
    }


def test_a_key_is_awaited_in_a_mapping_only_and_after_each_value() -> None:
    places = Places([])
    awaited = [places.awaits_key]
    places.value(Position(1, 1))
    places.enter(is_list=False)
    awaited.append(places.awaits_key)
    places.key("a", Position(1, 2))
    awaited.append(places.awaits_key)
    places.value(Position(1, 5))
    places.enter(is_list=True)
    awaited.append(places.awaits_key)
    places.leave()
    awaited.append(places.awaits_key)
    assert awaited == [False, True, False, False, True]
