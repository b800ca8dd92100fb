"""The samples' repositories are real, the same every time, and free of whatever this machine is set to."""

from pathlib import Path

import pytest

from verify.belongings import belongings, leave_things_about
from verify.samples import Change, Edit, Sample, build, git, samples

SHOP = next(sample for sample in samples() if sample.name == "py-shop-prices")


@pytest.mark.parametrize("sample", samples(), ids=repr)
def test_a_repository_holds_base_and_changes_as_commits(sample: Sample, tmp_path: Path) -> None:
    repository = build(sample, tmp_path)
    for name, red in sample.proposals():
        base, head = repository.base(red=red), repository.head(name, red=red)
        assert git(tmp_path, "rev-parse", f"{head}^").strip() == base
        changed = git(tmp_path, "diff", "--name-only", base, head).split()
        assert set(changed) == _differing(sample.tree(red=red), sample.tree(name, red=red))
    assert git(tmp_path, "status", "--porcelain") == ""


def _differing(one: dict[str, bytes], other: dict[str, bytes]) -> set[str]:
    return {path for path in one.keys() | other.keys() if one.get(path) != other.get(path)}


def test_the_same_commits_are_made_every_time(tmp_path: Path) -> None:
    assert build(SHOP, tmp_path / "one").commits == build(SHOP, tmp_path / "other").commits


def test_whoever_touches_a_persons_things_is_seen(tmp_path: Path) -> None:
    build(SHOP, tmp_path)
    leave_things_about(tmp_path)
    before = belongings(tmp_path)
    assert belongings(tmp_path) == before
    assert {".git/index", ".git/refs/stash", "draft.md", "notes.txt"} <= before.keys()
    git(tmp_path, "update-ref", "refs/fairwitness/heads/run-1", "HEAD")
    assert belongings(tmp_path) == before, "our own refs do not count"
    git(tmp_path, "branch", "intruder")
    assert belongings(tmp_path) != before


def test_an_edit_that_finds_its_passage_not_exactly_once_is_refused() -> None:
    edit = Edit(path="cart.py", old="return", new="yield")
    change = Change(message="Yield", honest=True, edits=(edit,))
    with pytest.raises(ValueError, match=r"holds 'return' \d times"):
        SHOP.model_copy(update={"changes": {"yielding": change}}).tree("yielding")


def test_deleting_what_is_not_there_is_refused() -> None:
    change = Change(message="Delete", honest=True, deletes=("nothing.py",))
    with pytest.raises(ValueError, match="deletes what is not there"):
        SHOP.model_copy(update={"changes": {"gone": change}}).tree("gone")


@pytest.mark.parametrize("honest", [True, False])
def test_a_change_cannot_be_both_honest_and_blocked(honest: bool) -> None:
    with pytest.raises(ValueError, match="a dishonest change names its lies"):
        Change(message="Both", honest=honest, reason="lint" if honest else None, lies=("test deleted",))
