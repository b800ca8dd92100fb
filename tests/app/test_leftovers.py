"""What killed processes left is removed at the next start, and nothing that a living process uses."""

import json
import os
import subprocess
import sys
import zlib
from contextlib import closing
from pathlib import Path

import pytest

from fairwitness.app.leftovers import remove_leftovers
from fairwitness.app.state import ledger_in, state_of
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.disk_watch import ReservedFile
from fairwitness.store.artifacts import Store
from git.person import Person

pytestmark = pytest.mark.req("P16")

OLD = 1_000_000_000
LEFT = (
    "git/objects/ab/tmp_obj_kAzzQ1",
    "git/objects/pack/tmp_pack_x1",
    "git/refs/heads/x.lock",
    "outputs/.abc.0123456789abcdef.tmp",
)
"""Files of a state folder that only a killed process leaves."""
THEIRS = ("objects/ab/tmp_obj_kAzzQ1", "refs/heads/fairwitness/run/target.lock")
NOT_OURS = ("index.lock", "HEAD.lock", "refs/heads/main.lock")
"""Locks of the user's own repository, which the user's git may hold."""


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """A repository with a state folder, as a run leaves it."""
    person = Person.in_folder(tmp_path)
    person.write("a.txt")
    person.commit()
    opened = person.open()
    state = state_of(opened)
    Shadow.open(state / "git", opened)
    Store(state).create("outputs/kept", b"an output\n")
    ledger_in(state, opened).close()
    return opened


def plant(folder: Path, *names: str) -> list[Path]:
    """Old files under these names."""
    made = [folder / name for name in names]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
        os.utime(path, (OLD, OLD))
    return made


def test_temporaries_of_dead_processes_go_and_everything_else_stays(repository: Repository) -> None:
    state = state_of(repository)
    left = [*plant(state, *LEFT), *plant(repository.common_dir, *THEIRS)]
    kept = [*plant(repository.common_dir, *NOT_OURS), state / "outputs/kept"]
    remove_leftovers(repository)
    assert [path for path in left if path.exists()] == []
    assert [path for path in kept if not path.exists()] == []


def test_nothing_of_git_goes_while_a_git_process_works_there(repository: Repository) -> None:
    state = state_of(repository)
    left = [*plant(state, *LEFT[:3]), *plant(repository.common_dir, *THEIRS)]
    with subprocess.Popen(
        ["git", f"--git-dir={state / 'git'}", "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as alive:
        assert alive.stdin is not None
        remove_leftovers(repository)
        assert all(path.exists() for path in left)
        alive.stdin.close()
    remove_leftovers(repository)
    assert not any(path.exists() for path in left)


WRITER = """
import os, sys
from pathlib import Path
from fairwitness.kit import files
from fairwitness.kit.safe_open import OpenFolder
with OpenFolder("write", Path(sys.argv[1]), "outputs/slow", create=True) as place:
    with files._temporary(place, b"whole") as name:
        os.utime(name, (1_000_000_000, 1_000_000_000), dir_fd=place.folder)
        print(name, flush=True)
        sys.stdin.read()
"""


def test_a_temporary_file_of_a_living_writer_stays_however_old_it_is(repository: Repository) -> None:
    state = state_of(repository)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(state)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        path = state / "outputs" / writer.stdout.readline().strip()
        remove_leftovers(repository)
        assert path.exists()
        writer.kill()
        writer.wait()
    remove_leftovers(repository)
    assert not path.exists()


def test_slots_go_unless_they_are_held_or_hold_an_answer_that_is_not_recorded(repository: Repository) -> None:
    state = state_of(repository)
    paid = ReservedFile.open(state, "answers/paid", size=1 << 20)
    held = ReservedFile.open(state, "answers/held", size=1 << 20)
    assert paid is not None
    assert held is not None
    paid.add(zlib.compress(json.dumps({"id": ["run", "d-1"]}).encode()))
    paid.close()
    (state / "answers" / "empty").write_bytes(bytes(1 << 16))
    remove_leftovers(repository)
    assert sorted(path.name for path in (state / "answers").iterdir()) == ["held", "paid"]
    held.close()
    with closing(ledger_in(state, repository)) as ledger:
        assert ledger.observation("run", "dispatch:d-1:ended") is None
