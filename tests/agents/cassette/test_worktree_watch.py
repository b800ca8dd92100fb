"""What changed in a worktree between two looks."""

import os
from pathlib import Path

import pytest

from agents.api.kit import project
from fairwitness.agents import worktree_watch
from fairwitness.agents.worktree_watch import MOST_BYTES, MOST_FILES, WorktreeChange, WorktreeWatch


def test_a_file_that_was_written_rewritten_or_taken_away_is_found_once(tmp_path: Path) -> None:
    root = project(tmp_path)
    watch = WorktreeWatch(root)
    assert watch.changes() == ()
    (root / "src" / "new.py").write_text("NEW\n")
    (root / "src" / "add.py").write_text("rewritten\n")
    (root / "notes.md").unlink()
    assert watch.changes() == (
        WorktreeChange("notes.md", None, is_gone=True),
        WorktreeChange("src/add.py", "rewritten\n"),
        WorktreeChange("src/new.py", "NEW\n"),
    )
    assert watch.changes() == ()


def test_a_change_that_keeps_its_size_and_its_time_is_found_too(tmp_path: Path) -> None:
    root = project(tmp_path)
    path = root / "notes.md"
    before = path.stat()
    watch = WorktreeWatch(root)
    path.write_text("# Nodes\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [one.path for one in watch.changes()] == ["notes.md"]


def test_what_was_settled_is_no_change(tmp_path: Path) -> None:
    root = project(tmp_path)
    watch = WorktreeWatch(root)
    (root / "notes.md").write_text("ours\n")
    watch.settle()
    assert watch.changes() == ()


@pytest.mark.parametrize(
    "place", [".git/config", ".GIT/config", ".fairwitness/x", "node_modules/x/y.js", "src/__pycache__/z"]
)
def test_some_folders_are_passed_over(tmp_path: Path, place: str) -> None:
    root = project(tmp_path)
    watch = WorktreeWatch(root)
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).write_text("x")
    assert watch.changes() == ()


def test_what_is_no_text_is_found_without_one(tmp_path: Path) -> None:
    root = project(tmp_path)
    watch = WorktreeWatch(root)
    (root / "binary").write_bytes(b"\xff\xfe")
    (root / "huge.txt").write_text("x" * (MOST_BYTES + 1))
    (root / "link").symlink_to("/etc/passwd")
    os.mkfifo(root / "pipe")
    found = watch.changes()
    assert [one.path for one in found] == ["binary", "huge.txt", "link", "pipe"]
    assert {one.text for one in found} == {None}


def test_a_worktree_that_is_too_large_is_not_watched(tmp_path: Path) -> None:
    root = tmp_path / "large"
    root.mkdir()
    for number in range(MOST_FILES + 1):
        os.close(os.open(root / str(number), os.O_CREAT))
    watch = worktree_watch.WorktreeWatch(root)
    assert watch.is_blind
    watch.settle()
    assert watch.changes() == ()
