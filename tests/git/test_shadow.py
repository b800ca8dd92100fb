"""Trees are read, composed, checked out and taken again without loss, whatever the files are called and are."""

import contextlib
import hashlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairwitness.errors import UsageError
from fairwitness.git.call import GitFailed
from fairwitness.git.objects import TreeEntry, path_problem
from fairwitness.git.shadow import Shadow
from git.person import Person, picture

ODD = {
    "plain": b"1\n",
    "a b/c d.txt": b"spaces\n",
    "ünïcode/日本.txt": "ä\n".encode(),
    "new\nline": b"x",
    'tab\tquote"back\\slash': b"y",
    os.fsdecode(b"latin-\xe9"): b"z",
    "-dash": b"",
    "*star?[x]": b"globs\n",
    ":(top)magic": b"pathspec\n",
    "binary": bytes(range(256)),
    "no newline": b"end",
    "crlf": b"a\r\nb\r\n",
    "deep/" * 20 + "end": b"deep\n",
}


def _fill(folder: Path) -> None:
    for path, content in ODD.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("plain")
    (folder / "dangling").symlink_to("/nowhere/at all")
    (folder / "link to folder").symlink_to("a b")


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_odd_files_survive_every_way_there_is(tmp_path: Path, object_format: str) -> None:
    person = Person.in_folder(tmp_path, init=("-b", "main", f"--object-format={object_format}"))
    _fill(person.folder)
    person.commit()
    repository, shadow = person.open(), person.shadow()
    tree = repository.tree_of("HEAD")
    entries = shadow.entries(tree)
    assert entries.keys() == {*ODD, "run.sh", "link", "dangling", "link to folder"}
    assert entries["run.sh"].mode == "100755"
    assert {path for path, entry in entries.items() if entry.mode == "120000"} == {"link", "dangling", "link to folder"}
    assert {path: shadow.read(tree, path) for path in ODD} == ODD
    assert dict(shadow.blobs(entry.id for entry in entries.values()))[entries["binary"].id] == ODD["binary"]
    assert shadow.read(tree, "link") == b"plain"
    for nothing in ("missing", "new\nlines", "a b", "plain/", "../plain", "./plain", "/plain", "", "a b/../plain"):
        assert shadow.read(tree, nothing) is None
    out = tmp_path / "out"
    shadow.checkout(tree, out)
    assert {path.lstat().st_mode for path in (out / "run.sh",)} == {0o100755}
    assert (out / "link").readlink() == Path("plain")
    assert not (out / ".git").exists()
    assert shadow.snapshot(out, tree) == tree
    assert shadow.snapshot(out, shadow.empty_tree()) == tree
    assert shadow.staged_tree(repository) == shadow.worktree_tree(repository) == tree
    subprocess.run(["diff", "-r", "--no-dereference", "-x", ".git", person.folder, out], check=True)


_NAME = st.text(st.sampled_from("ab\n é-*\udcff"), min_size=1, max_size=4).filter(
    lambda name: path_problem(name) is None
)
_PATH = st.lists(_NAME, min_size=1, max_size=3).map("/".join)
_FILES = st.dictionaries(
    _PATH, st.tuples(st.sampled_from(["100644", "100755", "120000"]), st.binary(min_size=1, max_size=12)), max_size=6
)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(old=_FILES, new=_FILES)
def test_composing_diffing_and_checking_out_agree(person: Person, tmp_path: Path, old: object, new: object) -> None:
    shadow = person.shadow()
    before, after = (_possible(files) for files in (old, new))
    base, head = (_tree(shadow, files) for files in (before, after))
    assert shadow.entries(base).keys() == before.keys()
    changes = shadow.diff(base, head)
    assert {change.path for change in changes} == {
        path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
    }
    assert shadow.compose(base, {change.path: change.new_entry for change in changes}) == head
    assert shadow.compose(head, {change.path: change.old_entry for change in changes}) == base
    for change in changes:
        if not change.is_binary:
            assert _patched(before.get(change.path, ("", b""))[1], change.removed, change.added) == [
                *_rows(after.get(change.path, ("", b""))[1])
            ]
    with shadow.passing_folder() as folder:
        shadow.checkout(head, folder / "out")
        assert shadow.snapshot(folder / "out", base) == head


