"""Pages that judge a phase: verification, judge report, scorecard, confidence diagnostic and visual bugs."""

from collections.abc import Iterator, Sequence

from pydantic import Field, ValidationError

from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem, PathProblems, RoadmapPhase
from fairwitness.contracts.autopilot.phase_record import AutomatedChecks
from fairwitness.contracts.autopilot.rating import RatingReturn, ScoreBand, ScorecardItem
from fairwitness.contracts.autopilot.returns import JudgeReturn
from fairwitness.contracts.autopilot.verification import (
    CheckReport,
    CheckReports,
    PhaseCriterion,
    PhaseCriterionStatus,
    VerifierReturn,
    VisualTestResults,
)
from fairwitness.contracts.autopilot.visual import RegressionStatus, ScreenshotResult, VisualAssessment, VisualBugReport
from fairwitness.contracts.autopilot.vocabulary import Recommendation, Threshold
from fairwitness.contracts.common.base import AlignmentScore, Contract, Count, Flag, Texts, Timestamp
from fairwitness.contracts.common.ids import AutopilotRunId, Commit, PhaseId
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.errors import BadDocument
from fairwitness.kit import front_matter
from fairwitness.kit.documents import Format, read
from fairwitness.kit.markdown import (
    ROWS,
    Markdown,
    cell,
    code,
    counted,
    items,
    line,
    page,
    prose,
    table,
    texts,
)
from fairwitness.rules.scores import tenths
from fairwitness.runs.autopilot.page_words import (
    category,
    check_word,
    command_code,
    milliseconds,
    of_ten,
    recommendation,
    title,
)

OUTPUT = 200
"""How many characters of an output a table shows."""

ASSESSED: dict[Assessment, Markdown] = {
    Assessment.PASS: Markdown("VERIFIED"),
    Assessment.FAIL: Markdown("**FAILED**"),
    Assessment.TIMEOUT: Markdown("**TIMEOUT**"),
    Assessment.VIOLATION: Markdown("**VIOLATION**"),
    Assessment.LOST: Markdown("**LOST**"),
}


class VerificationHead(Contract):
    """The head of `VERIFICATION.md`: run, commit and time of a verification, and whether it passed."""

    phase: PhaseId
    run_id: AutopilotRunId
    commit: Commit
    verified: Timestamp
    pass_: Flag = Field(alias="pass")

    def covers(self, *, phase: str, run_id: str, commit: str) -> bool:
        """Return True if exactly this commit of this phase passed in this run; then nothing is left to do."""
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
    proven: Sequence[str] = (),
) -> str:
    """Return `VERIFICATION.md`; `checks` and `proven` are the harness's results.

    Its head lets a later run skip a passed verification, so it is never milder than the page: `passed` is the decision
    of the rules, and counts only if a command ran and all commands passed.
    """
    shown = bool(executed) and all(result.passed for result in executed)
    head = VerificationHead.model_validate(
        {
            "phase": phase.id,
            "run_id": run_id,
            "commit": commit,
            "verified": at,
            "pass": passed and verifier.pass_ and shown,
        }
    )
    body = page(
        _verification(phase, head, verifier, executed, checks, proven), whole="the verifier's return and the ledger"
    )
    return front_matter.render({**head.plain(), "body": "\n" + body})


def read_verification_head(text: str) -> VerificationHead | None:
    """Return the head of a page, or None if the page is not ours; then the phase counts as not verified."""
    try:
        head = read(text.encode(errors="replace"), Format.MARKDOWN).value
        return VerificationHead.model_validate({key: value for key, value in head.items() if key != front_matter.BODY})
    except (BadDocument, ValidationError):
        return None


