"""The verification report that stands in the feature folder says what the ledger says, whoever wrote the first one."""

from typing import Any

import pytest

from fairwitness.contracts.common.evidence import CheckRow
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.vocabulary import Assessment, CompletionStatus, Severity
from fairwitness.contracts.feature.facts import TaskFacts
from fairwitness.contracts.feature.verification import CheckPhase, GateStatus, VerificationReport
from fairwitness.kit import yaml_text
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.validation import verification_problems
from fairwitness.runs.feature.reports import NO_ROWS, CheckDetail, ReportTimes, filled, shown
from rules.build import baseline, claimed, failed, nothing, observed, row, tally, task
from runs.feature.ledger_rows import RUN, check, task_of

PATH = "docs/feature/x/verification-reports/task-01.yaml"
WHEN = ReportTimes("2026-02-26T14:30:00Z", "2026-02-26T14:31:00Z")
BOTH = ("syntax-check", "tests")


def said(status: str = "DONE", **payload: Any) -> VerificationReport:
    """A verifier that saw two checks pass."""
    findings = [
        {"check_name": name, "tier": 2, "phase": "after", "tool": "mine", "exit_code": 0, "passed": True}
        for name in BOTH
    ]
    plain: dict[str, Any] = {
        "task_id": "task-01",
        "run_id": RUN,
        "evidence_gate": {"total_checks": 2, "passed": 2, "failed": 0, "gate_status": "passed"},
        "findings": findings,
        "criteria": [{"criterion": "It works.", "command": "pytest"}],
        "artifact_evaluations": [{"artifact_path": "tasks/task-01.yaml", "usefulness_score": 8, "clarity_score": 7}],
    }
    header = {
        "agent": "verifier",
        "instance": "verifier-7",
        "step": "step-6",
        "schema_version": "1.0",
        "started_at": "2026-02-26T15:00:00Z",
        "completed_at": "2026-02-26T15:01:00Z",
    }
    completion = {
        "status": status,
        "summary": "All is well.",
        "severity": "Critical" if status != "DONE" else None,
        "findings_count": 0,
        "risk_level": None,
        "output_paths": ["elsewhere.yaml"],
    }
    return VerificationReport.model_validate(
        {"agent_output": {**header, "payload": plain | payload}, "completion": completion}
    )


def facts(*rows: CheckRow, before: tuple[CheckRow, ...] = (), **differs: Any) -> TaskFacts:
    return task("task-01", *rows, baseline=tally(*(before or (baseline("tests"),))), **differs)


def made(report: VerificationReport | None, of: TaskFacts, **differs: Any) -> VerificationReport:
    """The report, which validates again after it was written and read, and does not contradict itself."""
    rows = {each.id: CheckDetail("sh", "sh x", 0 if each.passed else 1, "said so") for each in of.after.rows}
    found = filled(report, of, RUN, differs.pop("rows", rows), policy=Policy(), path=PATH, when=WHEN, **differs)
    again = VerificationReport.model_validate(yaml_text.parse(yaml_text.render(found.plain())))
    assert again == found
    assert verification_problems(found) == ()
    return found


def extra(report: VerificationReport, name: str) -> list[str]:
    return list((report.agent_output.payload.model_extra or {}).get(name, ()))


@pytest.mark.req("P9")
def test_a_true_report_keeps_its_opinions_and_takes_its_numbers_from_the_ledger() -> None:
    theirs = said()
    found = made(theirs, facts(*(row(name) for name in BOTH)))
    payload = found.agent_output.payload
    assert payload.criteria == theirs.agent_output.payload.criteria
    assert payload.artifact_evaluations == theirs.agent_output.payload.artifact_evaluations
    assert extra(found, "differences") == []
    assert [(each.check_name, each.phase, each.tool, each.output_snippet) for each in payload.findings] == [
        ("baseline-tests", CheckPhase.BASELINE, "executed", None),
        ("syntax-check", CheckPhase.AFTER, "sh", "said so"),
        ("tests", CheckPhase.AFTER, "sh", "said so"),
    ]
    assert [each.tier for each in payload.findings] == [2, 1, 2]
    assert payload.evidence_gate.gate_status is GateStatus.PASSED
    assert (found.agent_output.instance, found.agent_output.started_at) == ("verifier-7", "2026-02-26T15:00:00Z")
    assert (found.completion.status, found.completion.severity) == (CompletionStatus.DONE, None)
    assert found.completion.output_paths == (PATH,)


@pytest.mark.req("P9", "X1")
def test_a_lying_verifier_is_corrected_and_each_difference_named() -> None:
    crossed = {"method": "git show pipeline-baseline-2026-02-26T14-30-00Z:a.py", "discrepancies_found": False}
    untrue = observed("baseline-discrepancy", False)
    of = facts(row("syntax-check"), failed("tests"), claimed("ac-1", True), untrue)
    found = made(said(run_id="2020-01-01T00:00:00Z", baseline_cross_check=crossed), of, unmet=("ac-2 is unjudged",))
    payload = found.agent_output.payload
    assert payload.run_id == RUN
    gate = payload.evidence_gate
    assert (gate.total_checks, gate.passed, gate.failed, gate.gate_status) == (4, 2, 2, GateStatus.FAILED)
    assert payload.regressions is not None
    assert [(each.check_name, each.detail) for each in payload.regressions] == [("tests", "said so")]
    assert payload.baseline_cross_check is not None
    assert payload.baseline_cross_check.discrepancies_found
    assert extra(found, "differences") == [
        "run_id: the verifier says 2020-01-01T00:00:00Z, the ledger 2026-02-26T14:30:00Z",
        "gate_status: the verifier says passed, the ledger failed",
        "total_checks: the verifier says 2, the ledger 4",
        "failed: the verifier says 0, the ledger 2",
        "status: the verifier says DONE, the ledger NEEDS_REVISION",
        "tests (after): the verifier says passed, the ledger failed",
        "discrepancies_found: the verifier says none, the ledger some",
    ]
    assert extra(found, "unmet_criteria") == ["ac-2 is unjudged"]
    assert (found.completion.status, found.completion.severity) == (CompletionStatus.NEEDS_REVISION, Severity.MAJOR)
    assert found.completion.evidence_summary is not None
    assert found.completion.evidence_summary.failed == 2


