"""An attempt's folder is replaced by a link to the person's files: nothing of them is committed, moved or removed."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import FairWitnessError, UnsafePath
from fairwitness.git.folders import open_up, remove
from fairwitness.git.identity import FALLBACK
from fairwitness.git.worktrees import Worktree, Worktrees
from git.person import Person
from git.test_worktrees import RUN, worktrees_of
from support.swapping import look, moments, swapping

pytestmark = pytest.mark.req("X3")

Act = Callable[[Worktrees, Worktree], object]
ACTS: dict[str, Act] = {
    "commit": lambda all_, one: all_.commit_all(one, "work", FALLBACK),
    "release": lambda all_, one: all_.release(one, "HEAD", FALLBACK),
    "remove": lambda all_, one: all_.remove(one, "HEAD", FALLBACK),
}
SECRET = "a secret of the person\n"


def outside_of(place: Path) -> Path:
    """A folder of the person with the same files as the attempt, so that they would count as its own, and a secret."""
    folder = place / "outside"
    (folder / "d").mkdir(parents=True)
    for name, content in (("a", "1\n"), ("d/b", "2\n"), ("secret", SECRET), ("d/secret", SECRET)):
        (folder / name).write_text(content)
    (folder / "d").chmod(0o500)
    return folder


def holds_secret(person: Person) -> bool:
    """Whether the secret was stored in the person's repository or in ours."""
    named = person.git_bytes("hash-object", str(person.home.parent / "outside" / "secret")).decode().strip()
    stores = [person.folder / ".git", person.folder / ".fairwitness" / "shadow"]
    return any((store / "objects" / named[:2] / named[2:]).exists() for store in stores)


@pytest.mark.parametrize("act", ACTS)
def test_a_swapped_folder_is_never_taken_for_the_attempt(person: Person, tmp_path: Path, act: str) -> None:
    person.commit(a="1\n", **{"d/b": "2\n"})
    outside = outside_of(tmp_path)
    before = look(outside)
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    with swapping(worktree.folder, outside, -1) as swap:
        swap.now()
        if act == "commit":
            with pytest.raises(UnsafePath, match="a part of it is a link"):
                ACTS[act](worktrees, worktree)
        else:
            ACTS[act](worktrees, worktree)
            assert not worktree.folder.is_symlink(), "the link is removed, and what it leads to is not"
    assert look(outside) == before
    assert not holds_secret(person)


@pytest.mark.parametrize("act", ACTS)
def test_a_swap_at_any_moment_touches_nothing_outside(person: Person, tmp_path: Path, act: str) -> None:
    person.commit(a="1\n", **{"d/b": "2\n"})
    outside = outside_of(tmp_path)
    before = look(outside)
    worktrees = worktrees_of(person)

    def tried(number: int, at: int) -> int:
        worktree = worktrees.create(RUN, "task-01", number, "HEAD")
        (worktree.folder / "new").write_text("made by an agent\n")
        with swapping(worktree.folder, outside, at) as swap, contextlib.suppress(FairWitnessError, OSError):
            ACTS[act](worktrees, worktree)
        return swap.seen

    tried(1, -1)
    count = tried(2, -1)
    for number, at in enumerate(moments(count, 25), start=3):
        tried(number, at)
        assert look(outside) == before, at
        assert not holds_secret(person), at


def test_removing_and_opening_up_do_not_follow_a_link(tmp_path: Path) -> None:
    outside = outside_of(tmp_path)
    before = look(outside)
    for number in range(2):
        place = tmp_path / f"folder-{number}"
        (place / "deep" / "er").mkdir(parents=True)
        count = 0
        with swapping(place, outside, -1) as swap:
            remove(place)
            count = swap.seen
        for at in range(count):
            (place / "deep" / "er").mkdir(parents=True)
            (place / "deep").chmod(0o000)
            with swapping(place, outside, at) as swap, contextlib.suppress(OSError):
                (remove, open_up)[number](place)
            assert look(outside) == before, at
            remove(place)
            remove(swap.original)


def test_git_starts_in_the_folder_that_was_opened(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    git = worktrees_of(person).shadow.git
    assert b"a" in git.given(work_tree=person.folder).run("ls-files", "--others").split()
    (tmp_path / "link").symlink_to(person.folder)
    with pytest.raises(UnsafePath, match="a part of it is a link"):
        git.given(work_tree=tmp_path / "link").run("ls-files", "--others")
