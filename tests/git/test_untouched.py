"""Looking at a person's checkout leaves every byte and time of it as it was, also where nothing may be written."""

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git.shadow import Shadow
from git.person import Person, picture


def _busy(person: Person) -> None:
    """Tracked, staged, changed, deleted, untracked, ignored and stashed things."""
    person.commit(a="1\n", b="1\n", c="1\n", **{".gitignore": "*.log\n", "d/e": "1\n"})
    person.write("a", "stashed\n")
    person.git("stash")
    person.write("a", "staged\n")
    person.git("add", "a")
    person.write("a", "changed again\n")
    (person.folder / "b").unlink()
    person.git("rm", "-q", "--cached", "c")
    person.write("new file", "untracked\n")
    person.write("x.log", "ignored\n")


@pytest.mark.req("X5")
def test_everything_is_read_and_nothing_is_touched(person: Person, tmp_path: Path) -> None:
    _busy(person)
    before = picture(person.folder)
    repository, shadow = person.open(), person.shadow()
    head = repository.tree_of("HEAD")
    assert repository.is_dirty()
    staged, work = shadow.staged_tree(repository), shadow.worktree_tree(repository)
    assert {path: shadow.read(staged, path) for path in shadow.entries(staged)} == {
        ".gitignore": b"*.log\n",
        "a": b"staged\n",
        "b": b"1\n",
        "d/e": b"1\n",
    }
    assert {path: shadow.read(work, path) for path in shadow.entries(work)} == {
        ".gitignore": b"*.log\n",
        "a": b"changed again\n",
        "c": b"1\n",
        "d/e": b"1\n",
        "new file": b"untracked\n",
    }
    shadow.diff(head, work)
    shadow.checkout(work, tmp_path / "out")
    shadow.snapshot(tmp_path / "out", head)
    assert picture(person.folder) == before


def test_trees_of_staged_and_changed_files_are_what_git_itself_would_commit(person: Person) -> None:
    _busy(person)
    repository, shadow = person.open(), person.shadow()
    staged, work = shadow.staged_tree(repository), shadow.worktree_tree(repository)
    assert person.git("write-tree") == staged
    person.git("add", "-A")
    assert person.git("write-tree") == work


def test_a_file_changed_in_the_moment_the_index_was_written_is_seen(person: Person) -> None:
    person.commit(a="1\n")
    repository, shadow = person.open(), person.shadow()
    for number in range(2, 9):  # same size, and as like as not the same tick of the clock
        person.write("a", f"{number}\n")
        person.git("add", "a")
        person.write("a", f"{number + 1}\n")
        assert shadow.read(shadow.worktree_tree(repository), "a") == f"{number + 1}\n".encode()


@pytest.mark.parametrize(
    "mark", ["assume-unchanged", "split-index", "fsmonitor-valid", "intent-to-add", "skip-worktree"]
)
def test_marks_in_the_index_do_not_hide_a_change(person: Person, mark: str) -> None:
    person.commit(a="1\n", b="1\n")
    if mark == "split-index":
        person.git("update-index", "--split-index")
        person.write("b", "2\n")
        person.git("add", "b")
    elif mark == "intent-to-add":
        person.write("new")
        person.git("add", "-N", "new")
    elif mark == "skip-worktree":
        person.git("update-index", "--skip-worktree", "b")
        (person.folder / "b").unlink()
    else:
        person.git("update-index", f"--{mark}", "a")
    person.write("a", "2\n")
    before = picture(person.folder)
    repository, shadow = person.open(), person.shadow()
    work = shadow.worktree_tree(repository)
    assert shadow.read(work, "a") == b"2\n"
    assert shadow.read(work, "b") is not None, "a file that a sparse checkout leaves out is still there"
    assert (shadow.read(work, "new") is not None) == (mark == "intent-to-add")
    assert shadow.read(shadow.staged_tree(repository), "a") == b"1\n"
    assert picture(person.folder) == before


def test_a_sparse_index_is_read(person: Person) -> None:
    person.commit(a="1\n", **{"in/x": "1\n", "out/y": "1\n", "out/deep/z": "1\n"})
    person.git("sparse-checkout", "set", "--cone", "--sparse-index", "in")
    assert not (person.folder / "out").exists()
    repository, shadow = person.open(), person.shadow()
    assert shadow.worktree_tree(repository) == shadow.staged_tree(repository) == repository.tree_of("HEAD")
    person.write("in/x", "2\n")
    work = shadow.worktree_tree(repository)
    assert [change.path for change in shadow.diff(repository.tree_of("HEAD"), work)] == ["in/x"]


