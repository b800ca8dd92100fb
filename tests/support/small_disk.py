"""A disk of its own for a test: a small tmpfs or ext4 in a private mount namespace. No other disk is ever filled.

`python -m support.small_disk FOLDER KIND SIZE_MB -- COMMAND…` mounts it at FOLDER and runs the command; the mount goes
with its namespace. `fill`, `free` and `break_` work inside of it.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

FILL = "fill"


@cache
def _can_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = ["unshare", "-m", "--propagation", "private", "mount", "-t", "tmpfs", "-o", "size=1m", "none", "/mnt"]
    return subprocess.run(tried, capture_output=True, check=False).returncode == 0


@cache
def _can_break() -> bool:
    return _can_mount() and shutil.which("mkfs.ext4") is not None and Path("/sys/fs/ext4").exists()


def require_mount() -> None:
    """Skip a test by name where no disk can be mounted."""
    if not _can_mount():
        pytest.skip("needs root and a mount namespace")


def require_ext4() -> None:
    """Skip a test by name where no ext4 of its own can be made and broken."""
    if not _can_break():
        pytest.skip("needs root, loop devices and mkfs.ext4")


def inside(folder: Path, kind: str, size_mb: int, *command: str) -> list[str]:
    """The command line that runs a command with a disk of its own at the folder."""
    own = [sys.executable, "-m", "support.small_disk", str(folder), kind, str(size_mb), "--", *command]
    return ["unshare", "-m", "--propagation", "private", *own]


def fill(folder: Path) -> None:
    """Fill the disk to its last byte; refuses any disk that is not small."""
    status = os.statvfs(folder)
    assert status.f_blocks * status.f_frsize < 1 << 30, "this is no small disk"
    with (folder / FILL).open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def free(folder: Path) -> None:
    """Make room again."""
    (folder / FILL).unlink()


def image_of(folder: Path) -> Path:
    """The file that an ext4 of a test lies in."""
    return folder.with_name(f"{folder.name}.img")


def turn_read_only(folder: Path) -> None:
    """Let the file system find an error, after which the kernel lets nobody write to it."""
    os.sync()
    found = subprocess.run(["losetup", "-j", image_of(folder)], capture_output=True, text=True, check=True).stdout
    device = Path(found.partition(":")[0]).name
    (Path("/sys/fs/ext4") / device / "trigger_fs_error").write_text("a test")


def mend(folder: Path) -> None:
    """Check a broken file system and mount it again."""
    subprocess.run(["umount", folder], check=True)
    subprocess.run(["e2fsck", "-fy", image_of(folder)], capture_output=True, check=False)
    subprocess.run(["mount", "-o", "loop,errors=remount-ro", image_of(folder), folder], check=True)


def main(folder: Path, kind: str, size_mb: int, command: list[str]) -> int:
    """Mount, run, unmount."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "ext4":
        subprocess.run(["truncate", "-s", f"{size_mb}m", image_of(folder)], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", image_of(folder)], check=True)
        subprocess.run(["mount", "-o", "loop,errors=remount-ro", image_of(folder), folder], check=True)
    else:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "none", folder], check=True)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        image_of(folder).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[5:]))
