"""A repository is opened in any shape, or one clear sentence says why not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed
from fairwitness.git.repository import Repository
from git.person import Person


def test_an_ordinary_repository_is_known_from_any_folder_in_it(person: Person) -> None:
    first = person.commit(a="1\n")
    head = person.commit(**{"deep/in/b": "2\n"})
    repository = Repository.open(person.folder / "deep" / "in")
    assert (repository.top, repository.git_dir) == (person.folder, person.folder / ".git")
    assert (repository.common_dir, repository.is_bare, repository.is_shallow) == (person.folder / ".git", False, False)
    assert (repository.head, repository.branch, repository.object_format) == (head, "main", "sha1")
    assert repository.commit("HEAD~1") == repository.commit(first[:8]) == first
    assert repository.tree_of(head) == person.git("rev-parse", "HEAD^{tree}")
    assert repository.is_ancestor(first, head)
    assert not repository.is_ancestor(head, first)
    assert repository.merge_base(first, head) == first
    assert Repository.open(person.folder / "deep" / "in" / "b").head == head, "also from a file"


def test_the_tree_of_a_full_hash_is_asked_for_once_and_that_of_a_name_each_time(person: Person) -> None:
    first = person.commit(a="1\n")
    repository = person.open()
    before = {name: repository.tree_of(name) for name in (first, "main", "HEAD", first[:8])}
    assert len(set(before.values())) == 1
    second = person.commit(a="2\n")
    assert repository.tree_of("main") == repository.tree_of("HEAD") == repository.tree_of(second) != before["main"]
    (person.folder / ".git/objects" / first[:2] / first[2:]).unlink()
    assert repository.tree_of(first) == before[first]
    for name in (first[:8], "main~1"):
        with pytest.raises(GitFailed, match="is missing"):
            repository.tree_of(name)


def test_a_repository_without_commits_opens_and_says_so_when_asked_for_one(person: Person) -> None:
    repository = person.open()
    assert (repository.head, repository.branch, repository.default_base()) == (None, "main", None)
    assert not repository.is_dirty()
    for ref in ("HEAD", "HEAD~1", "@"):
        with pytest.raises(UsageError, match="no commits yet"):
            repository.commit(ref)
    person.write("a")
    assert repository.is_dirty()
    assert [*person.shadow().entries(person.shadow().worktree_tree(repository))] == ["a"]


def test_a_detached_head_has_a_commit_and_no_branch(person: Person) -> None:
    first = person.commit(a="1\n")
    person.commit(a="2\n")
    person.git("checkout", "-q", first)
    repository = person.open()
    assert (repository.head, repository.branch) == (first, None)


def test_a_bare_repository_knows_commits_and_refuses_what_needs_a_checkout(person: Person, tmp_path: Path) -> None:
    head = person.commit(a="1\n")
    person.git("clone", "-q", "--bare", str(person.folder), str(tmp_path / "bare.git"))
    repository = Repository.open(tmp_path / "bare.git")
    assert (repository.top, repository.is_bare, repository.head) == (None, True, head)
    assert Repository.open(tmp_path / "bare.git" / "refs").head == head
    shadow = person.shadow()
    assert not repository.is_dirty()
    for ask in (shadow.staged_tree, shadow.worktree_tree):
        with pytest.raises(UsageError, match="is a bare repository, so there is no"):
            ask(repository)
    with pytest.raises(UsageError, match="inside of a repository"):
        Repository.open(person.folder / ".git" / "refs")


def test_a_linked_worktree_has_its_own_head_and_shares_the_rest(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    linked = tmp_path / "linked"
    person.git("worktree", "add", "-q", "-b", "other", str(linked))
    head = Person(linked, person.home).commit(b="2\n")
    repository = Repository.open(linked)
    assert (repository.top, repository.branch, repository.head) == (linked, "other", head)
    assert repository.common_dir == person.folder / ".git"
    assert repository.git_dir == person.folder / ".git" / "worktrees" / "linked"
    assert not repository.is_dirty()
    (linked / "b").write_text("3\n")
    assert repository.is_dirty()
    assert not person.open().is_dirty()


def test_a_linked_worktree_of_a_bare_repository_has_a_checkout(person: Person, tmp_path: Path) -> None:
    head = person.commit(a="1\n")
    person.git("clone", "-q", "--bare", str(person.folder), str(tmp_path / "bare.git"))
    person.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "x", cwd=tmp_path / "bare.git")
    repository = Repository.open(tmp_path / "linked")
    assert (repository.top, repository.is_bare, repository.head) == (tmp_path / "linked", False, head)
    assert not repository.is_dirty()


def test_a_shallow_clone_works_and_is_named_where_history_ends(person: Person, tmp_path: Path) -> None:
    for number in range(3):
        person.commit(a=f"{number}\n")
    person.git("clone", "-q", "--depth=1", f"file://{person.folder}", str(tmp_path / "shallow"))
    clone = Person(tmp_path / "shallow", person.home)
    repository = clone.open()
    assert repository.is_shallow
    assert repository.default_base() is None
    with pytest.raises(UsageError, match=r"unknown ref 'HEAD~1' \(the clone is shallow\)") as caught:
        repository.commit("HEAD~1")
    assert "--unshallow" in caught.value.next_step
    tree = clone.shadow().worktree_tree(repository)
    assert tree == repository.tree_of("HEAD")


def test_a_clone_that_borrows_objects_is_followed_to_their_owner(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    person.git("clone", "-q", "--shared", str(person.folder), str(tmp_path / "b ü"))
    person.git("clone", "-q", "--shared", str(tmp_path / "b ü"), str(tmp_path / "c"))
    for borrower, lender in (("b ü", "repo"), ("c", "b ü")):
        alternates = tmp_path / borrower / ".git" / "objects" / "info" / "alternates"
        alternates.write_text(f"../../../{lender}/.git/objects\n")  # git itself follows such names one step deep
    clone = Person(tmp_path / "c", person.home)
    (tmp_path / "c" / ".git" / "objects" / "info" / "alternates").write_text(f"{tmp_path}/b ü/.git/objects\n")
    shadow, tree = clone.shadow(), person.git("rev-parse", "HEAD^{tree}")
    assert shadow.read(tree, "a") == b"1\n"


@pytest.mark.parametrize("ref", ["-x", "--all", "", "a\nb", "a\0b"])
def test_what_cannot_be_a_ref_is_refused_before_git_sees_it(person: Person, ref: str) -> None:
    person.commit(a="1\n")
    with pytest.raises(UsageError, match="cannot be a ref"):
        person.open().commit(ref)


@pytest.mark.parametrize("ref", ["nothing", "HEAD~9", "HEAD:a", "v1..v2", "deadbeef"])
def test_an_unknown_ref_is_one_sentence_and_a_next_step(person: Person, ref: str) -> None:
    person.commit(a="1\n")
    with pytest.raises(UsageError, match="unknown ref") as caught:
        person.open().commit(ref)
    assert "git branch" in caught.value.next_step


def test_outside_a_repository_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not in a git repository"):
        Repository.open(tmp_path)
    with pytest.raises(UsageError, match="there is no"):
        Repository.open(tmp_path / "missing")


@pytest.mark.parametrize(
    "damage", ["no HEAD", "empty .git", "bad pointer", "pointer to nothing", "bad config", "no commit", "bad ref"]
)
def test_a_damaged_repository_is_one_sentence_and_never_the_one_around_it(person: Person, damage: str) -> None:
    person.commit(a="1\n")
    inner = Person.in_folder(person.folder, name="inner")
    inner.commit(a="1\n")
    git_dir = inner.folder / ".git"
    if damage == "no HEAD":
        (git_dir / "HEAD").unlink()
    elif damage == "bad config":
        (git_dir / "config").write_text("[core\n")
    elif damage == "bad ref":
        (git_dir / "refs" / "heads" / "main").write_text("nonsense\n")
    elif damage == "no commit":
        head = inner.git("rev-parse", "HEAD")
        (git_dir / "objects" / head[:2] / head[2:]).unlink()
    else:
        git_dir.rename(inner.folder / "was")
        if damage == "empty .git":
            git_dir.mkdir()
        else:
            git_dir.write_text("nonsense" if damage == "bad pointer" else "gitdir: ../nowhere\n")
    with pytest.raises(GitFailed) as caught:
        inner.open()
    assert "\n" not in caught.value.what
    assert caught.value.next_step


def test_without_git_there_is_one_sentence(person: Person, tmp_path: Path) -> None:
    code = (
        "from pathlib import Path\nfrom fairwitness.errors import NotReady\nfrom fairwitness.git.repository import Repository\n"  # noqa: E501
        f"try: Repository.open(Path({str(person.folder)!r}))\nexcept NotReady as error: print(error.what)"
    )
    for path in (str(tmp_path / "nothing"), ".:bin"):
        environment = {"PATH": path, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True)
        assert done.stdout == b"git is not installed\n"


class TestDefaultBase:
    """What a change is compared with if nobody says."""

    def test_the_commit_before_on_the_only_branch(self, person: Person) -> None:
        first = person.commit(a="1\n")
        assert person.open().default_base() is None
        person.commit(a="2\n")
        assert person.open().default_base() == first

    def test_where_the_branch_left_main(self, person: Person) -> None:
        fork = person.commit(a="1\n")
        person.git("checkout", "-q", "-b", "feature")
        person.commit(b="1\n")
        person.commit(b="2\n")
        person.git("checkout", "-q", "main")
        person.commit(c="1\n")
        person.git("checkout", "-q", "feature")
        assert person.open().default_base() == fork
        person.git("checkout", "-q", "--detach")
        assert person.open().default_base() == fork

    def test_what_is_not_pushed_yet(self, person: Person, tmp_path: Path) -> None:
        pushed = person.commit(a="1\n")
        person.git("clone", "-q", str(person.folder), str(tmp_path / "clone"))
        clone = Person(tmp_path / "clone", person.home)
        clone.commit(a="2\n")
        clone.commit(a="3\n")
        assert clone.open().default_base() == pushed

    def test_a_pushed_branch_is_compared_with_where_it_will_go_and_not_with_its_own_copy(
        self, person: Person, tmp_path: Path
    ) -> None:
        fork = person.commit(a="1\n")
        person.git("clone", "-q", str(person.folder), str(tmp_path / "clone"))
        clone = Person(tmp_path / "clone", person.home)
        clone.git("checkout", "-q", "-b", "feature")
        clone.commit(b="1\n")
        clone.git("push", "-q", "-u", "origin", "feature")
        clone.commit(b="2\n")
        assert clone.open().default_base() == fork

    def test_another_default_branch(self, person: Person, tmp_path: Path) -> None:
        person.git("checkout", "-q", "-b", "trunk")
        fork = person.commit(a="1\n")
        person.git("clone", "-q", str(person.folder), str(tmp_path / "clone"))
        clone = Person(tmp_path / "clone", person.home)
        clone.git("checkout", "-q", "-b", "feature", "--no-track")
        clone.commit(b="1\n")
        clone.commit(b="2\n")
        assert clone.open().default_base() == fork


def test_a_checkout_is_dirty_by_content_and_not_by_time(person: Person) -> None:
    person.commit(a="1\n", b="1\n")
    file = person.folder / "a"
    repository = person.open()
    os.utime(file, (1, 1))
    assert not repository.is_dirty()
    person.write(".gitignore", "*.log\n")
    person.commit()
    repository = person.open()
    person.write("x.log")
    assert not repository.is_dirty()
    person.write("x")
    assert repository.is_dirty()
    (person.folder / "x").unlink()
    file.write_text("2\n")
    person.git("add", "a")
    file.write_text("1\n")
    assert repository.is_dirty(), "the index alone counts too"
