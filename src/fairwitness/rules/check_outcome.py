"""The outcome of one run of a check, from its end in the sandbox, its report and the origin of the code."""

from typing import NamedTuple, assert_never

from fairwitness.contracts.common.sandbox import Confined, End
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.results import RED, Evidence, Report
from fairwitness.rules.evidence_worth import ENDED_AS


class Judgement(NamedTuple):
    """The evidence and assessment of a run, or the reason why it gave no evidence."""

    assessment: Assessment
    reason: str | None = None
    environmental: bool = False

    @property
    def evidence(self) -> Evidence:
        """Return what the end says about the tree."""
        return ENDED_AS[self.assessment]


def judge(confined: Confined, report: Report | None, origin_problem: str | None, *, is_line: bool = False) -> Judgement:
    """Judge one run: a pass needs a regular exit, a report that agrees with it, and code that came from this tree.

    A line for a shell fails by its exit code or signal alone: a program that it does not find is its own mistake.
    """
    match confined.end:
        case End.SANDBOX_ERROR:
            reason = f"the sandbox was lost: {confined.sandbox_error}"
            return Judgement(Assessment.LOST, reason, environmental=True)
        case End.CANCELLED:
            return Judgement(Assessment.LOST, "it was interrupted")
        case End.TIMEOUT:
            reason = f"it did not end within {confined.limits.wall_s:g} s"
            return Judgement(Assessment.TIMEOUT, reason)
        case End.LIMIT:
            return Judgement(Assessment.TIMEOUT, f"it used too much: {confined.limit_hit}")
        case End.VIOLATION:
            return Judgement(Assessment.VIOLATION, _violation(confined))
        case End.FAILED if is_line:
            return Judgement(Assessment.FAIL)
        case End.OK | End.FAILED:
            return _ended(report, origin_problem)
        case _:
            assert_never(confined.end)


def _ended(report: Report | None, origin_problem: str | None) -> Judgement:
    if report is None:
        return Judgement(Assessment.VIOLATION, "it left no report")
    if report.problems:
        return Judgement(Assessment.VIOLATION, report.problems[0])
    if origin_problem is not None:
        return Judgement(Assessment.VIOLATION, origin_problem)
    if any(item.outcome in RED for item in report.items):
        return Judgement(Assessment.FAIL)
    return Judgement(Assessment.PASS)


def _violation(confined: Confined) -> str:
    first = confined.violations[0]
    more = f" and {len(confined.violations) - 1} more" if len(confined.violations) > 1 else ""
    return f"it tried what it may not: {first.call} {first.path}{more}"