def test_a_conflict_in_the_index_is_the_persons_to_resolve(person: Person) -> None:
    base = person.commit(**{"a b": "1\n"})
    person.commit(**{"a b": "2\n"})
    person.git("checkout", "-q", "-b", "other", base)
    person.commit(**{"a b": "3\n"})
    person.git("merge", "main", check=False)
    repository, shadow = person.open(), person.shadow()
    before = picture(person.folder)
    with pytest.raises(UsageError, match="1 unresolved conflict: a b"):
        shadow.staged_tree(repository)
    assert b"<<<<<<<" in (shadow.read(shadow.worktree_tree(repository), "a b") or b"")
    (person.folder / "a b").unlink()
    assert shadow.read(shadow.worktree_tree(repository), "a b") is None
    assert {path: seen for path, seen in before.items() if not path.endswith("/a b")} == picture(person.folder)


def test_a_damaged_index_is_one_sentence(person: Person) -> None:
    person.commit(a="1\n")
    (person.folder / ".git" / "index").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match="is damaged"):
        person.shadow().staged_tree(person.open())


def test_what_the_person_ignores_at_home_is_ignored_and_our_own_folder_always(person: Person) -> None:
    person.commit(a="1\n")
    person.configure("*.mine\n", ".git/info/exclude")
    (person.home / ".config" / "git").mkdir(parents=True)
    (person.home / ".config" / "git" / "ignore").write_text("*.usual\n")
    for name in ("x.mine", "x.usual", "x.named", ".fairwitness/evidence.db", "sub/.fairwitness/y"):
        person.write(name)
    repository, shadow = person.open(), person.shadow()
    assert shadow.entries(shadow.worktree_tree(repository)).keys() == {"a", "x.named", "sub/.fairwitness/y"}
    (person.home / "my ignores").write_text("*.named\n")
    (person.home / ".gitconfig").write_text("[core]\n\texcludesFile = ~/my ignores\n")
    assert shadow.entries(shadow.worktree_tree(repository)).keys() == {"a", "x.usual", "sub/.fairwitness/y"}


def test_inside_a_hook_the_index_being_committed_is_read(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n", b="1\n")
    code = textwrap.dedent(f"""
        import sys
        from pathlib import Path
        from fairwitness.git.repository import Repository
        from fairwitness.git.shadow import Shadow
        repository = Repository.open(Path.cwd())
        shadow = Shadow.open(Path({str(tmp_path / "hook")!r}), repository)
        tree = shadow.staged_tree(repository)
        Path({str(tmp_path / "seen")!r}).write_bytes(b"".join(shadow.read(tree, name) for name in ("a", "b")))
    """)
    (tmp_path / "hook.py").write_text(code)
    hook = person.folder / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/hook.py\n")
    hook.chmod(0o755)
    person.write("a", "2\n")
    person.write("b", "2\n")
    person.git("commit", "-qm", "only a", "a", PYTHONPATH=os.pathsep.join(sys.path))
    assert (tmp_path / "seen").read_bytes() == b"2\n1\n"


@pytest.mark.req("X5")
def test_a_repository_that_may_not_be_written_is_read_all_the_same() -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own folder is closed to other users
        root = Path(place)
        root.chmod(0o755)
        person = Person.in_folder(root)
        _busy(person)
        theirs = root / "theirs"
        theirs.mkdir()
        (theirs / ".gitconfig").write_text(f"[safe]\n\tdirectory = {person.folder}\n")
        subprocess.run(["chmod", "-R", "a+rX,a-w", person.folder], check=True)
        if os.geteuid() == 0:
            os.chown(theirs, 12345, 12345)
        os.environ["HOME"] = str(theirs)
        try:
            assert _as_somebody_else(lambda: _look(person, theirs)) == "False 3"
        finally:
            subprocess.run(["chmod", "-R", "u+w", person.folder], check=True)


def _look(person: Person, state: Path) -> str:
    repository = person.open()
    shadow = Shadow.open(state / "shadow", repository)
    work, head = shadow.worktree_tree(repository), repository.tree_of("HEAD")
    shadow.staged_tree(repository)
    shadow.checkout(work, state / "out")
    return f"{os.access(repository.objects_dir, os.W_OK)} {len(shadow.diff(head, work))}"


def _as_somebody_else(look: Callable[[], str]) -> str:
    """What is seen by a process without root's rights."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(12345)
                os.setuid(12345)
            said = look()
        except BaseException as error:  # noqa: BLE001 - the child must end here, whatever happens
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        return answer.read()
