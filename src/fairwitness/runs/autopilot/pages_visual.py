"""VISUAL-BUGS.md: what looked wrong on the screens of a phase, route by route."""

from collections.abc import Iterator

from fairwitness.contracts.autopilot.facts import RoadmapPhase
from fairwitness.contracts.autopilot.visual import RegressionStatus, ScreenshotResult, VisualAssessment, VisualBugReport
from fairwitness.kit.markdown import ROWS, Markdown, code, counted, page, prose, table
from fairwitness.runs.autopilot.wording import title

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
    """`VISUAL-BUGS.md`."""
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
        ("Severity", "Kind", "What is wrong", "Where", "What might mend it"),
        [
            (issue.severity.value, issue.type.value, issue.description, issue.location, issue.suggested_fix)
            for issue in each.analysis.issues
        ],
        "",
    )
