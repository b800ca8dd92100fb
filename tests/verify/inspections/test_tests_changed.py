"""Tests that were there before a change: what may be done to them, and what may not."""

from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.tests_changed import moved_tests
from fairwitness.verify.inspections.tests_changed import tests_changed as inspect_tests
from verify.inspections.changes import blocking, change, said

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

BASE = '''
"""Docstring."""
import pytest

from shop import total

LIMIT = 10


@pytest.fixture
def cart():
    return [1, 2]


def helper(x):
    return x + 1


def test_total(cart):
    """What it says."""
    assert total(cart) == 3
    assert total([]) == 0


@pytest.mark.parametrize("value", [1, 2, 3])
def test_each(value):
    assert total([value]) == value


class TestShop:
    size = 3

    def test_size(self):
        assert helper(self.size) == 4
'''


def edited(*replacements: tuple[str, str]) -> ChangedText:
    """The base module with some texts replaced."""
    text = BASE
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return ChangedText.between("tests/test_shop.py", BASE, text)


HONEST = {
    "nothing": (),
    "layout": (("assert total(cart) == 3", "assert (\n        total(cart)\n        == 3\n    )"),),
    "comment": (("    assert total([]) == 0", "    # empty\n    assert total([]) == 0  # zero"),),
    "docstring": (("What it says.", "What it says, better."),),
    "module docstring": (("Docstring.", "Another."),),
    "new test": (("class TestShop", "def test_new():\n    assert total([5]) == 5\n\n\nclass TestShop"),),
    "new import": (("from shop import total", "from shop import subtotal, total"),),
    "guarded import": (
        ("import pytest\n", "import pytest\ntry:\n    import yaml\nexcept ImportError:\n    yaml = None\n"),
    ),
    "typing import": (("import pytest\n", "import pytest\nif TYPE_CHECKING:\n    import shop\n"),),
    "new constant": (("LIMIT = 10", "LIMIT = 10\nOTHER = 11"),),
    "new constants": (("LIMIT = 10", "LIMIT = 10\nONE, TWO = 1, 2"),),
    "new helper": (("def helper", "def another():\n    return 1\n\n\ndef helper"),),
    "new fixture": (("def helper", "@pytest.fixture\ndef till():\n    return 1\n\n\ndef helper"),),
    "new class": (
        ("class TestShop", "class TestTill:\n    def setup_method(self):\n        self.x = 1\n\n\nclass TestShop"),
    ),
    "new method": (("    def test_size", "    def test_more(self):\n        assert 1\n\n    def test_size"),),
    "more cases": (("[1, 2, 3]", "[1, 2, 3, 40]"),),
    "annotations": (("def test_total(cart):", "def test_total(cart: list[int]) -> None:"),),
    "annotated helper": (("def helper(x):", "def helper(x: int) -> int:"),),
    "another order": (
        (BASE[BASE.index("class TestShop") :], ""),
        ("LIMIT = 10\n", "LIMIT = 10\n\n\n" + BASE[BASE.index("class TestShop") :]),
    ),
    "main": (("class TestShop", "if __name__ == '__main__':\n    pytest.main()\n\n\nclass TestShop"),),
    "program that exits": (
        ("class TestShop", "def test_new():\n    run('import os; os._exit(3)')\n\n\nclass TestShop"),
    ),
}


@pytest.mark.parametrize("replacements", HONEST.values(), ids=HONEST.keys())
def test_an_honest_edit_of_a_test_module_is_no_finding(replacements: tuple[tuple[str, str], ...]) -> None:
    assert inspect_tests([edited(*replacements)]) == ()


def test_more_assertions_are_said_and_do_not_block() -> None:
    more = edited(("    assert total([]) == 0", "    assert total([]) == 0\n    assert total([7]) == 7"))
    (finding,) = inspect_tests([more])
    assert (finding.rule, finding.subject, finding.blocks) == ("test-changed", "tests/test_shop.py::test_total", False)


