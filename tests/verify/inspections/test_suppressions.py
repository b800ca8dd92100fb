"""Marks that switch checks off: found where a change adds them, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.languages import SUFFIXES, Lang
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.suppressions import marks, marks_by_line, suppressions, without_marks
from verify.inspections.changes import change, said

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

SWITCHED_OFF = [
    ("a.py", "import os  # noqa"),
    ("a.py", "import os  # noqa: F401"),
    ("a.py", "import os  # NOQA:F401,E501"),
    ("a.py", "# ruff: noqa"),
    ("a.py", "# ruff: noqa: F401"),
    ("a.py", "# flake8: noqa"),
    ("a.py", "x: int = 's'  # type: ignore"),
    ("a.py", "x: int = 's'  # type: ignore[assignment]"),
    ("a.py", "# mypy: ignore-errors"),
    ("a.py", "# mypy: disable-error-code=attr-defined"),
    ("a.py", "x = y  # pyright: ignore[reportAny]"),
    ("a.py", "# pyright: basic"),
    ("a.py", "# pylint: disable=missing-docstring"),
    ("a.py", "# pylint:skip-file"),
    ("a.py", "run(x)  # nosec B602"),
    ("a.py", "key = 'x'  # pragma: allowlist secret"),
    ("a.py", "@typing.no_type_check\ndef f(): ..."),
    ("tests/test_a.py", "x = 1  # noqa"),
    ("a.js", "// eslint-disable-next-line no-unused-vars"),
    ("a.js", "/* eslint-disable */"),
    ("a.ts", "// @ts-ignore"),
    ("a.ts", "// @ts-nocheck"),
    ("a.tsx", "// @ts-expect-error: later"),
    ("a.ts", "// biome-ignore lint/suspicious/noExplicitAny"),
    ("a.ts", "/*\n * eslint-disable no-console\n */"),
    ("a.rs", "#[allow(dead_code)]"),
    ("a.rs", "#![allow(clippy::all)]"),
    ("a.rs", "#[expect(unused)]"),
    ("a.rs", "#[cfg_attr(test, allow(dead_code))]"),
    ("a.go", "x := 1 //nolint:errcheck"),
    ("a.go", "x := 1 // nolint"),
    ("a.cpp", "int x; // NOLINT(google-x)"),
    ("a.cpp", "// NOLINTNEXTLINE"),
    ("a.c", '#pragma GCC diagnostic ignored "-Wall"'),
    ("a.c", '#pragma clang diagnostic ignored "-Wall"'),
    ("a.c", "#pragma warning(disable : 4996)"),
    ("a.c", "// cppcheck-suppress nullPointer"),
    ("A.java", '@SuppressWarnings("unchecked")'),
    ("A.java", "int x; // NOSONAR"),
]


@pytest.mark.parametrize(("path", "line"), SWITCHED_OFF)
def test_a_check_that_is_switched_off_blocks(path: str, line: str) -> None:
    (finding,) = suppressions([ChangedText.between(path, "\n", f"\n{line}\n")])
    assert (finding.rule, finding.blocks, finding.subject) == ("suppression-added", True, path)
    assert finding.line is not None


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "import os  # noqa: F401 (loaded for its side effects)"),
        ("a.py", "import os  # noqa: F401, E402  # loaded for its side effects"),
        ("a.py", "x: int = y()  # type: ignore[assignment]  # the stub is wrong here"),
        ("a.py", "run(x)  # nosec B602 - the command is ours"),
        ("a.js", "// eslint-disable-next-line no-console -- the tool prints"),
        ("a.ts", "// biome-ignore lint/suspicious/noExplicitAny: the library has no types"),
        ("a.rs", "#[allow(dead_code)] // used by the other target"),
        ("a.rs", '#[allow(dead_code, reason = "used by the other target")]'),
        ("a.go", "x() //nolint:errcheck // cannot fail here"),
        ("a.cpp", "int x; // NOLINT(google-x): the name is theirs"),
        ("A.java", '@SuppressWarnings("unchecked") // erased by the caller'),
    ],
)
def test_a_narrow_mark_that_says_why_is_said_and_does_not_block(path: str, line: str) -> None:
    assert said(suppressions([ChangedText.between(path, "\n", f"\n{line}\n")])) == {("suppression-added", False)}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "import os  # noqa  # we need this one here"),
        ("a.py", "# ruff: noqa: E501  # the table stays whole"),
        ("a.py", "x = 1  # type: ignore  # no idea why"),
        ("a.py", "# mypy: ignore-errors  # too many of them"),
        ("a.js", "/* eslint-disable no-console -- the tool prints */"),
        ("a.ts", "// @ts-nocheck we do not care"),
        ("a.rs", "#![allow(dead_code)] // used by the other target"),
        ("a.go", "x() //nolint // cannot fail here"),
    ],
)
def test_a_reason_does_not_excuse_a_wide_mark(path: str, line: str) -> None:
    assert said(suppressions([ChangedText.between(path, "\n", f"\n{line}\n")])) == {("suppression-added", True)}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "def f():  # pragma: no cover"),
        ("a.js", "/* istanbul ignore next */"),
        ("a.ts", "/* c8 ignore start */"),
        ("a.cpp", "// LCOV_EXCL_START"),
    ],
)
def test_lines_left_out_of_coverage_are_said_and_do_not_block(path: str, line: str) -> None:
    assert said(suppressions([ChangedText.between(path, "\n", f"\n{line}\n")])) == {("suppression-added", False)}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "x = '# noqa'"),
        ("a.py", '"""\n# type: ignore\n"""'),
        ("a.py", "# the word noqa alone"),
        ("a.py", "# type: list[int]"),
        ("a.py", "# this type is ignored"),
        ("a.js", "const x = '// eslint-disable';"),
        ("a.js", "const x = `/* eslint-disable */`;"),
        ("a.js", "// eslint is enabled"),
        ("a.rs", 'let x = "#[allow(dead_code)]";'),
        ("a.rs", "// #[allow(dead_code)] is not what we want"),
        ("a.rs", "#[derive(Debug)]"),
        ("a.go", 's := "//nolint"'),
        ("a.c", "#pragma once"),
        ("A.java", "@Override"),
        ("docs/a.md", "use `# noqa`"),
        ("notes.txt", "# noqa"),
    ],
)
def test_words_in_strings_and_prose_are_no_finding(path: str, text: str) -> None:
    assert suppressions([ChangedText.between(path, "\n", f"\n{text}\n")]) == ()


