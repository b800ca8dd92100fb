"""Whatever a report holds, reading it ends, raises nothing, and gives items that are fit to be shown."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.contracts.verify.results import RED, Report
from fairwitness.verify.reports import read_report
from fairwitness.verify.reports.model import message, spelled
from fairwitness.verify.reports.reader import READERS
from verify.reports.reading import REAL, SAMPLES

QUICK = settings(max_examples=150)
CONTENTS = {name: (SAMPLES / name).read_bytes() for name in REAL}
WORDS = st.sampled_from(
    [
        *("ok", "not ok 1 - a", "1..2", "    ok 1", "Bail out!", "# tests 2", "  ---", "  ...", "}", "ok 1 - x {"),
        *("running 1 test", "test a ... ok", "test a - should panic ... FAILED", "failures:", "---- a stdout ----"),
        *(
            "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out",
            "     Running x (y-0123456789abcdef)",
        ),
        *("test_a (m.C.test_a) ... ok", "test_a (m.C)", "=" * 70, "ERROR: setUpClass (m.C)", "-" * 70, "OK", ""),
        *("Ran 1 test in 0.1s", "FAILED (failures=1)", "a.py:1: error: x  [y]", "Found 1 error in 1 file (z)"),
        *("a.py:1:1: E1 x", "a.ts(1,2): error TS1: x", "error TS2: y", "a.c:1:2: error: z [-Werror=w]", "make: *** x"),
        *('{"Action":"run","Package":"p","Test":"T"}', '{"Action":"fail","Package":"p"}', "FAIL\tp [build failed]"),
        *("<testsuite>", "</testsuite>", '<testcase name="a">', "</testcase>", "<failure>", "<!-- tests 1 -->"),
        *("\x1b[31m", "\u202e", "\ud7ff", "\x00", "\u2028", "\r", "\x85"),
    ]
)
TEXTS = st.lists(WORDS | st.text(max_size=20), max_size=30).map("\n".join)
CODES = st.sampled_from([None, 0, 1, 2, 5, 8, 101, 127, 137, -1])


def _is_fit(found: Report, exit_code: int | None) -> None:
    ids = [item.id for item in found.items]
    assert len(ids) == len(set(ids))
    for item in found.items:
        assert item.id.isprintable()
        assert item.id.strip() == item.id
        assert len(item.id) <= 1020
        assert item.message.isprintable()
        assert item.path is None or item.path.isprintable()
    for problem in found.problems:
        assert problem.isprintable()
    if not found.problems:
        red = any(item.outcome in RED for item in found.items)
        assert exit_code is not None
        assert red == (exit_code != 0)


@pytest.mark.req("P9")
@pytest.mark.parametrize("format", list(ReportFormat))
@QUICK
@given(content=st.binary(max_size=200) | TEXTS.map(lambda text: text.encode("utf-8", "surrogatepass")), code=CODES)
def test_reading_never_raises_and_what_is_believed_agrees_with_the_exit_code(
    format: ReportFormat, content: bytes, code: int | None
) -> None:
    _is_fit(read_report(format, content, exit_code=code, root="/tmp/gen/py"), code)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("name", list(REAL))
@settings(QUICK, max_examples=60)
@given(data=st.data())
def test_a_real_report_with_some_bytes_cut_out_or_put_in_is_read_or_refused(name: str, data: st.DataObject) -> None:
    format, code, root = REAL[name]
    content = CONTENTS[name]
    start = data.draw(st.integers(0, len(content)))
    end = data.draw(st.integers(start, min(len(content), start + 400)))
    put = data.draw(st.sampled_from(["", "<", '"', "\n", "0", "ok ", "}", "\x1b", "[[[[", "passed"]))
    mutated = content[:start] + put.encode() + content[end:]
    _is_fit(read_report(format, mutated, exit_code=code, root=root), code)


def _is_whole(format: ReportFormat) -> bool:
    """Whether a format says at its end, or at its beginning, how much of it there is."""
    return format not in (ReportFormat.FLAKE8, ReportFormat.TSC, ReportFormat.COMPILER)


def _may_end_at_a_line(format: ReportFormat) -> bool:
    """Behind its plan TAP has only remarks; whether cargo has another binary to run, its output does not say."""
    return format in (ReportFormat.TAP, ReportFormat.CARGO)


@pytest.mark.req("P9", "X1")
@pytest.mark.parametrize("name", [name for name, (format, _, _) in REAL.items() if _is_whole(format)])
def test_a_report_torn_at_any_place_is_never_believed(name: str) -> None:
    format, code, root = REAL[name]
    content = CONTENTS[name].rstrip()
    step = max(1, len(content) // 150)
    for end in range(0, len(content) - 1, step):
        if _may_end_at_a_line(format) and content[:end].endswith(b"\n"):
            continue
        torn = read_report(format, content[:end], exit_code=code, root=root)
        assert torn.problems, (end, content[max(0, end - 60) : end])


@pytest.mark.req("P9")
@settings(QUICK, max_examples=60)
@given(names=st.lists(st.sampled_from(["a", "a#2", "a#3", "b", "\x1ba"]), max_size=30))
def test_no_two_items_share_an_id(names: list[str]) -> None:
    cases = "".join(f'<testcase name="{name}"/>' for name in names)
    found = read_report(ReportFormat.JUNIT, f"<testsuite>{cases}</testsuite>".encode(), exit_code=0, root="")
    assert len({item.id for item in found.items}) == len(names)


@QUICK
@given(st.text(alphabet=string.printable + "é\u202e\x1b\u3000\u00a0🟢", max_size=80))
def test_a_spelled_text_is_one_printable_line_and_spelling_it_again_changes_nothing(text: str) -> None:
    assert spelled(text).isprintable()
    assert spelled(spelled(text)) == spelled(text)
    assert message(text) == " ".join(message(text).split())


@pytest.mark.req("P9")
@pytest.mark.parametrize("format", list(READERS))
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "ok ",
            "# skip ",
            "skipped '",
            "test a ... ",
            " (",
            "a: ",
            "E  ",
            "(1,2): error TS1: ",
            "[",
            "{",
            " > ",
            "::",
        ),
        *("\x1b]", "<a ", "&amp;", "\n", "test_a (m.C) ... ", "make: *** ", "  [x]", "     Running x (", "/tmp/gen/"),
    ],
)
def test_reading_a_long_line_of_one_thing_takes_no_time(format: ReportFormat, unit: str) -> None:
    content = (unit * (100_000 // len(unit))).encode()
    for prefix in (b"", b"     Running x (", b"1..1\nok 1 - ", b"<testsuite><testcase name='"):
        read_report(format, prefix + content, exit_code=0, root="/tmp/gen")