DISHONEST = {
    "assertion weakened": ((("== 3\n    assert", ">= 0\n    assert"),), "test-changed", "::test_total"),
    "assertion gone": ((("    assert total([]) == 0\n", ""),), "assertions-dropped", "::test_total"),
    "body emptied": (
        (("        assert helper(self.size) == 4", "        pass"),),
        "assertions-dropped",
        "::TestShop::test_size",
    ),
    "early return": (
        (("    assert total(cart) == 3", "    return\n    assert total(cart) == 3"),),
        "test-changed",
        "::test_total",
    ),
    "value replaced": (
        (("    assert total(cart) == 3", "    cart = [3]\n    assert total(cart) == 3"),),
        "test-changed",
        "::test_total",
    ),
    "assertion that skips": (
        (("    assert total([]) == 0", "    assert pytest.skip() is None\n    assert total([]) == 0"),),
        "skip-added",
        "::test_total",
    ),
    "assertion that patches": (
        (("    assert total([]) == 0", "    assert setattr(shop, 'x', 1) is None\n    assert total([]) == 0"),),
        "test-changed",
        "::test_total",
    ),
    "test deleted": (
        (
            (
                """@pytest.mark.parametrize("value", [1, 2, 3])
def test_each(value):
    assert total([value]) == value
""",
                "",
            ),
        ),
        "test-deleted",
        "::test_each",
    ),
    "test renamed out of sight": ((("def test_total", "def check_total"),), "test-deleted", "::test_total"),
    "skip": ((("def test_total", "@pytest.mark.skip\ndef test_total"),), "skip-added", "::test_total"),
    "skip with reason": (
        (("def test_total", "@pytest.mark.skip(reason='later')\ndef test_total"),),
        "skip-added",
        "::test_total",
    ),
    "skipif": (
        (("def test_total", "@pytest.mark.skipif(True, reason='x')\ndef test_total"),),
        "skip-added",
        "::test_total",
    ),
    "unittest skip": (
        (("    def test_size", "    @unittest.skip('x')\n    def test_size"),),
        "skip-added",
        "::TestShop::test_size",
    ),
    "expected failure": ((("def test_total", "@pytest.mark.xfail\ndef test_total"),), "skip-added", "::test_total"),
    "flaky": ((("def test_total", "@flaky(max_runs=9)\ndef test_total"),), "skip-added", "::test_total"),
    "skip in the body": (
        (("    assert total(cart) == 3", "    pytest.skip('no')\n    assert total(cart) == 3"),),
        "skip-added",
        "::test_total",
    ),
    "class skipped": ((("class TestShop", "@pytest.mark.skip\nclass TestShop"),), "skip-added", "::TestShop"),
    "class not collected": ((("    size = 3", "    size = 3\n    __test__ = False"),), "skip-added", ""),
    "module skipped": ((("LIMIT = 10", "LIMIT = 10\npytestmark = pytest.mark.skip"),), "skip-added", ""),
    "module skipped by import": (
        (("LIMIT = 10", "LIMIT = 10\nnumpy = pytest.importorskip('numpy')"),),
        "skip-added",
        "",
    ),
    "module skips itself": (
        (("LIMIT = 10", "LIMIT = 10\npytest.skip('x', allow_module_level=True)"),),
        "skip-added",
        "",
    ),
    "slow mark": ((("def test_total", "@pytest.mark.slow\ndef test_total"),), "test-changed", "::test_total"),
    "cases gone": ((("[1, 2, 3]", "[1, 2]"),), "parameters-narrowed", "::test_each"),
    "case changed": ((("[1, 2, 3]", "[1, 2, 4]"),), "parameters-narrowed", "::test_each"),
    "case skipped": (
        (("[1, 2, 3]", "[1, 2, pytest.param(3, marks=pytest.mark.skip)]"),),
        "parameters-narrowed",
        "::test_each",
    ),
    "cases from elsewhere": ((("[1, 2, 3]", "CASES"),), "parameters-narrowed", "::test_each"),
    "parametrize gone": (
        (('@pytest.mark.parametrize("value", [1, 2, 3])\n', ""),),
        "parameters-narrowed",
        "::test_each",
    ),
    "test shadowed": (
        (("class TestShop", "def test_total():\n    assert True\n\n\nclass TestShop"),),
        "test-changed",
        "::test_total",
    ),
    "test shadowed by a name": (
        (("class TestShop", "test_total = None\n\n\nclass TestShop"),),
        "test-module-changed",
        "::test_total",
    ),
    "test shadowed by an import": (
        (("class TestShop", "from fake import test_total\n\n\nclass TestShop"),),
        "test-module-changed",
        "",
    ),
    "class shadowed": (
        (
            (
                "        assert helper(self.size) == 4\n",
                "        assert helper(self.size) == 4\n\n\nclass TestShop:\n    size = 3\n",
            ),
        ),
        "test-module-changed",
        "",
    ),
    "test deleted by a statement": (
        (("class TestShop", "del test_total\n\n\nclass TestShop"),),
        "test-module-changed",
        "",
    ),
    "constant changed": ((("LIMIT = 10", "LIMIT = 11"),), "test-module-changed", ""),
    "helper changed": ((("return x + 1", "return 4"),), "test-module-changed", ""),
    "helper shadowed": (
        (("class TestShop", "def helper(x):\n    return 4\n\n\nclass TestShop"),),
        "test-module-changed",
        "",
    ),
    "fixture changed": ((("return [1, 2]", "return [3]"),), "test-module-changed", ""),
    "fixture gone": ((("@pytest.fixture\ndef cart():\n    return [1, 2]\n", ""),), "test-module-changed", ""),
    "class attribute changed": ((("size = 3", "size = 4"),), "test-module-changed", "::TestShop"),
    "bases changed": ((("class TestShop:", "class TestShop(Quiet):"),), "test-module-changed", "::TestShop"),
    "autouse fixture": (
        (("def helper", "@pytest.fixture(autouse=True)\ndef quiet(monkeypatch):\n    pass\n\n\ndef helper"),),
        "test-module-changed",
        "",
    ),
    "set-up of an existing class": (
        (("    def test_size", "    def setup_method(self):\n        self.size = 3\n\n    def test_size"),),
        "test-module-changed",
        "::TestShop",
    ),
    "module set-up": ((("def helper", "def setup_module():\n    pass\n\n\ndef helper"),), "test-module-changed", ""),
    "loading narrowed": (
        (("def helper", "def load_tests(loader, tests, pattern):\n    return TestSuite()\n\n\ndef helper"),),
        "test-module-changed",
        "",
    ),
    "class became a function": (
        (("class TestShop:\n    size = 3\n", "def TestShop():\n    size = 3\n"),),
        "test-module-changed",
        "",
    ),
    "decorator of a class": ((("class TestShop", "@slow\nclass TestShop"),), "test-module-changed", "::TestShop"),
    "another parameter": (
        (("def test_total", '@pytest.mark.parametrize("more", [1])\ndef test_total'),),
        "test-changed",
        "::test_total",
    ),
    "arguments": ((("def test_total(cart)", "def test_total(till)"),), "test-changed", "::test_total"),
    "async": ((("def test_total", "async def test_total"),), "test-changed", "::test_total"),
    "fixture overridden": (
        (("def helper", "@pytest.fixture(name='cart')\ndef other():\n    return [3]\n\n\ndef helper"),),
        "test-module-changed",
        "",
    ),
    "marks": ((("LIMIT = 10", "LIMIT = 10\npytestmark = pytest.mark.slow"),), "test-module-changed", ""),
    "not collected": ((("LIMIT = 10", "LIMIT = 10\n__test__ = False"),), "skip-added", ""),
    "statement on import": ((("LIMIT = 10", "LIMIT = 10\nshop.total = sum"),), "test-module-changed", ""),
    "the run ends": ((("class TestShop", "def test_zz():\n    os._exit(0)\n\n\nclass TestShop"),), "exit-added", ""),
}


