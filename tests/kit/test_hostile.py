"""Documents made to hurt a reader are refused, or taken as the plain values they are, quickly and in little memory."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairwitness.errors import BadDocument, Position, UnsafePath
from fairwitness.kit.files import read_given
from fairwitness.kit.limits import DEFAULT_LIMITS
from fairwitness.kit.text import decode
from kit.hostile import GROUPS, Hostile

_SECONDS = 2.0
_MIB = 64.0
_PROGRAM = Path(__file__).parent / "hostile.py"


def _measure(group: str) -> list[dict[str, Any]]:
    done = subprocess.run([sys.executable, _PROGRAM, group], capture_output=True, text=True, timeout=100, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def _fault(hostile: Hostile, result: dict[str, Any]) -> str | None:
    if "crash" in result:
        return f"it raised something else: {result['crash']}"
    refused = result["refused"]
    if hostile.refused is None and refused is not None:
        return f"it was refused: {refused}"
    if hostile.refused is not None and (refused is None or hostile.refused not in refused):
        return f"it was not refused for {hostile.refused!r} but {refused!r}"
    if any(line < 1 or column < 1 for line, column in result["positions"]):
        return f"it was placed nowhere: {result['positions']}"
    if result["seconds"] > _SECONDS:
        return f"it took {result['seconds']:.1f} s"
    if result["mib"] > _MIB:
        return f"it took {result['mib']:.0f} MiB"
    return None


@pytest.mark.req("P1")
@pytest.mark.parametrize("group", GROUPS)
def test_hostile_documents_cost_little_and_raise_nothing_else(group: str) -> None:
    results = _measure(group)
    assert [result["name"] for result in results] == [hostile.name for hostile in GROUPS[group]]
    faults = {
        hostile.name: fault
        for hostile, result in zip(GROUPS[group], results, strict=True)
        if (fault := _fault(hostile, result)) is not None
    }
    assert faults == {}


def test_the_measurement_sees_memory_that_is_used() -> None:
    (result,) = _measure("gauge")
    assert result["bytes"] == 80 * 1024 * 1024
    assert result["mib"] > _MIB


def test_the_table_holds_more_than_a_hundred_documents_and_none_twice() -> None:
    names = [hostile.name for group in GROUPS.values() for hostile in group]
    assert len(names) == len(set(names)) >= 100


@pytest.mark.req("P1")
def test_a_file_of_100_mb_in_one_line_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        os.truncate(file.fileno(), 100_000_000)
    began = time.process_time()
    with pytest.raises(UnsafePath, match=r"huge\.json is larger than the 2097152 bytes allowed"):
        read_given(path, limit=DEFAULT_LIMITS.bytes)
    assert time.process_time() - began < _SECONDS


@pytest.mark.req("P1")
def test_100_mb_given_directly_are_refused_by_their_size() -> None:
    with pytest.raises(BadDocument) as caught:
        decode(bytes(100_000_000), DEFAULT_LIMITS)
    assert caught.value.reason == "100000000 bytes are more than the limit of 2097152"
    assert caught.value.position == Position(1, 1)
