"""Whatever is planted in a repository or a worktree runs when git is called plainly, and does not when we call it."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import NotReady, UsageError
from fairwitness.git.call import GitFailed
from fairwitness.git.identity import FALLBACK, read_identity
from fairwitness.git.merge import Clean, merge_test
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktree, Worktrees
from git.person import Person


def everything(person: Person) -> None:
    """All we ever do with a person's repository and checkout."""
    repository = person.open()
    shadow = Shadow.open(person.home.parent / "state" / "shadow", repository)
    head = repository.commit("HEAD")
    tree = repository.tree_of(head)
    repository.default_base()
    repository.is_dirty()
    read_identity(repository)
    work = shadow.worktree_tree(repository)
    shadow.staged_tree(repository)
    shadow.diff(tree, work)
    out = person.home.parent / "out"
    shadow.checkout(work, out)
    (out / "more").write_text("more")
    shadow.snapshot(out, tree)
    merge_test(shadow, head, head)
    worktrees, worktree = attempt(person)
    (worktree.folder / "agent.bin").write_text("by an agent\n")
    worktrees.commit_all(worktree, "work", FALLBACK)
    worktrees.remove(worktree, head)


def attempt(person: Person) -> tuple[Worktrees, Worktree]:
    """A worktree for an agent."""
    repository = person.open()
    shadow = Shadow.open(person.home.parent / "state" / "shadow", repository)
    worktrees = Worktrees(repository, shadow, person.home.parent / "state" / "worktrees")
    return worktrees, worktrees.create("run-1", "task-01", 1, repository.commit("HEAD"))


def sprung(mark: Path) -> bool:
    """True if the trap went off; it is set again."""
    went_off = mark.exists()
    mark.unlink(missing_ok=True)
    return went_off


def _touch_all(person: Person) -> None:
    """Git has to look into each file again."""
    for file in person.folder.rglob("*.bin"):
        os.utime(file)


PLANTED = {
    "fsmonitor": ("[core]\n\tfsmonitor = {trap}\n", "", ["status"]),
    "clean filter": ('[filter "f"]\n\tclean = {trap}\n\tsmudge = {trap}\n', "*.bin filter=f\n", ["add", "-A"]),
    "smudge filter": ('[filter "f"]\n\tsmudge = {trap}\n', "*.bin filter=f\n", ["checkout", "HEAD~1", "--", "a.bin"]),
    "required process filter": ('[filter "f"]\n\tprocess = {trap}\n\trequired\n', "*.bin filter=f\n", ["add", "-A"]),
    "textconv": ('[diff "d"]\n\ttextconv = {trap}\n', "*.bin diff=d\n", ["diff", "HEAD~1"]),
    "diff driver": ('[diff "d"]\n\tcommand = {trap}\n', "*.bin diff=d\n", ["diff", "HEAD~1"]),
    "external diff": ("[diff]\n\texternal = {trap}\n", "", ["diff", "HEAD~1"]),
    "pager": ("[core]\n\tpager = {trap}\n[pager]\n\tlog = true\n", "", ["-p", "log"]),
}


@pytest.mark.req("X5")
@pytest.mark.parametrize("name", PLANTED)
def test_programs_named_in_the_configuration_do_not_run(person: Person, name: str) -> None:
    config, attributes, naive = PLANTED[name]
    person.commit(**{"a.bin": "one\n", ".gitattributes": attributes})
    person.commit(**{"a.bin": "two\n"})
    program, mark = person.trap()
    person.configure(config.format(trap=program))
    _touch_all(person)
    everything(person)
    assert not sprung(mark)
    if name != "pager":  # git asks for a pager only on a terminal
        _touch_all(person)
        person.git(*naive, check=False)
        assert sprung(mark), "called plainly, it runs"


@pytest.mark.req("X5")
@pytest.mark.parametrize("folder", [".git/hooks", "elsewhere"])
def test_g4_no_hook_runs(person: Person, folder: str) -> None:
    person.commit(a="one\n")
    program, mark = person.trap()
    names = (
        *("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-checkout", "reference-transaction"),
        *("post-index-change", "post-rewrite", "pre-merge-commit", "fsmonitor-watchman", "pre-auto-gc"),
    )
    hooks = person.home.parent / "elsewhere" if folder == "elsewhere" else person.folder / folder
    hooks.mkdir(exist_ok=True)
    for name in names:
        (hooks / name).symlink_to(program)
    if folder == "elsewhere":
        person.configure(f"[core]\n\thooksPath = {hooks}\n")
    everything(person)
    assert not sprung(mark)
    person.git("update-ref", "refs/heads/x", "HEAD", check=False)
    assert sprung(mark)