@pytest.mark.req("P9")
def test_a_verifier_that_sees_ghosts_is_corrected_too() -> None:
    ghost = {"check_name": "build", "tier": 2, "phase": "after", "tool": "make", "passed": False}
    regression = {"check_name": "build", "baseline_result": True, "after_result": False, "detail": "it broke"}
    theirs = said("NEEDS_REVISION", findings=[ghost], regressions=[regression])
    found = made(theirs, facts(*(row(name) for name in BOTH)))
    assert found.completion.status is CompletionStatus.DONE
    assert found.completion.severity is Severity.CRITICAL, "how bad it is remains an opinion"
    assert found.agent_output.payload.regressions is None
    assert extra(found, "differences") == [
        "status: the verifier says NEEDS_REVISION, the ledger DONE",
        "build (after): the verifier says failed, the ledger holds no such check",
        "build: the verifier calls it a regression, the ledger does not",
    ]


@pytest.mark.req("P9")
def test_a_report_exists_also_when_the_verifier_said_nothing() -> None:
    found = made(None, facts(row("syntax-check"), row("tests"), row("lint")))
    assert found.agent_output.payload.criteria is None
    assert (found.agent_output.instance, found.agent_output.completed_at) == ("task-01", WHEN.completed_at)
    assert extra(found, "differences") == ["the verifier left no report: everything here is from the ledger"]
    assert found.completion.status is CompletionStatus.DONE


@pytest.mark.req("P9", "X1")
def test_a_report_exists_also_when_nothing_was_run() -> None:
    for report in (None, said()):
        found = made(report, facts().model_copy(update={"after": tally(), "baseline": tally()}))
        (only,) = found.agent_output.payload.findings
        assert (only.check_name, only.passed) == (NO_ROWS, False)
        assert found.agent_output.payload.evidence_gate.gate_status is GateStatus.FAILED
        assert found.completion.status is CompletionStatus.NEEDS_REVISION
        assert "a baseline check" in extra(found, "open_questions")


@pytest.mark.req("P9", "X1")
def test_what_gave_no_evidence_has_not_passed_and_a_missing_criterion_fails_the_report() -> None:
    odd = row("lint", assessment=Assessment.VIOLATION)
    found = made(None, facts(row("syntax-check"), row("tests"), odd, nothing("build", Assessment.TIMEOUT)))
    passed = {each.check_name: each.passed for each in found.agent_output.payload.findings}
    assert passed == {"baseline-tests": True, "syntax-check": True, "tests": True, "lint": False, "build": False}
    missing = made(said(), facts(*(row(name) for name in BOTH), required=("ac-1",)))
    assert missing.agent_output.payload.evidence_gate.gate_status is GateStatus.FAILED
    assert extra(missing, "open_questions") == ["ac-1 (not run)"]


@pytest.mark.req("P9")
def test_what_was_red_before_is_named_beside_the_counts_and_what_got_worse_in_it_is_a_regression() -> None:
    before = (baseline("tests", passed=False), baseline("lint"))
    still = (failed("tests"), row("syntax-check"), row("lint"))
    found = made(None, facts(*still, before=before))
    assert found.agent_output.payload.evidence_gate.failed == 0
    assert extra(found, "not_counted") == ["tests (failed before the change too)"]
    worse = observed("regressions", False, instance="pytest")
    again = made(
        None, facts(*still, worse, before=before), rows={worse.id: CheckDetail("proof", None, None, "a::b broken")}
    )
    assert again.agent_output.payload.regressions is not None
    assert [(each.check_name, each.detail) for each in again.agent_output.payload.regressions] == [
        ("pytest", "a::b broken")
    ]
    assert again.agent_output.payload.evidence_gate.gate_status is GateStatus.FAILED


@pytest.mark.req("P9")
def test_a_long_list_of_reasons_still_is_one_short_line() -> None:
    found = made(None, facts(*(failed(name) for name in ("build", "lint", "type-check", "tests", "import-check") * 9)))
    assert len(found.completion.summary) <= 200


@pytest.mark.req("P9")
def test_tools_commands_and_outputs_come_from_the_rows(ledger: Ledger) -> None:
    check(ledger, "task-01", "baseline-tests", baseline=True, round_=0)
    for name in BOTH:
        check(ledger, "task-01", name, passed=name != "tests")
    check(ledger, "task-02", "lint")
    rows = shown(ledger, RUN, "task-01")
    assert len(rows) == 3
    found = filled(said(), task_of(ledger, "task-01"), RUN, rows, policy=Policy(), path=PATH, when=WHEN)
    assert [(each.tool, each.command, each.exit_code) for each in found.agent_output.payload.findings] == [
        ("check", "check baseline-tests", 0),
        ("check", "check syntax-check", 0),
        ("check", "check tests", 1),
    ]
    assert "tests (after): the verifier says passed, the ledger failed" in extra(found, "differences")
