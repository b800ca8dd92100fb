"""What an atomic write costs beside the same four system calls written by hand, and beside a bare fsync."""

import os
import tempfile
from pathlib import Path

from bench.measure import medians, report
from fairwitness.store.artifacts import Store

CONTENT = b"x" * 4096
NAME = "run/document.yaml"


def run() -> bool:
    """Prints the ratios of one atomic write."""
    with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".bench-") as folder:
        root = Path(folder)
        (root / "run").mkdir()
        store = Store(root)
        target = str(root / NAME)

        def by_hand() -> None:
            temporary = f"{target}.tmp"
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(handle, CONTENT)
            os.fsync(handle)
            os.close(handle)
            os.rename(temporary, target)  # noqa: PTH104  # the system call itself is the baseline
            directory = os.open(root / "run", os.O_RDONLY | os.O_DIRECTORY)
            os.fsync(directory)
            os.close(directory)

        def bare() -> None:
            handle = os.open(root / "run" / "bare", os.O_WRONLY | os.O_CREAT, 0o644)
            os.write(handle, CONTENT)
            os.fsync(handle)
            os.close(handle)

        measured = medians(
            {
                "four system calls by hand": by_hand,
                "Store.put": lambda: store.put(NAME, CONTENT),
                "bare fsync write": bare,
            },
            rounds=400,
        )
    met = report("atomic write of 4 KiB", measured, "four system calls by hand", {"Store.put": 1.15})
    report(
        "the same beside a bare fsync write",
        {name: measured[name] for name in ("bare fsync write", "Store.put")},
        "bare fsync write",
        {},
    )
    return met