def _plant_fsmonitor(folder: Path, program: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with (folder / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {program}\n")


def _g1(worktree: Worktree, program: Path) -> None:
    (worktree.folder / ".git").unlink()
    _plant_fsmonitor(worktree.folder, program)


def _g2(worktree: Worktree, program: Path) -> None:
    inner = worktree.folder / "inner"
    subprocess.run(["git", "init", "-q", str(inner)], check=True)
    hooks = worktree.folder / "hooks"
    hooks.mkdir()
    for name in ("post-index-change", "reference-transaction", "pre-commit"):
        (hooks / name).symlink_to(program)
    with (inner / ".git" / "config").open("a") as config:
        config.write(f"[core]\n\thooksPath = {hooks}\n")
    (worktree.folder / ".git").write_text(f"gitdir: {inner / '.git'}\n")


def _g3(worktree: Worktree, program: Path) -> None:
    nested = worktree.folder / "nested"
    _plant_fsmonitor(nested, program)
    (nested / "f").write_text("hidden\n")
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "core.fsmonitor=false"]
    subprocess.run(["git", *identity, "add", "f"], cwd=nested, check=True)
    subprocess.run(["git", *identity, "commit", "-qm", "1"], cwd=nested, check=True)


def _admin(worktree: Worktree) -> Path:
    return Path((worktree.folder / ".git").read_text().removeprefix("gitdir: ").strip())


def _g6(worktree: Worktree, program: Path) -> None:
    admin = _admin(worktree)
    (admin / "config.worktree").write_text(f"[core]\n\tfsmonitor = {program}\n")


def _g7(worktree: Worktree, program: Path) -> None:
    _plant_fsmonitor(worktree.folder / "other", program)
    (_admin(worktree) / "commondir").write_text(f"{worktree.folder / 'other' / '.git'}\n")


CASES: dict[str, tuple[Callable[[Worktree, Path], None], list[list[str]]]] = {
    "G1 .git replaced": (_g1, [["status"]]),
    "G2 .git points to a repository with hooks": (_g2, [["add", "-A"]]),
    "G3 nested repository": (_g3, [["add", "-A"], ["status"]]),
    "G6 config.worktree": (_g6, [["status"]]),
    "G7 commondir redirected": (_g7, [["status"]]),
}


@pytest.mark.req("X5")
@pytest.mark.parametrize("name", CASES)
def test_what_an_agent_plants_in_its_worktree_does_not_run(person: Person, name: str) -> None:
    plant, naive = CASES[name]
    person.commit(a="one\n")
    if name.startswith("G6"):
        person.git("config", "extensions.worktreeConfig", "true")
    worktrees, worktree = attempt(person)
    program, mark = person.trap()
    (worktree.folder / "b").write_text("two\n")
    plant(worktree, program)
    done = worktrees.commit_all(worktree, "work", FALLBACK)
    assert not sprung(mark)
    assert done.is_new
    assert worktrees.shadow.entries(done.tree).keys() >= {"a", "b"}
    assert not any("nested/" in path for path in worktrees.shadow.entries(done.tree))
    assert done.embedded == (("nested",) if name.startswith("G3") else done.embedded)
    for arguments in naive:
        person.git(*arguments, cwd=worktree.folder, check=False)
    assert sprung(mark), "called plainly, it runs"
    worktrees.remove(worktree, person.git("rev-parse", "main"))
    assert not sprung(mark)
    assert not worktree.folder.exists()


@pytest.mark.req("X5")
@pytest.mark.parametrize("file", ["config", "config.worktree", "commondir", "included"])
def test_g5_a_configuration_that_changes_while_we_work_stops_us(person: Person, file: str) -> None:
    person.commit(a="one\n")
    included = person.home.parent / "included"
    included.write_text("")
    person.configure(f"[include]\n\tpath = {included}\n")
    repository = person.open()
    program, mark = person.trap()
    place = included if file == "included" else person.folder / ".git" / file
    old = place.read_bytes() if place.exists() else None
    place.write_text((old or b"").decode() + f'[filter "f"]\n\tclean = {program}\n')
    with pytest.raises(GitFailed, match="configuration changed while we worked"):
        repository.commit("HEAD")
    assert not sprung(mark)
    place.write_bytes(old) if old is not None else place.unlink()
    assert repository.commit("HEAD") == repository.head


def test_a_merge_driver_does_not_run(person: Person) -> None:
    program, mark = person.trap()
    base = person.commit(**{"a.bin": "1\n", ".gitattributes": "*.bin merge=d\n"})
    person.configure(f'[merge "d"]\n\tdriver = {program} %A\n')
    ours = person.commit(**{"a.bin": "2\n"})
    person.git("checkout", "-q", "-b", "other", base)
    theirs = person.commit(**{"a.bin": "3\n"})
    shadow = person.shadow()
    assert not isinstance(merge_test(shadow, ours, theirs), Clean)
    assert not sprung(mark)
    person.git("merge", "--no-edit", ours, check=False)
    assert sprung(mark)


def test_a_missing_object_is_not_fetched_by_a_program_of_the_configuration(person: Person) -> None:
    person.commit(a="one\n")
    program, mark = person.trap(ends="exit 1")
    blob = person.git("rev-parse", "HEAD:a")
    (person.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    person.configure(
        "[core]\n\trepositoryFormatVersion = 1\n[extensions]\n\tpartialClone = evil\n[protocol]\n\tallow = always\n"
        f'[protocol "ext"]\n\tallow = always\n[remote "evil"]\n\turl = ext::{program}\n\tpromisor = true\n'
    )
    repository, shadow = person.open(), person.shadow()
    with pytest.raises(GitFailed, match="lacks blob"):
        shadow.blob(blob)
    with pytest.raises(GitFailed):
        repository.git.run("cat-file", "blob", blob)
    assert not sprung(mark)
    person.git("cat-file", "blob", blob, check=False)
    assert sprung(mark)


def test_submodules_are_not_entered(person: Person, tmp_path: Path) -> None:
    other = Person.in_folder(tmp_path, name="other")
    other.commit(f="f\n")
    person.commit(a="one\n")
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub")
    person.commit()
    program, mark = person.trap()
    with (person.folder / ".git" / "modules" / "sub" / "config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = {program}\n")
    everything(person)
    assert not sprung(mark)
    person.git("status")
    assert sprung(mark)


def test_an_alias_or_a_template_is_not_used(person: Person) -> None:
    person.commit(a="one\n")
    program, mark = person.trap()
    template = person.home.parent / "template"
    (template / "hooks").mkdir(parents=True)
    (template / "hooks" / "reference-transaction").symlink_to(program)
    (person.home / ".gitconfig").write_text(f"[init]\n\ttemplateDir = {template}\n[alias]\n\tls-tree = !{program}\n")
    everything(person)
    assert not sprung(mark)
    assert not (person.home.parent / "state" / "shadow" / "hooks").exists()


def test_objects_that_refs_or_grafts_put_in_the_place_of_others_are_not_seen(person: Person) -> None:
    first = person.commit(a="one\n")
    blob = person.git("rev-parse", "HEAD:a")
    fake = person.git_bytes("hash-object", "-w", "--stdin").decode().strip()
    person.git("replace", blob, fake)
    head = person.commit(b="two\n")
    (person.folder / ".git" / "info").mkdir(exist_ok=True)
    (person.folder / ".git" / "info" / "grafts").write_text(f"{head}\n")
    repository = person.open()
    assert person.git("cat-file", "blob", blob) == ""
    assert person.shadow().blob(blob) == b"one\n"
    assert repository.git.run("cat-file", "blob", blob) == b"one\n"
    assert repository.is_ancestor(first, head)
    assert repository.default_base() == first


@pytest.mark.req("X5")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_g9_a_checkout_of_another_user_is_refused_until_the_person_says_it_is_fine(person: Person) -> None:
    head = person.commit(a="one\n")
    worktrees, worktree = attempt(person)
    for place in (worktree.folder, worktree.folder / "a"):
        os.chown(place, 12345, 12345)
    assert "dubious ownership" in _complaint(person, worktree.folder)
    (worktree.folder / "a").write_text("two\n")
    assert worktrees.commit_all(worktree, "work", FALLBACK).is_new, "a worktree given to a task's own user works"
    os.chown(person.folder, 12345, 12345)
    with pytest.raises(NotReady, match="dubious ownership") as caught:
        person.open()
    assert caught.value.next_step.endswith(f"safe.directory {person.folder}")
    person.git("config", "--global", "--add", "safe.directory", str(person.folder))
    assert person.open().head == head
    assert person.shadow().worktree_tree(person.open())


def _complaint(person: Person, folder: Path) -> str:
    done = subprocess.run(
        ["git", "status"], cwd=folder, env={"PATH": os.environ["PATH"]}, capture_output=True, check=False
    )
    return done.stderr.decode()


def test_no_repository_is_looked_for_in_an_attempts_worktree(person: Person) -> None:
    person.commit(a="one\n")
    inside = person.folder / ".fairwitness" / "worktrees" / "run-1" / "src"
    inside.mkdir(parents=True)
    with pytest.raises(UsageError, match="agent may have written"):
        Repository.open(inside)
