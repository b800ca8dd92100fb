"""A kind of check has passed at a tree only if every row of it says so."""

import pytest

from fairwitness.contracts.autopilot.vocabulary import CheckWord
from fairwitness.contracts.common.evidence import CheckRow, Phase, Provenance, SandboxTier
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.rules.evidence_worth import SATISFIES, SHUTS, RowWorth, ValuedRow
from fairwitness.runs.autopilot.phase_evidence import check_word

OPEN = sorted({*RowWorth} - SATISFIES - SHUTS - {RowWorth.SILENT})


def rows(*worths: RowWorth, name: str = "tests") -> list[ValuedRow]:
    return [
        ValuedRow(
            CheckRow(
                id=number,
                check_name=name,
                phase=Phase.AFTER,
                round=1,
                passed=True,
                verdict=None,
                severity=None,
                instance=f"project-{number}",
                provenance=Provenance.EXECUTED,
                assessment=Assessment.PASS,
                tree="0" * 40,
                sandbox=SandboxTier.NAMESPACES,
            ),
            worth,
        )
        for number, worth in enumerate(worths, start=1)
    ]


@pytest.mark.req("A3")
@pytest.mark.parametrize("worth", OPEN)
def test_a_part_without_evidence_leaves_the_result_open(worth: RowWorth) -> None:
    assert check_word(rows(RowWorth.COUNTS, worth), "tests") == "n/a"
    assert check_word(rows(worth, RowWorth.COUNTS), "tests") == "n/a"
    assert check_word(rows(worth, RowWorth.FAILED), "tests") is False


@pytest.mark.req("A3")
@pytest.mark.parametrize(
    ("worths", "word"),
    [
        ((), "n/a"),
        ((RowWorth.SILENT,), "n/a"),
        ((RowWorth.COUNTS,), True),
        ((RowWorth.COUNTS, RowWorth.HOLDS), True),
        ((RowWorth.COUNTS, RowWorth.SILENT), True),
        ((RowWorth.COUNTS, RowWorth.REGRESSED), False),
    ],
)
def test_all_rows_of_a_kind_decide(worths: tuple[RowWorth, ...], word: CheckWord) -> None:
    assert check_word(rows(*worths), "tests") == word
    assert check_word([*rows(*worths), *rows(RowWorth.FAILED, name="lint")], "tests") == word


@pytest.mark.req("A3")
def test_a_kind_may_have_several_checks() -> None:
    both = [*rows(RowWorth.COUNTS, name="syntax-check"), *rows(RowWorth.NO_EVIDENCE, name="type-check")]
    assert check_word(both, "compile") == "n/a"
