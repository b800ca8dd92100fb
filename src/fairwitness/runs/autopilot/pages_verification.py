"""VERIFICATION.md: what was run for a phase and what it came to, under a head that a later look can trust or refuse.

The head is what makes a passed verification worth skipping: it names the run, the commit and the moment. It is never
milder than what stands below it.
"""

from collections.abc import Iterator, Sequence

from pydantic import Field, ValidationError

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.verifying import (
    CheckReport,
    CheckReports,
    PhaseCriterionStatus,
    VerifierReturn,
    VisualTestResults,
)
from fairwitness.contracts.common.base import Contract, Flag, Timestamp
from fairwitness.contracts.common.ids import AutopilotRunId, Commit, PhaseId
from fairwitness.contracts.common.words import Assessment
from fairwitness.errors import BadDocument
from fairwitness.kit import front_matter
from fairwitness.kit.documents import Format, read
from fairwitness.kit.markdown import Markdown, cell, code, counted, items, line, page, table, texts
from fairwitness.runs.autopilot.wording import category, check_word, milliseconds, of_ten, title

OUTPUT = 200
"""Characters of what a command printed that fit into a table."""

ASSESSED: dict[Assessment, Markdown] = {
    Assessment.PASS: Markdown("VERIFIED"),
    Assessment.FAIL: Markdown("**FAILED**"),
    Assessment.TIMEOUT: Markdown("**TIMEOUT**"),
    Assessment.VIOLATION: Markdown("**VIOLATION**"),
    Assessment.LOST: Markdown("**LOST**"),
}


class Verified(Contract):
    """The head of `VERIFICATION.md`: which commit of which run was verified when, and whether it passed."""

    phase: PhaseId
    run_id: AutopilotRunId
    commit: Commit
    verified: Timestamp
    pass_: Flag = Field(alias="pass")

    def covers(self, *, phase: str, run_id: str, commit: str) -> bool:
        """True if exactly this commit of this phase passed in this run: only then is there nothing left to do."""
        return self.pass_ and (self.phase, self.run_id, self.commit) == (phase, run_id, commit)


def verification_page(
    phase: RoadmapPhase,
    verifier: VerifierReturn,
    executed: Sequence[ExecutionResult],
    *,
    run_id: str,
    commit: str,
    at: str,
    passed: bool,
    checks: AutomatedChecks,
) -> str:
    """`VERIFICATION.md`; `checks` are as the harness saw them.

    `passed` is the rules' word, and holds only if something was run and all of it passed.
    """
    shown = bool(executed) and all(result.assessment is Assessment.PASS for result in executed)
    head = Verified.model_validate(
        {
            "phase": phase.id,
            "run_id": run_id,
            "commit": commit,
            "verified": at,
            "pass": passed and verifier.pass_ and shown,
        }
    )
    body = page(_verification(phase, head, verifier, executed, checks), whole="the verifier's return and the ledger")
    return front_matter.render({**head.plain(), "body": "\n" + body})


def read_verified(text: str) -> Verified | None:
    """The head of a page, or None if it is not one of ours: then the phase counts as not verified."""
    try:
        head = read(text.encode(errors="replace"), Format.MARKDOWN).value
        return Verified.model_validate({key: value for key, value in head.items() if key != front_matter.BODY})
    except (BadDocument, ValidationError):
        return None