def _verification(
    phase: RoadmapPhase,
    head: VerificationHead,
    verifier: VerifierReturn,
    executed: Sequence[ExecutionResult],
    checks: AutomatedChecks,
    proven: Sequence[str],
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
        [_executed_row(result) for result in executed],
        "No evidence: Fair Witness ran no command for this phase.",
    )
    if any(result.assessment not in (Assessment.PASS, Assessment.FAIL) for result in executed):
        yield Markdown(
            "A command that timed out, broke its bounds or was lost has shown nothing; it counts as missing."
        )
    yield Markdown("## Automated checks")
    words = (("compile", checks.compile), ("tests", checks.tests), ("lint", checks.lint), ("build", checks.build))
    events = "; ".join(f"{name}: {check_word('n/a' if word is None else word)}" for name, word in words)
    yield Markdown(f"Run by Fair Witness itself: {events}.")
    if proven:
        yield Markdown("What the project's checks said about this commit's files when they were merged:")
        yield texts(proven, "")
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
        yield from _visual_results(verifier.visual_test_results)
    if verifier.autonomous_confidence is not None or verifier.deferral_evidence:
        yield Markdown("## What only a person could settle")
        yield from _deferral(verifier)
    yield Markdown("## Commands the verifier says it ran")
    yield items([Markdown(f"- {line(each)}") for each in verifier.commands_run], "")
    yield _claimed(verifier)


def _executed_row(result: ExecutionResult) -> tuple[str, ...]:
    said = " · stderr: ".join(part for part in (result.stdout_truncated, result.stderr_truncated) if part.strip())
    if not result.stdout_truncated.strip() and said:
        said = f"stderr: {said}"
    return (
        result.criterion,
        command_code(result.command),
        "none" if result.exit_code is None else str(result.exit_code),
        cell(said or "it printed nothing", OUTPUT),
        ASSESSED[result.assessment],
        milliseconds(result.duration_ms),
    )


def automated_checks(checks: CheckReports) -> Markdown:
    """Return the project's own commands as the verifier reports them."""
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
    """Return the status of a criterion; a failure is bold."""
    return Markdown("verified" if status is PhaseCriterionStatus.VERIFIED else "**failed**")


def _visual_results(results: VisualTestResults) -> Iterator[Markdown]:
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
                command_code(each.command),
                "none" if each.exit_code is None else str(each.exit_code),
                each.output or "it printed nothing",
                each.assessment.value,
            )
            for each in verifier.execution_results or ()
        ],
        "It reports no result of a command for a single criterion.",
    )


DIVERGENCE = "## Divergence from the verifier"
OWN_EVIDENCE = "## Independent evidence"

BANDS: dict[ScoreBand, str] = {
    ScoreBand.EXCELLENCE: "every criterion is fully met, with evidence, and nothing worries",
    ScoreBand.GOOD: "every criterion is met, with small doubts",
    ScoreBand.ACCEPTABLE: "most criteria are met; there are real deficiencies",
    ScoreBand.SIGNIFICANT_GAPS: "several criteria are met only in part",
    ScoreBand.MAJOR_FAILURES: "several criteria are not met",
    ScoreBand.NOT_IMPLEMENTED: "the work does not reach the goal of the phase",
}
"""What each score band means."""


def judge_page(phase: RoadmapPhase, judge: JudgeReturn, verifier: VerifierReturn | None) -> str:
    """Return `JUDGE-REPORT.md`, which compares the judge's opinion with the verifier's return."""
    return page(_judge(phase, judge, verifier), whole="the judge's return")


def _judge(phase: RoadmapPhase, judge: JudgeReturn, verifier: VerifierReturn | None) -> Iterator[Markdown]:
    yield title("Judge report", phase)
    yield Markdown(
        "Rendered by Fair Witness from what the judge returned: an opinion with its evidence, never a score."
    )
    yield Markdown(f"Recommendation: {recommendation(judge.recommendation)}.")
    yield Markdown("## Concerns")
    yield texts(judge.concerns, "")
    yield Markdown(OWN_EVIDENCE)
    yield texts(judge.independent_evidence, "**None:** the judge names nothing that it looked at or ran itself.")
    yield Markdown(DIVERGENCE)
    yield from _divergence(judge, verifier)
    yield Markdown("## Scope creep")
    yield texts(judge.scope_creep, "The judge saw nothing beyond the requirements.")
    yield Markdown("## Missing requirements")
    yield texts(judge.missing_requirements, "The judge misses none.")
    yield Markdown("## How the judge came to it")
    yield prose(judge.notes)


