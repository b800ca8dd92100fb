"""Whatever files a command leaves behind, `run` returns a result, and everything that is removed afterwards is gone."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairwitness.agents.worktree_watch import WorktreeWatch
from fairwitness.contracts.common.sandbox import Confined, End
from fairwitness.git import folders
from fairwitness.kit.folder_trees import remove_tree, visit, walk
from sandbox.kit import REAL, Bench, said
from support.ladder import SWEEP

real = pytest.mark.parametrize("bench", REAL, indirect=True)
pytestmark = [pytest.mark.req("A15"), pytest.mark.timeout(240)]

_BUILD = """
import json, os, socket, sys
tops = [os.environ["HOME"], os.environ["TMPDIR"], os.getcwd()]
print(json.dumps(tops[:2]), flush=True)
handles = [os.open(top, os.O_RDONLY) for top in tops]  # one of them may lie in another that is shut later
def make(kind, name, count):
    if kind == "deep":
        for _ in range(count):
            os.mkdir(name); os.chdir(name)
    elif kind == "folder": os.mkdir(name); os.chdir(name)
    elif kind == "up" and os.getcwd() not in tops: os.chdir("..")
    elif kind == "files":
        for number in range(count): os.close(os.open(name + b"%d" % number, os.O_CREAT | os.O_WRONLY))
    elif kind == "sparse":
        handle = os.open(name, os.O_CREAT | os.O_RDWR); os.ftruncate(handle, count << 20)
    elif kind == "link": os.symlink(b"/etc/passwd", name)
    elif kind == "loop": os.symlink(name, name)
    elif kind == "round": os.symlink(b"../..", name)
    elif kind == "hard": os.close(os.open(name, os.O_CREAT)); os.link(name, name + b"2")
    elif kind == "pipe": os.mkfifo(name)
    elif kind == "socket": os.mknod(name, 0o140600)
    elif kind == "git": os.mkdir(b".git"); os.close(os.open(b".git/config", os.O_CREAT))
    elif kind == "shut": os.mkdir(name); os.mkdir(name + b"/inner"); os.chmod(name, 0)
    elif kind == "shut here": os.chmod(b".", 0o000)
    elif kind == "file without rights": os.close(os.open(name, os.O_CREAT, 0))
steps = json.loads(sys.argv[1])
for top in handles:
    os.fchdir(top)
    for kind, name, count in steps:
        try: make(kind, bytes.fromhex(name), count)
        except OSError as error: print(kind, error, flush=True)
