"""A folder is this user's only if this user made it on this machine; every other origin is told apart."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fairwitness.errors import NotReady
from fairwitness.kit.own_folder import IDENTITY, KnownFolder, Standing, claim, doubt, identity_of, look, vouch
from fairwitness.kit.user_state import remembered, user_state_path

pytestmark = pytest.mark.req("X5")


def test_a_folder_that_we_made_is_ours_and_private_and_ignored_by_git(tmp_path: Path) -> None:
    assert look(tmp_path / "state").standing is Standing.NEW
    assert not (tmp_path / "state").exists(), "looking creates nothing"
    made = claim(tmp_path / "state")
    assert made == look(tmp_path / "state") == claim(tmp_path / "state")
    assert (made.standing, made.id) == (Standing.OURS, identity_of(made.path))
    assert made.path.stat().st_mode & 0o777 == 0o700
    assert (made.path / ".gitignore").read_text().endswith("\n*\n")


def test_a_folder_with_an_unknown_id_or_none_is_foreign(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "evidence.db").write_text("x")
    (tmp_path / "unknown").mkdir()
    (tmp_path / "unknown" / IDENTITY).write_text("0" * 32 + "\n")
    assert look(tmp_path / "none") == KnownFolder(tmp_path / "none", Standing.FOREIGN, "has no identity")
    assert look(tmp_path / "unknown").standing is Standing.FOREIGN
    for folder in ("none", "unknown"):
        before = sorted(path.name for path in (tmp_path / folder).iterdir())
        assert claim(tmp_path / folder).standing is Standing.FOREIGN
        assert sorted(path.name for path in (tmp_path / folder).iterdir()) == before, "and nothing in it is touched"


@pytest.mark.parametrize("content", ["", "x", "0" * 31, "0" * 33, "g" * 32, "0" * 5000, "\xff" * 32])
def test_an_identity_that_is_none_is_foreign(tmp_path: Path, content: str) -> None:
    claim(tmp_path / "state")
    (tmp_path / "state" / IDENTITY).write_text(content, encoding="latin-1")
    assert look(tmp_path / "state").standing is Standing.FOREIGN


def test_a_link_a_file_or_an_identity_behind_a_link_is_foreign(tmp_path: Path) -> None:
    made = claim(tmp_path / "real")
    (tmp_path / "link").symlink_to(made.path)
    (tmp_path / "file").write_text("x")
    assert look(tmp_path / "link").why == "is a link"
    assert look(tmp_path / "file").why == "is not a folder"
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / IDENTITY).symlink_to(made.path / IDENTITY)
    assert look(tmp_path / "other").standing is Standing.FOREIGN


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_folder_of_another_user_is_foreign(tmp_path: Path) -> None:
    made = claim(tmp_path / "state")
    os.chown(made.path, 12345, 12345)
    assert look(made.path).why == "belongs to another user"


def test_a_copy_a_move_and_a_replacement_are_known_and_not_ours(tmp_path: Path) -> None:
    made = claim(tmp_path / "a" / "state")
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    copy = look(tmp_path / "b" / "state")
    assert (copy.standing, copy.why) == (Standing.COPIED, f"was copied or moved from {made.path}")
    assert look(made.path).standing is Standing.OURS, "the original is not changed by that"
    (tmp_path / "a").rename(tmp_path / "c")
    assert look(tmp_path / "c" / "state").standing is Standing.COPIED
    shutil.copytree(tmp_path / "c", tmp_path / "a")
    assert look(made.path).why == "was replaced by a copy"
    shutil.rmtree(tmp_path / "a")
    (tmp_path / "c").rename(tmp_path / "a")
    assert look(made.path).standing is Standing.OURS, "moved back, it is the same folder at the same place"


def test_a_folder_that_others_could_write_is_not_reused(tmp_path: Path) -> None:
    made = claim(tmp_path / "state")
    made.path.chmod(0o770)
    assert look(made.path).standing is Standing.COPIED
    made.path.chmod(0o700)
    assert doubt(look(made.path), "was written by git").standing is Standing.COPIED
    assert look(made.path).why == "was written by git", "the doubt stays"
    assert vouch(made.path).standing is Standing.OURS


def test_a_folder_that_is_vouched_for_is_ours_under_a_new_id(tmp_path: Path) -> None:
    made = claim(tmp_path / "a")
    shutil.copytree(made.path, tmp_path / "b")
    adopted = vouch(tmp_path / "b")
    assert adopted.standing is Standing.OURS
    assert adopted.id != made.id
    assert look(made.path) == made


def test_another_user_state_directory_knows_none_of_it(tmp_path: Path) -> None:
    made = claim(tmp_path / "state")
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "new home")
    assert look(made.path).why == "was not made by you on this machine"


def test_what_lies_in_the_user_state_directory_is_the_users(tmp_path: Path) -> None:
    os.environ["XDG_STATE_HOME"] = str(tmp_path / "home")
    place = user_state_path() / "repositories" / "x"
    place.mkdir(parents=True)
    (place / "evidence.db").write_text("from an earlier version")
    user_state_path().chmod(0o700)
    assert claim(place).standing is Standing.OURS


def test_a_crash_at_any_moment_leaves_a_folder_that_can_be_claimed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from fairwitness.kit.own_folder import claim; claim(Path(sys.argv[1]))"
    )
    for number in itertools.count(1):
        place = tmp_path / str(number)
        killed = {**os.environ, "FAIRWITNESS_KILL_AT": f"#{number}"}
        done = subprocess.run([sys.executable, "-c", program, str(place)], env=killed, check=False)
        assert claim(place).standing is Standing.OURS, number
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert number > 10, "there are points to be killed at"


def test_processes_that_claim_a_folder_at_once_agree(tmp_path: Path) -> None:
    for number in range(20):
        place = tmp_path / str(number)
        begin = threading.Barrier(4)
        seen: list[KnownFolder] = []

        def work(place: Path = place, begin: threading.Barrier = begin, seen: list[KnownFolder] = seen) -> None:
            begin.wait()
            seen.append(claim(place))

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {(each.standing, each.id) for each in seen} == {(Standing.OURS, identity_of(place))}
    assert remembered("state_folders.jsonl")


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotReady, match="cannot be written"):
        claim(tmp_path / "file" / "state")
