"""A writer that dies at any moment leaves the old or the new content, and nothing that gets in anybody's way."""

from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from fairwitness.errors import NotStored
from fairwitness.kit.files import is_temporary
from fairwitness.store.artifacts import Store
from store.children import Operation, strace_works

OLD = b"old line\n" * 1000
LINE = b'{"event": "new"}\n'
NEW = b"new line\n" * 20_000
GROWN = OLD + NEW
PATH = "runs/one/file"

needs_strace = pytest.mark.skipif(not strace_works(), reason="strace is missing or may not trace")


def operation(name: str, root: Path) -> Operation:
    """An operation on a store where the old file stands, unless the operation is to create it."""
    if not name.startswith("create"):
        Store(root).put(PATH, OLD)
    content = {"append": LINE, "grow": GROWN}.get(name, NEW)
    return Operation(name, root, PATH, content)


def check_after_crash(name: str, root: Path) -> None:
    """What must hold whenever the writer died, and that the same work can then be done again."""
    store = Store(root)
    read = partial(store.get, PATH)
    match name:
        case "put" | "put with backup":
            assert read() in (OLD, NEW)
            if store.exists(f"{PATH}.backup"):
                assert store.get(f"{PATH}.backup") == OLD
            store.put(PATH, NEW)
            assert read() == NEW
        case "create" | "create, portable":
            with suppress(NotStored):
                assert read() == NEW
            store.create(PATH, NEW)
            assert read() == NEW
        case "grow":
            assert read() in (OLD, GROWN)
            store.grow(PATH, GROWN)
            assert read() == GROWN
        case "append":
            there = read()
            assert there in (OLD, OLD + LINE)
            assert store.append(PATH, "after").dropped == 0
            assert read() == there + b"after\n"
        case _:
            raise AssertionError(name)
    assert set(store.names("runs/one")) <= {"file", "file.backup"}
    swept = store.sweep(older_than_s=0)
    assert len(swept) <= 1
    assert all(is_temporary(path.rpartition("/")[2]) for path in swept)
    assert sorted(path.name for path in (root / "runs/one").iterdir()) == list(store.names("runs/one"))
    assert read()


@needs_strace
@pytest.mark.req("F1")
@pytest.mark.req("A1")
@pytest.mark.parametrize("name", ["put", "create", "append", "grow"])
def test_a_writer_killed_at_any_system_call_leaves_old_or_new_content(name: str, tmp_path: Path) -> None:
    calls = operation(name, tmp_path / "dry").system_calls()
    assert {"write", "fsync"} <= {call for call, _ in calls}
    survived = []
    for position, (call, number) in enumerate(calls):
        root = tmp_path / f"{position}-{call}"
        if operation(name, root).run_with("signal=KILL", call, number).returncode != -9:
            survived.append((call, number))
        check_after_crash(name, root)
    assert survived == []


@pytest.mark.req("F1")
@pytest.mark.req("A1")
@pytest.mark.parametrize(
    ("name", "point"),
    [
        *[
            (name, f"store.write.{point}")
            for name in ("put", "create", "create, portable", "grow", "put with backup")
            for point in ("opened", "written", "synced", "renamed")
            if (name, point) != ("create, portable", "renamed")
        ],
        ("create, portable", "store.create.linked"),
        *[("append", f"store.append.{point}") for point in ("opened", "written", "synced")],
    ],
)
def test_a_writer_killed_at_any_kill_point_leaves_old_or_new_content(name: str, point: str, tmp_path: Path) -> None:
    root = tmp_path / "root"
    assert operation(name, root).run(FAIRWITNESS_KILL_AT=point).returncode == -9
    check_after_crash(name, root)


@pytest.mark.req("F1")
def test_a_file_whose_writer_died_between_link_and_unlink_can_be_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    operation("create, portable", root).run(FAIRWITNESS_KILL_AT="store.create.linked")
    assert (root / PATH).stat().st_nlink == 2
    assert Store(root).get(PATH) == NEW
    (root / "elsewhere").hardlink_to(root / PATH)
    with pytest.raises(Exception, match="hard link"):
        Store(root).get(PATH)


def test_an_unset_kill_point_lets_the_writer_pass(tmp_path: Path) -> None:
    result = operation("put", tmp_path / "root").run(FAIRWITNESS_KILL_AT="store.write.no-such-point")
    assert (result.returncode, result.stdout) == (0, "done")