def _verification(
    phase: RoadmapPhase,
    head: Verified,
    verifier: VerifierReturn,
    executed: Sequence[ExecutionResult],
    checks: AutomatedChecks,
) -> Iterator[Markdown]:
    yield title("Verification", phase)
    yield Markdown(f"**{'Passed' if head.pass_ else 'Not passed'}** at commit {code(head.commit)}, {head.verified}.")
    yield Markdown(
        f"The verifier says {'pass' if verifier.pass_ else '**fail**'}. It did not hear the executor; what it says is "
        "a claim."
    )
    yield Markdown("## Sandbox Execution Results")
    yield Markdown("Run by Fair Witness itself, inside its bounds: this is evidence.")
    yield table(
        ("Criterion", "Command", "Exit Code", "Output (truncated)", "Assessment", "Took"),
        [_executed(result) for result in executed],
        "No evidence: Fair Witness ran no command for this phase.",
    )
    if any(result.assessment not in (Assessment.PASS, Assessment.FAIL) for result in executed):
        yield Markdown(
            "A command that timed out, broke its bounds or was lost has shown nothing; it counts as missing."
        )
    yield Markdown("## Automated checks")
    words = (("compile", checks.compile), ("tests", checks.tests), ("lint", checks.lint), ("build", checks.build))
    told = "; ".join(f"{name}: {check_word('n/a' if word is None else word)}" for name, word in words)
    yield Markdown(f"Run by Fair Witness itself: {told}.")
    yield Markdown("As the verifier has them:")
    yield automated_checks(verifier.automated_checks)
    yield Markdown("## Acceptance criteria")
    yield table(
        ("Criterion", "Status", "Evidence, as the verifier has it"),
        [(each.criterion, criterion_status(each.status), each.evidence) for each in verifier.criteria_results],
        "",
    )
    yield Markdown("## Failures")
    classified = {each.failure: each.category for each in verifier.failure_categories}
    failures = dict.fromkeys((*verifier.failures, *classified))
    yield table(
        ("Failure", "Category"),
        [
            (each, category(classified[each]) if each in classified else Markdown("**not classified**"))
            for each in failures
        ],
        "The verifier names none.",
    )
    yield Markdown("## Scope creep")
    yield texts(verifier.scope_creep, "The verifier saw nothing that no requirement asks for.")
    if verifier.visual_test_results is not None:
        yield Markdown("## Visual tests")
        yield from _visual(verifier.visual_test_results)
    if verifier.autonomous_confidence is not None or verifier.deferral_evidence:
        yield Markdown("## What only a person could settle")
        yield from _deferral(verifier)
    yield Markdown("## Commands the verifier says it ran")
    yield items([Markdown(f"- {line(each)}") for each in verifier.commands_run], "")
    yield _claimed(verifier)


def _executed(result: ExecutionResult) -> tuple[str, ...]:
    said = " · stderr: ".join(part for part in (result.stdout_truncated, result.stderr_truncated) if part.strip())
    if not result.stdout_truncated.strip() and said:
        said = f"stderr: {said}"
    return (
        result.criterion,
        code(result.command),
        "none" if result.exit_code is None else str(result.exit_code),
        cell(said or "it printed nothing", OUTPUT),
        ASSESSED[result.assessment],
        milliseconds(result.duration_ms),
    )


def automated_checks(checks: CheckReports) -> Markdown:
    """The project's own commands, as the verifier reports them."""
    reports: tuple[tuple[str, CheckReport | None], ...] = (
        ("compile", checks.compile),
        ("lint", checks.lint),
        ("build", checks.build),
        ("tests", checks.tests),
    )
    rows = [
        (name, check_word(report.status), report.detail or "nothing was said")
        if report is not None
        else (name, Markdown("**not reported**"), "the verifier says nothing about it")
        for name, report in reports
    ]
    return table(("Check", "Result", "Details"), rows, "")


def criterion_status(status: PhaseCriterionStatus) -> Markdown:
    """How a criterion of a phase came out; a failure stands out."""
    return Markdown("verified" if status is PhaseCriterionStatus.VERIFIED else "**failed**")


def _visual(results: VisualTestResults) -> Iterator[Markdown]:
    if not results.infrastructure_available:
        yield Markdown("There was nothing to look with: no browser, or the application did not start.")
        return
    yield Markdown(f"{results.routes_passed} of {counted(results.routes_tested, 'route')} looked right.")
    yield table(
        ("Route", "Kind", "Severity", "What is wrong"),
        [(code(each.route), each.type.value, each.severity.value, each.description) for each in results.issues_found],
        "No issue was found.",
    )
    yield items([Markdown(f"- {code(each)}") for each in results.screenshots], "No screenshot was kept.")


def _deferral(verifier: VerifierReturn) -> Iterator[Markdown]:
    sure = verifier.autonomous_confidence
    yield Markdown(f"How sure the verifier is without a person: {'not said' if sure is None else of_ten(sure)}.")
    yield table(
        ("Criterion", "Tried", "Why it did not suffice"),
        [
            (each.criterion, "; ".join(each.methods_attempted), each.why_insufficient)
            for each in verifier.deferral_evidence or ()
        ],
        "It names no criterion that needs one.",
    )


def _claimed(verifier: VerifierReturn) -> Markdown:
    return table(
        ("Criterion", "Command", "Exit Code", "Output", "Assessment"),
        [
            (
                each.criterion,
                code(each.command),
                "none" if each.exit_code is None else str(each.exit_code),
                each.output or "it printed nothing",
                each.assessment.value,
            )
            for each in verifier.execution_results or ()
        ],
        "It reports no result of a command for a single criterion.",
    )
