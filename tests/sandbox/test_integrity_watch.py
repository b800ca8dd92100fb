"""What must be after a command as it was before: the worktree's repositories, and whatever is guarded."""

import os
import shutil
from pathlib import Path

import pytest

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import End, Violation
from fairwitness.sandbox import dotgit, integrity_watch
from fairwitness.sandbox.checked_command import check_command
from fairwitness.sandbox.integrity_watch import IntegrityWatch
from fairwitness.sandbox.scripted import Reply
from sandbox.kit import REAL, Bench, expect, said

real = pytest.mark.parametrize("bench", REAL, indirect=True)


def _git_changes(tree: Path, before: dotgit.DotGit) -> list[str]:
    found = dotgit.changes(str(tree), before, dotgit.look(str(tree)))
    assert {(one.kind, one.source, one.blocked) for one in found} <= {("git-dir", "guard", False)}
    return [one.path for one in found]


@pytest.mark.parametrize("change", ["content", "replaced", "removed", "made a folder", "a link", "a pipe"])
def test_a_changed_git_pointer_is_seen(tmp_path: Path, change: str) -> None:
    pointer = tmp_path / ".git"
    pointer.write_text("gitdir: /a\n")
    before = dotgit.look(str(tmp_path))
    assert _git_changes(tmp_path, before) == []
    match change:
        case "content":
            pointer.write_text("gitdir: /b\n")
        case "replaced":
            (tmp_path / "copy").write_text("gitdir: /a\n")
            (tmp_path / "copy").rename(pointer)
        case _:
            pointer.unlink()
            if change == "made a folder":
                pointer.mkdir()
            elif change == "a link":
                pointer.symlink_to("elsewhere")
            elif change == "a pipe":
                os.mkfifo(pointer)
    assert _git_changes(tmp_path, before) == [str(pointer)]


@pytest.mark.parametrize("where", [".git", "vendor/.git", "a/b/.git"])
@pytest.mark.parametrize("change", ["hook made", "hook edited", "config edited", "HEAD replaced", "module's config"])
def test_a_change_inside_a_repository_is_seen_wherever_it_is(tmp_path: Path, where: str, change: str) -> None:
    git = tmp_path / where
    hook = git / "hooks" / "post-checkout"
    for name in ("hooks/pre-commit", "config", "HEAD", "modules/inner/config", "objects/00/1"):
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).write_text("as it was\n")
    before = dotgit.look(str(tmp_path))
    assert _git_changes(tmp_path, before) == []
    match change:
        case "hook made":
            hook.write_text("#!/bin/sh\n")
        case "HEAD replaced":
            (tmp_path / "copy").write_text("as it was\n")
            (tmp_path / "copy").rename(git / "HEAD")
        case _:
            names = {"hook edited": "hooks/pre-commit", "config edited": "config"}
            (git / names.get(change, "modules/inner/config")).write_text("as it is!\n")
    assert _git_changes(tmp_path, before) == [str(git)]


@pytest.mark.parametrize("edited", ["hooks/post-checkout", "config", "info/attributes", "commondir", "gitdir", "HEAD"])
def test_no_number_of_objects_hides_an_edit_of_what_git_runs(tmp_path: Path, edited: str) -> None:
    git = tmp_path / ".git"
    for folder in ("hooks", "info", "refs/heads", "branches", "zzz"):
        (git / folder).mkdir(parents=True)
    for name in ("hooks/post-checkout", "config", "info/attributes", "commondir", "gitdir", "HEAD"):
        (git / name).write_text("as it was\n")
    for folder in ("branches", "objects/00", "refs/heads", "zzz", "lfs"):
        (git / folder).mkdir(parents=True, exist_ok=True)
        for number in range(40):
            (git / folder / f"{number}").touch()
    before = dotgit.look(str(tmp_path), files=30)
    (git / edited).write_text("as it is!\n")
    after = dotgit.look(str(tmp_path), files=30)
    assert [one.path for one in dotgit.changes(str(tmp_path), before, after)] == [str(git)]


