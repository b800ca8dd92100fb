"""What a schema cannot say about implementation and verification reports: their sums, and their word against itself."""

from collections.abc import Iterator

from fairwitness.contracts.common.completion import Completion
from fairwitness.contracts.common.problems import Level, Path, Problem
from fairwitness.contracts.feature.implementation import ImplementationReport, TestSummary
from fairwitness.contracts.feature.verification import CheckPhase, GateStatus, VerificationPayload, VerificationReport

_PAYLOAD = ("agent_output", "payload")


def _sum_problem(where: Path, passed: int, failed: int, total: int, name: str) -> Iterator[Problem]:
    if passed + failed != total:
        yield Problem(where=(*where, name), expected=f"passed + failed, {passed + failed}", found=str(total))


def completion_problems(completion: Completion, where: Path = ("completion",)) -> tuple[Problem, ...]:
    """Everything wrong with an agent's own counts."""
    counts = completion.evidence_summary
    if counts is None:
        return ()
    place = (*where, "evidence_summary")
    return tuple(_sum_problem(place, counts.passed, counts.failed, counts.total_checks, "total_checks"))


def implementation_problems(report: ImplementationReport) -> tuple[Problem, ...]:
    """Everything wrong inside one implementation report."""
    payload = report.agent_output.payload
    return (
        *_tests((*_PAYLOAD, "baseline", "test_summary"), payload.baseline.test_summary),
        *_tests((*_PAYLOAD, "self_check", "test_summary"), payload.self_check.test_summary),
    )


def _tests(where: Path, tests: TestSummary | None) -> Iterator[Problem]:
    if tests is not None and tests.passed + tests.failed != tests.total:
        yield Problem(
            where=(*where, "total"),
            expected=f"passed + failed, {tests.passed + tests.failed}",
            found=str(tests.total),
            # skipped tests stand in the total and in neither count: only an excess contradicts itself
            level=Level.ERROR if tests.passed + tests.failed > tests.total else Level.WARNING,
        )


def verification_problems(report: VerificationReport) -> tuple[Problem, ...]:
    """Everything wrong inside one verification report."""
    payload = report.agent_output.payload
    return (*_gate(payload), *_rows(payload), *completion_problems(report.completion), *_repeated(report))


def _gate(payload: VerificationPayload) -> Iterator[Problem]:
    gate = payload.evidence_gate
    where = (*_PAYLOAD, "evidence_gate")
    yield from _sum_problem(where, gate.passed, gate.failed, gate.total_checks, "total_checks")
    reasons = []
    if gate.failed:
        reasons.append(f"{gate.failed} failed")
    if payload.regressions:
        reasons.append(f"{len(payload.regressions)} regressions")
    if payload.baseline_cross_check is not None and payload.baseline_cross_check.discrepancies_found:
        reasons.append("a baseline discrepancy")
    if reasons and gate.gate_status is GateStatus.PASSED:
        yield Problem(where=(*where, "gate_status"), expected=f"failed ({', '.join(reasons)})", found="passed")


def _rows(payload: VerificationPayload) -> Iterator[Problem]:
    after = [finding for finding in payload.findings if finding.phase is CheckPhase.AFTER]
    where = (*_PAYLOAD, "evidence_gate")
    for name, said, counted in (
        ("total_checks", payload.evidence_gate.total_checks, len(after)),
        ("passed", payload.evidence_gate.passed, sum(finding.passed for finding in after)),
        ("failed", payload.evidence_gate.failed, sum(not finding.passed for finding in after)),
    ):
        if said != counted:
            # only phase `after` counts; the ledger's own rows decide either way
            yield Problem(
                where=(*where, name),
                expected=f"the number among the findings of phase after, {counted}",
                found=str(said),
                level=Level.WARNING,
            )


def _repeated(report: VerificationReport) -> Iterator[Problem]:
    summary, gate = report.completion.evidence_summary, report.agent_output.payload.evidence_gate
    if summary is None:
        return
    for name, said, stands in (
        ("total_checks", summary.total_checks, gate.total_checks),
        ("passed", summary.passed, gate.passed),
        ("failed", summary.failed, gate.failed),
    ):
        if said != stands:
            yield Problem(
                where=("completion", "evidence_summary", name),
                expected=f"the same as in evidence_gate, {stands}",
                found=str(said),
            )
