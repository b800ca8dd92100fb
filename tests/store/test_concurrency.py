"""Many processes on one file: one value wins, no reader sees a part, no line is lost or torn."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import NotStored
from fairwitness.store.artifacts import Store
from store.jobs import (
    LINES,
    LOST_THE_RACE,
    SIZE,
    WRITERS,
    append_lines,
    create_own,
    grow_until_done,
    line,
    put_again_and_again,
    run_together,
    value,
)
from support.forkserver import SERVER


class Crowd:
    """Sixteen processes with one job; the gate must live as long as they do."""

    def __init__(self, job: Callable[[Path, int], None], root: Path) -> None:
        self._gate = SERVER.Barrier(WRITERS)
        self._processes = [
            SERVER.Process(target=run_together, args=(self._gate, job, root, number)) for number in range(WRITERS)
        ]
        for process in self._processes:
            process.start()

    def is_busy(self) -> bool:
        return any(process.is_alive() for process in self._processes)

    def exit_codes(self) -> list[int | None]:
        for process in self._processes:
            process.join(60)
        return [process.exitcode for process in self._processes]


@pytest.mark.req("F1")
def test_of_many_writers_one_whole_value_stays_and_readers_never_see_a_part(tmp_path: Path) -> None:
    store = Store(tmp_path)
    crowd = Crowd(put_again_and_again, tmp_path)
    reads = 0
    while crowd.is_busy():
        try:
            content = store.get("folder/shared")
        except NotStored:
            continue
        assert len(content) == SIZE
        assert len(set(content)) == 1
        reads += 1
    assert crowd.exit_codes() == [0] * WRITERS
    assert reads > 0
    assert store.get("folder/shared") in [value(writer) for writer in range(WRITERS)]
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["shared"]


@pytest.mark.req("F2")
def test_of_many_creators_exactly_one_succeeds(tmp_path: Path) -> None:
    codes = Crowd(create_own, tmp_path).exit_codes()
    assert sorted(codes, key=str) == [0] + [LOST_THE_RACE] * (WRITERS - 1)
    assert Store(tmp_path).get("folder/once") == value(codes.index(0))
    assert [path.name for path in (tmp_path / "folder").iterdir()] == ["once"]


@pytest.mark.req("F1")
def test_of_many_appended_lines_none_is_lost_and_none_is_torn(tmp_path: Path) -> None:
    assert Crowd(append_lines, tmp_path).exit_codes() == [0] * WRITERS
    lines = Store(tmp_path).get("log.jsonl").decode().splitlines()
    assert len(lines) == WRITERS * LINES
    assert set(lines) == {line(writer, number) for writer in range(WRITERS) for number in range(LINES)}


@pytest.mark.req("P10")
def test_of_many_that_grow_one_file_none_loses_what_another_added(tmp_path: Path) -> None:
    assert Crowd(grow_until_done, tmp_path).exit_codes() == [0] * WRITERS
    lines = Store(tmp_path).get("decisions.yaml").decode().splitlines()
    assert sorted(lines) == sorted(f"- {writer}" for writer in range(WRITERS))
