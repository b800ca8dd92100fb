"""A folder that served one attempt serves the next, faster than a new one and without a trace of the last."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git import quarantine
from fairwitness.git.identity import FALLBACK
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktree, Worktrees
from git.person import Person

RUN = "2026-02-26T14:30:00Z"
Looks = dict[str, tuple[int, bytes]]


def worktrees_of(person: Person, pooled: int = 4) -> Worktrees:
    """The worktrees of a person's repository, where Fair Witness would have them."""
    repository = person.open()
    state = person.folder / ".fairwitness"
    state.mkdir(exist_ok=True)
    (state / ".gitignore").write_text("*\n")
    return Worktrees(repository, Shadow.open(state / "shadow", repository), state / "worktrees", pooled=pooled)


def looks(folder: Path) -> Looks:
    """Everything an agent could see in a folder, but for times and the pointer to git."""
    seen = {}
    for path in folder.rglob("*"):
        link = os.fsencode(path.readlink()) if path.is_symlink() else None
        content = link if link is not None else b"" if path.is_dir() else path.read_bytes()
        seen[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    seen.pop(".git")
    return seen


def fresh(person: Person, commit: str) -> Looks:
    """How a worktree looks that was never used."""
    worktrees = worktrees_of(person, pooled=0)
    worktree = worktrees.create("fresh", "task", 1, commit)
    seen = looks(worktree.folder)
    worktrees.remove(worktree, commit)
    return seen


def waiting(worktrees: Worktrees) -> list[Path]:
    """The folders in the pool."""
    return sorted(worktrees.pool.folder.glob("*"))


def used(worktrees: Worktrees, commit: str, spoil: Callable[[Path], object] = lambda folder: None) -> list[Path]:
    """Lets an attempt come and go, and returns what waits then."""
    worktree = worktrees.create("earlier", "task", 1, commit)
    spoil(worktree.folder)
    worktrees.release(worktree, commit)
    return waiting(worktrees)


def assert_sound(person: Person, worktrees: Worktrees, worktree: Worktree, wanted: Looks) -> None:
    """The folder is exactly the commit, and person and agent see a usual worktree."""
    assert looks(worktree.folder) == wanted
    assert person.git("status", "--porcelain", "--ignored", cwd=worktree.folder) == ""
    assert person.git("rev-parse", "--abbrev-ref", "HEAD", cwd=worktree.folder) == worktree.branch
    assert str(worktree.folder) in person.git("worktree", "list")
    assert person.git("worktree", "prune", "--verbose", "--expire=now") == ""
    assert worktree.mark.exists()
    assert not worktree.aside.exists()


@pytest.fixture
def rich(person: Person) -> Person:
    """A repository with every kind of entry."""
    person.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    person.write("src/deep/module.py", "x = 1\n")
    person.write("src/other.py", "y = 1\n")
    person.write("lib/data.txt", "data\n")
    person.write(".gitignore", "build/\n*.log\n")
    person.write('"quoted', "q\n")
    person.write("-dash\nline", "d\n")
    (person.folder / os.fsdecode(b"b\xff")).write_text("latin\n")
    (person.folder / "link").symlink_to("src/other.py")
    person.commit()
    person.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    person.git("commit", "-qm", "with a submodule")
    return person


def test_the_next_attempt_gets_the_files_of_the_last(rich: Person) -> None:
    worktrees = worktrees_of(rich)
    first = worktrees.create(RUN, "task-01", 1, "HEAD")
    inodes = {path: (first.folder / path).lstat().st_ino for path in ("run.sh", "src/other.py", "link")}
    (first.folder / "src/other.py").write_text("y = 2\n")
    done = worktrees.commit_all(first, "work", FALLBACK)
    kept = worktrees.release(first, "HEAD")
    assert kept is not None
    assert kept.commit == done.commit, "what the attempt made is kept as ever"
    assert rich.git("branch", "--list", "fairwitness/*") == ""
    assert len(rich.git("worktree", "list").splitlines()) == 1, "git knows nothing of what waits"
    assert len(waiting(worktrees)) == 1
    second = worktrees.create(RUN, "task-01", 2, "HEAD")
    assert waiting(worktrees) == []
    assert_sound(rich, worktrees, second, fresh(rich, "HEAD"))
    same = {path for path, inode in inodes.items() if (second.folder / path).lstat().st_ino == inode}
    assert same == {"run.sh", "link"}, "only what was changed is written again"
    rich.git("commit", "-qm", "as an agent would", "--allow-empty", cwd=second.folder)
    assert worktrees.tip(second) == rich.git("rev-parse", f"{second.branch}")
    worktrees.remove(second, "HEAD")
    assert rich.git("fsck", "--strict") == ""


def _spoil_everything(folder: Path) -> None:
    outside = folder.parent.parent / "outside"
    outside.mkdir()
    (outside / "precious").write_text("x")
    (folder / "build").mkdir()
    (folder / "build" / "cache").write_text("ignored\n")
    (folder / "x.log").write_text("ignored\n")
    (folder / "untracked").write_text("u\n")
    (folder / "empty" / "nest").mkdir(parents=True)
    (folder / os.fsdecode(b"odd\xfe\nname")).write_text("odd\n")
    for place in ("nested", "src/nested"):
        subprocess.run(["git", "init", "-q", str(folder / place)], check=True)
        (folder / place / "file").write_text("hidden\n")
    (folder / "src" / ".git").mkdir()
    (folder / "src" / ".git" / "config").write_text("[core]\n\tfsmonitor = /bin/false\n")
    (folder / ".gitattributes").write_text("* text eol=crlf\n")
    (folder / "src" / ".gitattributes").write_text("* -text\n")
    (folder / "run.sh").chmod(0o644)
    (folder / "src" / "other.py").chmod(0o4777)
    (folder / "src").chmod(0o2777)
    (folder / "link").unlink()
    (folder / "link").symlink_to("/etc/passwd")
    deep = folder / "src" / "deep" / "module.py"
    before = deep.stat()
    deep.write_text("x = 9\n")
    os.utime(deep, ns=(before.st_atime_ns, before.st_mtime_ns))
    os.utime(folder / ".gitignore", (4102444800, 4102444800))
    (folder / "lib" / "data.txt").unlink()
    (folder / "lib").rmdir()
    (folder / "lib").symlink_to(outside)
    (outside / "data.txt").write_text("data\n")
    os.mkfifo(folder / "pipe")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as server, contextlib.chdir(folder):
        server.bind("socket")
    (folder / "closed" / "inner").mkdir(parents=True)
    (folder / "closed" / "inner" / "file").write_text("closed\n")
    (folder / "closed" / "inner").chmod(0)
    (folder / "closed").chmod(0)
    (folder / "module").mkdir(exist_ok=True)
    (folder / "module" / "file").write_text("in the submodule\n")
    (folder / '"quoted').unlink()
    os.link(folder / "-dash\nline", outside / "second name")
    with contextlib.suppress(OSError):
        os.setxattr(folder / os.fsdecode(b"b\xff"), "user.trace", b"x")
        os.setxattr(folder / "src" / "deep", "user.trace", b"x")
    (folder / ".git").unlink()
    (folder / ".git").symlink_to(outside)


@pytest.mark.req("X5")
def test_nothing_that_a_hostile_agent_left_survives(rich: Person) -> None:
    worktrees = worktrees_of(rich)
    wanted = fresh(rich, "HEAD")
    assert len(used(worktrees, "HEAD", _spoil_everything)) == 1
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert waiting(worktrees) == [], "the spoiled folder was cleaned and is in use"
    assert_sound(rich, worktrees, worktree, wanted)
    outside = rich.folder / ".fairwitness" / "outside"
    assert {path.name for path in outside.iterdir()} == {"precious", "data.txt", "second name"}
    tracked = [path for path in worktree.folder.rglob("*") if path.name != ".git"]
    files = [path.lstat() for path in tracked if path.is_symlink() or not path.is_dir()]
    assert {found.st_nlink for found in files} == {1}
    assert len({found.st_mtime_ns for found in files}) == 1, "no time tells what was touched"
    assert all(os.listxattr(path, follow_symlinks=False) == [] for path in tracked)
    (outside / "second name").write_text("written later\n")
    assert looks(worktree.folder) == wanted


@pytest.mark.parametrize("pointer", ["another repository", "a folder", "nothing"])
def test_a_changed_pointer_to_git_is_not_followed(rich: Person, tmp_path: Path, pointer: str) -> None:
    program, sprung = rich.trap()
    other = Person.in_folder(tmp_path / "evil")
    other.commit(a="1\n")
    other.configure(f'[core]\n\tfsmonitor = "{program}"\n')

    def spoil(folder: Path) -> None:
        (folder / ".git").unlink()
        if pointer == "another repository":
            (folder / ".git").write_text(f"gitdir: {other.folder / '.git'}\n")
        elif pointer == "a folder":
            (other.folder / ".git").rename(folder / ".git")

    worktrees = worktrees_of(rich)
    assert len(used(worktrees, "HEAD", spoil)) == 1
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert_sound(rich, worktrees, worktree, fresh(rich, "HEAD"))
    assert not sprung.exists()


def test_line_ends_that_git_would_not_notice_do_not_survive(person: Person) -> None:
    person.commit(**{".gitattributes": "*.txt text=auto\n*.win text eol=crlf\n", "a.txt": "1\n2\n", "b.win": "1\n2\n"})
    worktrees = worktrees_of(person)
    used(worktrees, "HEAD", lambda folder: (folder / "a.txt").write_bytes(b"1\r\n2\r\n"))
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert (worktree.folder / "a.txt").read_bytes() == b"1\n2\n"
    assert (worktree.folder / "b.win").read_bytes() == b"1\r\n2\r\n"
    assert_sound(person, worktrees, worktree, fresh(person, "HEAD"))


def _in_place(change: Callable[[Path], object]) -> Callable[[Path], None]:
    """A change that sets the file's own times back."""

    def changing(entry: Path) -> None:
        file = entry / "files" / "src" / "other.py"
        before = file.stat()
        change(file)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    return changing


def _by_its_copy(file: Path) -> None:
    file.rename(file.with_name("x"))
    file.write_text("y = 1\n")
    file.with_name("x").unlink()


def _by_a_link(folder: Path, elsewhere: Path) -> None:
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


def _another_mark(**said: str) -> Callable[[Path], object]:
    return lambda entry: (entry / "mark").write_text(json.dumps({**json.loads((entry / "mark").read_text()), **said}))


TAMPERING: dict[str, Callable[[Path], object]] = {
    "a file is written": lambda entry: (entry / "files" / "run.sh").write_text("evil\n"),
    "a file is written and its time set back": _in_place(lambda file: file.write_text("y = 9\n")),
    "a file is added": lambda entry: (entry / "files" / "src" / "deep" / "new").write_text("evil\n"),
    "an ignored folder is added": lambda entry: (entry / "files" / "build").mkdir(),
    "a file is removed": lambda entry: (entry / "files" / "src" / "other.py").unlink(),
    "a file is replaced by its copy": _in_place(_by_its_copy),
    "a mode is changed": lambda entry: (entry / "files" / "run.sh").chmod(0o777),
    "a folder becomes a link": lambda entry: _by_a_link(entry / "files" / "lib", entry / "lib"),
    "the files are gone": lambda entry: (entry / "files").rename(entry / "elsewhere"),
    "the files are a link": lambda entry: _by_a_link(entry / "files", entry / "elsewhere"),
    "the index is another": lambda entry: (entry / "index").write_bytes((entry / "index").read_bytes()),
    "paths are forgotten": lambda entry: (entry / "paths").write_bytes(b".\0run.sh"),
    "the mark is gone": lambda entry: (entry / "mark").unlink(),
    "the mark is no mark": lambda entry: (entry / "mark").write_bytes(b"\xff{"),
    "the mark is a list": lambda entry: (entry / "mark").write_text("[]"),
    "the mark names another tree": _another_mark(tree="1" * 40),
    "the mark is of another start of the machine": _another_mark(boot="earlier"),
}


@pytest.mark.parametrize("tampering", TAMPERING)
def test_what_is_not_as_its_mark_says_is_thrown_away(rich: Person, tampering: str) -> None:
    worktrees = worktrees_of(rich)
    wanted = fresh(rich, "HEAD")
    (entry,) = used(worktrees, "HEAD")
    inode = (entry / "files" / ".gitignore").stat().st_ino
    TAMPERING[tampering](entry)
    keep = os.open(entry / "files" / ".gitignore", os.O_RDONLY) if (entry / "files").exists() else None
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert (worktree.folder / ".gitignore").stat().st_ino != inode or keep is None, "a new folder was made"
    assert_sound(rich, worktrees, worktree, wanted)
    assert waiting(worktrees) == []
    if keep is not None:
        os.close(keep)


def test_a_folder_is_brought_to_another_commit(rich: Person) -> None:
    base = rich.git("rev-parse", "HEAD")
    rich.git("rm", "-qr", "src/deep", "link", "module")
    rich.write("link/now/a-folder", "x\n")
    (rich.folder / "lib" / "data.txt").unlink()
    (rich.folder / "lib").rmdir()
    (rich.folder / "lib").symlink_to("src")
    (rich.folder / "run.sh").chmod(0o644)
    (rich.folder / "src" / "other.py").chmod(0o755)
    rich.write("src/deep", "now a file\n")
    changed = rich.commit("another shape")
    worktrees = worktrees_of(rich)
    for number, (parked, wanted) in enumerate([(base, changed), (changed, base), (base, base)], start=1):
        (entry,) = used(worktrees, parked)
        inode = (entry / "files" / ".gitignore").stat().st_ino
        worktree = worktrees.create(RUN, "task-01", number, wanted)
        assert (worktree.folder / ".gitignore").stat().st_ino == inode, "the same folder"
        assert_sound(rich, worktrees, worktree, fresh(rich, wanted))
        worktrees.remove(worktree, wanted)


def test_a_folder_waits_with_the_files_of_the_target(rich: Person) -> None:
    base, target = rich.git("rev-parse", "HEAD"), rich.commit(**{"src/new.py": "z = 1\n"})
    worktrees = worktrees_of(rich)
    worktrees.release(worktrees.create(RUN, "task-01", 1, base), target)
    (entry,) = waiting(worktrees)
    assert (entry / "files" / "src" / "new.py").exists()


def test_other_attributes_want_a_new_folder(person: Person) -> None:
    plain = person.commit(**{"a.txt": "1\n", "b": "1\n"})
    windows = person.commit(**{".gitattributes": "*.txt text eol=crlf\n"})
    worktrees = worktrees_of(person)
    used(worktrees, plain)
    worktree = worktrees.create(RUN, "task-01", 1, windows)
    assert (worktree.folder / "a.txt").read_bytes() == b"1\r\n"
    assert_sound(person, worktrees, worktree, fresh(person, windows))


def test_a_tree_with_an_odd_path_is_refused_with_a_waiting_folder_too(rich: Person) -> None:
    worktrees = worktrees_of(rich)
    used(worktrees, "HEAD")
    blob = rich.git("hash-object", "-w", ".gitignore")
    tree = rich.git("rev-parse", "HEAD^{tree}")
    listed = rich.git_bytes("ls-tree", "-z", tree) + f"100644 blob {blob}\t.GIT\0".encode()
    done = subprocess.run(["git", "mktree", "-z"], input=listed, cwd=rich.folder, capture_output=True, check=True)
    odd = rich.git("commit-tree", "-m", "odd", "-p", "HEAD", done.stdout.decode().strip())
    with pytest.raises(UsageError, match=r"has a '.git' part"):
        worktrees.create(RUN, "task-01", 1, odd)
    assert rich.git("branch", "--list", "fairwitness/*") == ""


def test_the_pool_keeps_no_more_than_it_may_and_prefers_the_newest_tree(person: Person) -> None:
    old = person.commit(a="1\n")
    new = person.commit(a="2\n")
    worktrees = replace(worktrees_of(person), pooled=2)
    attempts = [worktrees.create(RUN, "task-01", number, old) for number in range(1, 6)]
    for attempt in attempts[:3]:
        worktrees.release(attempt, old)
    assert len(waiting(worktrees)) == 2
    for attempt in attempts[3:]:
        worktrees.release(attempt, new)
    assert [(entry / "files" / "a").read_text() for entry in waiting(worktrees)] == ["2\n", "2\n"]
    worktrees.release(worktrees.create(RUN, "task-02", 1, old), old)
    assert len(waiting(worktrees)) == 2
    worktrees.pool.drain()
    assert waiting(worktrees) == []
    worktrees.pool.drain()


def test_a_pool_of_none_keeps_none(person: Person) -> None:
    person.commit(a="1\n")
    assert used(worktrees_of(person, pooled=0), "HEAD") == []


def test_a_worktree_made_by_hand_is_like_one_that_git_makes(rich: Person) -> None:
    worktrees = worktrees_of(rich)
    used(worktrees, "HEAD")
    name = worktrees.named(RUN, "task-01", 1).folder.name
    theirs = rich.folder / ".git" / "worktrees" / name
    theirs.mkdir(parents=True)
    (theirs / "gitdir").write_text("/somewhere/else/.git\n")
    worktree = worktrees.create(RUN, "task-01", 1, "HEAD")
    assert waiting(worktrees) == []
    ours = theirs.with_name(f"{name}1")
    assert rich.git("rev-parse", "--absolute-git-dir", cwd=worktree.folder) == str(ours)
    rich.git("worktree", "lock", str(worktree.folder))
    rich.git("worktree", "unlock", str(worktree.folder))
    rich.git("worktree", "move", str(worktree.folder), str(rich.home / "moved"))
    assert rich.git("status", "--porcelain", cwd=rich.home / "moved") == ""
    rich.git("worktree", "remove", str(rich.home / "moved"))
    assert not ours.exists()


def test_a_branch_can_stay_when_its_folder_goes(person: Person) -> None:
    base = person.commit(a="1\n")
    worktrees = worktrees_of(person)
    worktree = worktrees.create(RUN, "task-01", 1, base)
    (worktree.folder / "a").write_text("2\n")
    done = worktrees.commit_all(worktree, "work", FALLBACK)
    assert worktrees.release(worktree, base, keep_branch=True) is None
    assert worktrees.tip(worktree) == done.commit
    assert not worktree.folder.exists()
    again = worktrees.create(RUN, "task-01", 1, base)
    assert (again.folder / "a").read_text() == "2\n", "it stands where the branch does"
    (again.folder / "left").write_text("x\n")
    kept = worktrees.release(again, base, keep_branch=True)
    assert kept is not None
    assert person.git("show", f"{kept.commit}:left") == "x"
    assert worktrees.release(again, base) is None, "quarantine holds it already"
    assert worktrees.tip(worktree) is None


CODE = """
    import sys
    from pathlib import Path
    from fairwitness.git.repository import Repository
    from fairwitness.git.shadow import Shadow
    from fairwitness.git.worktrees import Worktrees
    top = Path(sys.argv[1])
    repository = Repository.open(top)
    worktrees = Worktrees(repository, Shadow.open(top / ".fairwitness" / "shadow", repository), top / ".fairwitness" / "worktrees")
"""  # noqa: E501


def _python(code: str, person: Person, *arguments: str, **env: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **env}
    source = textwrap.dedent(CODE) + textwrap.dedent(code)
    return subprocess.Popen([sys.executable, "-c", source, str(person.folder), *arguments], env=environment)


def test_processes_that_race_each_get_a_folder_of_their_own(rich: Person) -> None:
    worktrees = worktrees_of(rich)
    wanted = fresh(rich, "HEAD")
    for attempt in [worktrees.create("earlier", "task", number, "HEAD") for number in (1, 2)]:
        worktrees.release(attempt, "HEAD")
    assert len(waiting(worktrees)) == 2
    code = """
        for number in range(3):
            worktree = worktrees.create("race", sys.argv[2], number + 1, "HEAD")
            (worktree.folder / sys.argv[2]).touch()
            if number < 2:
                worktrees.release(worktree, "HEAD")
    """
    racing = [_python(code, rich, f"task-{number}") for number in range(4)]
    assert [process.wait() for process in racing] == [0, 0, 0, 0]
    for number in range(4):
        worktree = worktrees.named("race", f"task-{number}", 3)
        (worktree.folder / f"task-{number}").unlink()
        assert_sound(rich, worktrees, worktree, wanted)
    assert len(waiting(worktrees)) <= 4


POINTS = [
    *("git.worktree.quarantined", "git.pool.brought", "git.pool.marked", "git.pool.parked", "git.worktree.forgotten"),
    *("git.pool.taken", "git.worktree.branched", "git.worktree.added", "git.admin.begun"),
    "git.worktree.filled",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_process_killed_anywhere_leaves_nothing_that_is_taken_for_clean(rich: Person, point: str) -> None:
    base = rich.git("rev-parse", "HEAD")
    worktrees = worktrees_of(rich)
    wanted = fresh(rich, base)
    first = worktrees.create(RUN, "task-01", 1, base)
    (first.folder / "src" / "other.py").write_text("y = 2\n")
    (first.folder / "build").mkdir()
    code = f"""
        worktrees.release(worktrees.named({RUN!r}, "task-01", 1), {base!r})
        worktrees.create({RUN!r}, "task-01", 2, {base!r})
    """
    assert _python(code, rich, FAIRWITNESS_KILL_AT=point).wait() == -signal.SIGKILL
    assert_sane(rich)
    assert _python(code, rich).wait() == 0
    second = worktrees.named(RUN, "task-01", 2)
    assert_sound(rich, worktrees, second, wanted)
    assert rich.git("branch", "--list", "--format=%(refname:short)", "fairwitness/*") == second.branch
    (kept,) = quarantine.kept(rich.open())
    assert rich.git("show", f"{kept.commit}:src/other.py") == "y = 2"
    beside = {path.name for path in worktrees.root.iterdir()}
    assert beside - {"pool"} == {second.folder.name, second.mark.name, "aside"}
    assert not any(path.is_file() for path in (worktrees.root / "aside").rglob("*"))
    assert waiting(worktrees) == []
    assert [path.name for path in (rich.folder / ".git" / "worktrees").iterdir()] == [second.folder.name]
    assert not list((rich.folder / ".git").glob("fairwitness*"))
    assert_sane(rich)


def assert_sane(person: Person) -> None:
    """What a person does in between finds nothing broken."""
    assert person.git("fsck", "--strict") == ""
    person.git("worktree", "list", "--porcelain")
    person.git("worktree", "prune")
    assert person.git("status", "--porcelain", "--ignore-submodules") == ""