def _possible(files: object) -> dict[str, tuple[str, bytes]]:
    """Files that can stand beside each other: none is another's folder; a link's target has no NUL."""
    assert isinstance(files, dict)
    return {
        path: (mode, content.replace(b"\0", b"0") if mode == "120000" else content)
        for path, (mode, content) in files.items()
        if not any(other.startswith(f"{path}/") for other in files)
    }


def _tree(shadow: Shadow, files: dict[str, tuple[str, bytes]]) -> str:
    entries = {path: TreeEntry(mode, shadow.add_blob(content)) for path, (mode, content) in files.items()}
    return shadow.compose(shadow.empty_tree(), entries)


def _rows(content: bytes) -> list[str]:
    rows = [row.decode(errors="replace") for row in content.split(b"\n")]
    return rows if rows[-1] else rows[:-1]


def _patched(old: bytes, removed: tuple[tuple[int, str], ...], added: tuple[tuple[int, str], ...]) -> list[str]:
    """The old lines without those removed, and with those added at their numbers."""
    gone = dict(removed)
    rows = [row for number, row in enumerate(_rows(old), start=1) if number not in gone]
    assert all(_rows(old)[number - 1] == text for number, text in removed)
    for number, text in sorted(added):
        rows.insert(number - 1, text)
    return rows


def test_a_folder_replaces_a_file_and_the_other_way_round(person: Person) -> None:
    shadow = person.shadow()
    blob = TreeEntry("100644", shadow.add_blob(b"x"))
    tree = shadow.compose(shadow.empty_tree(), {"a": blob, "b/c": blob, "b/d": blob})
    swapped = shadow.compose(tree, {"a/deep/er": blob, "b": blob})
    assert [*shadow.entries(swapped)] == ["a/deep/er", "b"]
    assert shadow.compose(swapped, {"a": blob, "b/c": blob, "b/d": blob}) == tree
    assert shadow.compose(tree, {}) == tree
    assert shadow.compose(tree, {"missing": None}) == tree


@pytest.mark.parametrize(
    "path",
    [".git/config", "sub/.git/hooks/x", ".GIT/x", ".git /x", "git~1/x", ".g\u200cit/x", "../x", "a/../b", "/x", "a//b"],
)
def test_paths_that_would_leave_or_rule_a_folder_are_never_written(person: Person, tmp_path: Path, path: str) -> None:
    shadow = person.shadow()
    blob = shadow.add_blob(b"x")
    with pytest.raises(UsageError, match="cannot stand in a tree"):
        shadow.compose(shadow.empty_tree(), {path: TreeEntry("100644", blob)})
    name, *rest = path.split("/") if path[0] != "/" else ["", "x"]
    inner = blob
    for part in reversed(rest):
        kind = "040000 tree" if inner != blob else "100644 blob"
        inner = shadow.git.run("mktree", "-z", stdin=f"{kind} {inner}\t{part}\0".encode(), limit=100).decode().strip()
    if name and rest and all(rest):
        tree = shadow.git.run("mktree", "-z", stdin=f"040000 tree {inner}\t{name}\0".encode()).decode().strip()
        with pytest.raises(UsageError, match="the tree holds"):
            shadow.checkout(tree, tmp_path / "out")
        assert not [*(tmp_path / "out").iterdir()]


