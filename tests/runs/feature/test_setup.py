"""A run begins without touching what is the person's, and what lies in its folder from before is kept."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from fairwitness.contracts.feature.events import ArtifactWritten
from fairwitness.errors import UsageError
from fairwitness.git.identity import FALLBACK
from fairwitness.git.repository import Repository
from fairwitness.kit.text import visible
from fairwitness.runs.feature.setup import (
    begin_files,
    free_run_id,
    keep_dirty,
    look,
    ready,
    restore_command,
    snapshot_ref,
)
from git.person import Person, picture
from runs.feature.contexts import RUN
from runs.feature.git_runs import Land, dies, land, points

FOLDER = "docs/feature/gift-vouchers"
EARLIER = "2026-02-26T13:00:00Z"


def dirty(person: Person) -> None:
    """Changed, staged, staged and changed again, deleted, executable, linked, untracked and ignored files."""
    person.write("app.py", "print('staged')\n")
    person.git("add", "app.py")
    person.write("app.py", "print('changed')\n")
    person.write("same.txt", "changed\n").chmod(0o755)
    (person.folder / "old.txt").unlink()
    (person.folder / "link").unlink()
    (person.folder / "link").symlink_to("same.txt")
    person.write("notes/new file.txt", "untracked\n")
    person.write("added.txt", "added\n")
    person.git("add", "added.txt")
    person.write("debug.log", "ignored\n")


def looks(person: Person) -> dict[str, tuple[int, bytes]]:
    """Every file of the checkout with its mode."""
    return {
        path: (mode, content)
        for path, (mode, _, content) in picture(person.folder).items()
        if "/.git/" not in path and not path.endswith(".log")
    }


@pytest.mark.req("P3")
def test_what_the_checkout_is_like_is_told(tmp_path: Path) -> None:
    person = land(tmp_path).person
    head = person.git("rev-parse", "HEAD")
    hygiene = ready(person.open())
    assert tuple(hygiene) == (head, "main", False, None)
    assert hygiene.base == head
    dirty(person)
    assert look(person.open()).is_dirty
    person.git("stash", "-u")
    person.git("checkout", "-q", "--detach")
    assert look(person.open())[:3] == (head, None, False)


@pytest.mark.req("P3")
def test_a_checkout_that_nothing_can_start_from_is_refused(tmp_path: Path) -> None:
    empty = Person.in_folder(tmp_path, name="empty")
    assert look(empty.open()).head_commit is None
    with pytest.raises(UsageError, match="no commits yet"):
        ready(empty.open())
    bare = Person.in_folder(tmp_path, name="bare", init=("--bare",))
    with pytest.raises(UsageError, match="bare repository"):
        look(bare.open())
    person = land(tmp_path / "busy").person
    person.git("checkout", "-q", "-b", "other")
    person.commit("clash", **{"app.py": "print(3)\n"})
    for command, name in (("merge", "merge"), ("rebase", "rebase"), ("cherry-pick", "cherry-pick")):
        person.git(command, "fairwitness/target~1", check=False)
        assert look(person.open()).in_progress == name
        with pytest.raises(UsageError, match=f"a {name} is under way"):
            ready(person.open())
        person.git(command, "--abort")


@pytest.mark.req("P3")
def test_what_is_not_committed_is_kept_and_can_be_restored(tmp_path: Path) -> None:
    person = land(tmp_path).person
    assert keep_dirty(person.open(), person.shadow(), RUN, FALLBACK) is None
    dirty(person)
    before = picture(person.folder)
    ref = keep_dirty(person.open(), person.shadow(), RUN, FALLBACK)
    assert ref == snapshot_ref(RUN)
    after = picture(person.folder)
    assert {path: after[path] for path in before} == before, "neither index nor files are touched"
    assert all("/objects/" in path or "/refs/fairwitness/" in path for path in after.keys() - before.keys())
    assert person.git("show", f"{ref}^2:app.py") == "print('staged')", "the index is kept as well"
    meant = looks(person)
    person.git("reset", "-q", "--hard")
    person.git("clean", "-fdq")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("gc", "-q", "--prune=now")
    assert looks(person) != meant
    person.git(*restore_command(RUN).split()[1:])
    assert looks(person) == meant
    assert keep_dirty(person.open(), person.shadow(), RUN, FALLBACK) == ref, "repeated, it is found"


def test_a_snapshot_is_whole_or_not_there(tmp_path: Path) -> None:
    def work(person: Person) -> None:
        keep_dirty(person.open(), person.shadow(), RUN, FALLBACK)

    first = land(tmp_path / "first").person
    dirty(first)
    for number, point in enumerate(points(lambda: work(first), tmp_path / "log")):
        person = land(tmp_path / str(number)).person
        dirty(person)
        assert dies(lambda person=person: work(person), at=point)  # type: ignore[misc]  # a default binds the loop's value
        work(person)
        assert person.git("show", f"{snapshot_ref(RUN)}:notes/new file.txt") == "untracked"


def test_a_taken_run_id_moves_to_the_next_free_second() -> None:
    moment = datetime(2026, 12, 31, 23, 59, 58, 999_999, tzinfo=UTC)
    taken = {"2026-12-31T23:59:58Z", "2026-12-31T23:59:59Z"}
    assert free_run_id(lambda run: run in taken, lambda: moment) == "2027-01-01T00:00:00Z"
    assert free_run_id(lambda run: False, lambda: moment) == "2026-12-31T23:59:58Z"


def begun(land: Land) -> None:
    """Begins the files of a run, as a new process does."""
    with land.context() as context:
        begin_files(context)


@pytest.mark.req("P3")
def test_the_feature_folder_is_hidden_from_git_once(tmp_path: Path) -> None:
    run = land(tmp_path)
    exclude = run.person.folder / ".git" / "info" / "exclude"
    exclude.write_text("# mine\n/private")
    for _ in range(2):
        begun(run)
        assert exclude.read_text() == f"# mine\n/private\n/{FOLDER}/\n"
    assert run.person.git("status", "--porcelain") == ""
    assert (run.person.folder / FOLDER / "initial-request.md").read_text().startswith("Gift vouchers\n")
    with run.context() as context:
        assert context.get(context.layout.initial_request) is not None
        assert run.person.git("rev-parse", context.order.baseline_tag) == context.order.base_commit


def test_a_linked_worktree_uses_the_list_that_git_reads_there(tmp_path: Path) -> None:
    run = land(tmp_path)
    linked = tmp_path / "linked"
    run.person.git("worktree", "add", "-q", "-b", "side", str(linked), "main")
    begun(Land(run.person, run.state, folder=linked, order={"base_branch": "side"}))
    assert (linked / FOLDER / "initial-request.md").is_file()
    assert run.person.git("status", "--porcelain", cwd=linked) == ""
    assert not (run.person.folder / "docs").exists()


def left_over(run: Land) -> Land:
    """An earlier run's outputs, one of them changed since, and a file that nobody knows."""
    earlier = Land(run.person, run.state, run_id=EARLIER)
    begun(earlier)
    with earlier.context() as context:
        context.put(context.layout.spec, "a: 1\n")
        context.put(context.layout.task("task-01"), "b: 1\n")
        context.put(context.layout.design, "c: 1\n")
        context.write_event(ArtifactWritten(path=context.layout.plan, sha256="sha256:" + "1" * 64))
    run.person.write(f"{FOLDER}/design-output.yaml", "c: changed\n")
    run.person.write(f"{FOLDER}/notes/mine.md", "mine\n")
    return run


