"""What is remembered about this user stays outside repositories, complete, and private."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import NotReady
from fairwitness.kit.user_state import (
    end_of_chain,
    remember,
    remember_in_chain,
    remembered,
    remembered_in_chain,
    user_state,
    user_state_path,
)


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, own_environment: None) -> None:
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "state")


def test_records_come_back_in_order() -> None:
    remember("notes.jsonl", {"n": 1})
    remember("notes.jsonl", {"n": 2, "text": "line\nbreak"})
    assert remembered("notes.jsonl") == [{"n": 1}, {"n": 2, "text": "line\nbreak"}]


def test_reading_creates_nothing() -> None:
    assert remembered("notes.jsonl") == []
    assert not user_state_path().exists()


def test_a_line_that_a_killed_process_left_is_skipped() -> None:
    remember("notes.jsonl", {"n": 1})
    with (user_state() / "notes.jsonl").open("ab") as file:
        file.write(b'{"n":')
    assert remembered("notes.jsonl") == [{"n": 1}]
    remember("notes.jsonl", {"n": 2})
    assert remembered("notes.jsonl") == [{"n": 1}, {"n": 2}]


def test_a_damaged_line_is_named() -> None:
    remember("notes.jsonl", {"n": 1})
    with (user_state() / "notes.jsonl").open("ab") as file:
        file.write(b"[]\n")
    with pytest.raises(NotReady, match=r"notes\.jsonl:2"):
        remembered("notes.jsonl")


def test_the_folder_is_private() -> None:
    assert user_state().stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o702])
def test_a_folder_that_others_can_write_is_refused(mode: int) -> None:
    user_state().chmod(mode)
    with pytest.raises(NotReady, match="other users"):
        remember("notes.jsonl", {})
    with pytest.raises(NotReady, match="other users"):
        remembered("notes.jsonl")


def test_lines_of_a_chain_contain_the_line_before() -> None:
    assert end_of_chain("chain.jsonl") == ""
    hashes = [remember_in_chain("chain.jsonl", {"n": number}) for number in (1, 2, 3)]
    assert remembered_in_chain("chain.jsonl") == (({"n": 1}, {"n": 2}, {"n": 3}), (), frozenset(hashes))
    assert end_of_chain("chain.jsonl") == hashes[-1]
    with (user_state() / "chain.jsonl").open("ab") as file:
        file.write(b'{"n":')  # a killed process
    assert remembered_in_chain("chain.jsonl").broken == ()
    remember_in_chain("chain.jsonl", {"n": 4})
    assert [record["n"] for record in remembered_in_chain("chain.jsonl").records] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("edit", "broken"),
    [
        (lambda lines: [lines[0].replace(b"1", b"7"), *lines[1:]], (2,)),
        (lambda lines: [lines[0], *lines[2:]], (2,)),
        (lambda lines: lines[1:], (1,)),
        (lambda lines: [lines[0], lines[0], *lines[1:]], (2,)),
        (lambda lines: [lines[0], b"nothing", *lines[2:]], (2, 3)),
    ],
    ids=["edited", "removed", "first removed", "inserted", "broken"],
)
def test_a_changed_line_of_a_chain_is_named(
    edit: Callable[[list[bytes]], list[bytes]], broken: tuple[int, ...]
) -> None:
    for number in (1, 2, 3):
        remember_in_chain("chain.jsonl", {"n": number})
    file = user_state() / "chain.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in edit(file.read_bytes().splitlines())))
    assert remembered_in_chain("chain.jsonl").broken == broken