def test_a_link_in_a_crafted_tree_is_never_written_through(person: Person, tmp_path: Path) -> None:
    shadow = person.shadow()
    outside = tmp_path / "outside"
    outside.mkdir()
    link, blob = shadow.add_blob(os.fsencode(outside)), shadow.add_blob(b"x")
    inner = shadow.git.run("mktree", "-z", stdin=f"100644 blob {blob}\tf\0".encode()).decode().strip()
    both = b"120000 a\0" + bytes.fromhex(link) + b"40000 a\0" + bytes.fromhex(inner)
    tree = shadow.git.run("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=both).decode().strip()
    with contextlib.suppress(GitFailed, UsageError):
        shadow.checkout(tree, tmp_path / "out")
    assert not [*outside.iterdir()]


def test_a_checkout_goes_into_an_empty_folder_only(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "b").write_text("mine")
    with pytest.raises(UsageError, match="is not empty"):
        person.shadow().checkout(person.open().tree_of("HEAD"), tmp_path / "out")


def test_a_snapshot_sees_what_changed_and_honours_ignore_files(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n", b="2\n", **{".gitignore": "*.log\nbuild/\n", "kept.log": "x\n", "d/e": "1\n", "d/f": "1\n"})
    person.git("add", "-f", "kept.log")
    person.commit()
    shadow, tree = person.shadow(), person.open().tree_of("HEAD")
    out = tmp_path / "out"
    shadow.checkout(tree, out)
    (out / "a").unlink()
    (out / "b").unlink()
    (out / "b").mkdir()
    (out / "b" / "file in folder").write_text("x")
    (out / "kept.log").write_text("tracked, so it counts\n")
    (out / "other.log").write_text("ignored")
    (out / "build").mkdir()
    (out / "build" / "x").write_text("ignored")
    (out / "d" / "e").unlink()
    os.mkfifo(out / "d" / "e")
    os.mkfifo(out / "pipe")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("not in the folder")
    (out / "linked").symlink_to(outside)
    taken = shadow.entries(shadow.snapshot(out, tree))
    assert taken.keys() == {".gitignore", "b/file in folder", "d/f", "kept.log", "linked"}
    assert shadow.blob(taken["kept.log"].id) == b"tracked, so it counts\n"
    assert shadow.blob(taken["linked"].id) == os.fsencode(outside)
    (out / "d" / "f").unlink()
    (out / "d" / "e").unlink()
    (out / "d").rmdir()
    (out / "d").symlink_to(outside)
    assert shadow.entries(shadow.snapshot(out, tree))["d"].mode == "120000"


def test_nested_repositories_are_named_and_not_entered(person: Person, tmp_path: Path) -> None:
    person.commit(a="1\n")
    shadow, tree = person.shadow(), person.open().tree_of("HEAD")
    shadow.checkout(tree, tmp_path / "out")
    for name in ("with commit", "without"):
        inner = Person.in_folder(tmp_path / "out", name=name)
        inner.write("f")
        if name == "with commit":
            inner.commit()
    taken = shadow.take(tmp_path / "out", tree)
    assert "f" not in {path.rpartition("/")[2] for path in shadow.entries(taken.tree)}
    assert set(taken.embedded) == {"with commit", "without"}


def test_submodules_stay_at_their_commit_and_are_checked_out_empty(person: Person, tmp_path: Path) -> None:
    commit = person.commit(a="1\n")
    person.git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub")
    person.git("commit", "-qm", "sub")
    repository, shadow = person.open(), person.shadow()
    tree = repository.tree_of("HEAD")
    assert shadow.entries(tree)["sub"] == TreeEntry("160000", commit)
    shadow.checkout(tree, tmp_path / "out")
    assert [*(tmp_path / "out" / "sub").iterdir()] == []
    assert shadow.snapshot(tmp_path / "out", tree) == tree
    assert shadow.worktree_tree(repository) == tree
    assert shadow.read(tree, "sub") is None


POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


@pytest.mark.parametrize("configured", [True, False])
def test_lfs_pointers_stay_pointers_and_the_files_they_stand_for_are_unchanged(
    person: Person, tmp_path: Path, configured: bool
) -> None:
    large = b"large file\n" * 50
    pointer = POINTER.format(hashlib.sha256(large).hexdigest(), len(large))
    person.commit(
        **{".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n", "a.bin": pointer, "b.bin": pointer}
    )
    program, mark = person.trap("lfs")
    if configured:
        person.configure(
            f'[filter "lfs"]\n\tclean = {program}\n\tsmudge = {program}\n\tprocess = {program}\n\trequired\n'
        )
    repository, shadow = person.open(), person.shadow()
    tree = repository.tree_of("HEAD")
    shadow.checkout(tree, tmp_path / "out")
    assert (tmp_path / "out" / "a.bin").read_text() == pointer
    person.write("a.bin", large)
    assert shadow.worktree_tree(repository) == tree, "what git-lfs would have written is no change"
    assert not repository.is_dirty()
    person.write("b.bin", large + b"more")
    assert [change.path for change in shadow.diff(tree, shadow.worktree_tree(repository))] == ["b.bin"]
    assert not mark.exists()


def test_line_ends_are_converted_as_the_repository_says(person: Person, tmp_path: Path) -> None:
    person.commit(**{".gitattributes": "*.txt text eol=crlf\n*.raw -text\n", "a.txt": "1\n2\n", "b.raw": "1\r\n2\n"})
    repository, shadow = person.open(), person.shadow()
    tree = repository.tree_of("HEAD")
    shadow.checkout(tree, tmp_path / "out")
    assert (tmp_path / "out" / "a.txt").read_bytes() == b"1\r\n2\r\n"
    assert (tmp_path / "out" / "b.raw").read_bytes() == b"1\r\n2\n"
    assert shadow.snapshot(tmp_path / "out", tree) == tree
    person.git("config", "core.autocrlf", "true")
    person.write("new.py", "1\r\n")
    changed = shadow.worktree_tree(person.open())
    assert shadow.read(changed, "new.py") == b"1\n", "as the person's git would commit it"


def test_a_blob_that_is_too_large_or_missing_is_one_sentence(person: Person) -> None:
    shadow = person.shadow()
    blob = shadow.add_blob(b"x" * 100)
    assert shadow.blob(blob, limit=100) == b"x" * 100
    with pytest.raises(GitFailed, match="has 100 bytes, more than the 99 allowed"):
        shadow.blob(blob, limit=99)
    with pytest.raises(GitFailed, match="lacks blob"):
        shadow.blob("0123456789" * 4)
    for name in ("HEAD", "--all", "a b", ":a", "0123\n4567"):
        with pytest.raises(UsageError, match="not the id of a git object"):
            shadow.entries(name)


def test_many_paths_of_a_tree_are_read_in_the_order_asked(person: Person) -> None:
    person.commit(b="2\n", a="1\n", **{"deep/c": ""})
    shadow, tree = person.shadow(), person.git("rev-parse", "HEAD^{tree}")
    asked = ("b", "gone", "../a", "a", "deep", "deep/c", "b")
    assert [*shadow.read_each(tree, asked)] == [
        ("b", b"2\n"),
        ("gone", None),
        ("../a", None),
        ("a", b"1\n"),
        ("deep", None),
        ("deep/c", b""),
    ]
    assert [*shadow.read_each(tree, ())] == []
    with pytest.raises(GitFailed, match="more than the 1 allowed"):
        dict(shadow.read_each(tree, ("deep/c", "a"), 1))


def test_what_is_added_stays_out_of_the_persons_store(person: Person) -> None:
    person.commit(a="1\n")
    before = picture(person.folder)
    shadow = person.shadow()
    blob = shadow.add_blob(b"only ours\n")
    tree = shadow.compose(person.open().tree_of("HEAD"), {"ours": TreeEntry("100644", blob)})
    assert person.git("cat-file", "-e", tree, check=False) == ""
    assert picture(person.folder) == before


def test_a_shadow_forgets_what_somebody_wrote_into_its_configuration(person: Person) -> None:
    person.commit(a="1\n")
    shadow = person.shadow()
    config = shadow.git.path / "config"
    clean = config.read_bytes()
    config.write_bytes(clean + b"[core]\n\tfsmonitor = /bin/false\n")
    person.shadow()
    assert config.read_bytes() == clean


def test_ten_thousand_files_are_quick(person: Person, tmp_path: Path) -> None:
    files = "".join(
        f"M 644 inline d{number % 100}/f{number}.py\ndata 9\nx = {number:04}\n\n" for number in range(10_000)
    )
    stream = f"commit refs/heads/main\ncommitter A <a@b> 0 +0000\ndata 1\nm\n{files}"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=person.folder, input=stream.encode(), check=True)
    person.git("reset", "-q", "--hard")
    repository, shadow = person.open(), person.shadow()
    tree = repository.tree_of("HEAD")
    began = _worked_s()
    assert len(shadow.entries(tree)) == 10_000
    shadow.checkout(tree, tmp_path / "out")
    (tmp_path / "out" / "d1" / "f1.py").write_text("changed\n")
    changed = shadow.snapshot(tmp_path / "out", tree)
    assert [change.path for change in shadow.diff(tree, changed)] == ["d1/f1.py"]
    assert shadow.worktree_tree(repository) == tree
    assert _worked_s() - began < 10


def _worked_s() -> float:
    """Seconds of work by us and by git: other processes on the machine do not count."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