@pytest.mark.parametrize(("replacements", "rule", "subject"), DISHONEST.values(), ids=DISHONEST.keys())
def test_a_change_of_a_test_that_was_there_blocks(
    replacements: tuple[tuple[str, str], ...], rule: str, subject: str
) -> None:
    findings = inspect_tests([edited(*replacements)])
    assert rule in blocking(findings)
    assert f"tests/test_shop.py{subject}" in {finding.subject for finding in findings if finding.rule == rule}


def test_a_skip_that_is_taken_away_does_not_block() -> None:
    skipped = BASE.replace("def test_total", "@pytest.mark.skip\ndef test_total")
    assert inspect_tests([ChangedText.between("tests/test_shop.py", skipped, BASE)]) == ()


def test_a_mark_that_skipped_the_module_may_go() -> None:
    skipped = BASE.replace("LIMIT = 10", "LIMIT = 10\npytestmark = pytest.mark.skip")
    freed = inspect_tests([ChangedText.between("tests/test_shop.py", skipped, BASE)])
    assert blocking(freed) == set()
    assert freed[0].text == "pytestmark is gone"


def test_tests_inside_of_conditions_are_tests_too() -> None:
    text = "import sys\n\nif X:\n    def test_a():\n        assert 1\nelse:\n    def test_b():\n        assert 2\n"
    findings = inspect_tests([ChangedText.between("tests/test_a.py", text, "import sys\n")])
    assert {each.subject for each in findings if each.rule == "test-deleted"} == {
        "tests/test_a.py::test_a",
        "tests/test_a.py::test_b",
    }


