"""Every file that git reads in a git directory, planted there: none has an effect in ours, none runs anything in theirs."""  # noqa: E501

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.errors import InternalError
from fairwitness.git.call import GitFailed
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from git.person import Person
from git.test_hostile import everything, sprung

pytestmark = pytest.mark.req("X5")

RUNS = """[core]
\tfsmonitor = {trap}
\thooksPath = {hooks}
\tpager = {trap}
\teditor = {trap}
\tsshCommand = {trap}
\tgitProxy = {trap}
\taskPass = {trap}
\talternateRefsCommand = {trap}
\tattributesFile = {attributes}
[filter "f"]
\tclean = {trap}
\tsmudge = {trap}
\tprocess = {trap}
\trequired
[diff]
\texternal = {trap}
[diff "d"]
\ttextconv = {trap}
\tcommand = {trap}
[merge "d"]
\tdriver = {trap} %A
[sequence]
\teditor = {trap}
[gpg]
\tprogram = {trap}
[gpg "ssh"]
\tprogram = {trap}
[credential]
\thelper = {trap}
[pager]
\tcat-file = {trap}
\trev-list = {trap}
[interactive]
\tdiffFilter = {trap}
[uploadpack]
\tpackObjectsHook = {trap}
[protocol]
\tallow = always
[remote "origin"]
\turl = ext::{trap}
\tpromisor = true
[alias]
\trev-parse = !{trap}
[trace2]
\teventTarget = {mark}
"""
"""A configuration that runs a program wherever git runs one."""
ATTRIBUTES = "* filter=f diff=d merge=d\n"
HOOKS = ("reference-transaction", "post-index-change", "post-checkout", "pre-commit", "post-commit", "pre-auto-gc")