def check_archived(run: Land) -> None:
    """Everything of before is in an archive, and only the new request outside of one."""
    folder = run.person.folder / FOLDER
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    files = {path: text for path, text in files.items() if not path.rpartition("/")[2].startswith(".")}
    archive = "archive/2026-02-26T13-00-00Z"
    request = "Gift vouchers\n\nCustomers can buy them.\n"
    assert files == {
        "initial-request.md": request,
        f"{archive}/initial-request.md": request,
        f"{archive}/spec-output.yaml": "a: 1\n",
        f"{archive}/tasks/task-01.yaml": "b: 1\n",
        f"{archive}/design-output.yaml": "c: changed\n",
        "archive/before-2026-02-26T14-30-00Z/notes/mine.md": "mine\n",
    }
    assert not (folder / "tasks").exists()


@pytest.mark.req("P3")
def test_what_an_earlier_run_left_is_archived_under_its_name(tmp_path: Path) -> None:
    run = left_over(land(tmp_path))
    begun(run)
    check_archived(run)
    begun(run)
    check_archived(run)


def test_two_files_of_one_name_are_both_kept(tmp_path: Path) -> None:
    run = left_over(land(tmp_path))
    run.person.write(f"{FOLDER}/archive/2026-02-26T13-00-00Z/spec-output.yaml", "archived before\n")
    begun(run)
    folder = run.person.folder / FOLDER / "archive"
    assert (folder / "2026-02-26T13-00-00Z" / "spec-output.yaml").read_text() == "archived before\n"
    assert (folder / "before-2026-02-26T14-30-00Z" / "spec-output.yaml").read_text() == "a: 1\n"


@pytest.mark.req("P16")
def test_a_beginning_that_was_killed_anywhere_is_begun_again(tmp_path: Path) -> None:
    first = left_over(land(tmp_path / "first"))
    for number, point in enumerate(points(lambda: begun(first), tmp_path / "log")):
        run = left_over(land(tmp_path / str(number)))
        assert dies(lambda run=run: begun(run), at=point), visible(point)  # type: ignore[misc]  # as above
        begun(run)
        check_archived(run)


def test_the_checkout_is_looked_at_anew(tmp_path: Path) -> None:
    person = land(tmp_path).person
    repository = Repository.open(person.folder)
    person.git("checkout", "-q", "-b", "elsewhere")
    commit = person.commit("later", **{"app.py": "print(4)\n"})
    assert tuple(look(repository)) == (commit, "elsewhere", False, None)
