"""The worktree's folder is replaced by a link: snapshot, audit and restore neither read nor write behind it."""

import hashlib
from pathlib import Path

import pytest

from fairwitness.contracts.common.tools import Role
from fairwitness.errors import FairWitnessError, UnsafePath
from fairwitness.git.call import GitFailed
from fairwitness.runs.dispatch.audit import audit
from fairwitness.runs.dispatch.worktree_snapshot import restore, take_snapshot
from runs.dispatch.world import SCOPE, World
from support.swapping import look, moments, swapping

pytestmark = pytest.mark.req("X3")

SECRET = b"a secret of the person\n"


def outside_of(place: Path) -> Path:
    """A folder of the person: a file with the name of the worktree's, one that the agent made too, and a secret."""
    folder = place / "outside"
    (folder / "src").mkdir(parents=True)
    for name in ("src/shop.py", "src/made.py", "README.md", "secret"):
        (folder / name).write_bytes(SECRET)
    (folder / "src").chmod(0o500)
    return folder


def holds_secret(world: World) -> bool:
    """Whether the secret is among the objects of the shadow repository."""
    named = hashlib.sha1(b"blob %d\0" % len(SECRET) + SECRET, usedforsecurity=False).hexdigest()
    return world.shadow.git.ask("cat-file", "-e", named).code == 0


def test_a_link_in_its_place_is_not_read_and_voids_the_dispatch(world: World, tmp_path: Path) -> None:
    outside = outside_of(tmp_path)
    before = look(outside)
    start = take_snapshot(world.shadow, world.folder)
    with swapping(world.folder, outside, -1) as swap:
        swap.now()
        with pytest.raises(UnsafePath, match="a part of it is a link"):
            take_snapshot(world.shadow, world.folder)
        found = audit(world.shadow, world.folder, start, role=Role.IMPLEMENTER, scope=SCOPE, base_tree=world.base_tree)
        assert (found.tree, found.changed) == (None, ())
        (denial,) = found.denials
        assert "cannot be compared with its start" in denial.reason
        with pytest.raises((UnsafePath, GitFailed)):
            restore(world.shadow, world.folder, start)
    assert look(outside) == before
    assert not holds_secret(world)


@pytest.mark.parametrize("work", ["take", "restore"])
def test_a_swap_at_any_moment_changes_and_stores_nothing_outside(world: World, tmp_path: Path, work: str) -> None:
    outside = outside_of(tmp_path)
    before = look(outside)
    start = take_snapshot(world.shadow, world.folder)

    def tried(at: int) -> tuple[int, str | None]:
        (world.folder / "src").mkdir(exist_ok=True)  # a restore that was stopped may have removed it
        (world.folder / "src" / "made.py").write_text("made by an agent\n")
        (world.folder / "src" / "shop.py").write_text("price = 3\n")
        left = None
        with swapping(world.folder, outside, at) as swap:
            try:
                if work == "take":
                    left = take_snapshot(world.shadow, world.folder).tree
                else:
                    restore(world.shadow, world.folder, start)
            except FairWitnessError:
                pass
        if swap.is_done:
            world.folder.unlink()
            swap.original.rename(world.folder)
        return swap.seen, left

    _, expected = tried(-1)
    count, _ = tried(-1)
    for at in moments(count, 30):
        _, left = tried(at)
        assert look(outside) == before, at
        assert left in (None, expected), at
        assert not holds_secret(world), at
    restore(world.shadow, world.folder, start)
