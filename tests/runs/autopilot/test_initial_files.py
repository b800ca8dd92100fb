"""Before its first phase a run adds our lines to `.gitignore`, empties its learnings, and counts the tracked files."""

import subprocess
from pathlib import Path

import pytest

from fairwitness.contracts.autopilot.repomap import RepoLanguage
from fairwitness.errors import UnsafePath
from fairwitness.git.repository import Repository
from fairwitness.runs.autopilot.initial_files import (
    ignore_runtime_files,
    language_of,
    tracked_files,
    write_codebase_analysis,
    write_initial_files,
)
from fairwitness.runs.autopilot.learnings import Learnings, fresh_learnings
from fairwitness.runs.autopilot.own_files import gitignore_with, is_our_gitignore
from fairwitness.store.artifacts import Store
from fairwitness.store.layout import autopilot
from runs.autopilot.logbook import Logbook, killed_everywhere
from runs.feature.markdown_reader import seen


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(own_home: None, tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    folder.mkdir()
    _git(folder, "init", "--quiet", "--initial-branch=main")
    for path in ("src/a.py", "src/b.py", "web/app.ts", "README.md", "odd |name|`.py"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("x = 1\n")
    (folder / "link.py").symlink_to("src/a.py")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message=first")
    (folder / "untracked.py").write_text("x = 2\n")
    return folder


@pytest.mark.req("A6")
def test_the_analysis_counts_what_git_tracks_and_says_what_it_does_not_know(checkout: Path, tmp_path: Path) -> None:
    repository = Repository.open(checkout)
    assert repository.head is not None
    logbook = Logbook.create(tmp_path / "run", base_commit=repository.head)
    write_codebase_analysis(logbook.log, logbook.files, repository)
    page = logbook.files.get(autopilot.CODEBASE_ANALYSIS).decode()
    assert f"from the names of the 5 files that git tracks at `{repository.head}`." in page
    assert "| python | 3 |\n| markdown | 1 |\n| typescript | 1 |" in page
    assert "| `src` | 2 |\n| `.` | 2 |" in page or "| `.` | 2 |\n| `src` | 2 |" in page
    assert "## What is not known" in page
    assert "this run has none" in page
    assert "untracked" not in page
    assert seen(page)
    before = logbook.tree()
    write_codebase_analysis(logbook.log, logbook.files, repository)
    assert logbook.tree() == before


@pytest.mark.req("A6")
def test_an_empty_tree_and_many_folders_are_told_too(checkout: Path, tmp_path: Path) -> None:
    for number in range(25):
        (checkout / f"part-{number:02}").mkdir()
        (checkout / f"part-{number:02}" / "x.go").write_text("package x\n")
    _git(checkout, "add", "--all")
    _git(checkout, "commit", "--quiet", "--message=many")
    repository = Repository.open(checkout)
    logbook = Logbook.create(tmp_path / "run", base_commit=repository.head)
    write_codebase_analysis(logbook.log, logbook.files, repository)
    assert "… and 8 smaller folders" in logbook.files.get(autopilot.CODEBASE_ANALYSIS).decode()
    _git(checkout, "rm", "-r", "--quiet", ".")
    _git(checkout, "commit", "--quiet", "--message=none")
    empty = Repository.open(checkout)
    assert empty.head is not None
    assert tracked_files(empty, empty.head) == ()


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("a/b.PY", RepoLanguage.PYTHON),
        ("x.test.tsx", RepoLanguage.TYPESCRIPT),
        ("Makefile", RepoLanguage.OTHER),
        (".py", RepoLanguage.OTHER),
    ],
)
def test_the_language_is_that_of_the_name(path: str, language: RepoLanguage) -> None:
    assert language_of(path) is language


@pytest.mark.req("A6")
@pytest.mark.parametrize("before", [None, b"", b"*.pyc", b"*.pyc\r\n", b"caf\xe9/\n\xff\n"])
def test_our_lines_are_added_and_what_stood_there_stays_byte_for_byte(tmp_path: Path, before: bytes | None) -> None:
    files = Store(tmp_path)
    if before is not None:
        files.put(".gitignore", before)
    assert ignore_runtime_files(files)
    after = files.get(".gitignore")
    assert after.startswith(before or b"")
    assert all(line.encode() in after.splitlines() for line in autopilot.GITIGNORE)
    assert not ignore_runtime_files(files)
    assert files.get(".gitignore") == after


@pytest.mark.req("A6")
def test_a_gitignore_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("mine\n")
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout" / ".gitignore").symlink_to(tmp_path / "precious")
    with pytest.raises(UnsafePath):
        ignore_runtime_files(Store(tmp_path / "checkout"))
    assert (tmp_path / "precious").read_text() == "mine\n"


@pytest.mark.req("A6", "A8")
def test_the_groundwork_is_laid_once_and_git_sees_nothing_of_the_state(checkout: Path, tmp_path: Path) -> None:
    repository = Repository.open(checkout)
    logbook = Logbook.create(tmp_path / "run", base_commit=repository.head)
    logbook.files = Store(checkout)
    write_initial_files(logbook.log, logbook.files, repository)
    first = {path: (checkout / path).read_bytes() for path in (".gitignore", autopilot.LEARNINGS)}
    write_initial_files(logbook.log, logbook.files, repository)
    assert first == {path: (checkout / path).read_bytes() for path in first}
    assert is_our_gitignore("", first[".gitignore"].decode())
    logbook.files.put(autopilot.STATE, b"{}")
    assert autopilot.STATE not in _git(checkout, "status", "--porcelain", "--untracked-files=all")


@pytest.mark.req("A6", "A8")
def test_killed_between_any_two_writes_it_is_laid_the_next_time(tmp_path: Path) -> None:
    logbook = Logbook.create(tmp_path / "run")
    for found in killed_everywhere(logbook, "begin", tmp_path):
        for _ in range(2):
            ignore_runtime_files(found.files)
            Learnings(found.log, found.files).begin()
            assert found.files.get(".gitignore").decode() == gitignore_with("")
            assert found.files.get(autopilot.LEARNINGS).decode() == fresh_learnings()
