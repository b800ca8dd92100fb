"""The outcome of one run of a check, from its end in the sandbox, its report and the origin of the code."""

from typing import NamedTuple, assert_never

from fairwitness.contracts.common.sandbox import Confined, End
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.verify.results import RED, Evidence, Report


class Judgement(NamedTuple):
    """The evidence and assessment of a run, or the reason why it gave no evidence."""

    evidence: Evidence
    assessment: Assessment
    reason: str | None = None
    environmental: bool = False


def judge(confined: Confined, report: Report | None, origin_problem: str | None) -> Judgement:
    """Judge one run: a pass needs a regular exit, a report that agrees with it, and code that came from this tree."""
    match confined.end:
        case End.SANDBOX_ERROR:
            reason = f"the sandbox was lost: {confined.sandbox_error}"
            return Judgement(Evidence.NONE, Assessment.LOST, reason, environmental=True)
        case End.CANCELLED:
            return Judgement(Evidence.NONE, Assessment.LOST, "it was interrupted")
        case End.TIMEOUT:
            reason = f"it did not end within {confined.limits.wall_s:g} s"
            return Judgement(Evidence.NONE, Assessment.TIMEOUT, reason)
        case End.LIMIT:
            return Judgement(Evidence.NONE, Assessment.TIMEOUT, f"it used too much: {confined.limit_hit}")
        case End.VIOLATION:
            return Judgement(Evidence.NONE, Assessment.VIOLATION, _violation(confined))
        case End.OK | End.FAILED:
            return _ended(report, origin_problem)
        case _:
            assert_never(confined.end)


def _ended(report: Report | None, origin_problem: str | None) -> Judgement:
    if report is None:
        return Judgement(Evidence.NONE, Assessment.VIOLATION, "it left no report")
    if report.problems:
        return Judgement(Evidence.NONE, Assessment.VIOLATION, report.problems[0])
    if origin_problem is not None:
        return Judgement(Evidence.NONE, Assessment.VIOLATION, origin_problem)
    if any(item.outcome in RED for item in report.items):
        return Judgement(Evidence.FAILED, Assessment.FAIL)
    return Judgement(Evidence.PASSED, Assessment.PASS)


def _violation(confined: Confined) -> str:
    first = confined.violations[0]
    more = f" and {len(confined.violations) - 1} more" if len(confined.violations) > 1 else ""
    return f"it tried what it may not: {first.call} {first.path}{more}"
