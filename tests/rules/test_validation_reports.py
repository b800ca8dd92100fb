"""Reports whose numbers contradict themselves are caught, each number at its place."""

from typing import Any

import pytest

from fairwitness.contracts.common.completion import Completion
from fairwitness.contracts.common.problems import Problem, spell_path
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.rules.validation import completion_problems, implementation_problems, verification_problems
from support.fixtures import edited, value_of

GATE = "agent_output.payload.evidence_gate"


def _said(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{problem.level.value} {spell_path(problem.where)}" for problem in problems]


def _sound() -> Any:
    value = value_of("000/verification-report.yaml")
    for path in (GATE, "completion.evidence_summary"):
        edited(value, f"{path}.total_checks", 7)
        edited(value, f"{path}.passed", 7)
    return value


@pytest.mark.req("P9")
def test_the_seeds_own_report_counts_a_baseline_row_and_the_rule_won() -> None:
    """Only phase `after` counts: 7, though the example says 8. The ledger decides, so this warns."""
    problems = verification_problems(VerificationReport.model_validate(value_of("000/verification-report.yaml")))
    assert _said(problems) == [f"warning {GATE}.total_checks", f"warning {GATE}.passed"]


@pytest.mark.req("P9")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, []),
        ({"completion.evidence_summary": None}, []),
        (
            {f"{GATE}.total_checks": 9},
            [
                f"error {GATE}.total_checks",
                f"warning {GATE}.total_checks",
                "error completion.evidence_summary.total_checks",
            ],
        ),
        (
            {f"{GATE}.failed": 1, f"{GATE}.passed": 6, "agent_output.payload.findings[0].passed": False},
            [
                f"error {GATE}.gate_status",
                "error completion.evidence_summary.passed",
                "error completion.evidence_summary.failed",
            ],
        ),
        ({"agent_output.payload.baseline_cross_check.discrepancies_found": True}, [f"error {GATE}.gate_status"]),
        (
            {
                "agent_output.payload.regressions": [
                    {"check_name": "tests", "baseline_result": True, "after_result": False, "detail": "x"}
                ],
                "agent_output.payload.baseline_cross_check": None,
            },
            [f"error {GATE}.gate_status"],
        ),
        (
            {f"{GATE}.gate_status": "failed", "agent_output.payload.baseline_cross_check.discrepancies_found": True},
            [],
        ),
        ({"completion.evidence_summary.total_checks": 9}, ["error completion.evidence_summary.total_checks"] * 2),
    ],
)
def test_a_verification_report_is_held_to_its_own_numbers(changes: dict[str, Any], said: list[str]) -> None:
    value = _sound()
    for path, new in changes.items():
        edited(value, path, new)
    assert _said(verification_problems(VerificationReport.model_validate(value))) == said


@pytest.mark.parametrize(
    ("total", "said"),
    [
        (45, []),
        (46, ["warning agent_output.payload.baseline.test_summary.total"]),
        (44, ["error agent_output.payload.baseline.test_summary.total"]),
    ],
)
def test_more_passed_and_failed_than_tests_is_a_contradiction_fewer_may_be_skips(total: int, said: list[str]) -> None:
    value = edited(
        value_of("000/implementation-report.yaml"), "agent_output.payload.baseline.test_summary.total", total
    )
    assert _said(implementation_problems(ImplementationReport.model_validate(value))) == said


def test_no_tests_is_no_contradiction() -> None:
    value = edited(value_of("000/implementation-report.yaml"), "agent_output.payload.baseline.test_summary", None)
    assert implementation_problems(ImplementationReport.model_validate(value)) == ()


def test_a_completion_is_held_to_its_own_sum() -> None:
    value = value_of("000/completion-contract.yaml")["completion"]
    assert completion_problems(Completion.model_validate(value)) == ()
    value["evidence_summary"]["failed"] = 2
    assert _said(completion_problems(Completion.model_validate(value))) == [
        "error completion.evidence_summary.total_checks"
    ]
    value["evidence_summary"] = None
    assert completion_problems(Completion.model_validate(value)) == ()
