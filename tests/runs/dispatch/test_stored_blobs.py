"""A content that was stored before is read again and not stored again, and nothing else is ever taken for it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.contracts.common.tools import Role
from fairwitness.errors import FairWitnessError
from fairwitness.git.objects import FILE, TreeEntry
from fairwitness.runs.dispatch.audit import audit
from fairwitness.runs.dispatch.stored_blobs import StoredContents, read
from fairwitness.runs.dispatch.worktree_snapshot import take_snapshot
from runs.dispatch.world import SCOPE, World, builder, writes


def _filled(world: World) -> Path:
    folder = world.folder
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "here").symlink_to("run.sh")
    (folder / os.fsdecode(b"latin-\xe9\n")).write_text("odd\n")
    return folder


def test_the_same_content_is_the_same_tree_without_asking_git(world: World) -> None:
    folder, known = _filled(world), StoredContents()
    first = take_snapshot(world.shadow, folder, stored_contents=known)
    assert first == take_snapshot(world.shadow, folder), "as git alone sees it"
    shutil.rmtree(world.shadow.git.path)
    assert take_snapshot(world.shadow, folder, stored_contents=known) == first
    (folder / "README.md").write_text("another shop\n")
    with pytest.raises(FairWitnessError):
        take_snapshot(world.shadow, folder, stored_contents=known)


def _rewrite_in_place(folder: Path) -> None:
    """The same size and the same times: only whoever reads it notices."""
    before = (folder / "src/shop.py").stat()
    with (folder / "src/shop.py").open("r+b") as file:
        file.write(b"price = 2\n")
    os.utime(folder / "src/shop.py", ns=(before.st_atime_ns, before.st_mtime_ns))


def _swap(folder: Path) -> None:
    (folder / "run.sh").rename(folder / "aside")
    (folder / "README.md").rename(folder / "run.sh")
    (folder / "aside").rename(folder / "README.md")


def _relink(folder: Path) -> None:
    (folder / "here").unlink()
    (folder / "here").symlink_to("README.md")


def _file_for_link(folder: Path) -> None:
    (folder / "here").unlink()
    (folder / "here").write_text("run.sh")


@pytest.mark.parametrize(
    "change",
    [
        _rewrite_in_place,
        _swap,
        _relink,
        _file_for_link,
        lambda folder: (folder / "run.sh").chmod(0o644),
        lambda folder: (folder / "run.sh").unlink(),
        lambda folder: (folder / "more").write_text(""),
        lambda folder: (folder / "src").rename(folder / "lib"),
    ],
)
def test_any_other_content_is_another_tree(world: World, change: Callable[[Path], object]) -> None:
    folder, known = _filled(world), StoredContents()
    start = take_snapshot(world.shadow, folder, stored_contents=known)
    change(folder)
    now = take_snapshot(world.shadow, folder, stored_contents=known)
    assert now == take_snapshot(world.shadow, folder)
    assert now.tree != start.tree
    found = audit(world.shadow, folder, start, role=Role.SPEC, scope=SCOPE, base_tree=None, stored_contents=known)
    assert found.denials
    assert found == audit(world.shadow, folder, start, role=Role.SPEC, scope=SCOPE, base_tree=None)


def test_what_git_read_otherwise_than_we_did_is_not_remembered(world: World) -> None:
    known = StoredContents()
    content = read(str(world.folder), {"README.md": FILE}, {}, "sha1")
    blob = world.shadow.add_blob(b"a shop\n")
    tree = world.shadow.compose(world.shadow.empty_tree(), {"README.md": TreeEntry(FILE, blob)})
    known.keep(content, {"README.md": TreeEntry(FILE, world.shadow.add_blob(b"written meanwhile\n"))}, tree)
    known.keep(content, {}, tree)
    assert known.tree(content) is None
    known.keep(content, {"README.md": TreeEntry(FILE, blob)}, tree)
    assert known.tree(content) == tree


def test_dispatches_in_one_worktree_find_what_those_before_them_left(world: World) -> None:
    known = StoredContents()
    first = world.run(builder(writes("src/new.py")), stored_contents=known)
    second = world.run(builder(), dispatch_id="d-2", stored_contents=known)
    third = world.run(builder(writes("src/new.py", "x = 2\n")), dispatch_id="d-3", stored_contents=known)
    assert first.start_tree != first.tree == second.start_tree == second.tree == third.start_tree != third.tree
    assert [[each.path for each in done.changed] for done in (first, second, third)] == [
        ["src/new.py"],
        [],
        ["src/new.py"],
    ]
