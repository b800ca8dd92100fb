"""Counts of tests before and after, and paths that nobody declared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.diff import outside
from fairwitness.verify.inspections.counts import Counts, Drift, count
from fairwitness.verify.inspections.languages import SUFFIXES
from fairwitness.verify.inspections.model import ChangedText

PYTHON = '''
import unittest
import pytest


def helper():
    return "assert nothing"


@pytest.mark.parametrize("x", [1, 2])
def test_a(x):
    """Says assert."""
    assert x
    with pytest.raises(ValueError):
        helper()


@pytest.mark.skip
def test_b():
    assert 1


class TestC(unittest.TestCase):
    @unittest.expectedFailure
    def test_c(self):
        self.assertEqual(1, 2)
'''
COUNTED = [
    ("tests/test_a.py", PYTHON, Counts(3, 1, 1, 4)),
    ("tests/test_a.py", "def test_a(:\n    assert 1\n", Counts(1, 0, 0, 1)),
    (
        "src/a.test.ts",
        "it('a', () => { expect(1).toBe(1); });\nit.skip('b', () => {});\ntest('c', () => { assert.equal(1, 1); });\n"
        "// it('d', () => {})\n",
        Counts(3, 1, 0, 2),
    ),
    (
        "src/a.rs",
        "fn f() { assert!(true); }\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn a() { assert_eq!(1, 1); }\n"
        "    #[test]\n    #[ignore]\n    fn b() {}\n    #[test]\n    #[should_panic]\n    fn c() {}\n}\n",
        Counts(3, 1, 1, 1),
    ),
    ("tests/a.rs", "#[test]\nfn a() {\n    assert!(true);\n}\n", Counts(1, 0, 0, 1)),
    ("a_test.go", 'func TestA(t *testing.T) {\n\tt.Skip("x")\n\tt.Fatal("x")\n}\n', Counts(1, 1, 0, 1)),
    ("tests/a.c", "static void test_a(void) {\n    assert(1);\n}\nint main(void) { test_a(); }\n", Counts(1, 0, 0, 1)),
    ("tests/a_test.cc", "TEST(A, B) {\n  EXPECT_EQ(1, 1);\n}\nTEST(A, DISABLED_C) {\n}\n", Counts(2, 1, 0, 1)),
    (
        "src/test/ATest.java",
        "@Test\nvoid a() { assertEquals(1, 1); }\n@Test @Disabled\nvoid b() {}\n",
        Counts(2, 1, 0, 1),
    ),
    ("src/a.py", "def test_a():\n    assert 1\n", Counts()),
    ("tests/data.json", "assert", Counts()),
    ("tests/test_a.py", None, Counts()),
]


@pytest.mark.req("X1")
@pytest.mark.parametrize(("path", "text", "expected"), COUNTED)
def test_tests_are_counted(path: str, text: str | None, expected: Counts) -> None:
    assert count(path, text) == expected


@pytest.mark.req("X1")
def test_drift_shows_files_and_sums() -> None:
    drift = Drift.of(
        [
            ChangedText.between("tests/test_a.py", PYTHON, PYTHON.replace("    assert x\n", "")),
            ChangedText.between("tests/test_b.py", None, "def test_x():\n    assert 1\n"),
            ChangedText.between("src/a.py", "", "assert 1\n"),
        ]
    )
    assert [path for path, _, _ in drift.files] == ["tests/test_a.py", "tests/test_b.py"]
    assert str(drift) == "tests 3 → 4"


@given(st.sampled_from(sorted(SUFFIXES)), st.text())
def test_no_text_makes_counting_raise(suffix: str, text: str) -> None:
    count("tests/test_a" + suffix, text)


SCOPE = [
    ("src/a.py", ["src/a.py"], True),
    ("src/a.py", ["./src/a.py"], True),
    ("src/a.py", ["src/b.py"], False),
    ("src/a.py", ["src/*.py"], True),
    ("src/deep/a.py", ["src/*.py"], False),
    ("src/deep/a.py", ["src/**"], True),
    ("src/deep/a.py", ["src/"], True),
    ("src/deep/a.py", ["src/**/*.py"], True),
    ("src/a.py", ["src/**/*.py"], True),
    ("src/a.py", ["**/a.py"], True),
    ("a.py", ["**/a.py"], True),
    ("src/a.py", ["**"], True),
    ("src", ["src/**"], False),
    ("src/a.py", ["src"], False),
    ("src/a.py", ["src/?.py"], True),
    ("src/ab.py", ["src/?.py"], False),
    ("tests/test_a.py", ["src/a.py"], False),
    ("src/a.py", ["../src/a.py"], False),
    ("src/a.py", ["/src/a.py"], False),
    ("src/a.py", ["src//a.py"], False),
    ("src/a.py", [""], False),
    ("src/a.py", [], False),
    ("src/a[1].py", ["src/a[1].py"], True),
    ("src/é ü.py", ["src/é*.py"], True),
]


@pytest.mark.req("X1")
@pytest.mark.parametrize(("path", "declared", "covered"), SCOPE)
def test_a_path_that_nobody_declared_is_outside(path: str, declared: list[str], covered: bool) -> None:
    assert outside([path], declared) == (() if covered else (path,))


def test_no_pattern_takes_long() -> None:
    deep = "/".join(["a" * 50] * 60) + "/b"
    assert outside([deep], ["/".join(["**", "*a*a*a*a*a*"] * 30) + "/c"]) == (deep,)
    assert outside(["a" * 5000], ["*a" * 1000 + "b"]) == ("a" * 5000,)


@given(st.lists(st.text()), st.lists(st.text()))
def test_no_declaration_makes_it_raise(changes: list[str], declared: list[str]) -> None:
    assert set(outside(changes, declared)) <= set(changes)


@given(st.lists(st.text()), st.lists(st.text()), st.text())
def test_one_more_declared_file_never_puts_another_outside(changes: list[str], declared: list[str], more: str) -> None:
    assert set(outside(changes, [*declared, more])) <= set(outside(changes, declared))
