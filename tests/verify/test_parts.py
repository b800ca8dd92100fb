"""The parts of a verification: what a run is worth, which trees are asked about, canaries, and what tests name."""

from pathlib import Path
from typing import Any

import pytest

from fairwitness.contracts.verify.checks import CheckSpec, Language, Project, ReportFormat
from fairwitness.contracts.verify.report import Side
from fairwitness.contracts.verify.results import ItemOutcome, ReportItem
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.sandbox.locked_tmp import sweep
from fairwitness.verify.checkouts import STARTS_WITH, Checkouts
from fairwitness.verify.model import Acceptance, CheckRequest, ProposedChange, selected_ids
from fairwitness.verify.proofs import _is_assertion, planted_canaries
from fairwitness.verify.verification import production_files, protected_tree, red_tree
from git.person import Person


def spec(tool: str = "pytest", **differs: Any) -> CheckSpec:
    ordinary: dict[str, Any] = {
        "id": tool,
        "name": "tests",
        "tier": 2,
        "root": ".",
        "language": Language.PYTHON,
        "tool": tool,
        "argv": ("{python}", "-m", tool),
        "select": ("{python}", "-m", tool, "{ids}"),
        "report": ReportFormat.JUNIT,
        "writes": True,
        "required": True,
        "found_in": "pytest.ini",
    }
    return CheckSpec(**(ordinary | differs))


def test_pytest_is_asked_for_files_and_others_for_names() -> None:
    ids = ("t/test_a.py::test_x", "t/test_a.py::test_y[1]", "t/test_b.py::T::test_z")
    assert selected_ids(spec(), ids) == ("t/test_a.py", "t/test_b.py")
    assert selected_ids(spec("unittest"), ("a.B.test_c",)) == ("a.B.test_c",)
    assert selected_ids(spec(select=None), ids) == ()


@pytest.mark.req("X1")
def test_a_canary_is_named_like_the_tests_beside_it_one_for_each_folder() -> None:
    ids = ("t/check_a.py::check_x[1]", "t/check_b.py::check_y", "u/v/test_c.py::TestC::test_d", "docs/readme.rst::0")
    canaries = planted_canaries(spec(), ids, "salt")
    assert [(canary.path, canary.id) for canary in canaries] == [
        ("t/check_a_salt.py", "t/check_a_salt.py::check_x_salt"),
        ("u/v/test_c_salt.py", "u/v/test_c_salt.py::test_d_salt"),
    ]
    for canary in canaries:
        compile(canary.content, canary.path, "exec")
    assert planted_canaries(spec("node"), ids, "salt") == ()


def test_an_accept_covers_a_test_its_file_or_its_folder_and_nothing_else() -> None:
    side = Side(ref="HEAD", commit=None, tree="a" * 40)

    def accepted(subject: str, *, by: str) -> bool:
        return ProposedChange(side, side, (), accepts=(Acceptance(by, "why"),)).accepted(subject) is not None

    assert accepted("tests/test_a.py::test_b", by="tests/test_a.py::test_b")
    assert accepted("tests/test_a.py::test_b", by="tests/test_a.py")
    assert accepted("tests/test_a.py", by="tests/")
    assert accepted("tests/test_a.py", by="tests")
    assert not accepted("tests/test_a.py", by="tests/test_a.py::test_b")
    assert not accepted("tests2/test_a.py", by="tests")
    assert not accepted("tests/test_ab.py", by="tests/test_a")


RUST = "pub fn one() -> i32 {{ {code} }}\n\n#[cfg(test)]\nmod tests {{\n    {test}\n}}\n"


def _trees(tmp_path: Path, before: dict[str, str], after: dict[str, str | None]) -> tuple[Shadow, Side, Side]:
    person = Person.in_folder(tmp_path)
    for path, content in before.items():
        person.write(path, content)
    person.git("add", "-A")
    person.git("commit", "-qm", "base")
    for path, new in after.items():
        if new is None:
            (person.folder / path).unlink()
        else:
            person.write(path, new)
    person.git("add", "-A")
    person.git("commit", "-qm", "head")
    repository = Repository.open(person.folder)
    shadow = Shadow.open(tmp_path / "shadow", repository)
    sides = [
        Side(ref=ref, commit=(commit := repository.commit(ref)), tree=repository.tree_of(commit))
        for ref in ("HEAD~1", "HEAD")
    ]
    return shadow, sides[0], sides[1]


def _texts(shadow: Shadow, tree: str) -> dict[str, str]:
    return {path: shadow.blob(entry.id).decode() for path, entry in shadow.entries(tree).items()}


