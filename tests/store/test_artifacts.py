"""The store on a real disk: what is written can be read, asked for by hash, and nothing else is touched."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import AlreadyWritten, HashMismatch, Immutable, NotStored, UnsafePath, UsageError
from fairwitness.store.artifacts import Store, Stored, content_hash
from fairwitness.store.layout.forge import ForgeLayout
from store.children import Operation, strace_works


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "root")


@pytest.mark.req("F1")
def test_what_was_put_is_read_back_with_the_hash_that_was_returned(store: Store) -> None:
    stored = store.put("a/b/c.json", b"{}")
    assert stored == Stored("a/b/c.json", f"sha256:{hashlib.sha256(b'{}').hexdigest()}", 2)
    assert store.get("a/b/c.json", sha256=stored.sha256) == b"{}"
    assert store.get("a/b/c.json") == b"{}"


@pytest.mark.req("F1")
def test_content_that_is_not_the_content_asked_for_is_refused_with_both_hashes(store: Store) -> None:
    wanted = store.put("file", b"mine").sha256
    (store.root / "file").write_bytes(b"tampered")
    with pytest.raises(HashMismatch) as caught:
        store.get("file", sha256=wanted)
    assert wanted in caught.value.what
    assert content_hash(b"tampered") in caught.value.what
    assert caught.value.next_step
    with pytest.raises(HashMismatch):
        store.get("file", sha256="")


def test_an_empty_file_can_be_stored(store: Store) -> None:
    assert store.put("empty", b"").size == 0
    assert store.get("empty") == b""


@pytest.mark.skipif(not strace_works(), reason="strace is missing or may not trace")
@pytest.mark.req("F1")
def test_a_put_makes_four_durable_calls_and_no_more(tmp_path: Path) -> None:
    Store(tmp_path / "root").put("folder/file", b"old")
    calls = [call for call, _ in Operation("put", tmp_path / "root", "folder/file", b"new").system_calls()]
    durable = [call.removesuffix("2").removesuffix("at") for call in calls if not call.startswith(("open", "flock"))]
    assert durable == ["write", "fsync", "rename", "fsync"]


def test_files_are_readable_by_others_unless_the_umask_says_no(store: Store) -> None:
    before = os.umask(0o022)
    try:
        store.put("open", b"x")
        os.umask(0o077)
        store.put("closed", b"x")
    finally:
        os.umask(before)
    assert (store.root / "open").stat().st_mode & 0o777 == 0o644
    assert (store.root / "closed").stat().st_mode & 0o777 == 0o600


@pytest.mark.req("F2")
def test_a_write_once_file_adopts_the_same_bytes_and_refuses_others(store: Store) -> None:
    first = store.create("report.md", b"one")
    assert store.create("report.md", b"one") == first
    for other in (b"two", b"onetwo", b""):
        with pytest.raises(AlreadyWritten, match=r"report\.md"):
            store.create("report.md", other)
    assert store.get("report.md") == b"one"
    assert store.names() == ("report.md",)


@pytest.mark.req("F2")
def test_attempts_of_one_task_stand_side_by_side(store: Store) -> None:
    layout = ForgeLayout("run-1")
    for attempt in (1, 2, 3):
        store.create(layout.walkthrough("task-001", attempt), f"attempt {attempt}".encode())
    with pytest.raises(AlreadyWritten):
        store.create(layout.walkthrough("task-001", 1), b"rewritten history")
    assert store.names(layout.task_folder("task-001")) == ("attempt-1", "attempt-2", "attempt-3")
    assert store.get(layout.walkthrough("task-001", 1)) == b"attempt 1"


@pytest.mark.req("A1")
def test_a_put_with_backup_keeps_the_content_before(store: Store) -> None:
    store.put("state.json", b"1", backup=True)
    assert store.names() == ("state.json",)
    store.put("state.json", b"2", backup=True)
    assert store.get("state.json.backup") == b"1"
    store.put("state.json", b"3", backup=True)
    assert (store.get("state.json"), store.get("state.json.backup")) == (b"3", b"2")


@pytest.mark.req("A1")
def test_a_finished_state_moves_to_its_archive_once(store: Store) -> None:
    store.put("state.json", b"done")
    for _ in range(2):  # a repeated step finds its own work
        store.move("state.json", "archive/run-1.json")
    assert (store.exists("state.json"), store.get("archive/run-1.json")) == (False, b"done")
    store.put("state.json", b"next")
    with pytest.raises(AlreadyWritten):
        store.move("state.json", "archive/run-1.json")
    assert (store.get("state.json"), store.get("archive/run-1.json")) == (b"next", b"done")
    with pytest.raises(NotStored):
        store.move("nothing", "anywhere")


def test_a_folder_can_be_moved_as_a_whole(store: Store) -> None:
    store.put("slug/research/a.yaml", b"a")
    store.move("slug/research", "slug/archive/run-1/research")
    assert store.get("slug/archive/run-1/research/a.yaml") == b"a"


@pytest.mark.req("P10")
def test_a_growing_file_must_begin_with_all_it_held(store: Store) -> None:
    store.grow("decisions.yaml", b"- DL-001\n")
    store.grow("decisions.yaml", b"- DL-001\n- DL-002\n")
    store.grow("decisions.yaml", b"- DL-001\n- DL-002\n")
    for bad in (b"- DL-001\n", b"", b"- DL-002\n- DL-001\n"):
        with pytest.raises(Immutable, match="may only grow"):
            store.grow("decisions.yaml", bad)
    assert store.get("decisions.yaml") == b"- DL-001\n- DL-002\n"


def test_appended_lines_stand_in_order_and_a_torn_one_is_reported(store: Store) -> None:
    store.append("log.jsonl", "1")
    store.append("log.jsonl", "2")
    with (store.root / "log.jsonl").open("ab") as file:
        file.write(b'{"torn')
    assert store.append("log.jsonl", "3").dropped == 6
    assert store.get("log.jsonl") == b"1\n2\n3\n"
    with pytest.raises(UsageError):
        store.append("log.jsonl", "two\nlines")


def test_listings_are_sorted_and_silent_about_temporary_files(store: Store) -> None:
    for name in ("b", "a", "folder/c"):
        store.put(name, b"x")
    (store.root / ".b.0123456789abcdef.tmp").write_bytes(b"half")
    assert store.names() == ("a", "b", "folder")
    assert store.names("folder") == ("c",)
    assert store.names("no/such/folder") == ()


def test_only_old_temporary_files_are_swept_and_only_ours(store: Store) -> None:
    store.put("deep/er/file", b"x")
    old, young = "deep/er/.file.0123456789abcdef.tmp", "deep/.other.fedcba9876543210.tmp"
    for path in (old, young, ".gitignore", "deep/notes.tmp"):
        (store.root / path).write_bytes(b"half")
    os.utime(store.root / old, (1, 1))
    (store.root / "deep/back\\slash").mkdir()  # a name no store would use is passed over, not stumbled upon
    assert store.sweep() == (old,)
    assert store.sweep("deep", older_than_s=0) == (young,)
    assert store.sweep("no/such/folder") == ()
    assert store.names() == (".gitignore", "deep")
    assert store.names("deep") == ("back\\slash", "er", "notes.tmp")


HOSTILE = [
    "",
    "..",
    "../x",
    "a/../../x",
    "/etc/passwd",
    "C:/x",
    "~/x",
    "a\0b",
    "a\\b",
    "a\nb",
    "x" * 2000,
    "a//b",
    "a/",
    "./a",
]


@pytest.mark.parametrize("path", [*HOSTILE, ".x.0123456789abcdef.tmp"])
def test_a_path_that_is_no_path_inside_is_refused_by_every_door(store: Store, path: str) -> None:
    store.put("inside", b"x")
    doors: list[Callable[[], object]] = [
        lambda: store.put(path, b"x"),
        lambda: store.put(path, b"x", backup=True),
        lambda: store.create(path, b"x"),
        lambda: store.grow(path, b"x"),
        lambda: store.append(path, "x"),
        lambda: store.put_sections(path, "x", {}),
        lambda: store.move(path, "target"),
        lambda: store.move("inside", path),
        lambda: store.get(path),
        lambda: store.exists(path),
    ]
    for door in doors:
        with pytest.raises(UnsafePath):
            door()
    assert [found.name for found in store.root.parent.rglob("*")] == ["root", "inside"]


def test_what_was_never_written_is_not_stored(store: Store) -> None:
    assert not store.exists("nothing")
    assert not store.exists("no/folder/nothing")
    with pytest.raises(NotStored) as caught:
        store.get("nothing")
    assert caught.value.next_step
    store.put("folder/file", b"x")
    assert not store.exists("folder")


def test_the_store_works_without_anything_only_linux_has(tmp_path: Path) -> None:
    script = (
        "import sys, fairwitness.contracts.common.base, fairwitness.contracts.common.ids\n"
        "sys.platform = 'darwin'\n"
        "sys.modules['ctypes'] = None\n"
        "from pathlib import Path\n"
        "from fairwitness.store.artifacts import Store\n"
        "from fairwitness.store import seal\n"
        "from fairwitness.store.layout import autopilot, feature, forge\n"
        "store = Store(Path(sys.argv[1]))\n"
        "store.put('a/b', b'1'); store.create('a/c', b'2'); store.grow('a/b', b'12'); store.append('a/d', '3')\n"
        "store.move('a/d', 'a/e')\n"
        "print(store.names('a'), store.get('a/b'))\n"
    )
    result = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("('b', 'c', 'e') b'12'\n", "")
