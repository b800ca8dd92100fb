"""Ids, paths and scalars: what is refused before it becomes a path, a ref or a number."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.common import base, ids
from fairwitness.contracts.common.problems import spell_path
from fairwitness.contracts.common.vocabulary import (
    RISKS,
    SEVERITIES,
    VERDICTS,
    CategoryVerdict,
    Risk,
    Severity,
    worst_severity,
)


def _fits(shape: Any, value: Any) -> bool:
    try:
        TypeAdapter(shape).validate_python(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (base.Count, [0, 7], [-1, 1.0, "1", True, None]),
        (base.Positive, [1], [0]),
        (base.Flag, [True, False], [0, "yes", None]),
        (base.Number, [1, 1.5, -2], ["1", True, float("nan"), float("inf")]),
        (base.Fraction, [0, 1, 0.5], [1.1, -0.1]),
        (base.Amount, [0, 2.5], [-0.1]),
        (base.Score, [8.0, 0.0, 10.0, 7.25], [8, 10.5, -0.1, "8.0", True]),
        (base.AlignmentScore, [7.3, 8.0], [7.25, 7, 11.0]),
        (base.Text, ["x", " x "], ["", " ", "\n", 1, None]),
        (base.OneLine, ["x", "x\n"], ["x\ny", ""]),
        (base.Summary, ["x" * 200], ["x" * 201, "a\nb", ""]),
        (
            base.Timestamp,
            ["2026-02-26T14:30:00Z", "2026-02-26T14:30:00.5+01:00"],
            ["2026-02-26", "٢٠٢٦-02-26T14:30:00Z"],
        ),
        (base.SchemaVersion, ["1.0", "12.3"], ["1", "1.0.0", "v1.0", 1.0]),
        (ids.FeatureRunId, ["2026-02-26T14:30:00Z"], ["2026-02-26T14-30-00Z", "x"]),
        (ids.AutopilotRunId, ["run-2026-02-09-143052"], ["run-1"]),
        (ids.PhaseId, ["6", "6.1", "12a"], ["six", "6.", "../6", "6.1.2", ""]),
        (ids.TaskId, ["task-01", "task-123"], ["task-1", "TASK-01", "task-01\n"]),
        (ids.Slug, ["add-login", "a1"], ["Add", "a--b", "-a", "a_b", ""]),
        (ids.Commit, ["abc1234", "0" * 40], ["xyz", "ABC1234", "abc"]),
        (ids.Sha256, ["sha256:" + "0" * 64], ["0" * 64, "sha256:abc"]),
        (ids.RunId, ["2026-02-26T14:30:00Z", "run-7f2"], ["", "/x", "a b", "a/../b"]),
    ],
)
def test_scalars_take_what_they_say_and_nothing_like_it(shape: Any, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not _fits(shape, value)] == []
    assert [value for value in bad if _fits(shape, value)] == []


@pytest.mark.req("F1")
@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "~/x",
        "../x",
        "a/../x",
        "a/..",
        "..",
        "C:\\x",
        "c:x",
        "a\\b",
        "a\0b",
        "a\nb",
        "e\u0301.py",
        "",
        "x" * 1025,
    ],
)
def test_a_path_that_could_leave_its_folder_is_refused(path: str) -> None:
    assert ids.relative_path_problem(path) is not None


@pytest.mark.parametrize("path", ["a", "a/b.py", ".github/x", "a..b/c", "é.py", "a b/c"])
def test_a_path_inside_its_folder_is_taken(path: str) -> None:
    assert ids.relative_path_problem(path) is None


NAMES = st.text(alphabet="abAB01.-_/:~^?*[\\ @{\x7fé", min_size=0, max_size=12)


@settings(max_examples=120)
@given(NAMES)
def test_what_we_take_as_a_ref_git_takes_too(name: str) -> None:
    if ids.is_git_ref(name):
        asked = subprocess.run(["git", "check-ref-format", "--branch", name], capture_output=True, check=False)
        assert asked.returncode == 0, name


@settings(max_examples=300)
@given(st.text(max_size=20))
def test_a_safe_name_is_one_segment_of_a_path_and_of_a_ref(name: str) -> None:
    if ids.is_safe_name(name):
        assert Path("root", name).parent == Path("root")
        assert Path("root", name).name == name
        assert ids.is_git_ref(name)
        assert ids.relative_path_problem(name) is None


@pytest.mark.req("P9")
def test_the_baseline_tag_of_an_iso_run_id_is_a_ref_git_accepts() -> None:
    tag = ids.baseline_tag("2026-02-26T14:30:00Z")
    assert tag == "pipeline-baseline-2026-02-26T14-30-00Z"
    assert subprocess.run(["git", "check-ref-format", f"refs/tags/{tag}"], check=False).returncode == 0


def test_a_helpers_branch_can_stand_beside_its_attempts_branch(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init", "-q")
    git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "x")
    branch = ids.attempt_branch("task-001", 1)
    git("branch", branch)
    git("branch", ids.sub_branch(branch, "sub-1"))


def test_words_are_ordered_from_mild_to_bad_or_worst_first() -> None:
    assert SEVERITIES[0] is Severity.BLOCKER
    assert RISKS[-1] is Risk.RED
    assert VERDICTS[-1] is CategoryVerdict.BLOCKER
    assert worst_severity((Severity.MINOR, Severity.MAJOR)) is Severity.MAJOR
    assert worst_severity(()) is None


def test_paths_are_spelled_as_people_write_them() -> None:
    assert spell_path(("a", 0, "b", "c")) == "a[0].b.c"
