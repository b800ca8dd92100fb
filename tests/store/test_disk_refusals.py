"""When the operating system says no, the error says so, the old file stands and nothing is left lying about."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.errors import DiskRefused
from fairwitness.store.artifacts import Store
from store.children import Operation, strace_works

OLD = b"old\n"
PATH = "folder/file"

needs_strace = pytest.mark.skipif(not strace_works(), reason="strace is missing or may not trace")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")


def operation(name: str, root: Path) -> Operation:
    if not name.startswith("create"):
        Store(root).put(PATH, OLD)
    (root / "folder").mkdir(parents=True, exist_ok=True)
    return Operation(name, root, PATH, OLD + b"new\n" if name == "grow" else b"new\n")


def left_over(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (root / "folder").iterdir()}


@needs_strace
@pytest.mark.req("F1")
@pytest.mark.parametrize(
    ("name", "call", "error"),
    [
        ("put", "write", "ENOSPC"),
        ("put", "fsync", "EIO"),
        ("put", "renameat", "EACCES"),
        ("put", "openat", "EROFS"),
        ("create", "write", "EDQUOT"),
        ("create", "fsync", "EIO"),
        ("create", "renameat2", "EACCES"),
        ("grow", "write", "ENOSPC"),
        ("grow", "renameat", "EACCES"),
        ("append", "write", "ENOSPC"),
        ("append", "fsync", "EIO"),
    ],
)
def test_a_refused_system_call_is_a_typed_error_and_the_old_file_stands(
    name: str, call: str, error: str, tmp_path: Path
) -> None:
    calls = operation(name, tmp_path / "dry").system_calls()
    if call == "renameat" and ("renameat", 1) not in calls:
        call = "renameat2"  # the C library's choice on some machines
    number = max(number for made, number in calls if made == call) if call == "openat" else None
    number = number or min(number for made, number in calls if made == call)
    root = tmp_path / "root"
    answer = json.loads(operation(name, root).run_with(f"error={error}", call, number).stdout)
    assert answer["type"] == "DiskRefused"
    assert error in answer["what"]
    assert PATH in answer["what"]
    assert answer["next_step"]
    assert left_over(root) == ({} if name == "create" else {"file": OLD})


@needs_strace
@pytest.mark.req("F1")
def test_a_folder_that_cannot_be_synced_is_told_although_the_new_content_stands(tmp_path: Path) -> None:
    calls = operation("put", tmp_path / "dry").system_calls()
    root = tmp_path / "root"
    last = max(number for call, number in calls if call == "fsync")
    answer = json.loads(operation("put", root).run_with("error=EIO", "fsync", last).stdout)
    assert answer["type"] == "DiskRefused"
    assert "could not be synced: EIO" in answer["what"]
    assert left_over(root) == {"file": b"new\n"}


@needs_strace
@pytest.mark.req("F1")
def test_a_file_system_without_exclusive_rename_still_creates_files(tmp_path: Path) -> None:
    calls = dict(operation("create", tmp_path / "dry").system_calls())
    root = tmp_path / "root"
    result = operation("create", root).run_with("error=EINVAL", "renameat2", calls["renameat2"])
    assert result.stdout == "done"
    assert left_over(root) == {"file": b"new\n"}


@needs_strace
@pytest.mark.parametrize("error", ["ENOSYS", "EPERM"])
def test_a_kernel_without_openat2_is_walked_part_by_part(error: str, tmp_path: Path) -> None:
    calls = dict(operation("put", tmp_path / "dry").system_calls())
    root = tmp_path / "root"
    assert operation("put", root).run_with(f"error={error}", "openat2", calls["openat2"]).stdout == "done"
    assert left_over(root) == {"file": b"new\n"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 KiB."""
    mount = tmp_path / "small"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a small disk")
    yield mount
    subprocess.run(["umount", str(mount)], check=True)


@needs_root
@pytest.mark.req("F1")
def test_a_full_disk_is_a_typed_error_and_the_old_files_stand(small_disk: Path) -> None:
    store = Store(small_disk)
    store.put("replaced", OLD)
    store.put("grown", OLD)
    store.append("lines", "first")
    too_much = b"x" * 100_000
    for attempt in (
        lambda: store.put("replaced", too_much),
        lambda: store.grow("grown", OLD + too_much),
        lambda: store.create("created", too_much),
        lambda: store.append("lines", too_much.decode()),
    ):
        with pytest.raises(DiskRefused, match=r"ENOSPC"):
            attempt()
    found = {path.name: path.read_bytes() for path in small_disk.iterdir()}
    assert found == {"replaced": OLD, "grown": OLD, "lines": b"first\n"}
    store.append("lines", "second")
    assert store.get("lines") == b"first\nsecond\n"


@pytest.mark.req("F1")
@pytest.mark.parametrize("name", ["put", "create", "grow"])
def test_a_folder_without_write_permission_is_a_typed_error(name: str) -> None:
    with tempfile.TemporaryDirectory() as outer:
        Path(outer).chmod(0o755)  # tmp_path is closed to other users
        root = Path(outer) / "root"
        job = operation(name, root)
        (root / "folder").chmod(0o555)
        answer = json.loads(job.run(**({"WRITER_DROPS_ROOT": "yes"} if os.geteuid() == 0 else {})).stdout)
        assert answer["type"] == "DiskRefused"
        assert "EACCES" in answer["what"]
        assert "right" in answer["next_step"]
        assert left_over(root) == ({} if name == "create" else {"file": OLD})
        (root / "folder").chmod(0o755)