def test_a_mark_that_was_there_and_moved_is_no_finding() -> None:
    before = "import os  # noqa: F401\n\n\ndef f():\n    return 1\n"
    after = "def f():\n    return 1\n\n\nimport os  # noqa: F401\n"
    assert suppressions([ChangedText.between("a.py", before, after)]) == ()


def test_an_edited_line_keeps_its_mark_but_may_not_widen_it() -> None:
    before = "import os  # noqa: F401\n"
    assert suppressions([ChangedText.between("a.py", before, "import os, sys  # noqa: F401\n")]) == ()
    assert suppressions([ChangedText.between("a.py", before, "import os  # noqa\n")]) != ()


def test_a_second_mark_of_the_same_kind_is_found_at_its_line() -> None:
    before = "import os  # noqa\nx = 1\n"
    (finding,) = suppressions([ChangedText.between("a.py", before, "import os  # noqa\nx = 1  # noqa\n")])
    assert finding.line == 2


def test_a_line_that_came_from_another_file_brings_its_mark() -> None:
    line = "import os  # noqa: F401\n"
    files = [change("a.py", line + "x = 1\n", "x = 1\n"), change("b.py", None, line)]
    assert suppressions(files) == ()
    files = [change("a.py", line + "x = 1\n", "x = 1\n"), change("b.py", "y = 1\n", "y = 1\n" + line)]
    assert suppressions(files) == ()


