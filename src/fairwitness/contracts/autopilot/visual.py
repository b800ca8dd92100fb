"""Visual tests: the screens to capture, the analysis of each screenshot, and the bug report."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Positive, Text, Timestamp
from fairwitness.contracts.common.ids import PhaseId, RelPath, SafeName
from fairwitness.contracts.common.problems import expect

RoutePath = Annotated[str, Field(pattern=r"^/")]


class Viewport(Contract):
    """The size of the browser's window."""

    width: Positive = 1280
    height: Positive = 720


class VisualRoute(Contract):
    """One screen; its name becomes part of a file name."""

    path: RoutePath
    name: SafeName
    wait_ms: Count = 2000


class VisualTesting(Contract):
    """How to start the application, and which of its screens to capture."""

    enabled: Flag
    framework: Text = "playwright"
    launch_command: Text
    launch_wait_ms: Count = 5000
    base_url: Annotated[str, Field(pattern=r"^https?://\S+$")]
    screenshot_dir: RelPath = ".planning/screenshots"
    routes: Annotated[tuple[VisualRoute, ...], Field(min_length=1)]
    viewport: Viewport = Viewport()
    headless: Flag = True

    @model_validator(mode="after")
    def _one_name_per_route(self) -> Self:
        expect(
            self,
            len({route.name for route in self.routes}) == len(self.routes),
            "routes with different names",
            "routes",
        )
        return self


class VisualConfig(Contract):
    """The document that holds the configuration of visual tests."""

    visual_testing: VisualTesting


class IssueType(StrEnum):
    """The kind of a visual issue."""

    LAYOUT = "layout"
    RENDERING = "rendering"
    REGRESSION = "regression"
    ACCESSIBILITY = "accessibility"


class IssueSeverity(StrEnum):
    """The severity of a visual issue for a user of the screen."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


class VisualIssue(Contract):
    """One visual issue, its location, and a suggested fix."""

    type: IssueType
    severity: IssueSeverity
    description: Text
    location: Text
    suggested_fix: Text


class VisualAssessment(StrEnum):
    """The assessment of a screenshot; an error means that nothing could be assessed."""

    PASS = "pass"
    ISSUES_FOUND = "issues_found"
    ERROR = "error"


class ScreenshotAnalysis(Contract):
    """The issues found on one screenshot."""

    issues_found: Count
    issues: tuple[VisualIssue, ...]
    overall_assessment: VisualAssessment

    @model_validator(mode="after")
    def _assessment_follows_the_issues(self) -> Self:
        expect(self, self.issues_found == len(self.issues), "issues_found equal to the issues listed", "issues_found")
        if self.overall_assessment is not VisualAssessment.ERROR:
            found = self.overall_assessment is VisualAssessment.ISSUES_FOUND
            expect(self, found is bool(self.issues), "the overall_assessment of the issues", "overall_assessment")
        return self


class ScreenshotResult(Contract):
    """One screenshot and its analysis."""

    route: RoutePath
    name: SafeName
    screenshot_path: RelPath
    viewport: Viewport
    capture_timestamp: Timestamp
    analysis: ScreenshotAnalysis


class RegressionStatus(StrEnum):
    """The current state compared with the baseline."""

    NEW_ISSUES = "new_issues"
    RESOLVED = "resolved"
    NO_CHANGE = "no_change"


class VisualBugReport(Contract):
    """All screenshots of a phase."""

    phase_id: PhaseId
    timestamp: Timestamp
    total_routes_tested: Count
    routes_passed: Count
    routes_with_issues: Count
    screenshots: tuple[ScreenshotResult, ...]
    summary: Text
    regression_status: RegressionStatus

    @model_validator(mode="after")
    def _routes_fit(self) -> Self:
        fit = self.routes_passed + self.routes_with_issues <= self.total_routes_tested
        expect(self, fit, "routes_passed and routes_with_issues within total_routes_tested", "routes_passed")
        return self