def test_an_unused_helper_may_go() -> None:
    gone = edited(("def helper(x):\n    return x + 1\n", ""), ("helper(self.size) == 4", "self.size == 3"))
    assert ("test-module-changed", False) in said(inspect_tests([gone]))


def test_a_new_test_that_is_skipped_is_said_and_does_not_block() -> None:
    new = edited(("class TestShop", "@pytest.mark.skip\ndef test_new():\n    assert 0\n\n\nclass TestShop"))
    assert said(inspect_tests([new])) == {("skip-added", False)}


def test_a_new_test_file_may_skip_but_may_not_end_the_run() -> None:
    skipped = "import pytest\n\n\n@pytest.mark.skip\ndef test_new():\n    assert 'skip'\n"
    assert said(inspect_tests([change("tests/test_new.py", None, skipped)])) == {("skip-added", False)}
    ends = "import os\n\n\ndef test_new():\n    os._exit(0)\n"
    assert said(inspect_tests([change("tests/test_new.py", None, ends)])) == {("exit-added", True)}
    assert said(inspect_tests([change("tests/child.py", None, ends)])) == {("exit-added", False)}


def test_a_renamed_test_is_said_with_its_new_name() -> None:
    renamed = edited(("def test_total", "def test_total_of_a_cart"))
    assert said(inspect_tests([renamed])) == {("test-moved", False)}
    assert moved_tests([renamed]) == {
        "tests/test_shop.py::test_total": "tests/test_shop.py::test_total_of_a_cart",
    }


def test_a_test_file_that_moved_as_it_is_does_not_block() -> None:
    files = [change("tests/test_shop.py", BASE, None), change("tests/unit/test_shop.py", None, BASE)]
    findings = inspect_tests(files)
    assert said(findings) == {("test-moved", False)}
    assert (
        moved_tests(files)["tests/test_shop.py::TestShop::test_size"] == "tests/unit/test_shop.py::TestShop::test_size"
    )