def _divergence(judge: JudgeReturn, verifier: VerifierReturn | None) -> Iterator[Markdown]:
    yield Markdown(f"The judge says that it {'agrees' if judge.verifier_agreement else '**does not agree**'}.")
    if judge.verifier_agreement and not judge.independent_evidence:
        yield Markdown("**Agreement without evidence of its own counts for nothing.**")
    if verifier is None:
        yield Markdown("No return of a verifier is on record.")
    else:
        proceeds = judge.recommendation is Recommendation.PROCEED
        same = "the same direction" if proceeds is verifier.pass_ else "**opposite directions**"
        yield Markdown(
            f"The verifier says {'pass' if verifier.pass_ else 'fail'}, the judge says "
            f"{judge.recommendation.value}: {same}."
        )
    yield Markdown("What the verifier missed, as the judge has it:")
    yield texts(judge.verifier_missed, "Nothing.")


def scorecard_page(phase: RoadmapPhase, rating: RatingReturn, executed: Sequence[ExecutionResult]) -> str:
    """Return `SCORECARD.md`; `executed` are the commands of the scorecard as Fair Witness ran them."""
    return page(_scorecard(phase, rating, executed), whole="the rater's return")


def _scorecard(phase: RoadmapPhase, rating: RatingReturn, executed: Sequence[ExecutionResult]) -> Iterator[Markdown]:
    runs = {(result.criterion, result.command): result for result in executed}
    yield title("Scorecard", phase)
    yield Markdown(
        f"**{of_ten(rating.alignment_score)}**, {line(rating.score_band.value)}: {BANDS[rating.score_band]}."
    )
    yield Markdown("The rater saw only the criteria and the change. Its scores are opinions.")
    yield Markdown("The column *Run by Fair Witness* shows the real results of its commands.")
    yield table(
        ("#", "Criterion", "Score", "Run by Fair Witness"),
        [
            (str(number), item.criterion, of_ten(item.score), _run_result(runs.get(_run_key(item))))
            for number, item in enumerate(rating.scorecard, start=1)
        ],
        "",
    )
    yield Markdown("## Why this score")
    yield prose(rating.aggregate_justification)
    yield Markdown("## Criteria")
    for number, item in enumerate(rating.scorecard[:ROWS], start=1):
        yield Markdown(f"### {number}. {line(item.criterion)}")
        yield items(list(_scorecard_lines(item, runs.get(_run_key(item)))), "")
    yield Markdown("## Tests")
    yield _test_coverage(rating)
    yield Markdown("## Side effects")
    yield texts(rating.side_effects, "The rater saw none.")
    yield Markdown("## Commands the rater says it ran")
    yield texts(rating.commands_run, "")


def _run_key(item: ScorecardItem) -> tuple[str, str]:
    return item.criterion, item.verification_command


def _run_result(result: ExecutionResult | None) -> Markdown:
    return Markdown("**not run**") if result is None else ASSESSED[result.assessment]


def _scorecard_lines(item: ScorecardItem, result: ExecutionResult | None) -> Iterator[Markdown]:
    yield Markdown(f"- Score: {of_ten(item.score)}")
    yield Markdown(f"- Command: {command_code(item.verification_command)}")
    yield Markdown(f"- Printed, as the rater has it: {cell(item.command_output)}")
    if result is None:
        yield Markdown("- Run by Fair Witness: **no**, so the score rests on the rater's word")
    else:
        said = cell(result.stdout_truncated or result.stderr_truncated or "it printed nothing")
        exit_code = "no exit code" if result.exit_code is None else f"exit code {result.exit_code}"
        yield Markdown(
            f"- Run by Fair Witness: {ASSESSED[result.assessment]}, {exit_code}, "
            f"{milliseconds(result.duration_ms)}: {said}"
        )
    if item.execution_result is not None:
        ended = item.execution_result.exit_code
        yield Markdown(
            f"- The rater says it ran {command_code(item.execution_result.command)} with "
            f"{'no exit code' if ended is None else f'exit code {ended}'}: {cell(item.execution_result.output)}"
        )
    yield Markdown(f"- Evidence: {line(item.evidence)}")
    yield Markdown(f"- Why: {line(item.justification)}")