def test_a_new_repository_is_seen_and_a_removed_one_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "old" / ".git").mkdir(parents=True)
    before = dotgit.look(str(tmp_path))
    (tmp_path / "new" / ".git").mkdir(parents=True)
    shutil.rmtree(tmp_path / "old")
    assert _git_changes(tmp_path, before) == [str(tmp_path / "new" / ".git")]


@pytest.mark.parametrize("flat", [True, False])
def test_a_worktree_that_was_padded_until_nobody_can_look_through_it_is_a_violation(tmp_path: Path, flat: bool) -> None:
    (tmp_path / "code.py").touch()
    before = dotgit.look(str(tmp_path), entries=50)
    assert before.complete
    for number in range(60):
        (tmp_path / (f"{number}" if flat else f"a/{number}/b")).mkdir(parents=True)
    (tmp_path / "a" / "hidden" / ".git").mkdir(parents=True)
    after = dotgit.look(str(tmp_path), entries=50)
    assert not after.complete
    found = dotgit.changes(str(tmp_path), before, after)
    assert str(tmp_path) in [one.path for one in found]
    assert dotgit.changes(str(tmp_path), after, after) == ()


def test_a_folder_that_was_shut_may_hold_a_repository(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root can look into every folder")
    shut = tmp_path / "shut"
    (shut / ".git").mkdir(parents=True)
    before = dotgit.look(str(tmp_path))
    shut.chmod(0)
    try:
        assert _git_changes(tmp_path, before) == [str(shut)]
        assert _git_changes(tmp_path, dotgit.look(str(tmp_path))) == []
    finally:
        shut.chmod(0o700)


@real
def test_a_nested_repository_cannot_be_edited_unseen(bench: Bench) -> None:
    config = bench.worktree / "vendor" / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n")
    kept = expect(bench.shell("cat vendor/.git/config > copy"), End.OK)
    assert kept.result.dotgit_ok
    # as an ordinary program does it, by a new file; and in place
    bench.shell("printf '[core]\\nfsmonitor = x\\n' > new; mv new vendor/.git/config 2>/dev/null || true")
    changed = bench.shell(
        "mv vendor/.git vendor/was; cp -r vendor/was vendor/.git; echo '# mine' >> vendor/.git/config"
    )
    assert (changed.result.end, changed.result.dotgit_ok) == (End.VIOLATION, False), said(changed)
    assert f"{bench.worktree}/vendor/.git" in {one.path for one in changed.result.violations}


@pytest.mark.parametrize("bench", ["ns", "ll", "none"], indirect=True)
def test_an_edit_in_place_inside_a_nested_repository_is_a_violation(bench: Bench) -> None:
    config = bench.worktree / "vendor" / ".git" / "config"
    config.parent.mkdir(parents=True)
    config.write_text("[core]\n")
    changed = bench.shell("echo '# mine' >> vendor/.git/config")
    assert (changed.result.end, changed.result.dotgit_ok) == (End.VIOLATION, False), said(changed)
    assert changed.result.guards_ok
    (violation,) = changed.result.violations
    assert (violation.kind, violation.path) == ("git-dir", f"{bench.worktree}/vendor/.git")


def _guard_changes(paths: list[Path], before: integrity_watch.Guarded) -> list[Violation]:
    found = integrity_watch.guard_changes(before, integrity_watch.look_at_guards(map(str, paths)))
    assert {(one.kind, one.source, one.blocked) for one in found} <= {("guard", "guard", False)}
    return list(found)


@pytest.mark.parametrize(
    "change", ["chmod", "utime", "setxattr", "append", "replace", "remove", "create", "to a link", "folder's time"]
)
@pytest.mark.req("A15")
def test_a_guard_sees_every_kind_of_change(tmp_path: Path, change: str) -> None:
    guarded = tmp_path / "guarded"
    guarded.mkdir()
    file = guarded / "config"
    file.write_text("as it was\n")
    os.utime(guarded, (1, 1))
    before = integrity_watch.look_at_guards([str(guarded)])
    assert _guard_changes([guarded], before) == []
    status = file.stat()
    match change:
        case "chmod":
            file.chmod(0o777)
        case "utime":
            os.utime(file, (1, 1))
        case "setxattr":
            try:
                os.setxattr(file, "user.mine", b"1")
            except OSError as error:
                pytest.skip(f"this file system keeps no attributes: {error}")
        case "append":
            file.write_text("as it is!\n")
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        case "replace":
            shutil.copy2(file, tmp_path / "copy")
            (tmp_path / "copy").rename(file)
        case "remove":
            file.unlink()
        case "to a link":
            file.unlink()
            file.symlink_to("elsewhere")
        case "folder's time":
            os.utime(guarded, (2, 2))
        case _:
            (guarded / "hook").touch()
    (violation,) = _guard_changes([guarded], before)
    named = {"create": guarded / "hook", "folder's time": guarded}
    assert violation.path == str(named.get(change, file))


def test_what_is_not_there_must_not_appear(tmp_path: Path) -> None:
    before = integrity_watch.look_at_guards([str(tmp_path / "hook")])
    assert _guard_changes([tmp_path / "hook"], before) == []
    (tmp_path / "hook").touch()
    assert [one.path for one in _guard_changes([tmp_path / "hook"], before)] == [str(tmp_path / "hook")]


@pytest.mark.parametrize("bound", [{"entries": 10}, {"most": 100}])
def test_what_grew_beyond_what_can_be_compared_is_a_change(tmp_path: Path, bound: dict[str, int]) -> None:
    (tmp_path / "a").write_bytes(b"x" * 50)
    before = integrity_watch.look_at_guards([str(tmp_path)], **bound)
    assert before.beyond is None
    for number in range(20):
        (tmp_path / f"b{number}").write_bytes(b"x" * 50)
    after = integrity_watch.look_at_guards([str(tmp_path)], **bound)
    assert after.beyond is not None
    told = {one.path for one in integrity_watch.guard_changes(before, after)}
    assert after.beyond in told
    assert str(tmp_path / "a") not in told


@pytest.mark.req("A15")
def test_a_guarded_file_that_a_command_changed_is_a_violation(bench: Bench) -> None:
    """In every tier, even where the command may write."""
    for name in ("config", "other"):
        (bench.worktree / name).write_text("as it was")
    guarded = (f"{bench.worktree}/config", f"{bench.worktree}/hook", str(bench.outside))
    kept = bench.shell("echo x > other", guards=guarded, plays=Reply(files={"other": b"x"}))
    assert (kept.result.end, kept.result.guards_ok) == (End.OK, True), said(kept)
    played = Reply(files={"config": b"as it is", "hook": b"x"})
    changed = bench.shell("printf 'as it is' > config; echo x > hook", guards=guarded, plays=played)
    assert (changed.result.end, changed.result.guards_ok, changed.result.dotgit_ok) == (End.VIOLATION, False, True)
    found = {(one.kind, one.path, one.blocked, one.source) for one in changed.result.violations}
    assert found == {("guard", f"{bench.worktree}/{name}", False, "guard") for name in ("config", "hook")}


def test_guards_that_are_too_large_to_compare_run_nothing(bench: Bench) -> None:
    with (bench.outside / "large").open("wb") as file:
        file.truncate(integrity_watch.GUARDED_BYTES + 1)
    finished = bench.shell("touch ran", guards=(str(bench.outside),), plays=Reply(files={"ran": b""}))
    assert finished.result.end is End.SANDBOX_ERROR
    assert "too much to compare" in str(finished.result.sandbox_error)
    assert not (bench.worktree / "ran").exists()


def test_a_worktree_too_large_to_be_looked_through_is_said(tmp_path: Path) -> None:
    bench = Bench("scripted", tmp_path, tmp_path)
    asked = check_command(bench.command("/bin/true"), SandboxTier.NAMESPACES)
    survey = IntegrityWatch(asked, SandboxTier.NAMESPACES)
    assert [warned.code for warned in survey.warnings] == []
    survey._repositories = dotgit.look(str(tmp_path), entries=0)
    assert [warned.code for warned in survey.warnings] == ["worktree-unseen"]
