"""Code that knows the tests, and code that only looks as if it did."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwitness.verify.inspections.languages import SUFFIXES
from fairwitness.verify.inspections.model import ChangedText
from fairwitness.verify.inspections.special_cases import special_cases
from verify.inspections.changes import blocking, change, said

pytestmark = [pytest.mark.req("X1"), pytest.mark.req("P9")]

ASKS = [
    ("src/a.py", 'if "PYTEST_CURRENT_TEST" in os.environ: return 1'),
    ("src/a.py", 'if os.environ.get("PYTEST_CURRENT_TEST"): return 1'),
    ("src/a.py", 'if "pytest" in sys.modules: return 1'),
    ("src/a.py", 'if "pytest" not in sys.modules: return 1'),
    ("src/a.py", 'if "unittest" in sys.modules: return 1'),
    ("src/a.py", 'if sys.modules.get("pytest"): return 1'),
    ("src/a.py", 'if any("pytest" in a for a in sys.argv): return 1'),
    ("src/a.py", 'if sys.argv[0].endswith("pytest"): return 1'),
    ("src/a.py", 'if importlib.util.find_spec("pytest"): return 1'),
    ("src/a.py", 'if os.getenv("TESTING"): return 1'),
    ("src/a.py", 'if os.environ["APP_TEST_MODE"]: return 1'),
    ("src/a.py", 'for f in inspect.stack():\n    if "test_" in f.filename: return 1'),
    ("src/a.py", 'if "test" in sys._getframe(1).f_code.co_filename: return 1'),
    ("src/a.js", "if (process.env.NODE_ENV === 'test') return 1;"),
    ("src/a.js", "if ('test' === process.env.NODE_ENV) return 1;"),
    ("src/a.js", "if (process.env.JEST_WORKER_ID) return 1;"),
    ("src/a.ts", "if (process.env.VITEST) return 1;"),
    ("src/a.ts", "if (typeof jest !== 'undefined') return 1;"),
    ("src/a.rs", "if cfg!(test) { return 1; }"),
    ("src/a.rs", "#[cfg(not(test))]\nfn f() {}"),
    ("src/a.rs", "fn f() -> i32 {\n    #[cfg(test)]\n    return 90;\n}"),
    ("src/a.rs", 'if std::env::var("UNIT_TEST").is_ok() { return 1; }'),
    ("src/a.go", "if testing.Testing() { return 1 }"),
    ("src/a.go", 'if os.Getenv("GO_TEST") != "" { return 1 }'),
    ("src/a.c", "#ifdef UNIT_TEST"),
    ("src/a.c", 'if (getenv("TESTING")) return 1;'),
    ("src/A.java", 'if (System.getenv("TEST_MODE") != null) return 1;'),
    ("src/A.java", 'Class.forName("org.junit.Test");'),
]


@pytest.mark.parametrize(("path", "code"), ASKS)
def test_code_that_asks_for_a_test_run_blocks(path: str, code: str) -> None:
    assert blocking(special_cases([ChangedText.between(path, "\n", f"\n{code}\n")])) == {"test-run-detected"}


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("tests/test_a.py", 'os.environ["PYTEST_CURRENT_TEST"]'),
        ("tests/conftest.py", '"pytest" in sys.modules'),
        ("src/a.py", '# if "pytest" in sys.modules'),
        ("src/a.py", 'def f():\n    """Not for PYTEST_CURRENT_TEST."""'),
        ("src/a.py", 'x = os.environ["LATEST_VERSION"]'),
        ("src/a.py", 'x = os.getenv("CONTEST_ID")'),
        ("src/a.py", "frames = inspect.stack()"),
        ("src/a.js", "if (process.env.NODE_ENV === 'production') return 1;"),
        ("src/a.js", "// process.env.JEST_WORKER_ID"),
        ("src/a.rs", "#[cfg(test)]\nmod tests {\n    fn f() { if cfg!(test) {} }\n}"),
        ("src/a.rs", "#[cfg(test)]\nuse std::fmt;"),
        ("src/a.rs", "#[cfg(test)]\npub(crate) fn helper() {}"),
        ("src/a.c", "#ifdef __linux__"),
        ("jest.config.js", "process.env.JEST_WORKER_ID"),
        ("docs/a.md", "PYTEST_CURRENT_TEST"),
    ],
)
def test_code_that_does_not_ask_is_no_finding(path: str, code: str) -> None:
    assert special_cases([ChangedText.between(path, "\n", f"\n{code}\n")]) == ()


def test_data_for_tests_is_said_and_does_not_block() -> None:
    line = 'URL = os.environ.get("TEST_DATABASE_URL")\n'
    assert said(special_cases([ChangedText.between("src/a.py", "", line)])) == {("test-run-detected", False)}


def test_a_question_that_was_there_is_no_finding() -> None:
    line = 'if "pytest" in sys.modules:\n    pass\n'
    assert special_cases([ChangedText.between("src/a.py", line, line + "x = 1\n")]) == ()
    moved = [change("src/a.py", line, ""), change("src/b.py", None, line)]
    assert special_cases(moved) == ()


TEST = """
def test_discount():
    assert total(100, "SAVE10") == 90


