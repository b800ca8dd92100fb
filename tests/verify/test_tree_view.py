"""The files of a tree as discovery reads them: the same bytes as git has, in few git calls."""

from pathlib import Path

import pytest

from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.verify.tree_view import FILE_LIMIT, TreeView, checks_at
from git.person import Person

TESTS = {f"tests/test_{number:03}.py": f"def test_{number}(): assert {number} == {number}\n" for number in range(150)}


@pytest.fixture
def person(own_home: None, tmp_path: Path) -> Person:
    return Person.in_folder(tmp_path)


@pytest.fixture
def shadow(person: Person, tmp_path: Path) -> Shadow:
    for path, text in {**TESTS, "pyproject.toml": "[tool.pytest.ini_options]\n", "a/large.py": "#" * 5_000_000}.items():
        person.write(path, text)
    (person.folder / "link.py").symlink_to("pyproject.toml")
    person.commit()
    return Shadow.open(tmp_path / "shadow", Repository.open(person.folder))


def tree_of(person: Person) -> str:
    return Repository.open(person.folder).tree_of("HEAD")


@pytest.mark.req("P5")
def test_every_file_is_read_as_it_is_and_what_is_too_large_or_no_file_is_not(shadow: Shadow, person: Person) -> None:
    view = TreeView(shadow, tree_of(person))
    assert {path: (view.read(path) or b"").decode() for path in TESTS} == TESTS
    assert len((person.folder / "a/large.py").read_bytes()) > FILE_LIMIT
    assert [view.read(path) for path in ("a/large.py", "link.py", "missing.py", "tests")] == [None] * 4


@pytest.mark.req("P5")
def test_a_tree_with_other_settings_or_other_files_is_discovered_anew(shadow: Shadow, person: Person) -> None:
    first = checks_at(shadow, tree_of(person), VerifySettings())
    assert checks_at(shadow, tree_of(person), VerifySettings()) is first
    without = checks_at(shadow, tree_of(person), VerifySettings(disable=tuple(check.id for check in first.checks)))
    assert without != first
    person.write("package.json", '{"scripts": {"test": "node --test"}}')
    person.commit()
    assert checks_at(shadow, tree_of(person), VerifySettings()).projects != first.projects