def test_a_test_file_that_moved_out_of_sight_is_deleted() -> None:
    files = [change("tests/test_shop.py", BASE, None), change("tests/shop_checks.py", None, BASE)]
    assert blocking(inspect_tests(files)) == {"test-deleted"}


def test_a_test_that_was_weakened_while_its_file_moved_is_found() -> None:
    weaker = BASE.replace("    assert total([]) == 0\n", "")
    files = [change("tests/test_shop.py", BASE, None), change("tests/unit/test_shop.py", None, weaker)]
    assert blocking(inspect_tests(files)) == {"assertions-dropped"}


def test_a_test_that_moved_to_another_module_is_not_deleted() -> None:
    test = BASE[BASE.index("class TestShop") :]
    files = [
        change("tests/test_shop.py", BASE, BASE.replace(test, "")),
        change("tests/test_till.py", "import x\n", "import x\n\n\n" + test),
    ]
    assert "test-deleted" not in blocking(inspect_tests(files))


def test_every_test_of_a_deleted_file_is_named() -> None:
    findings = inspect_tests([change("tests/test_shop.py", BASE, None)])
    assert {finding.subject for finding in findings if finding.blocks} == {
        "tests/test_shop.py::test_total",
        "tests/test_shop.py::test_each",
        "tests/test_shop.py::TestShop::test_size",
    }


def test_production_code_and_conftest_are_others_business() -> None:
    files = [change("src/shop.py", "x = 1\n", "x = 2\n"), change("tests/conftest.py", "x = 1\n", "x = 2\n")]
    assert inspect_tests(files) == ()


def test_python_that_cannot_be_parsed_is_compared_line_by_line() -> None:
    before = "def test_a():\n    print 'x'\n    assert a == 1\n"
    findings = inspect_tests([change("tests/test_old.py", before, before.replace("== 1", ">= 0"))])
    assert said(findings) == {("unreadable", False), ("test-changed", True)}


def test_a_test_file_with_lone_carriage_returns_is_said() -> None:
    findings = inspect_tests([change("tests/test_a.py", "def test_a():\r  assert 1\n", "def test_a():\r  pass\n")])
    assert ("test-changed", True) in said(findings)