def hooks_in(folder: Path, program: Path) -> Path:
    """A folder of hooks that all run the program."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in HOOKS:
        (folder / name).symlink_to(program)
    return folder


def evil(person: Person) -> tuple[Path, str, Path]:
    """A git directory whose configuration runs a program, that configuration, and the mark the program leaves."""
    program, mark = person.trap()
    folder = person.home.parent / "evil"
    (folder / "info").mkdir(parents=True)
    hooks = hooks_in(folder / "hooks", program)
    (folder / "info" / "attributes").write_text(ATTRIBUTES)
    config = RUNS.format(trap=program, hooks=hooks, attributes=folder / "info" / "attributes", mark=mark)
    (folder / "config").write_text("[core]\n\tbare = true\n" + config)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    for name in ("objects/info", "refs/heads"):
        (folder / name).mkdir(parents=True)
    return folder, config, mark


Plant = Callable[[Path, Path, str], None]
"""Plants something in a git directory, given the evil one and its configuration."""


def _write(name: str, content: str | None = None) -> Plant:
    def plant(folder: Path, other: Path, config: str) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(config if content is None else content.format(evil=other))

    return plant


def _link(name: str, target: str) -> Plant:
    def plant(folder: Path, other: Path, config: str) -> None:
        if (folder / name).is_dir():
            shutil.rmtree(folder / name)
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(other / target)

    return plant


def _hooks(folder: Path, other: Path, config: str) -> None:
    shutil.copytree(other / "hooks", folder / "hooks", symlinks=True, dirs_exist_ok=True)


def _tree(name: str) -> Plant:
    def plant(folder: Path, other: Path, config: str) -> None:
        shutil.copytree(other, folder / name, symlinks=True)

    return plant


IN_OURS: dict[str, Plant] = {
    "commondir": _write("commondir", "{evil}\n"),
    "config": _write("config"),
    "config that includes": _write("config", "[include]\n\tpath = {evil}/config\n"),
    "config that includes if": _write("config", '[includeIf "gitdir:/"]\n\tpath = {evil}/config\n'),
    "config.worktree": _write("config.worktree"),
    "alternates": _write("objects/info/alternates", "{evil}/objects\n"),
    "http-alternates": _write("objects/info/http-alternates", "{evil}/objects\n"),
    "commit-graph": _write("objects/info/commit-graph", "no graph\n"),
    "commit-graphs": _write("objects/info/commit-graphs/commit-graph-chain", "no chain\n"),
    "multi-pack-index": _write("objects/pack/multi-pack-index", "no index\n"),
    "promisor pack": _write("objects/pack/pack-" + "0" * 40 + ".promisor", ""),
    "grafts": _write("info/grafts", "0" * 40 + "\n"),
    "shallow": _write("shallow", "0" * 40 + "\n"),
    "attributes": _write("info/attributes", ATTRIBUTES),
    "exclude": _write("info/exclude", "*\n"),
    "sparse-checkout": _write("info/sparse-checkout", "/nothing\n"),
    "hooks": _hooks,
    "modules": _tree("modules/sub"),
    "worktrees": _tree("worktrees/other"),
    "packed-refs": _write("packed-refs", "# pack-refs with: sorted\n" + "1" * 40 + " refs/heads/main\n"),
    "a replacement": _write("refs/replace/" + "1" * 40, "2" * 40 + "\n"),
    "a ref": _write("refs/heads/none", "1" * 40 + "\n"),
    "HEAD": _write("HEAD", "1" * 40 + "\n"),
    "index": _write("index", "no index\n"),
    "gitdir": _write("gitdir", "{evil}\n"),
    "remotes": _write("remotes/origin", "URL: ext::/bin/false\n"),
    "reftable": _write("reftable/tables.list", "x\n"),
    "logs": _write("logs/HEAD", "x\n"),
    "linked config": _link("config", "config"),
    "linked objects": _link("objects", "objects"),
    "linked refs": _link("refs", "refs"),
    "linked folder for temporary files": _link("passing", "objects"),
}
"""Every file of a git directory that changes what git does, as a person can plant it."""


def _cases(plants: dict[str, Plant], *sample: str) -> list[object]:
    """Every plant; `make test` takes only the named ones."""
    return [pytest.param(name, marks=pytest.mark.width("sample" if name in sample else "full")) for name in plants]


@pytest.mark.parametrize("name", _cases(IN_OURS, "commondir", "attributes", "linked objects"))
def test_nothing_that_is_planted_in_our_git_directory_has_an_effect(person: Person, name: str) -> None:
    person.commit(**{"a.bin": "one\n", ".gitattributes": ATTRIBUTES})
    person.write("a.bin", "two\n")
    person.write("b.bin", "new\n")
    folder = person.home.parent / "state" / "shadow"
    expected = _work(person, folder)
    shutil.rmtree(folder)
    planted, config, mark = evil(person)
    Shadow.open(folder, person.open())
    IN_OURS[name](folder, planted, config)
    assert _work(person, folder) == expected
    assert not sprung(mark)
    everything(person)
    assert not sprung(mark)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*") if not _is_object(path.relative_to(folder))}
    assert left <= {
        *("config", "HEAD", "objects", "objects/info", "objects/info/alternates", "objects/pack"),
        *("refs", "refs/heads", "passing", "locks"),
    }
    assert not any((folder / each).is_symlink() for each in left)


def _work(person: Person, folder: Path) -> tuple[str, str, bytes, str]:
    """What a verification reads and writes: both trees, a blob, and the file that a checkout of it holds."""
    repository = person.open()
    shadow = Shadow.open(folder, repository)
    tree, staged = shadow.worktree_tree(repository), shadow.staged_tree(repository)
    out = person.home.parent / f"out-{folder.stat().st_ino}-{len(list(person.home.parent.iterdir()))}"
    shadow.checkout(tree, out)
    return tree, staged, shadow.read(tree, "a.bin") or b"", (out / "a.bin").read_text()


def _is_object(path: Path) -> bool:
    return path.parts[0] == "objects" and len(path.parts) > 1 and len(path.parts[1]) == 2


def test_the_blocker_runs_a_program_if_git_is_called_plainly_in_such_a_directory(person: Person) -> None:
    """The sweep above can fail: one of its plants, without our call and without our layout."""
    person.commit(**{"a.bin": "one\n", ".gitattributes": ATTRIBUTES})
    planted, _, mark = evil(person)
    shadow = person.shadow()
    tree = person.open().tree_of("HEAD")
    (shadow.git.path / "commondir").write_text(f"{planted}\n")
    shutil.copytree(person.folder / ".git" / "objects", planted / "objects", dirs_exist_ok=True)
    out = person.home.parent / "plain"
    out.mkdir()
    place = (f"--git-dir={shadow.git.path}", f"--work-tree={out}")
    index = str(person.home / "index")
    person.git(*place, "read-tree", tree, check=False, GIT_INDEX_FILE=index)
    person.git(*place, "checkout-index", "--all", check=False, GIT_INDEX_FILE=index)
    assert sprung(mark)


def _append(text: str = "{config}") -> Plant:
    """Adds to the configuration."""

    def plant(folder: Path, other: Path, config: str) -> None:
        file = folder / "config"
        added = (
            config if text == "{config}" else text.replace("{evil}", str(other)).replace("{here}", str(folder.parent))
        )
        file.write_text(file.read_text() + added)

    return plant


def _all(*plants: Plant) -> Plant:
    def plant(folder: Path, other: Path, config: str) -> None:
        for each in plants:
            each(folder, other, config)

    return plant


IN_THEIRS: dict[str, Plant] = {
    "config": _append(),
    "an include": _append("[include]\n\tpath = {evil}/config\n"),
    "an include by folder": _append('[includeIf "gitdir:{here}/"]\n\tpath = {evil}/config\n'),
    "an include by branch": _append('[includeIf "onbranch:main"]\n\tpath = {evil}/config\n'),
    "config.worktree": _all(_append("[extensions]\n\tworktreeConfig = true\n"), _write("config.worktree")),
    "hooks": _hooks,
    "attributes": _all(_append(), _write("info/attributes", ATTRIBUTES)),
    "modules": _tree("modules/sub"),
    "worktrees": _tree("worktrees/other"),
    "grafts": _write("info/grafts", "0" * 40 + "\n"),
    "remotes": _write("remotes/origin", "URL: ext::/bin/false\n"),
}


@pytest.mark.parametrize("name", _cases(IN_THEIRS, "an include by folder"))
def test_nothing_that_is_planted_in_the_persons_git_directory_runs(person: Person, name: str) -> None:
    person.commit(**{"a.bin": "one\n", ".gitattributes": ATTRIBUTES})
    head = person.commit(**{"a.bin": "two\n"})
    person.write("a.bin", "three\n")
    planted, config, mark = evil(person)
    IN_THEIRS[name](person.folder / ".git", planted, config)
    everything(person)
    assert not sprung(mark)
    assert person.open().head == head


def test_a_commondir_that_makes_no_linked_worktree_is_refused(person: Person) -> None:
    person.commit(a="one\n")
    planted, _, mark = evil(person)
    (person.folder / ".git" / "commondir").write_text(f"{planted}\n")
    with pytest.raises(GitFailed, match="which has no such worktree") as caught:
        person.open()
    assert "git worktree repair" in caught.value.next_step
    assert not sprung(mark)


def test_a_linked_worktree_is_followed_to_its_repository(person: Person, tmp_path: Path) -> None:
    head = person.commit(a="one\n")
    person.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repository.open(tmp_path / "linked")
    assert (linked.head, linked.common_dir) == (head, person.folder / ".git")
    assert Shadow.open(tmp_path / "state", linked).worktree_tree(linked) == linked.tree_of(head)


def test_alternates_are_read_except_from_the_checkout_itself(person: Person, tmp_path: Path) -> None:
    person.commit(a="one\n")
    clone = Person(tmp_path / "clone", person.home)
    person.git("clone", "-q", "--shared", str(person.folder), str(clone.folder), cwd=tmp_path)
    repository = clone.open()
    shadow = Shadow.open(tmp_path / "state" / "clone", repository)
    assert shadow.read(repository.tree_of("HEAD"), "a") == b"one\n"
    store = clone.folder / "vendored" / "objects"
    shutil.copytree(person.folder / ".git" / "objects", store)
    (clone.folder / ".git" / "objects" / "info" / "alternates").write_text(f"{store}\n")
    with pytest.raises(GitFailed, match="a folder of its own checkout"):
        clone.open()


def test_a_shallow_clone_is_followed_and_a_list_of_anything_else_is_refused(person: Person, tmp_path: Path) -> None:
    person.commit(a="one\n")
    head = person.commit(a="two\n")
    clone = Person(tmp_path / "clone", person.home)
    person.git("clone", "-q", "--depth=1", person.folder.as_uri(), str(clone.folder), cwd=tmp_path)
    repository = clone.open()
    assert (repository.is_shallow, repository.head) == (True, head)
    shadow = Shadow.open(tmp_path / "state" / "clone", repository)
    assert (shadow.git.path / "shallow").read_text() == f"{head}\n"
    (clone.folder / ".git" / "shallow").write_text("../../etc/passwd\n")
    with pytest.raises(GitFailed):
        Shadow.open(tmp_path / "state" / "clone", clone.open())


def test_a_bare_repository_that_a_commit_brings_runs_nothing(person: Person) -> None:
    """Git calls it an embedded bare repository: a folder of the checkout that looks like a git directory."""
    person.commit(a="one\n")
    planted, _, mark = evil(person)
    inside = person.folder / "docs" / "sample"
    shutil.copytree(planted, inside, symlinks=True)
    shutil.copytree(person.folder / ".git" / "objects", inside / "objects", dirs_exist_ok=True)
    (inside / "refs" / "heads" / "main").write_text(person.git("rev-parse", "HEAD") + "\n")
    repository = Repository.open(inside)
    Shadow.open(person.home / "state", repository).entries(repository.tree_of("HEAD"))
    repository.default_base()
    assert not sprung(mark)


def test_a_submodule_with_a_command_for_ssh_is_neither_fetched_nor_entered(person: Person, tmp_path: Path) -> None:
    other = Person.in_folder(tmp_path, name="other")
    other.commit(f="f\n")
    person.commit(a="one\n")
    person.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(other.folder), "sub")
    person.git("config", "-f", ".gitmodules", "submodule.sub.url", "ssh://nowhere/x")
    person.git("config", "-f", ".gitmodules", "submodule.sub.update", "!touch owned")
    person.commit()
    planted, config, mark = evil(person)
    for file in (person.folder / ".git" / "modules" / "sub" / "config", person.folder / ".git" / "config"):
        file.write_text(file.read_text() + config)
    (person.folder / "sub" / "f").write_text("changed\n")
    everything(person)
    inside = Repository.open(person.folder / "sub")
    Shadow.open(tmp_path / "state" / "sub", inside).worktree_tree(inside)
    assert not sprung(mark)
    assert not list(tmp_path.rglob("owned"))
    assert planted.exists()


def test_a_command_that_uses_filters_or_drivers_cannot_be_called_under_the_persons_configuration(
    person: Person,
) -> None:
    person.commit(a="one\n")
    for arguments in (["status"], ["diff"], ["show", "HEAD:a"], ["add", "a"], ["checkout", "HEAD"], ["fetch"]):
        with pytest.raises(InternalError, match="may not be called"):
            person.open().git.ask(*arguments)


def test_git_directories_of_other_processes_are_not_disturbed(person: Person) -> None:
    """What another process writes at this moment stays: its temporary index, its lock, a file half written."""
    person.commit(a="one\n")
    shadow = person.shadow()
    busy = [
        *(shadow.git.path / name for name in ("passing/tmp1/index", "locks/x.lock", ".config.0123456789abcdef.tmp")),
        *(shadow.git.path / "objects" / name for name in ("ab/tmp_obj_x", "pack/tmp_pack_x", "tmp_bulk")),
    ]
    for file in busy:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    person.shadow()
    assert all(file.exists() for file in busy)
    assert os.access(shadow.git.path, os.W_OK)
