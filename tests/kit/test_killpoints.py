"""Points at which a process dies when it is told to, and passes by otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PASSES = """
import sys, threading
from fairwitness.kit.killpoints import killpoint
for name in sys.argv[1:]:
    if name.startswith("thread:"):
        thread = threading.Thread(target=killpoint, args=(name.removeprefix("thread:"),))
        thread.start()
        thread.join()
    else:
        killpoint(name)
    print(name, flush=True)
"""


def passed(*points: str, at: str = "", log: Path | None = None) -> list[str]:
    """The points that a process came past before it died or ended; a process that was told to die must be dead."""
    told = {"FAIRWITNESS_KILL_AT": at, "FAIRWITNESS_KILL_LOG": "" if log is None else str(log)}
    done = subprocess.run(
        [sys.executable, "-c", PASSES, *points],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        check=False,
    )
    printed = done.stdout.split()
    assert done.returncode == (-9 if len(printed) < len(points) else 0), done.stderr
    return printed


def test_nobody_dies_who_was_not_told_to() -> None:
    assert passed("a", "b") == ["a", "b"]


@pytest.mark.req("P16")
@pytest.mark.parametrize(
    ("at", "before"),
    [
        ("b", ["a"]),
        ("b#1", ["a"]),
        ("b#2", ["a", "b", "a"]),
        ("a#2", ["a", "b"]),
        ("#1", []),
        ("#3", ["a", "b"]),
        ("#5", ["a", "b", "a", "b"]),
        ("#6", ["a", "b", "a", "b", "c"]),
        ("b#3", ["a", "b", "a", "b", "c"]),
        ("no such point", ["a", "b", "a", "b", "c"]),
    ],
)
def test_a_process_dies_at_the_point_and_the_passage_it_was_told(at: str, before: list[str]) -> None:
    assert passed("a", "b", "a", "b", "c", at=at) == before


def test_threads_count_together() -> None:
    assert passed("a", "thread:a", "a", at="a#3") == ["a", "thread:a"]
    assert passed("a", "thread:a", "a", at="a#2") == ["a"]


def test_every_point_is_logged_and_also_the_last_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert passed("a", "b", log=log) == ["a", "b"]
    assert passed("c", "d", at="d", log=log) == ["c"]
    assert log.read_text().split() == ["a", "b", "c", "d"]
