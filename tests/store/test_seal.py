"""A sealed folder takes no write, in no process, and every change behind the store's back is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import AlreadyWritten, Immutable, NotStored, UnsafePath, UsageError
from fairwitness.store.artifacts import SEALABLE, Store, content_hash
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.store.seal import broken_seals, seal

RUN = ForgeLayout("run-1", base="artifacts")
OTHER = ForgeLayout("run-2", base="artifacts")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two runs with specs, none sealed."""
    store = Store(tmp_path)
    for run in (RUN, OTHER):
        store.put(run.spec("architecture"), b"# how")
        store.put(f"{run.specs}/parts/auth.md", b"# auth")
        store.put(run.run_state, b"{}")
    return store


def writes(store: Store, path: str) -> list[Callable[[], object]]:
    return [
        lambda: store.put(path, b"x"),
        lambda: store.create(path, b"x"),
        lambda: store.grow(path, b"# howx"),
        lambda: store.append(path, "x"),
        lambda: store.put_sections(path, "x", {}),
        lambda: store.move(path, "elsewhere"),
        lambda: store.move(RUN.run_state, path),
    ]


@pytest.mark.req("F7")
def test_the_lock_lists_every_file_with_its_hash(store: Store) -> None:
    lock = seal(store, RUN.specs)
    assert lock.path == RUN.specs_lock
    document = json.loads(store.get(RUN.specs_lock, sha256=lock.sha256))
    assert document == {
        "version": 1,
        "folder": "specs",
        "files": {"architecture.md": content_hash(b"# how"), "parts/auth.md": content_hash(b"# auth")},
    }


@pytest.mark.req("F7")
@pytest.mark.parametrize("path", [RUN.spec("architecture"), RUN.spec("new"), f"{RUN.specs}/parts/auth.md"])
def test_no_write_passes_into_a_sealed_folder(store: Store, path: str) -> None:
    opened_before = Store(store.root)
    seal(store, RUN.specs)
    opened_after = Store(store.root)
    for one in (store, opened_before, opened_after):
        for write in writes(one, path):
            with pytest.raises(Immutable, match=r"specs\.lock\.json"):
                write()
    assert broken_seals(store) == ()


@pytest.mark.req("F7")
def test_the_sealed_folder_and_its_lock_stay_where_they_are(store: Store) -> None:
    seal(store, RUN.specs)
    with pytest.raises(Immutable):
        store.move(RUN.specs, "elsewhere")
    for write in (lambda: store.put(RUN.specs_lock, b"{}"), lambda: store.move(RUN.specs_lock, "x")):
        with pytest.raises(Immutable, match="lock"):
            write()
    with pytest.raises(AlreadyWritten):
        store.create(RUN.specs_lock, b"{}")


@pytest.mark.req("F7")
def test_other_runs_and_other_files_stay_writable(store: Store) -> None:
    seal(store, RUN.specs)
    store.put(RUN.run_state, b"{1}")
    store.put(OTHER.spec("architecture"), b"# changed")
    store.put(f"{RUN.task_folder('task-001')}/notes.md", b"x")


@pytest.mark.req("F7")
def test_sealing_twice_is_one_seal_unless_something_changed(store: Store) -> None:
    assert seal(store, RUN.specs) == seal(Store(store.root), RUN.specs)
    (store.root / RUN.spec("architecture")).write_bytes(b"# tampered")
    with pytest.raises(AlreadyWritten):
        seal(store, RUN.specs)


@pytest.mark.req("F7")
def test_every_change_behind_the_stores_back_is_named(store: Store) -> None:
    locks = {lock.path: lock.sha256 for lock in (seal(store, RUN.specs), seal(store, OTHER.specs))}
    assert broken_seals(store, locks=locks) == ()
    (store.root / RUN.spec("architecture")).write_bytes(b"# tampered")
    (store.root / RUN.specs / "parts/auth.md").unlink()
    (store.root / RUN.specs / "added.md").write_bytes(b"x")
    (store.root / OTHER.specs / "linked.md").symlink_to("/etc/passwd")
    (store.root / OTHER.specs / "back\\slash").mkdir()
    assert broken_seals(store, locks=locks) == (
        f"{RUN.specs}/added.md",
        f"{RUN.specs}/architecture.md",
        f"{RUN.specs}/parts/auth.md",
        f"{OTHER.specs}/back\\slash",
        f"{OTHER.specs}/linked.md",
    )
    assert broken_seals(store, OTHER.folder) == (f"{OTHER.specs}/back\\slash", f"{OTHER.specs}/linked.md")


@pytest.mark.req("F7")
def test_a_folder_that_became_a_link_has_lost_all_its_files(store: Store) -> None:
    seal(store, RUN.specs)
    shutil.move(store.root / RUN.specs, store.root / "moved")
    (store.root / RUN.specs).symlink_to(store.root / "moved")
    assert broken_seals(store) == (f"{RUN.specs}/architecture.md", f"{RUN.specs}/parts/auth.md")


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"version": 1}', b'{"version": 1, "folder": "specs", "files": {"a": 1}}']
)
def test_a_lock_that_was_replaced_or_removed_is_named(store: Store, content: bytes) -> None:
    lock = seal(store, RUN.specs)
    (store.root / lock.path).write_bytes(content)
    assert broken_seals(store) == (lock.path,)
    (store.root / lock.path).write_bytes(b'{"version": 1, "folder": "specs", "files": {}}')
    assert broken_seals(store, locks={lock.path: lock.sha256}) == (lock.path,)
    (store.root / lock.path).unlink()
    assert broken_seals(store, locks={lock.path: lock.sha256}) == (lock.path,)


def test_a_folder_with_nothing_or_with_a_link_in_it_is_not_sealed(store: Store) -> None:
    with pytest.raises(NotStored, match="no file"):
        seal(store, "artifacts/empty/specs")
    (store.root / RUN.specs / "linked.md").symlink_to("/etc/passwd")
    with pytest.raises(UnsafePath, match=r"linked\.md"):
        seal(store, RUN.specs)
    assert not store.exists(RUN.specs_lock)


def test_a_seal_that_no_store_would_honour_is_not_written(store: Store) -> None:
    for folder, name in ((RUN.folder, "specs.lock.json"), (RUN.specs, "my.lock.json")):
        with pytest.raises(UsageError, match="honour"):
            seal(store, folder, name)
    own = Store(store.root, sealable={"parts": "parts.lock.json"})
    seal(own, f"{RUN.specs}/parts", "parts.lock.json")
    with pytest.raises(Immutable):
        own.put(f"{RUN.specs}/parts/auth.md", b"x")


def test_a_planted_lock_is_refused_rather_than_believed_away(store: Store) -> None:
    (store.root / RUN.specs_lock).symlink_to("/nowhere")
    with pytest.raises(UnsafePath):
        store.put(RUN.spec("architecture"), b"x")


@pytest.mark.req("F7")
def test_the_layout_and_the_store_agree_on_the_lock(store: Store) -> None:
    assert store.lock_of(RUN.specs) == RUN.specs_lock
    assert dict(SEALABLE) == {"specs": "specs.lock.json"}
    assert store.lock_of("specs") == "specs.lock.json"
