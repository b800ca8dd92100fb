"""Cassette files: what is wrong with one is said in a sentence, and a worktree's path is no part of it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.cassette.kit import HEADER, turn, write
from fairwitness.agents.cassette_file import (
    Cassette,
    load,
    name_of,
    packed,
    parse,
    prompt_digest,
    seen,
    spell,
    unpacked,
)
from fairwitness.contracts.agents.cassette import CassetteHeader, CassetteTurn
from fairwitness.contracts.common.tools import Role
from fairwitness.errors import BadDocument, UsageError

ROOT = Path("/home/someone/work tree (1)")
texts = st.lists(st.sampled_from(["{root", "=", "}", "a", "/", ".", str(ROOT)]), max_size=6).map("".join)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(plain)
def test_what_is_packed_is_unpacked_as_it_was(value: Any) -> None:
    assert unpacked(packed(value, ROOT), ROOT) == value


def test_a_worktree_is_found_again_somewhere_else() -> None:
    args = {"path": f"{ROOT}/src/a.py", "content": "print(f'{root}')", "n": 3}
    there = unpacked(packed(args, ROOT), Path("/srv/b"))
    assert there == {"path": "/srv/b/src/a.py", "content": "print(f'{root}')", "n": 3}
    assert packed(f"{ROOT}2/x", ROOT) == f"{ROOT}2/x"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "x.jsonl:1:1: a cassette begins with a header, and this file is empty"),
        (["{"], r"x.jsonl:1:\d+: not JSON: .*"),
        (["[]"], "x.jsonl:1:1: not the header of a cassette: .*"),
        ([{**HEADER, "cassette": 2}], r"x.jsonl:1:\d+: not the header of a cassette: cassette: Input should be 1"),
        ([{**HEADER, "role": "king"}], r"x.jsonl:1:\d+: not the header of a cassette: role: .*"),
        ([{**HEADER, "more": 1}], r"x.jsonl:1:\d+: not the header of a cassette: more: .*"),
        ([HEADER, turn(0), {**turn(1), "usage": [1]}], r"x.jsonl:3:\d+: not a turn of a cassette: usage.1: .*"),
        (
            [HEADER, {key: value for key, value in turn(0).items() if key != "seen"}],
            r"x.jsonl:2:\d+: not a turn.*seen.*",
        ),
        ([HEADER, turn(0), turn(2)], "x.jsonl:3:1: expected turn 1, found turn 2"),
        ([HEADER, turn(0), ""], r"x.jsonl:3:1: .*"),
        ([HEADER, "not json"], r"x.jsonl:2:\d+: not JSON: .*"),
    ],
)
def test_a_bad_file_is_one_sentence_with_its_line(lines: list[Any], message: str) -> None:
    data = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    with pytest.raises(BadDocument) as caught:
        parse(data.encode(), source="x.jsonl")
    assert re.fullmatch(message, caught.value.what), caught.value.what
    assert "\n" not in caught.value.what


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadDocument, match=r"x\.jsonl"):
        load(path)


def test_a_cassette_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = write(tmp_path, turn(0, ("read_file", {"path": "a"})), turn(1, text="done"))
    cassette = load(path)
    assert parse(spell(cassette)) == cassette


def test_what_could_not_be_read_again_is_not_written() -> None:
    header = CassetteHeader.model_validate(HEADER)
    odd = CassetteTurn.model_validate(turn(0, ("create_file", {"content": "a\x00b"})))
    with pytest.raises(UsageError, match="cannot be written down"):
        spell(Cassette(header, (odd,)))


@pytest.mark.parametrize("instance", ["a/../b", "..", "x" * 300, "größe", " ", "a\x00b", "con.lock"])
def test_a_strange_instance_has_a_plain_name_of_its_own(instance: str) -> None:
    name = name_of(Role.SPEC, instance, 1)
    assert re.fullmatch(r"spec\.[A-Za-z0-9_-]+-[0-9a-f]{8}\.1\.jsonl", name)
    assert name != name_of(Role.SPEC, instance + "!", 1)


def test_what_was_seen_is_the_same_on_another_day_and_another_machine() -> None:
    here = seen([(True, f"{ROOT}/a.py: 3 passed in 0.12s"), (False, "no")], ROOT)
    there = seen([(True, "/srv/b/a.py: 3 passed in 7.50s"), (False, "no")], Path("/srv/b"))
    assert here == there
    assert here != seen([(True, f"{ROOT}/a.py: 2 passed in 0.12s"), (False, "no")], ROOT)
    assert here != seen([(True, f"{ROOT}/a.py: 3 passed in 0.12s"), (True, "no")], ROOT)
    assert prompt_digest(f"in {ROOT}", ROOT) == prompt_digest("in /srv/b", Path("/srv/b"))
