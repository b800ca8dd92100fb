"""Patterns that read text of a repository or an agent take a time that grows with the text, not with its square."""

from collections.abc import Callable

import pytest

from fairwitness.agents.normalization import _SIGNS
from fairwitness.contracts.common.markdown import split_sections
from fairwitness.contracts.verify.checks import ReportFormat
from fairwitness.rules.tool_policy import sql_problem
from fairwitness.verify.inspections.languages import Lang
from fairwitness.verify.inspections.lexer import lexed
from fairwitness.verify.reports.reader import READERS, read_report
from verify.inspections.test_hostile_lines import within

SECONDS = 10.0
LONG = 100_000
SPACES = " " * LONG
READ: dict[str, Callable[[], object]] = {
    "a heading of white space": lambda: split_sections(f"## {SPACES}x"),
    "a heading of closing signs": lambda: split_sections("## " + " #" * LONG + "x"),
    "a pragma of white space": lambda: sql_problem(f"pragma busy_timeout {SPACES}!"),
    "Python with a sign that is none": lambda: lexed(f"return {SPACES}!\n", Lang.PYTHON),
    "Python with many such signs": lambda: lexed("$ " * LONG, Lang.PYTHON),
    "a line of tests without an end": lambda: _SIGNS.sub("", "a" * LONG),
}
REPORTS = {
    "point": f"ok {SPACES}!",
    "directive": f"ok 1 - a # skip {SPACES}\v",
    "hashes": "ok 1 " + "# " * LONG,
    "folders": "a:1:" * LONG,
    "address": "make: *** (." + "0" * LONG,
    "rule": ("=" * 70 + "\nFAIL: ") * (LONG // 80),
    "lists": "[" * LONG,
    "elements": "<a>" * LONG,
    "suites": "<testsuites>" + "<testsuite>" * LONG,
    "entities": '<!DOCTYPE a [<!ENTITY b "c">]><testsuite name="&b;"/>',
    "number": '<testsuite tests="' + "9" * 5_000 + '"><testcase name="a" time="nan"/></testsuite>',
    "codes": "\x1b[" + "0;" * LONG,
}


@pytest.mark.parametrize("name", READ)
def test_a_long_text_is_read_in_bounded_time(name: str) -> None:
    with within(SECONDS):
        READ[name]()


@pytest.mark.req("X5")
@pytest.mark.parametrize("text", REPORTS)
@pytest.mark.parametrize("format", READERS)
def test_a_hostile_report_is_read_in_bounded_time_and_never_raises(format: ReportFormat, text: str) -> None:
    with within(SECONDS):
        report = read_report(format, REPORTS[text].encode(), exit_code=0, root="/x")
    assert all(problem.isprintable() and len(problem) <= 1_000 for problem in report.problems)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("## a", "a"), ("##  a  ##  ", "a"), ("## a#", "a#"), ("## a #\r", "a"), ("## ###", "###"),
        ("## a ## b", "a ## b"),        ("## \t", ""), ("## C#\t##", "C#"),
    ],
)  # fmt: skip
def test_the_closing_signs_of_a_heading_are_not_its_name(line: str, name: str) -> None:
    assert split_sections(line) == ((name, ""),)