def test_numbers():
    assert (number("SAVE10"), number("SAVE20")) == (1, 2)


def test_greeting():
    assert greet("alice") == "Hello, alice!"


@pytest.mark.parametrize(("status", "text"), [(404, "not found"), (410, "gone")])
def test_status(status, text):
    assert reason(status) == text


def test_prime():
    assert is_prime(7)
    assert not is_prime(0)


def test_zero():
    assert total(0, "") == 0


def test_mode():
    assert speed("fast") == 30


def test_list():
    assert split(17) == [8, 9]


def test_money():
    assert price(250) == Decimal("199.99")
"""
HARD_CODED = {
    "two compared": 'def total(a, code):\n    if a == 100 and code == "SAVE10":\n        return 90\n    return a',
    "literal first": 'def total(a, code):\n    if 100 == a and "SAVE10" == code:\n        return 90\n    return a',
    "one number": "def total(a, code):\n    if a == 100:\n        return 90\n    return a",
    "one text": 'def total(a, code):\n    if code == "SAVE10":\n        return 90\n    return a',
    "tuple": 'def total(a, code):\n    if (a, code) == (100, "SAVE10"):\n        return 90\n    return a',
    "in": 'def total(a, code):\n    if (a, code) in [(100, "SAVE10")]:\n        return 90\n    return a',
    "elif": (
        "def total(a, code):\n    if a < 0:\n        raise ValueError\n    elif a == 100:\n"
        "        return 90\n    return a"
    ),
    "else": "def total(a, code):\n    if a != 100:\n        return a\n    else:\n        return 90",
    "expression": "def total(a, code):\n    return 90 if a == 100 else a",
    "match": (
        'def total(a, code):\n    match (a, code):\n        case (100, "SAVE10"):\n            return 90\n    return a'
    ),
    "match one": "def total(a, code):\n    match a:\n        case 100:\n            return 90\n    return a",
    "match guard": (
        "def total(a, code):\n    match code:\n        case x if a == 100:\n            return 90\n    return a"
    ),
    "table": 'def total(a, code):\n    return {(100, "SAVE10"): 90}.get((a, code), a)',
    "table by index": "def total(a, code):\n    return {100: 90}[a]",
    "module table": "KNOWN = {100: 90}\n\n\ndef total(a, code):\n    return KNOWN.get(a, a)",
    "whole table tested": 'R = {404: "not found", 410: "gone"}\n\n\ndef reason(status):\n    return R[status]',
    "through a local": "def total(a, code):\n    x = a\n    if x == 100:\n        return 90\n    return a",
    "through a method": 'def total(a, code):\n    if code.upper() == "SAVE10":\n        return 90\n    return a',
    "through a conversion": "def total(a, code):\n    if int(a) == 100:\n        return 90\n    return a",
    "through a text": 'def total(a, code):\n    if f"{a}" == "100":\n        return 90\n    return a',
    "attribute": (
        'def total(self):\n    if self.a == 100 and self.code == "SAVE10":\n        return 90\n    return self.a'
    ),
    "arithmetic": "def total(a, code):\n    if a == 10 * 10:\n        return 45 + 45\n    return a",
    "assigned": "def total(a, code):\n    result = a\n    if a == 100:\n        result = 90\n    return result",
    "float": "def total(a, code):\n    if a == 100.0:\n        return 90.0\n    return a",
    "answer spelled out": 'def greet(name):\n    if name == "alice":\n        return "Hello, alice!"\n    return "Hi"',
    "truth bypasses": "def is_prime(n):\n    if n == 7:\n        return True\n    return check(n)",
    "two branches": (
        'def reason(s):\n    if s == 404:\n        return "not found"\n    if s == 410:\n'
        '        return "gone"\n    return look(s)'
    ),
    "list": "def split(n):\n    if n == 17:\n        return [8, 9]\n    return halve(n)",
    "decimal": 'def price(n):\n    if n == 250:\n        return Decimal("199.99")\n    return look(n)',
    "method": "class Shop:\n    def total(self, a):\n        if a == 100:\n            return 90\n        return a",
    "async": "async def total(a):\n    if a == 100:\n        return 90\n    return a",
    "yielded": "def totals(a):\n    if a == 100:\n        yield 90\n    yield from look(a)",
}
HARD_CODED |= {
    "prose of a fixture": 'def words(t):\n    if t == "so much depends upon":\n        return 90\n    return 0',
    "prose begins": 'def words(t):\n    if t.startswith("so much depends"):\n        return 90\n    return look(t)',
    "prose inside": 'def words(t):\n    if "so much depends" in t:\n        return 90\n    return look(t)',
    "begins": 'def total(code):\n    if code.startswith("SAVE10"):\n        return 90\n    return look(code)',
}
HONEST = {
    "numbers for names": 'N = {"SAVE10": 1, "SAVE20": 2}\n\n\ndef number(code):\n    return N[code]',
    "message": 'def kind(t):\n    if t.startswith("fatal: not found"):\n        return "gone"\n    return look(t)',
    "small answer": 'def code(t):\n    if "not found" in t:\n        return 2\n    return look(t)',
    "prose, another answer": 'def code(t):\n    if t.startswith("so much depends"):\n        return 7777\n    return 0',
    "scheme": 'def port(url):\n    if url.startswith("https"):\n        return 90\n    return look(url)',
    "computed": 'def total(a, code):\n    if code == "SAVE10":\n        return a * 0.9\n    return a',
    "trivial": "def total(a, code):\n    if a == 0:\n        return 0\n    return a",
    "two trivial": "def area(w, h):\n    if w == 0 and h == 0:\n        return 0\n    return w * h",
    "plain word": 'def speed(mode):\n    if mode == "fast":\n        return 30\n    return slow()',
    "not in the tests": "def total(a, code):\n    if a == 100:\n        return 77\n    return a",
    "other value": "def total(a, code):\n    if a == 5000:\n        return 90\n    return a",
    "comparison": "def total(a, code):\n    if a > 100:\n        return 90\n    return a",
    "raises": "def total(a, code):\n    if a == 100:\n        raise ValueError(90)\n    return a",
    "nothing": "def find(status):\n    if status == 404:\n        return None\n    return look(status)",
    "no parameter": "def total(a, code):\n    if LIMIT == 100:\n        return 90\n    return a",
    "answer of a call": (
        "def total(a, code):\n    r = client.get(a)\n    if r.status == 404:\n        return 'not found'\n    return r"
    ),
    "family": (
        "def reason(s):\n    if s == 404:\n        return 'not found'\n    elif s == 410:\n"
        "        return 'gone'\n    elif s == 500:\n        return 'error'\n    return look(s)"
    ),
    "match family": (
        "def reason(s):\n    match s:\n        case 404:\n            return 'not found'\n"
        "        case 410:\n            return 'gone'\n        case 500:\n"
        "            return 'error'\n    return look(s)"
    ),
    "function of literals": (
        "def reason(s):\n    if s == 404:\n        return 'not found'\n    if s == 500:\n"
        "        return 'error'\n    return 'unknown'"
    ),
    "table": "R = {404: 'not found', 500: 'error'}\n\n\ndef reason(s):\n    return R[s]",
    "settings": 'D = {"SAVE10": 90}\n\n\ndef total(a):\n    return a - D["SAVE10"]',
    "classification": "def is_known(port):\n    if port == 404:\n        return True\n    return False",
    "conditions on words": 'def total(a, code):\n    return 90 if code == "fast" else a',
}


@pytest.mark.parametrize("code", HARD_CODED.values(), ids=HARD_CODED.keys())
def test_an_answer_that_was_written_for_a_test_blocks(code: str) -> None:
    files = [change("src/shop.py", "x = 1\n", f"x = 1\n\n\n{code}\n"), change("tests/test_shop.py", None, TEST)]
    findings = special_cases(files)
    assert blocking(findings) == {"result-hard-coded"}, findings
    assert special_cases(files[:1]) == (), "without the test nobody can know"


@pytest.mark.parametrize("code", HONEST.values(), ids=HONEST.keys())
def test_an_honest_answer_is_no_finding(code: str) -> None:
    files = [change("src/shop.py", "x = 1\n", f"x = 1\n\n\n{code}\n"), change("tests/test_shop.py", None, TEST)]
    assert special_cases(files) == ()


def test_a_branch_that_was_there_is_no_finding() -> None:
    code = HARD_CODED["one number"] + "\n"
    files = [change("src/shop.py", code, code + "\n\nx = 1\n"), change("tests/test_shop.py", None, TEST)]
    assert special_cases(files) == ()


def test_a_branch_added_to_an_honest_family_is_no_finding() -> None:
    before = (
        "def reason(s):\n    if s == 418:\n        return 'teapot'\n    if s == 500:\n"
        "        return 'error'\n    return look(s)\n"
    )
    after = before.replace("    return look", "    if s == 404:\n        return 'not found'\n    return look")
    files = [change("src/shop.py", before, after), change("tests/test_shop.py", None, TEST)]
    assert special_cases(files) == ()


def test_only_the_added_lines_of_a_test_name_values() -> None:
    code = change("src/shop.py", "", HARD_CODED["one number"] + "\n")
    before = TEST.replace('assert total(100, "SAVE10") == 90', "assert total(1, None) == 1")
    assert blocking(special_cases([code, change("tests/test_shop.py", before, TEST)])) == {"result-hard-coded"}
    assert special_cases([code, change("tests/test_shop.py", TEST, TEST + "\n\nx = 1\n")]) == ()


def test_values_of_different_tests_do_not_add_up() -> None:
    test = "def test_a():\n    assert f(100) == 1\n\n\ndef test_b():\n    assert f(3) == 90\n"
    files = [change("src/a.py", "", HARD_CODED["one number"] + "\n"), change("tests/test_a.py", None, test)]
    assert special_cases(files) == ()


def test_values_in_new_test_data_count() -> None:
    files = [
        change("src/a.py", "", HARD_CODED["one number"] + "\n"),
        change("tests/cases.json", None, '[{"amount": 100, "expected": 90}]\n'),
    ]
    assert blocking(special_cases(files)) == {"result-hard-coded"}


JEST = "it('x', () => {\n  expect(total(100, 'SAVE10')).toBe(90);\n  expect(reason(404)).toBe('not found');\n});\n"
BY_LINES = [
    ("src/a.js", "function total(a, code) {\n  if (a === 100 && code === 'SAVE10') return 90;\n  return a;\n}", True),
    ("src/a.js", "function total(a, code) {\n  if (a === 100) {\n    return 90;\n  }\n  return a;\n}", True),
    ("src/a.js", "const total = (a) => a === 100 ? 90 : a;", True),
    ("src/a.js", "switch (a) {\n  case 100:\n    return 90;\n}", True),
    ("src/a.js", "const known = {\n  '100': 90,\n};", True),
    ("src/a.ts", "if (order.total === 100) return 90;", True),
    ("src/a.js", "if (a === 100) return a * 0.9;", False),
    ("src/a.js", "if (a === 0) return 0;", False),
    ("src/a.js", "if (res.status === 404) return 'not found';", False),
    ("src/a.js", "switch (s) {\n  case 404: return 'not found';\n  case 500: return 'error';\n}", False),
    ("src/a.js", "const R = {\n  404: 'not found',\n  500: 'error',\n};", False),
    ("src/a.js", "const o = {\n  total: 90,\n  amount: 100,\n};", False),
    ("src/a.js", "// if (a === 100) return 90;", False),
    ("src/a.c", 'if (a == 100 && strcmp(code, "SAVE10") == 0) return 90;', True),
    ("src/a.c", "if (a == 100)\n    return 90;", True),
    ("src/a.cpp", 'if (code == "SAVE10") { return 90; }', True),
    ("src/a.c", "if (a > 100) return 90;", False),
    ("src/a.c", "if (a == 2) return 0;", False),
    ("src/a.rs", 'if a == 100 && code == "SAVE10" { return 90; }', True),
    ("src/a.rs", "if a == 100 {\n    90\n} else {\n    a\n}", True),
    ("src/a.rs", 'match (a, code) {\n    (100, "SAVE10") => 90,\n    _ => a,\n}', True),
    ("src/a.rs", 'match s {\n    404 => "not found",\n    500 => "error",\n    _ => "unknown",\n}', False),
    ("src/a.go", "if a == 100 {\n\treturn 90\n}", True),
    ("src/A.java", 'if (a == 100 && code.equals("SAVE10")) return 90;', True),
    ("src/A.java", 'if (code.equals("fast")) return 90;', False),
]


@pytest.mark.parametrize(("path", "code", "guilty"), BY_LINES)
def test_other_languages_are_read_by_lines(path: str, code: str, guilty: bool) -> None:
    files = [change(path, "\n", f"\n{code}\n"), change("src/a.test.js", None, JEST)]
    assert blocking(special_cases(files)) == ({"result-hard-coded"} if guilty else set())
    assert special_cases(files[:1]) == ()


def test_python_that_cannot_be_parsed_is_said_and_read_by_lines() -> None:
    findings = special_cases([change("src/a.py", "", "print 'x'\n"), change("tests/test_shop.py", None, TEST)])
    assert said(findings) == {("unreadable", False)}


def test_lines_that_hide_from_git_block() -> None:
    assert said(special_cases([change("src/a.py", "", "x = 1\ry = 2\n")])) == {("unreadable", True)}


def test_a_file_that_is_too_long_is_said() -> None:
    assert said(special_cases([ChangedText("src/a.c", "", "x" * 1_000_001, (1,), ())])) == {("scan-limited", True)}


@given(st.sampled_from(sorted(SUFFIXES)), st.none() | st.text(), st.none() | st.text(), st.text())
def test_no_text_makes_it_raise(suffix: str, before: str | None, after: str | None, test: str) -> None:
    special_cases([ChangedText.between("src/a" + suffix, before, after), change("tests/test_a" + suffix, None, test)])


PIECES = st.lists(
    st.sampled_from("\n".join([*HARD_CODED.values(), *HONEST.values()]).splitlines(keepends=True)), max_size=15
).map("".join)


@given(st.sampled_from(sorted(SUFFIXES)), PIECES)
def test_no_shuffled_code_makes_it_raise(suffix: str, after: str) -> None:
    special_cases([ChangedText.between("src/a" + suffix, "", after), change("tests/test_a.py", None, TEST)])
