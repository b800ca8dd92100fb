"""A state folder from elsewhere: a clone that attacks, a copy, a move, a new home; and `fairwitness adopt`."""

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from cli.runner import fairwitness
from cli.test_verify import GIT, HONEST, commit, git, shop, verify
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.kit.own_folder import Standing, look
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from git.test_planted_files import ATTRIBUTES, RUNS, hooks_in
from support.state import own_state

__all__ = ["shop"]
pytestmark = pytest.mark.req("X5")

NOT_USED = "so it is not used; if you trust it, run `fairwitness adopt`"


def trap(folder: Path) -> tuple[Path, Path]:
    """A program that leaves a mark and passes its input on, and the mark."""
    program, mark = folder / "trap.sh", folder / "sprung"
    program.write_text(f"#!/bin/sh\necho sprung >> '{mark}'\nexec cat\n")
    program.chmod(0o755)
    return program, mark


def poisoned(shop: Path, program: Path, mark: Path) -> None:
    """Commits a state folder as an attacker would: a git directory that leads to a configuration with filters."""
    evil = shop / "tools" / "evil"
    (evil / "info").mkdir(parents=True)
    config = RUNS.format(trap=program, hooks=evil / "hooks", attributes=evil / "info" / "attributes", mark=mark)
    (evil / "config").write_text("[core]\n\tbare = true\n" + config)
    (evil / "info" / "attributes").write_text(ATTRIBUTES)
    hooks_in(evil / "hooks", program)
    state = shop / ".fairwitness"
    (state / "git" / "objects" / "info").mkdir(parents=True)
    (state / "git" / "commondir").write_text("../../tools/evil\n")
    (state / "git" / "config.worktree").write_text(config)
    (state / "git" / "objects" / "info" / "alternates").write_text("../../../tools/evil/objects\n")
    (state / "identity").write_text("0123456789abcdef" * 2 + "\n")
    (state / "env" / "x").mkdir(parents=True)
    (state / "env" / "x" / "complete.json").write_text("{}")
    (state / "evidence.db").write_bytes(b"SQLite format 3\0 but not really")
    (shop / ".gitattributes").write_text("*.py filter=f diff=d\n")
    git(shop, "add", "-Af")
    git(shop, "commit", "-qm", "poison")


@pytest.mark.parametrize(
    "what",
    [
        pytest.param(("--head", "HEAD"), marks=pytest.mark.width("sample")),
        *(pytest.param((option,), marks=pytest.mark.width("full")) for option in ("--worktree", "--staged")),
    ],
)
def test_a_clone_with_a_state_folder_runs_nothing_outside_the_sandbox(
    shop: Path, tmp_path: Path, what: tuple[str, ...]
) -> None:
    """The blocker: `git/commondir`, a smudge filter and `.gitattributes`, all of it committed."""
    program, mark = trap(tmp_path)
    poisoned(shop, program, mark)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(shop), str(clone))
    commit(clone, HONEST) if what[0] == "--head" else None
    for name, content in HONEST.items():
        (clone / name).write_text(content)
    git(clone, "add", "-A")
    planted = {path: path.read_bytes() for path in (clone / ".fairwitness").rglob("*") if path.is_file()}
    mark.unlink(missing_ok=True)
    done = verify(clone, *what)
    assert not mark.exists(), done.stdout + done.stderr
    assert (done.returncode, done.stderr.count(NOT_USED)) == (0, 1), done.stdout + done.stderr
    assert "HOLDS" in done.stdout
    assert {path: path.read_bytes() for path in (clone / ".fairwitness").rglob("*") if path.is_file()} == planted
    assert git(clone, "status", "--porcelain", "--", ".fairwitness") == ""
    if what[0] != "--head":
        return
    status = fairwitness("ledger", "verify", cwd=clone, **GIT)
    assert (status.returncode, status.stderr.count(NOT_USED)) == (0, 1), status.stderr
    assert "1 run checked, all as written" in status.stderr, "the evidence is kept with the user"
    refused = fairwitness("adopt", "--yes", cwd=clone, **GIT)
    assert refused.returncode == 3
    assert "git tracks .fairwitness/" in refused.stderr
    assert not mark.exists()


def test_a_commit_that_writes_into_a_folder_of_ours_makes_it_a_doubtful_one(shop: Path, tmp_path: Path) -> None:
    state = own_state(shop)
    (state / "env").mkdir()
    git(shop, "checkout", "-q", "-b", "attack")
    (state / "env" / "planted").write_text("x")
    git(shop, "add", "-f", ".fairwitness/env/planted")
    git(shop, "commit", "-qm", "attack")
    done = verify(shop, "--head", "HEAD")
    assert done.returncode == 3, done.stdout
    assert "holds files that git tracks (.fairwitness/env/planted), so nothing in it is run or reused" in done.stderr
    assert "next:  git rm -r --cached .fairwitness, then `fairwitness adopt`" in done.stderr
    git(shop, "rm", "-r", "-q", "--cached", ".fairwitness")
    assert look(state).standing is Standing.COPIED, "it stays doubtful after git has forgotten the file"
    assert verify(shop, "--head", "HEAD").returncode == 3
    done = fairwitness("adopt", "--json", cwd=shop)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "folder": str(state),
        "was": "copied",
        "changed": True,
        "removed": ["env"],
        "kept": [".gitignore", "identity"],
    }
    assert not (state / "env").exists()
    assert look(state).standing is Standing.OURS


