"""Git is called so that a hostile repository runs nothing, and keeps heads where the ledger is not."""

import subprocess
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.git.call import GitFailed
from fairwitness.git.ledger_heads import KeptHead, keep_head, kept_heads
from fairwitness.git.repository import git_around


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@pytest.mark.req("X2")
def test_a_head_is_kept_and_read_back_for_each_run(repository: Path) -> None:
    keep_head(repository, "2026-02-26T14:30:00Z", KeptHead(3, "sha256:abc"))
    keep_head(repository, "run-2", KeptHead(1, "sha256:def"))
    keep_head(repository, "run-2", KeptHead(2, "sha256:fff"))
    assert kept_heads(repository) == {
        "2026-02-26T14-30-00Z": KeptHead(3, "sha256:abc"),
        "run-2": KeptHead(2, "sha256:fff"),
    }


@pytest.mark.req("X2")
def test_ledgers_in_other_folders_and_worktrees_of_a_repository_do_not_miss_each_others_runs(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    inner, other = repository / "demo", repository / "demo" / "in it"
    other.mkdir(parents=True)
    linked = tmp_path_factory.mktemp("worktree") / "linked"
    identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "1"], cwd=repository, check=True)
    subprocess.run(["git", "worktree", "add", "-q", "-b", "x", str(linked)], cwd=repository, check=True)
    folders = [repository, inner, other, linked]
    for number, folder in enumerate(folders):
        assert kept_heads(folder) == {}
        keep_head(folder, f"run-{number}", KeptHead(number, "sha256:abc"))
    assert [kept_heads(folder) for folder in folders] == [
        {f"run-{number}": KeptHead(number, "sha256:abc")} for number in range(len(folders))
    ]
    moved = repository.parent / "moved"
    repository.rename(moved)
    assert kept_heads(moved / "demo") == {"run-1": KeptHead(1, "sha256:abc")}, "a place is known wherever the whole is"


def test_outside_a_repository_there_are_no_heads_and_none_can_be_kept(tmp_path: Path) -> None:
    assert kept_heads(tmp_path) == {}
    with pytest.raises(UsageError, match="not in a git repository"):
        keep_head(tmp_path, "run-1", KeptHead(1, "sha256:abc"))


@pytest.mark.req("X2")
def test_refs_that_cannot_be_read_or_hold_no_head_are_an_error_and_never_no_heads(repository: Path) -> None:
    keep_head(repository, "run-1", KeptHead(3, "sha256:abc"))
    git = git_around(repository)
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"three sha256:abc\n").decode().strip()
    git.run("update-ref", "refs/fairwitness/heads/run-1", blob)
    with pytest.raises(GitFailed, match="does not hold the head of a ledger"):
        kept_heads(repository)
    (repository / ".git" / "HEAD").unlink()
    with pytest.raises(GitFailed, match="not a git repository"):
        kept_heads(repository)


def test_a_run_that_cannot_name_a_ref_is_refused(repository: Path) -> None:
    with pytest.raises(UsageError):
        keep_head(repository, "../../heads/main", KeptHead(1, "sha256:abc"))


def test_hooks_and_programs_planted_in_a_repository_are_not_run(repository: Path) -> None:
    trap = repository / "trap.sh"
    sprung = repository / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\n")
    trap.chmod(0o755)
    hook = repository / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(trap.read_text())
    hook.chmod(0o755)
    config = repository / ".git" / "config"
    config.write_text(
        config.read_text()
        + f"[core]\n\tfsmonitor = {trap}\n\tpager = {trap}\n\tsshCommand = {trap}\n[diff]\n\texternal = {trap}\n"
    )
    (repository / "a").write_text("x")
    keep_head(repository, "run-1", KeptHead(1, "sha256:abc"))
    assert kept_heads(repository) == {"run-1": KeptHead(1, "sha256:abc")}
    assert not sprung.exists()
    subprocess.run(["git", "update-ref", "refs/heads/x", "HEAD"], cwd=repository, check=False, capture_output=True)
    subprocess.run(["git", "status"], cwd=repository, check=False, capture_output=True)
    assert sprung.exists(), "the trap works where git is called plainly"


def test_a_failure_says_what_git_said(repository: Path) -> None:
    with pytest.raises(GitFailed, match=r"git cat-file failed in .*Not a valid object name nothing"):
        git_around(repository).run("cat-file", "blob", "nothing")
    assert issubclass(GitFailed, NotReady)