def test_a_moved_line_pays_for_one_mark_only() -> None:
    line = "import os  # noqa: F401\n"
    files = [change("a.py", line, ""), change("b.py", None, line), change("c.py", None, line)]
    assert len(suppressions(files)) == 1


def test_a_removed_mark_is_no_finding() -> None:
    assert suppressions([ChangedText.between("a.py", "import os  # noqa\n", "import os\n")]) == ()
    assert suppressions([ChangedText.between("a.py", "import os  # noqa\n", None)]) == ()


def test_marks_are_found_where_python_cannot_be_read() -> None:
    assert [mark.text for mark in marks("def f(:\n  'unterminated\n x  # noqa\n", Lang.PYTHON)] == ["# noqa"]


def test_a_file_that_is_too_long_is_said() -> None:
    assert said(suppressions([ChangedText("a.py", "", "x" * 1_000_001, (1,), ())])) == {("scan-limited", True)}


@given(st.sampled_from(sorted(SUFFIXES)), st.none() | st.text(), st.none() | st.text())
def test_no_text_makes_it_raise(suffix: str, before: str | None, after: str | None) -> None:
    suppressions([ChangedText.between("a" + suffix, before, after)])


@pytest.mark.parametrize(
    ("path", "line", "bare", "narrow"),
    [
        ("a.py", "import os  # noqa", "import os  ", [False]),
        ("a.py", "import os  # noqa: F401", "import os  ", [True]),
        ("a.py", "x: int = 's'  # type: ignore[assignment]", "x: int = 's'  ", [True]),
        ("a.py", "import os  # noqa: F401  # type: ignore", "import os  ", [True, False]),
        ("a.py", 's = "# noqa: F401"  # noqa', 's = "# noqa: F401"  ', [False]),
        ("a.py", 's = "# noqa"  # noqa', 's = "# noqa"  ', [False]),
        ("a.py", "x()  # pylint: disable=no-member", "x()  ", [True]),
        ("a.py", "x()  # pylint: disable", "x()  ", [False]),
        ("a.py", "# mypy: ignore-errors", "", [False]),
        ("a.py", 's = "# noqa"', 's = "# noqa"', []),
        ("a.js", "/* eslint-disable */", "/* */", [False]),
        ("a.ts", "// @ts-ignore", "// ", [False]),
        ("a.rs", "#[allow(dead_code)]", "#[allow(dead_code)]", [False]),
        ("a.txt", "# noqa", "# noqa", []),
    ],
)
def test_a_line_can_be_checked_without_its_suppression(path: str, line: str, bare: str, narrow: list[bool]) -> None:
    assert without_marks(f"x = 1\n{line}\n", path, {2}) == f"x = 1\n{bare}\n"
    assert without_marks(f"x = 1\n{line}\n", path, {1}) == f"x = 1\n{line}\n"
    assert [mark.is_narrow for mark in marks_by_line(f"x = 1\n{line}\n", path).get(2, [])] == narrow


@pytest.mark.parametrize(
    ("path", "line", "tools"),
    [
        ("a.py", "import os  # noqa", {"ruff", "flake8"}),
        ("a.py", "# ruff: noqa", {"ruff"}),
        ("a.py", "# flake8: noqa", {"ruff", "flake8"}),
        ("a.py", "x()  # type: ignore", {"mypy", "pyright", "basedpyright"}),
        ("a.py", "# mypy: ignore-errors", {"mypy"}),
        ("a.py", "# pyright: basic", {"pyright", "basedpyright"}),
        ("a.py", "x()  # pylint: disable=no-member", {"pylint"}),
        ("a.py", "x()  # nosec", set()),
        ("a.py", "@no_type_check", set()),
        ("a.js", "/* eslint-disable */", {"eslint"}),
        ("a.js", "// oxlint-disable", set()),
        ("a.ts", "// @ts-ignore", {"typescript"}),
    ],
)
def test_a_mark_is_heeded_by_these_tools_only(path: str, line: str, tools: set[str]) -> None:
    ((mark,),) = marks_by_line(line + "\n", path).values()
    assert mark.heeded_by == tools
