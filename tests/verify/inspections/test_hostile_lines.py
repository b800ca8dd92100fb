"""Lines made to cost time or to hide a mark: every inspection ends soon, and padding hides nothing."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import pytest

from fairwitness.verify.diff import INSPECTIONS
from fairwitness.verify.inspections.model import LINE_LENGTH, ChangedText, InspectionFinding, windows
from support.ladder import SWEEP, widened

SECONDS = 20.0
"""Processor time of all inspections of one file; without a bound most of these lines take hours."""
LONG = 200_000 if SWEEP else 30_000
PATHS = ("test_a.py", "a.py", "a.test.ts", "a.js", "tests/a.rs", "a_test.go", "a.c", "ATest.java", "Makefile",
         "CMakeLists.txt", "setup.py", "build.gradle", "package.json", "tox.ini", ".npmrc")  # fmt: skip
LINES = {
    "white space": " " * LONG + "!",
    "white space behind a word": "return" + " " * LONG + "!",
    "white space behind an answer": '? aa(( "a"f' + " " * LONG + "!",
    "white space behind a hash": "#" + " " * LONG + "!",
    "white space behind an operator": "||" + " " * LONG + "!",
    "white space behind a target": "a" + " " * LONG + "!",
    "opened brackets": "import " + "(" * LONG + "}",
    "opened calls": "a(" * (LONG // 2),
    "attributes": "#[cfg_attr(" * (LONG // 11),
    "one word": "a" * LONG,
    "dotted words": "a." * (LONG // 2) + "==",
    "digits": "1_" * (LONG // 2),
    "quotes": '"' * LONG,
    "escapes": "'" + "\\a" * (LONG // 2),
    "marks": "# noqa " * (LONG // 7),
    "tokens": "eyJ" + "a" * LONG,
    "addresses": "a://b:" * (LONG // 6),
    "comments": "/*" * (LONG // 2),
}
FEW = ("white space behind a word", "white space behind an operator", "marks")


class _TooLong(Exception):
    pass


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Fails when the block has used more processor time; patterns of Python can be interrupted."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@pytest.mark.req("X5")
@pytest.mark.parametrize("line", widened(LINES, FEW))
@pytest.mark.parametrize("path", widened(PATHS, PATHS[:8:2]))
def test_no_line_keeps_an_inspection_busy(path: str, line: str) -> None:
    text = LINES[line] + "\n"
    with within(SECONDS):
        for change in (ChangedText.between(path, None, text), ChangedText.between(path, text, "x\n")):
            _inspected(change)


def test_the_bound_can_be_missed() -> None:
    with pytest.raises(_TooLong), within(0.05):
        _busy()


def _busy() -> None:
    while time.process_time() >= 0:
        os.getpid()


SCRIPT = "it('a', () => { expect(1).toBe(1) })\nit('b', () => { expect(2).toBe(2) })\n"
GO = "func TestA(t *testing.T) {\n\tt.Fatal()\n}\n"
PADDING = {
    "white space": " " * 5_000,
    "code": "f();" * 2_000,
    "a comment": "/*" + "x" * 5_000 + "*/",
    "a string": '"' + "x" * 5_000 + '";',
}
HIDDEN = {
    "a skip in Go": ("a_test.go", GO, GO.replace("\tt.Fatal", "{padding}t.Skip()\n\tt.Fatal"), "skip-added"),
    "a skip in JavaScript": ("a.test.js", SCRIPT, SCRIPT.replace("it('b'", "{padding}it.skip('b'"), "skip-added"),
    "a suppression": ("a.js", "let a = 1\n", "let a = 1\n{padding}f() // eslint-disable-line\n", "suppression-added"),
    "a look at the test run": (
        "a.js",
        "let a = 1\n",
        "let a = 1\n{padding}if (process.env.JEST_WORKER_ID) { a = 2 }\n",
        "test-run-detected",
    ),
}


@pytest.mark.req("X5")
@pytest.mark.parametrize("padding", PADDING)
@pytest.mark.parametrize("mark", HIDDEN)
def test_padding_does_not_hide_a_mark(mark: str, padding: str) -> None:
    path, before, after, rule = HIDDEN[mark]
    plain = _rules(path, before, after.replace("{padding}", ""))
    assert (rule, True) in plain
    assert plain <= _rules(path, before, after.replace("{padding}", PADDING[padding]))


@pytest.mark.req("X5")
def test_padding_does_not_hide_that_a_target_ignores_failures() -> None:
    before, after = "test:\n\tpytest\n", f"test:\n\tpytest{' ' * 5_000}|| true\n"
    assert ("config-changed", True) in _rules("Makefile", before, after)


@pytest.mark.req("X5")
def test_padding_in_a_comment_does_not_hide_a_suppression() -> None:
    before, after = "a = 1\n", f"a = 1  # {'x' * 5_000} # noqa\n"
    assert ("suppression-added", True) in _rules("a.py", before, after)


def test_windows_leave_nothing_out() -> None:
    line = "".join(f"{number:05d}" for number in range(3_000))
    pieces = windows(line)
    assert all(len(piece) <= LINE_LENGTH for piece in pieces)
    assert all(any(line[at : at + 200] in piece for piece in pieces) for at in range(0, len(line) - 200, 37))


def _rules(path: str, before: str, after: str) -> set[tuple[str, bool]]:
    found = _inspected(ChangedText.between(path, before, after))
    return {(finding.rule.value, finding.blocks) for finding in found}


def _inspected(change: ChangedText) -> list[InspectionFinding]:
    every = (inspection for inspections in INSPECTIONS.values() for inspection in inspections)
    return [finding for inspection in every for finding in inspection((change,))]
