"""One git process: bounded in time and output, fed and read at once, and never left behind."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fairwitness.git.call import ConfigGuard, GitDir, GitFailed
from git.person import Person


@pytest.fixture
def git(person: Person) -> GitDir:
    person.commit(a="1\n")
    return GitDir(person.folder / ".git")


def test_much_goes_in_and_comes_out_at_once(git: GitDir) -> None:
    content = os.urandom(3 << 20)
    blob = git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
    assert git.run("cat-file", "blob", blob) == content
    asked = f"{blob}\n".encode() * 20_000  # neither side waits for the other to finish
    assert len(git.run("cat-file", "--batch-check", stdin=asked).splitlines()) == 20_000


def test_more_than_the_limit_is_refused(git: GitDir) -> None:
    blob = git.run("hash-object", "-w", "--stdin", stdin=b"x" * 1000).decode().strip()
    assert len(git.run("cat-file", "blob", blob, limit=1000)) == 1000
    with pytest.raises(GitFailed, match="git cat-file printed more than the 999 bytes allowed"):
        git.run("cat-file", "blob", blob, limit=999)


def test_a_call_that_hangs_is_ended_with_everything_it_started(git: GitDir, tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    began = time.monotonic()
    sleeper = replace(git, is_ours=True).given(settings={"alias.hang": f"!(sleep 2; touch '{alive}') & sleep 60"})
    with pytest.raises(GitFailed, match=r"git hang did not end within 0\.3 s"):
        sleeper.run("hang", timeout_s=0.3)
    assert time.monotonic() - began < 2
    time.sleep(2)
    assert not alive.exists()


def test_a_failure_is_one_line_that_a_terminal_can_show(git: GitDir) -> None:
    with pytest.raises(GitFailed) as caught:
        git.run("cat-file", "blob", "\x1b[31mred")
    assert caught.value.what.isprintable()
    assert "git fsck" in caught.value.next_step
    assert git.ask("cat-file", "-e", "HEAD").code == 0
    assert git.ask("cat-file", "-e", "nothing").words.startswith("fatal:")


def test_a_folder_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(GitFailed, match="cannot be entered"):
        GitDir(tmp_path / "gone").run("rev-parse")


def test_nothing_of_our_own_environment_reaches_git(git: GitDir, person: Person, tmp_path: Path) -> None:
    program, mark = person.trap()
    (person.home / ".gitconfig").write_text("[core]\n\tabbrev = 12\n")
    os.environ |= {
        "GIT_DIR": str(tmp_path), "GIT_EXTERNAL_DIFF": str(program), "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.abbrev", "GIT_CONFIG_VALUE_0": "14", "GIT_TRACE": str(tmp_path / "trace"),
    }  # fmt: skip
    assert len(git.run("rev-parse", "--short", "HEAD").strip()) == 7
    assert not mark.exists()
    assert not (tmp_path / "trace").exists()


def test_a_guard_sees_content_existence_and_kind_and_never_waits(tmp_path: Path) -> None:
    file, missing = tmp_path / "config", tmp_path / "missing"
    file.write_text("a")
    guard = ConfigGuard.over((file, missing))
    guard.check()
    file.touch()
    guard.check()
    for spoil, mend in (
        (lambda: file.write_text("b"), lambda: file.write_text("a")),
        (lambda: missing.write_text(""), missing.unlink),
        (lambda: missing.mkdir(), missing.rmdir),
        (lambda: os.mkfifo(missing), missing.unlink),
        (file.unlink, lambda: file.write_text("a")),
    ):
        spoil()
        with pytest.raises(GitFailed, match="configuration changed while we worked"):
            guard.check()
        mend()
        guard.check()