@pytest.mark.width("sweep")
def test_a_copy_is_read_and_checked_and_nothing_in_it_is_reused_until_it_is_adopted(shop: Path, tmp_path: Path) -> None:
    commit(shop, HONEST)
    assert verify(shop, "--head", "HEAD").returncode == 0
    copy = tmp_path / "copy"
    shutil.copytree(shop, copy, symlinks=True)
    read = fairwitness("ledger", "verify", cwd=copy)
    assert (read.returncode, "1 run checked, all as written" in read.stderr) == (0, True), read.stderr
    shown = fairwitness("evidence", "show", "1", cwd=copy)
    assert shown.returncode == 0, shown.stderr
    refused = verify(copy, "--head", "HEAD")
    assert refused.returncode == 3, refused.stdout
    assert f"was copied or moved from {shop}/.fairwitness, so nothing in it is run or reused" in refused.stderr
    assert "next:  fairwitness adopt" in refused.stderr
    adopted = fairwitness("adopt", cwd=copy)
    assert adopted.returncode == 0, adopted.stderr
    assert "is yours now" in adopted.stdout
    assert not (copy / ".fairwitness" / "git").exists(), "what is run or reused is made again"
    assert not (copy / ".fairwitness" / "env").exists()
    again = verify(copy, "--head", "HEAD", "--json")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [check["cached"] for check in json.loads(again.stdout)["checks"] if check["cached"]] == []
    assert "2 runs checked, all as written" in fairwitness("ledger", "verify", cwd=copy).stderr


def test_a_tampered_copy_is_untrusted(shop: Path, tmp_path: Path) -> None:
    def begin(record: Record) -> None:
        record.event(Workflow.FORGE, "run.created", {"request": "a"}, timestamp="2026-02-26T14:30:00Z")

    with contextlib.closing(Ledger.open_file(own_state(shop) / "evidence.db")) as ledger:
        ledger.record("run-1", begin)
    copy = tmp_path / "copy"
    shutil.copytree(shop, copy, symlinks=True)
    assert fairwitness("ledger", "verify", cwd=copy).returncode == 0
    with contextlib.closing(sqlite3.connect(copy / ".fairwitness" / "evidence.db")) as connection, connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("UPDATE events SET data = replace(data, 'a', 'b')")
    done = fairwitness("ledger", "verify", cwd=copy)
    assert (done.returncode, "TAMPERED" in done.stdout) == (6, True), done.stderr


def test_with_a_new_home_the_folder_is_named_and_adopted_only_with_consent(shop: Path, tmp_path: Path) -> None:
    state = own_state(shop)
    (state / "worktrees" / "run--task--attempt-1").mkdir(parents=True)
    home = {"XDG_STATE_HOME": str(tmp_path / "new home")}
    listed = fairwitness("status", cwd=shop, **home)
    assert (listed.returncode, listed.stderr.count(NOT_USED)) == (0, 1)
    assert f"fairwitness: {state} was not made by you on this machine, {NOT_USED}" in listed.stderr
    asked = fairwitness("adopt", cwd=shop, **home)
    assert asked.returncode == 2
    assert "removed   worktrees" in asked.stderr
    assert "add --yes to adopt the folder" in asked.stderr
    assert (state / "worktrees").exists(), "nothing was changed"
    assert fairwitness("adopt", "--yes", cwd=shop, **home).returncode == 0
    assert not (state / "worktrees").exists()
    assert NOT_USED not in fairwitness("status", cwd=shop, **home).stderr
    again = fairwitness("adopt", "--json", cwd=shop, **home)
    assert json.loads(again.stdout)["changed"] is False


def test_a_folder_with_a_link_or_a_file_of_another_user_is_not_adopted(shop: Path, tmp_path: Path) -> None:
    state = own_state(shop)
    (state / "outputs").mkdir()
    (state / "outputs" / "x").symlink_to("/etc/passwd")
    home = {"XDG_STATE_HOME": str(tmp_path / "new home")}
    done = fairwitness("adopt", "--yes", cwd=shop, **home)
    assert done.returncode == 3
    assert f"{state}/outputs/x is a link or no plain file, so .fairwitness cannot be adopted" in done.stderr
    shutil.rmtree(state)
    state.symlink_to(tmp_path)
    done = fairwitness("adopt", "--yes", cwd=shop)
    assert (done.returncode, "is a link, so it cannot be adopted" in done.stderr) == (3, True)
    state.unlink()
    assert fairwitness("adopt", "--yes", cwd=shop).returncode == 2


def test_each_linked_worktree_has_a_folder_of_its_own(shop: Path, tmp_path: Path) -> None:
    git(shop, "worktree", "add", "-q", str(tmp_path / "linked"), "-b", "linked")
    for place in (shop, tmp_path / "linked"):
        doctor = fairwitness("doctor", "--json", cwd=place, **GIT)
        found = next(each for each in json.loads(doctor.stdout) if each["what"] == "repository")
        assert f"state in {place}/.fairwitness," in found["found"]
        assert look(place / ".fairwitness").standing is Standing.OURS
    assert look(shop / ".fairwitness").id != look(tmp_path / "linked" / ".fairwitness").id
    assert git(shop, "status", "--porcelain") == ""