print("built", flush=True)
"""
_KINDS = (
    *("folder", "up", "files", "sparse", "link", "loop", "round", "hard", "pipe", "socket", "git", "shut", "shut here"),
    "file without rights",
)
_NAMES = (b"a", b"\xff\xfe", b"new\nline", b"\x1b[31m", "\u202e".encode(), b"-rf", b" ", b"n" * 255, b"a\tb", b".git")
Step = tuple[str, bytes, int]

_CASES: dict[str, list[Step]] = {
    "more nested folders than the stack is deep": [("deep", b"d", 1500), ("files", b"f", 3)],
    "a path that no call can name": [("deep", b"n" * 250, 60), ("git", b"", 0)],
    "names that are not UTF-8": [("folder", b"\xff\xfe", 0), ("git", b"", 0), ("files", b"\xe9", 3)],
    "names with newlines and control signs": [("folder", b"a\nb\x1b[31m", 0), ("git", b"", 0), ("files", b"\n", 3)],
    "folders without rights": [("shut", b"a", 0), ("folder", b"b", 0), ("files", b"f", 3), ("shut here", b"", 0)],
    "links and loops": [
        ("loop", b"a", 0),
        ("round", b"b", 0),
        ("link", b"c", 0),
        ("folder", b"d", 0),
        ("hard", b"e", 0),
    ],
    "pipes and sockets": [("pipe", b"p", 0), ("socket", b"s", 0), ("pipe", b".git", 0)],
    "many files": [("files", b"f", 600), ("folder", b"d", 0), ("files", b"g", 600)],
    "a sparse file": [("sparse", b"s", 200)],
}


def _run(bench: Bench, steps: list[Step]) -> list[Path]:
    """Build the tree in home, temporary folder and worktree; return the two private folders."""
    words = json.dumps([(kind, name.hex(), count) for kind, name, count in steps])
    finished = bench.run(*bench.python_words(_BUILD), words, limits={"wall_s": 120.0})
    assert finished.stdout.endswith(b"built\n"), said(finished)
    assert finished.result.end in (End.OK, End.VIOLATION), said(finished)
    assert Confined.model_validate_json(finished.result.model_dump_json()) == finished.result
    return [Path(path) for path in json.loads(finished.stdout.splitlines()[0])]


@real
@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[pytest.mark.width("sample")] * ("nested" in case)) for case in _CASES]
)
def test_no_tree_of_a_command_raises_or_stays(bench: Bench, case: str) -> None:
    private = _run(bench, _CASES[case])
    if bench.tier != "ns":  # there both lie in the command's own view and end with it
        assert not any(path.parent.exists() for path in private)
    owners = {entry.status.st_uid for entry in visit(bench.worktree)}
    assert owners <= {os.getuid()}
    assert remove_tree(bench.worktree) is None
    assert not bench.worktree.exists()


_STEPS = st.lists(
    st.tuples(st.sampled_from(_KINDS), st.sampled_from(_NAMES), st.integers(1, 20)), min_size=1, max_size=25
)


@real
@settings(max_examples=60 if SWEEP else 3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS)
def test_any_tree_of_a_command_gives_a_result_and_is_removed(bench: Bench, steps: list[Step]) -> None:
    bench.worktree.mkdir(exist_ok=True)
    bench.worktree.chmod(0o755)
    _run(bench, steps)
    assert remove_tree(bench.worktree) is None
    assert not bench.worktree.exists()


@settings(max_examples=100 if SWEEP else 6, deadline=None)
@given(steps=_STEPS, depth=st.sampled_from([0, 1500]))
def test_every_walk_over_a_foreign_tree_comes_to_its_end(steps: list[Step], depth: int) -> None:
    """The walks of checkouts, worktrees, snapshots and agents; as whoever runs the tests, so modes count for users."""
    # not below pytest's own folder: its removal recurses, too
    top, home = (Path(tempfile.mkdtemp(prefix="fairwitness-test-")) for _ in range(2))
    try:
        _walk_over(top, home, steps, depth)
    finally:
        for folder in (top, home):
            assert remove_tree(folder) is None


def _walk_over(top: Path, home: Path, steps: list[Step], depth: int) -> None:
    steps = [("deep", b"d", depth), *steps] if depth else steps
    words = json.dumps([(kind, name.hex(), count) for kind, name, count in steps])
    env = {"HOME": str(home), "TMPDIR": str(home)}
    subprocess.run([sys.executable, "-I", "-S", "-c", _BUILD, words], cwd=top, env=env, check=True, capture_output=True)
    assert sum(len(files) for _, _, files in walk(top)) >= 0
    watch = WorktreeWatch(top)
    watch.settle()
    assert watch.changes() == ()
    folders.open_up(top)
    folders.remove(top)
    assert not top.exists()


def test_a_link_in_the_place_of_a_folder_is_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to("../kept")
    (tmp_path / "top").symlink_to("kept")
    for name in ("tree", "top", "none"):
        assert remove_tree(tmp_path / name) is None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (tmp_path / "kept" / "file").exists()


def test_what_cannot_be_removed_is_named_and_the_rest_is_gone(tmp_path: Path) -> None:
    if os.getuid() == 0:
        pytest.skip("nothing is denied to root")
    tree = tmp_path / "tree"
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "file").touch()
    tmp_path.chmod(0o500)
    try:
        error: Any = remove_tree(tree)
        assert isinstance(error, PermissionError)
        assert list(tree.iterdir()) == []
    finally:
        tmp_path.chmod(0o700)