@pytest.mark.req("X1")
def test_the_protected_tree_is_new_code_under_old_tests(tmp_path: Path) -> None:
    before = {
        "shop.py": "old",
        "tests/test_a.py": "old",
        "tests/test_gone.py": "old",
        "ruff.toml": "old",
        "Makefile": "old",
    }
    after: dict[str, str | None] = {
        "shop.py": "new",
        "tests/test_a.py": "new",
        "tests/test_gone.py": None,
        "tests/test_b.py": "added",
        "tests/conftest.py": "added",
        "ruff.toml": "new",
        "Makefile": "new",
    }
    shadow, base, head = _trees(tmp_path, before, after)
    files = shadow.diff(base.tree, head.tree)

    def texts(loosened: set[str], accepted: set[str]) -> dict[str, str]:
        tree = protected_tree(shadow, head.tree, files, loosened=loosened, accepted=accepted.__contains__)
        return _texts(shadow, tree)

    plain = texts(set(), set())
    assert plain == {
        "shop.py": "new",
        "tests/test_a.py": "old",
        "tests/test_gone.py": "old",
        "ruff.toml": "old",
        "Makefile": "new",
    }
    assert texts({"Makefile"}, set())["Makefile"] == "old"
    assert texts(set(), {"tests/test_a.py"})["tests/test_a.py"] == "new"
    assert [file.path for file in production_files(files)] == ["shop.py"]


@pytest.mark.req("X1")
def test_the_red_tree_is_old_code_under_new_tests(tmp_path: Path) -> None:
    shadow, base, head = _trees(
        tmp_path,
        {"shop.py": "old", "tests/test_a.py": "old"},
        {"shop.py": "new", "tests/test_a.py": "new", "tests/conftest.py": "added", "README.md": "added"},
    )
    assert _texts(shadow, red_tree(shadow, base.tree, shadow.diff(base.tree, head.tree))) == {
        "shop.py": "old",
        "tests/test_a.py": "new",
        "tests/conftest.py": "added",
    }


@pytest.mark.req("X1")
def test_unit_tests_inside_a_rust_file_change_sides_without_their_code(tmp_path: Path) -> None:
    old, new = RUST.format(code="1", test="old"), RUST.format(code="2", test="new")
    shadow, base, head = _trees(tmp_path, {"src/lib.rs": old}, {"src/lib.rs": new})
    files = shadow.diff(base.tree, head.tree)
    protected = protected_tree(shadow, head.tree, files, loosened=(), accepted=lambda _: False)
    assert _texts(shadow, protected) == {"src/lib.rs": RUST.format(code="2", test="old")}
    assert _texts(shadow, red_tree(shadow, base.tree, files)) == {"src/lib.rs": RUST.format(code="1", test="new")}


@pytest.mark.req("P16")
def test_the_folders_of_a_killed_verification_are_swept_and_those_of_a_living_one_are_not(tmp_path: Path) -> None:
    shadow, _, _ = _trees(tmp_path, {"a": "1"}, {"a": "2"})
    (tmp_path / "work" / "verify-killed" / "1" / "tree").mkdir(parents=True)
    context = Checkouts(tmp_path / "work" / "verify-living", shadow)
    project = Project(root=".", language=Language.PYTHON, manifests=())
    with context.folders(CheckRequest(spec(), project, "a" * 40, "after")) as (report, _):
        assert sweep(str(tmp_path / "work"), starts=(STARTS_WITH,), young_s=0) == [str(tmp_path / "work/verify-killed")]
        assert report.parent.is_dir()
    context.close()
    assert list((tmp_path / "work").iterdir()) == []


def test_a_change_without_tests_has_nothing_to_protect(tmp_path: Path) -> None:
    shadow, base, head = _trees(tmp_path, {"shop.py": "old"}, {"shop.py": "new"})
    files = shadow.diff(base.tree, head.tree)
    assert protected_tree(shadow, head.tree, files, loosened=(), accepted=lambda _: False) == head.tree
    assert red_tree(shadow, base.tree, files) == base.tree


@pytest.mark.req("X1")
@pytest.mark.parametrize(
    ("message", "outcome", "is_one"),
    [
        ("assert 190 == 180\n +  where 190 = price(200, 10)", ItemOutcome.FAILED, True),
        ("AssertionError: 1 != 2", ItemOutcome.FAILED, True),
        ("Failed: DID NOT RAISE <class 'ValueError'>", ItemOutcome.FAILED, True),
        ("", ItemOutcome.FAILED, True),
        ("ValueError: unknown interval", ItemOutcome.FAILED, False),
        ("TypeError: unsupported operand", ItemOutcome.FAILED, False),
        ("assert 1 == 2", ItemOutcome.ERROR, False),
        ("", ItemOutcome.PASSED, False),
    ],
)
def test_a_crash_is_no_assertion(message: str, outcome: ItemOutcome, is_one: bool) -> None:
    """A test that only calls the code fails when the code crashes; that says nothing about the test."""
    assert _is_assertion(ReportItem(id="a", outcome=outcome, message=message)) is is_one