def _test_coverage(rating: RatingReturn) -> Markdown:
    coverage = rating.test_coverage
    if coverage is None:
        return Markdown("The rater says nothing about tests.")
    return Markdown(
        f"{coverage.tasks_with_tests} of {counted(coverage.tasks_total, 'task')} have tests of their own; "
        f"{coverage.assertions_passed} of {counted(coverage.assertions_total, 'assertion')} held."
    )


_CRITERION_FAILED = PhaseCriterionStatus.FAILED


class RemediationCycle(Contract):
    """One remediation cycle; number 0 is the first result of the phase. A cycle that was not rated has no score."""

    number: Count
    score: AlignmentScore | None
    changes: Texts
    remaining: Texts


class ConfidenceDiagnostic(Contract):
    """A phase below nine, with everything said about it; a step that did not run says nothing."""

    score: AlignmentScore
    threshold: Threshold
    force_incomplete: Flag
    judge: JudgeReturn | None
    verifier: VerifierReturn | None
    rating: RatingReturn | None
    usable: tuple[PathItem, ...]
    """Improvements that name a file, its deficiency and the expected effect."""
    refused: tuple[PathProblems, ...]
    """Improvements that are too vague to act on."""
    cycles: tuple[RemediationCycle, ...]


def diagnostic_status(doubted: ConfidenceDiagnostic) -> str:
    """Return the status of the phase in the diagnostic."""
    if doubted.force_incomplete:
        return "force_incomplete"
    if tenths(doubted.score) < tenths(doubted.threshold):
        return "below_threshold"
    return f"remediated_to_{doubted.score:.1f}" if any(cycle.number for cycle in doubted.cycles) else "passed"


def confidence_page(phase: RoadmapPhase, doubted: ConfidenceDiagnostic) -> str:
    """Return `phase-<N>-confidence.md`: why a phase is below nine, and what would raise its score."""
    return page(_confidence(phase, doubted), whole="the returns of the phase")


def _confidence(phase: RoadmapPhase, doubted: ConfidenceDiagnostic) -> Iterator[Markdown]:
    yield title("Confidence diagnostic", phase)
    yield items(
        [
            Markdown(f"- **Score:** {of_ten(doubted.score)}, by the rater"),
            Markdown(f"- **Threshold:** {of_ten(doubted.threshold)}"),
            Markdown(f"- **Status:** `{diagnostic_status(doubted)}`"),
        ],
        "",
    )
    yield Markdown("## Judge Concerns")
    if doubted.judge is None:
        yield Markdown("No judge was heard.")
    else:
        yield texts(doubted.judge.concerns, "")
    yield Markdown("## Acceptance Criteria Status")
    yield _criteria(doubted)
    yield Markdown("## Automated Check Results")
    if doubted.verifier is None:
        yield Markdown("No verifier was heard.")
    else:
        yield automated_checks(doubted.verifier.automated_checks)
    yield Markdown("## Path to 9.0/10")
    yield from _path_to_nine(doubted)
    if doubted.cycles:
        yield Markdown("## Remediation History")
        yield table(
            ("Cycle", "Score", "Changes Made", "Remaining Issues"),
            [
                (
                    "0 (initial)" if cycle.number == 0 else str(cycle.number),
                    "not rated" if cycle.score is None else of_ten(cycle.score),
                    "; ".join(cycle.changes) or "none",
                    "; ".join(cycle.remaining) or "none",
                )
                for cycle in doubted.cycles
            ],
            "",
        )


def _verified_criteria(doubted: ConfidenceDiagnostic) -> tuple[PhaseCriterion, ...]:
    return () if doubted.verifier is None else doubted.verifier.criteria_results


def _scorecard_items(doubted: ConfidenceDiagnostic) -> tuple[ScorecardItem, ...]:
    return () if doubted.rating is None else doubted.rating.scorecard


