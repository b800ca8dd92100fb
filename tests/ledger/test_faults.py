"""A writer that dies or is refused at any moment leaves whole records only, and the step can be done again."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from db.children import Call, run_with_fault, run_writer, told, writing_calls
from db.ledger_jobs import assert_whole, write
from fairwitness.contracts.common.evidence import Phase
from fairwitness.errors import DatabaseUnusable
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.verify import verify
from ledger.samples import RUN, execution
from store.children import strace_works
from support.ladder import SWEEP

needs_strace = pytest.mark.skipif(not strace_works(), reason="strace is missing or may not trace")

OLD = "old"
NEW = "new"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A ledger with one record."""
    path = tmp_path / "evidence.db"
    ledger = Ledger.open_file(path)
    assert write(ledger, OLD) == "written"
    ledger.close()
    return path


def fresh_copy(database: Path, name: str) -> Path:
    """The same ledger in a folder of its own."""
    copy = database.parent / name / database.name
    copy.parent.mkdir()
    shutil.copyfile(database, copy)
    return copy


def assert_recovers(path: Path) -> set[str]:
    """After the fault: whole records, and the same step with the same key is adopted or written once."""
    ledger = Ledger.open_file(path)
    found = assert_whole(ledger)
    assert {OLD} <= found <= {OLD, NEW, f"{NEW}-second"}
    assert write(ledger, NEW) == ("adopted" if NEW in found else "written")
    assert assert_whole(ledger) == found | {NEW}
    ledger.close()
    return found


@pytest.mark.req("P16")
@pytest.mark.parametrize(
    ("point", "stands"),
    [("ledger.record.inserted", False), ("ledger.record.linked", False), ("ledger.record.committed", True)],
)
def test_a_writer_killed_at_a_kill_point_leaves_all_of_a_record_or_nothing(
    database: Path, point: str, stands: bool
) -> None:
    assert run_writer(database, NEW, FAIRWITNESS_KILL_AT=point).returncode == -9
    assert (NEW in assert_recovers(database)) is stands


@needs_strace
@pytest.mark.req("P16")
@pytest.mark.timeout(900)  # the full sweep, on a busy machine
def test_a_writer_killed_at_any_system_call_that_writes_leaves_whole_records(database: Path) -> None:
    _, first, rest = writing_calls(fresh_copy(database, "dry"), NEW)
    assert {call for call, _ in first + rest} >= {"pwrite64", "fdatasync", "unlink"}
    after_kill: set[int] = set()
    for call, number in first + (rest if SWEEP else [*rest[::5], rest[-1]]):
        copy = fresh_copy(database, f"{call}-{number}")
        assert run_with_fault(copy, NEW, "signal=KILL", call, str(number)).returncode == -9
        after_kill.add(len(assert_recovers(copy)))
    assert after_kill == {1, 2, 3}  # so the kills struck before, between and after both records


@needs_strace
@pytest.mark.req("P16")
@pytest.mark.timeout(900)  # the full sweep, on a busy machine
def test_a_ledger_whose_making_was_killed_at_any_moment_can_be_made_again(tmp_path: Path) -> None:
    (tmp_path / "dry").mkdir()
    opening = writing_calls(tmp_path / "dry" / "evidence.db", NEW).opening
    for call, number in opening if SWEEP else opening[:12] + opening[12::16]:
        path = tmp_path / f"{call}-{number}" / "evidence.db"
        path.parent.mkdir()
        assert run_with_fault(path, NEW, "signal=KILL", call, str(number)).returncode == -9
        ledger = Ledger.open_file(path)
        assert assert_whole(ledger) == set()
        assert write(ledger, NEW) == "written"
        assert assert_whole(ledger) == {NEW}
        ledger.close()


def _chosen(calls: list[Call]) -> list[tuple[str, str, str]]:
    """Every sync, and every fifth write, with an error it might meet; some of them for good."""
    writes = [number for call, number in calls if call == "pwrite64"]
    syncs = [number for call, number in calls if call == "fdatasync"]
    return [
        *[("fdatasync", str(number), "EIO") for number in syncs],
        *[("pwrite64", str(number), ("ENOSPC", "EIO")[number % 2]) for number in writes[::5]],
        *[("pwrite64", f"{number}+", "ENOSPC") for number in writes[:: len(writes) // 4]],
    ]


@needs_strace
@pytest.mark.req("P16")
@pytest.mark.timeout(900)  # the full sweep, on a busy machine
def test_a_refused_write_or_sync_is_a_typed_error_and_the_next_record_is_written(database: Path) -> None:
    outcomes: set[str] = set()
    _, first_calls, rest = writing_calls(fresh_copy(database, "dry"), NEW)
    for call, when, error in _chosen(first_calls + rest):
        copy = fresh_copy(database, f"{call}-{when}-{error}")
        first, second = told(run_with_fault(copy, NEW, f"error={error}", call, when))
        for answer in (first, second):
            if answer != "written":
                assert answer.startswith(("DatabaseUnusable", "DatabaseBusy")), answer
                assert str(copy) in answer
                assert ("full" if error == "ENOSPC" else "I/O error") in answer
                assert "(check the file and the disk" in answer
        if not when.endswith("+"):
            assert "written" in (first, second), (call, when, error)
        if first != "written":
            outcomes.add("first refused")
            outcomes.add("second refused" if second != "written" else "second written")
        found = assert_recovers(copy)
        # What was called written is there. What was refused may be there only if the disk failed to say it was safe.
        assert {key for key, said in ((NEW, first), (f"{NEW}-second", second)) if said == "written"} <= found
        if call == "pwrite64":
            assert (NEW in found) is (first == "written")
    assert outcomes == {"first refused", "second written", "second refused"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(mount)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


@pytest.mark.req("P16")
def test_a_full_disk_refuses_records_whole_and_takes_them_again_when_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    ledger = Ledger.open_file(small_disk / "evidence.db")
    written: set[str] = set()
    while (answer := write(ledger, f"k{len(written)}")) == "written":
        written.add(f"k{len(written)}")
    assert answer.startswith("DatabaseUnusable"), answer
    assert "full" in answer
    assert assert_whole(ledger) == written
    ballast.unlink()
    assert write(ledger, "after") == "written"
    assert assert_whole(ledger) == written | {"after"}
    ledger.close()


def test_a_damaged_ledger_is_said_to_be_damaged(database: Path) -> None:
    content = bytearray(database.read_bytes())
    content[4096 : len(content)] = b"\xff" * (len(content) - 4096)
    database.write_bytes(content)
    with pytest.raises(DatabaseUnusable, match=r"malformed|cannot be used") as caught:
        Ledger.open_file(database).runs()
    assert caught.value.next_step


def test_output_is_kept_without_the_signs_that_no_database_holds(ledger: Ledger) -> None:
    ran = execution("noisy")
    output = "a\0b\ud800c" + "x" * 600
    ledger.record(
        RUN, lambda record: record.executed(ran, phase=Phase.AFTER, check_name="tests", round_=1, output=output)
    )
    assert ledger.database.read("SELECT output_snippet FROM anvil_checks") == [("ab?c" + "x" * 496,)]
    assert verify(ledger.database, RUN) == []
