"""A disk that is full or read-only is noticed and named, and space that was taken in advance is there when it is."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.kit.disk_watch import DiskWatch, ReservedFile
from support.small_disk import inside, require_mount

FULL = OSError(errno.ENOSPC, "No space left on device")
ENDLESS = 1 << 60


def test_a_disk_with_room_is_no_trouble(tmp_path: Path) -> None:
    disk = DiskWatch((tmp_path,), needed=1)
    assert disk.trouble() is None
    assert not disk.is_over
    asyncio.run(disk.wait())
    disk.wait_in_thread()


def test_too_little_room_is_named_with_its_place(tmp_path: Path) -> None:
    trouble = DiskWatch((tmp_path,), needed=ENDLESS).trouble()
    assert trouble is not None
    assert trouble.startswith(f"the disk of {tmp_path} is full (ENOSPC): less than")


def test_the_wait_ends_when_the_patience_does_or_when_it_is_told_to(tmp_path: Path) -> None:
    disk = DiskWatch((tmp_path,), needed=ENDLESS, limit_s=0.0)
    before, trouble = disk.is_over, disk.trouble()
    assert (before, trouble is not None, disk.is_over) == (False, True, True)
    waiting = DiskWatch((tmp_path,), needed=ENDLESS)
    thread = threading.Thread(target=waiting.wait_in_thread)
    thread.start()
    assert not waiting.is_over
    waiting.end()
    thread.join(60)
    assert not thread.is_alive()


def test_errors_are_excused_while_the_disk_is_full_and_others_not_for_ever(tmp_path: Path) -> None:
    well, full = DiskWatch((tmp_path,), needed=1), DiskWatch((tmp_path,), needed=ENDLESS)
    assert well.excuses(FULL)  # it may have passed already
    assert not well.excuses(FULL, times=3)
    assert full.excuses(FULL, times=3)
    assert full.excuses(NotReady("a database cannot be used: disk I/O error"))
    assert not well.excuses(NotReady("no model"))
    assert not well.excuses(UsageError("a wrong word"))
    assert full.excuses(UsageError("a wrong word"))  # repeated when there is room, it fails for its own reason
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_refuses_a_test_file_is_trouble_after_an_error_only(tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    disk = DiskWatch((tmp_path, folder), needed=1)
    assert disk.trouble() is None
    assert disk.excuses(FULL)
    folder.rmdir()
    assert DiskWatch((folder,), needed=1).trouble() == (
        f"{folder} cannot be reached: ENOENT (No such file or directory)"
    )


def test_parts_are_read_again_in_their_order(tmp_path: Path) -> None:
    file = ReservedFile.open(tmp_path, "slots/a", size=1 << 16)
    assert file is not None
    assert (tmp_path / "slots/a").stat().st_blocks * 512 >= 1 << 16
    assert (tmp_path / "slots/a").stat().st_mode & 0o777 == 0o600
    for part in (b"first", b"", b"x" * 100_000):  # the last is larger than the reserve
        file.add(part)
    file.close()
    again = ReservedFile.open(tmp_path, "slots/a")
    assert again is not None
    assert again.parts == [b"first", b"", b"x" * 100_000]
    again.remove()
    assert list((tmp_path / "slots").iterdir()) == []


@pytest.mark.parametrize("cut", [1, 5, 64, 79, 80, 83, 84, 100])
def test_a_part_that_was_torn_does_not_count(tmp_path: Path, cut: int) -> None:
    file = ReservedFile.open(tmp_path, "a", size=1 << 12)
    assert file is not None
    file.add(b"whole")
    file.add(b"torn part")
    file.close()
    with (tmp_path / "a").open("r+b") as raw:
        raw.seek(85 + min(cut, 88))
        raw.write(bytes(200))
    again = ReservedFile.open(tmp_path, "a", size=1 << 12)
    assert again is not None
    assert again.parts == [b"whole"]
    again.add(b"another")
    again.close()
    last = ReservedFile.open(tmp_path, "a")
    assert last is not None
    assert last.parts == [b"whole", b"another"]
    last.close()


def test_an_empty_reserve_leaves_nothing_and_a_held_one_is_left_alone(tmp_path: Path) -> None:
    file = ReservedFile.open(tmp_path, "a", size=1 << 12)
    assert file is not None
    assert ReservedFile.open(tmp_path, "a") is None
    file.close()
    assert list(tmp_path.iterdir()) == []


HOLDER = """
import os, signal, sys
from pathlib import Path
from fairwitness.kit.disk_watch import ReservedFile
file = ReservedFile.open(Path(sys.argv[1]), "a", size=1 << 16)
file.add(b"paid")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_added_survives_a_kill(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HOLDER, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    file = ReservedFile.open(tmp_path, "a")
    assert file is not None
    assert file.parts == [b"paid"]
    file.close()
    assert (tmp_path / "a").stat().st_size == 80 + 4


ON_A_SMALL_DISK = """
import sys
from pathlib import Path
from fairwitness.errors import DiskRefused
from fairwitness.kit.disk_watch import DiskWatch, ReservedFile
from support.small_disk import inside, require_mount
from support.small_disk import fill, free
disk = Path(sys.argv[1])
watch = DiskWatch((disk,), needed=1 << 20)
assert watch.trouble() is None
paid = ReservedFile.open(disk, "paid", size=1 << 20)
before = sorted(path.name for path in disk.iterdir())
try:
    ReservedFile.open(disk, "too-large", size=1 << 30)
    raise AssertionError("there is no room for it")
except DiskRefused as error:
    assert watch.excuses(error)
assert sorted(path.name for path in disk.iterdir()) == before
fill(disk)
try:
    ReservedFile.open(disk, "another", size=1 << 12)
    raise AssertionError("the disk is full")
except DiskRefused as error:
    assert "ENOSPC" in error.what and watch.excuses(error, times=9)
assert watch.trouble() is not None
paid.add(bytes(900_000))  # into space that was taken before
paid.close()
free(disk)
watch.wait_in_thread()
assert ReservedFile.open(disk, "paid").parts == [bytes(900_000)]
"""


def test_what_was_reserved_can_be_written_on_a_full_disk(tmp_path: Path) -> None:
    require_mount()
    command = inside(tmp_path / "disk", "tmpfs", 4, sys.executable, "-c", ON_A_SMALL_DISK, str(tmp_path / "disk"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