def _criteria(doubted: ConfidenceDiagnostic) -> Markdown:
    """Return each criterion that was verified or rated; of two results for one criterion, the worse."""
    settled = {
        each.criterion: each
        for each in sorted(_verified_criteria(doubted), key=lambda each: each.status is _CRITERION_FAILED)
    }
    scored = {each.criterion: each for each in sorted(_scorecard_items(doubted), key=lambda each: -each.score)}
    rows = []
    for criterion in dict.fromkeys((*settled, *scored)):
        result, item = settled.get(criterion), scored.get(criterion)
        source = result or item
        rows.append(
            (
                criterion,
                Markdown("**not settled**") if result is None else criterion_status(result.status),
                "" if source is None else source.evidence,
                "not rated" if item is None else f"{of_ten(item.score)}: {item.justification}",
            )
        )
    return table(("Criterion", "Status", "Evidence", "Gap, as the rater has it"), rows, "No criterion was looked at.")


def _path_to_nine(doubted: ConfidenceDiagnostic) -> Iterator[Markdown]:
    numbered = [
        Markdown(f"{number}. **{code(item.file)}**: {line(item.deficiency)} → {line(item.impact)}")
        for number, item in enumerate(doubted.usable, start=1)
    ]
    yield items(numbered, "No way up was named.")
    if doubted.refused:
        yield Markdown("Too vague to act on, and not counted:")
        yield items(
            [
                Markdown(f"- {code(each.item.file)}: {line(each.item.deficiency)} ({line('; '.join(each.problems))})")
                for each in doubted.refused
            ],
            "",
        )


REGRESSIONS: dict[RegressionStatus, str] = {
    RegressionStatus.NEW_ISSUES: "there are issues that the baseline did not have",
    RegressionStatus.RESOLVED: "issues of the baseline are gone",
    RegressionStatus.NO_CHANGE: "nothing differs from the baseline, or there is none",
}

ASSESSMENTS: dict[VisualAssessment, Markdown] = {
    VisualAssessment.PASS: Markdown("looks right"),
    VisualAssessment.ISSUES_FOUND: Markdown("**issues found**"),
    VisualAssessment.ERROR: Markdown("**nothing could be seen**"),
}


def visual_bugs_page(phase: RoadmapPhase, report: VisualBugReport) -> str:
    """Return `VISUAL-BUGS.md`: what looks wrong on the screens of a phase, route by route."""
    return page(_visual_bugs(phase, report), whole="the screenshots' results")


def _visual_bugs(phase: RoadmapPhase, report: VisualBugReport) -> Iterator[Markdown]:
    unseen = report.total_routes_tested - report.routes_passed - report.routes_with_issues
    yield title("Visual bugs", phase)
    yield Markdown(
        f"{counted(report.total_routes_tested, 'route')} looked at until {report.timestamp}: {report.routes_passed} "
        f"look right, {report.routes_with_issues} have issues, {unseen} could not be seen."
    )
    yield Markdown(
        f"Against the baseline: `{report.regression_status.value}` ({REGRESSIONS[report.regression_status]})."
    )
    yield Markdown("What an agent saw on a picture is a claim; the pictures are kept.")
    yield prose(report.summary)
    yield table(
        ("Route", "Result", "Issues", "Screenshot"),
        [
            (
                code(each.route),
                ASSESSMENTS[each.analysis.overall_assessment],
                str(each.analysis.issues_found),
                code(each.screenshot_path),
            )
            for each in report.screenshots
        ],
        "No screenshot is on record.",
    )
    for each in report.screenshots[:ROWS]:
        if each.analysis.issues:
            yield from _issues(each)


def _issues(each: ScreenshotResult) -> Iterator[Markdown]:
    yield Markdown(f"## Route {code(each.route)}")
    yield Markdown(f"Taken at {each.capture_timestamp}, {each.viewport.width} by {each.viewport.height} pixels.")
    yield table(
        ("Severity", "Kind", "What is wrong", "Where", "Suggested fix"),
        [
            (issue.severity.value, issue.type.value, issue.description, issue.location, issue.suggested_fix)
            for issue in each.analysis.issues
        ],
        "",
    )