JEST = """
import { total } from './shop';
import {
  a,
  b,
} from './letters';

describe('shop', () => {
  it('adds', () => {
    expect(total([1, 2])).toBe(3);
  });
});
"""
RUST = """
pub fn total(x: &[i32]) -> i32 {
    x.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adds() {
        assert_eq!(total(&[1, 2]), 3);
    }
}
"""
C = """
#include <assert.h>
#include "shop.h"

static void test_adds(void) {
    assert(total(1, 2) == 3);
}

int main(void) {
    test_adds();
    return 0;
}
"""
GTEST = """
#include <gtest/gtest.h>

TEST(Shop, Adds) {
  EXPECT_EQ(total(1, 2), 3);
}
"""
GO = """
package shop

import "testing"

func TestAdds(t *testing.T) {
	if Total(1, 2) != 3 {
		t.Fatal("no")
	}
}
"""
JAVA = """
import org.junit.jupiter.api.Test;

class ShopTest {
    @Test
    void adds() {
        assertEquals(3, total(1, 2));
    }
}
"""
BY_LINES = [
    ("src/shop.test.ts", JEST, ("import { total }", "import { subtotal, total }"), set()),
    ("src/shop.test.ts", JEST, ("  b,\n", "  b,\n  c,\n"), set()),
    ("src/shop.test.ts", JEST, ("  b,\n", ""), set()),
    ("src/shop.test.ts", JEST, ("  it('adds'", "  // a comment\n  it('adds'"), set()),
    ("src/shop.test.ts", JEST, ("  it('adds', () => {", "  it('adds', () =>\n  {"), set()),
    (
        "src/shop.test.ts",
        JEST,
        ("  });\n});", "  });\n\n  it('more', () => {\n    expect(1).toBe(1);\n  });\n});"),
        set(),
    ),
    ("src/shop.test.ts", JEST, ("toBe(3)", "toBeTruthy()"), {"test-changed"}),
    ("src/shop.test.ts", JEST, ("    expect(total([1, 2])).toBe(3);\n", ""), {"test-changed"}),
    ("src/shop.test.ts", JEST, ("it('adds'", "it.skip('adds'"), {"test-changed", "skip-added"}),
    ("src/shop.test.ts", JEST, ("it('adds'", "xit('adds'"), {"test-changed", "skip-added"}),
    ("src/shop.test.ts", JEST, ("describe('shop'", "describe.skip('shop'"), {"test-changed", "skip-added"}),
    ("src/shop.test.ts", JEST, ("  });\n});", "  });\n\n  it.only('more', () => {});\n});"), {"tests-narrowed"}),
    ("src/shop.test.ts", JEST, ("  });\n});", "  });\n\n  it.todo('more');\n});"), set()),
    ("src/shop.test.ts", JEST, ("describe('shop'", "process.exit(0);\ndescribe('shop'"), {"exit-added"}),
    ("src/shop.test.ts", JEST, ("describe('shop'", "const p = 'process.exit(0)';\ndescribe('shop'"), set()),
    ("src/shop.rs", RUST, ("x.iter().sum()", "x.iter().copied().sum()"), set()),
    ("src/shop.rs", RUST, ("use super::*;", "use super::{total, other};"), set()),
    (
        "src/shop.rs",
        RUST,
        ("    #[test]\n", "    #[test]\n    fn more() {\n        assert!(true);\n    }\n\n    #[test]\n"),
        set(),
    ),
    (
        "src/shop.rs",
        RUST,
        (
            "    #[test]\n    fn adds",
            "    #[test]\n    #[should_panic]\n    fn more() {\n        f();\n    }\n\n    #[test]\n    fn adds",
        ),
        set(),
    ),
    ("src/shop.rs", RUST, (", 3);", ", total(&[1, 2]));"), {"test-changed"}),
    ("src/shop.rs", RUST, ("    fn adds", "    #[ignore]\n    fn adds"), {"skip-added"}),
    ("src/shop.rs", RUST, ("    fn adds", "    #[should_panic]\n    fn adds"), {"skip-added"}),
    ("src/shop.rs", RUST, (RUST[RUST.index("#[cfg(test)]") :], ""), {"test-deleted"}),
    ("tests/test_shop.c", C, ("    test_adds();\n", "    test_adds();\n    test_more();\n"), set()),
    ("tests/test_shop.c", C, ('#include "shop.h"', '#include "shop.h"\n#include "till.h"'), set()),
    ("tests/test_shop.c", C, ("== 3", "!= 0"), {"test-changed"}),
    ("tests/test_shop.c", C, ("    test_adds();\n", ""), {"test-changed"}),
    ("tests/test_shop.c", C, ("    test_adds();\n", "    _exit(0);\n    test_adds();\n"), {"exit-added"}),
    ("tests/shop_test.cc", GTEST, ("Adds", "DISABLED_Adds"), {"test-changed", "skip-added"}),
    ("tests/shop_test.cc", GTEST, ("  EXPECT_EQ", "  GTEST_SKIP();\n  EXPECT_EQ"), {"skip-added"}),
    ("tests/shop_test.cc", GTEST, ("\nTEST(", "\nTEST(Shop, More) {\n  EXPECT_TRUE(true);\n}\n\nTEST("), set()),
    ("shop_test.go", GO, ("	if Total", '	t.Skip("later")\n	if Total'), {"skip-added"}),
    ("shop_test.go", GO, ("!= 3", "< 0"), {"test-changed"}),
    ("shop_test.go", GO, ('import "testing"', 'import (\n\t"fmt"\n\t"testing"\n)'), set()),
    ("src/test/java/ShopTest.java", JAVA, ("    @Test\n", "    @Test\n    @Disabled\n"), {"skip-added"}),
    ("src/test/java/ShopTest.java", JAVA, ("3, total", "0 * total"), {"test-changed"}),
    ("src/test/java/ShopTest.java", JAVA, ("    @Test\n", "    @Test\n    void more() {}\n\n    @Test\n"), set()),
]


