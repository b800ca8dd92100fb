"""The screen of `fairwitness verify`: aligned columns, every reason once, nothing wider than the terminal."""

import pytest

from app.test_verify_outputs import BLOCKED, BROKEN, MISSING, check, finding, report
from cli.graph_ledgers import fits
from fairwitness.cli.screens.verify import show
from fairwitness.contracts.verify.results import Evidence, ItemChange

NAMES = ("tests pytest (regressed)", "regressions pytest (failed)", "oracle-tests pytest (failed)")


def test_a_change_that_holds_is_a_table_and_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    lint = check(id="ruff", name="lint", cached=True)
    tests = check(counts={ItemChange.NEW_PASSING: 22, ItemChange.PASSING: 3}, duration_ms=400)
    show(report(checks=(lint, tests), notes=("the new tests detect 4 of 4 mutants of the change",)))
    said, told = capsys.readouterr()
    assert said == (
        "main -> HEAD   1 file changed   sandbox ns\n"
        "\n"
        "check   before       after        result\n"
        "ruff    passed       passed       from the ledger\n"
        "pytest  passed       passed       22 new, 0.4s\n"
        "\n"
        "note: the new tests detect 4 of 4 mutants of the change\n"
        "\n"
        "HOLDS: 1 of 1 required checks hold, nothing got worse (1.2s)\n"
        "\n"
        f"head 7:{'a' * 64}\n"
    )
    assert told == "next:  fairwitness ledger gates verify-1\n"


def test_checks_that_fail_for_the_same_reason_share_one_list(capsys: pytest.CaptureFixture[str]) -> None:
    reason = "tests/test_a.py::test_b broken; tests/test_a.py::test_c vanished"
    broken = BROKEN.model_copy(
        update={"reason": reason, "output": ("assert 1 == 2",), "execution": 7, "counts": {ItemChange.BROKEN: 1}}
    )
    answer = BLOCKED.model_copy(update={"missing": (*NAMES, "oracle-files (failed)"), "because": "4 checks say no"})
    show(report(answer=answer, checks=(broken,), findings=(finding(), finding(line=9)), missing=(MISSING,)))
    said = capsys.readouterr().out
    assert said.endswith(
        "check      before       after        result\n"
        "pytest     passed       failed       1 broken\n"
        "lint ruff               no evidence  ruff is not installed\n"
        "\n"
        "output of pytest:\n"
        "  | assert 1 == 2\n"
        "  complete: fairwitness evidence show 7\n"
        "\n"
        "BLOCKED: 4 checks say no (1.2s)\n"
        "  tests pytest (regressed), regressions pytest (failed), oracle-tests pytest\n"
        "  (failed):\n"
        "    tests/test_a.py::test_b broken\n"
        "    tests/test_a.py::test_c vanished\n"
        "  oracle-files (failed):\n"
        "    tests/test_a.py:3 assertions-dropped: an assertion was dropped\n"
        "    tests/test_a.py:9 assertions-dropped: an assertion was dropped\n"
        "\n"
        f"head 7:{'a' * 64}\n"
    )


def test_a_long_list_is_counted_and_long_words_stay_within_the_width(capsys: pytest.CaptureFixture[str]) -> None:
    long = "tests." + "very_" * 40 + "long"
    many = tuple(finding(path=f"tests/{long}{number}.py") for number in range(20))
    silent = check(id="x" * 60, after=Evidence.NONE, reason=long)
    answer = BLOCKED.model_copy(update={"missing": ("oracle-files (failed)", f"tests {'x' * 60} (no evidence)")})
    show(report(answer=answer, checks=(silent,), findings=many, notes=(long,)))
    said = capsys.readouterr().out
    assert "    and 8 more: --json lists all\n" in said
    assert fits(said)


def test_what_was_accepted_is_listed_with_its_reason(capsys: pytest.CaptureFixture[str]) -> None:
    show(report(findings=(finding(accepted="the rule changed"),)))
    said = capsys.readouterr().out
    assert "accepted: tests/test_a.py:3 assertions-dropped: the rule changed\n" in said