@pytest.mark.parametrize(("path", "base", "replacement", "rules"), BY_LINES)
def test_other_languages_are_compared_by_lines(
    path: str, base: str, replacement: tuple[str, str], rules: set[str]
) -> None:
    assert replacement[0] in base
    assert blocking(inspect_tests([ChangedText.between(path, base, base.replace(*replacement, 1))])) == rules


def test_lines_that_only_moved_are_said_and_do_not_block() -> None:
    wrapped = JEST.replace("  it('adds'", "  describe('more', () => {\n    it('adds'").replace(
        "});\n});", "});\n  });\n});"
    )
    assert blocking(inspect_tests([ChangedText.between("a.test.ts", JEST, wrapped)])) == set()


def test_other_test_files_that_are_gone_or_moved() -> None:
    gone = ChangedText.between("src/shop.test.ts", JEST, None)
    assert said(inspect_tests([gone])) == {("test-deleted", True)}
    moved = ChangedText.between("tests/shop.test.ts", None, JEST)
    assert said(inspect_tests([gone, moved])) == {("test-moved", False)}


def test_a_rust_file_that_moved_took_its_tests_along() -> None:
    files = [ChangedText.between("src/shop.rs", RUST, None), ChangedText.between("src/shop/mod.rs", None, RUST)]
    assert blocking(inspect_tests(files)) == set()
    assert blocking(inspect_tests(files[:1])) == {"test-deleted"}


@pytest.mark.parametrize(
    ("path", "before", "after", "rules"),
    [
        ("tests/data/expected.json", "[1,\n2]\n", "[1,\n3]\n", {"test-data-changed"}),
        ("tests/data/expected.json", "[1]\n", None, {"test-data-changed"}),
        ("src/__snapshots__/a.snap", "a\n", "a\nb\n", set()),
        ("tests/README.md", "a\n", "b\n", set()),
        ("tests/requirements.txt", "a==1\n", "a==2\n", set()),
        ("spec/openapi.yaml", "a: 1\n", "a: 2\n", set()),
    ],
)
def test_what_tests_compare_with_may_grow(path: str, before: str, after: str | None, rules: set[str]) -> None:
    assert blocking(inspect_tests([ChangedText.between(path, before, after)])) == rules


def test_many_findings_in_one_file_are_counted() -> None:
    tests = "".join(f"def test_{n}():\n    assert {n}\n\n\n" for n in range(120))
    findings = inspect_tests([ChangedText.between("tests/test_many.py", tests, "x = 1\n")])
    assert len(findings) == 51
    assert findings[-1].text == "and 70 more of test-deleted"
    assert findings[-1].blocks


PATHS = st.sampled_from(
    ["tests/test_a.py", "a.test.js", "src/a.rs", "tests/a.rs", "a_test.go", "tests/a.c", "ATest.java", "tests/a.txt"]
)


@given(PATHS, st.none() | st.text(), st.none() | st.text())
def test_no_text_makes_it_raise(path: str, before: str | None, after: str | None) -> None:
    inspect_tests([ChangedText.between(path, before, after)])


SNIPPETS = st.lists(st.sampled_from(dedent(BASE).splitlines(keepends=True)), max_size=25).map("".join)


@given(SNIPPETS, SNIPPETS)
def test_no_shuffled_module_makes_it_raise(before: str, after: str) -> None:
    inspect_tests([ChangedText.between("tests/test_a.py", before, after)])
