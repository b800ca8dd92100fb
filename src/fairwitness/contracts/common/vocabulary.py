"""Enumerations that all workflows share: completion status, severity, risk, verdict, confidence, size and others."""

from collections.abc import Iterable
from enum import StrEnum


class CompletionStatus(StrEnum):
    """The status that an agent gives its own work."""

    DONE = "DONE"
    NEEDS_REVISION = "NEEDS_REVISION"
    ERROR = "ERROR"


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    BLOCKER = "Blocker"
    CRITICAL = "Critical"
    MAJOR = "Major"
    MINOR = "Minor"


SEVERITIES = tuple(Severity)


class Risk(StrEnum):
    """How dangerous a change is; a higher risk needs more evidence."""

    GREEN = "🟢"
    YELLOW = "🟡"
    RED = "🔴"


RISKS = tuple(Risk)
"""Mildest first."""


class CategoryVerdict(StrEnum):
    """A reviewer's verdict on one category."""

    APPROVE = "approve"
    NEEDS_REVISION = "needs_revision"
    BLOCKER = "blocker"


VERDICTS = tuple(CategoryVerdict)
"""Mildest first."""


class Confidence(StrEnum):
    """The confidence in a decision, or that a run's evidence supports."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


class Size(StrEnum):
    """The size of a task; a change to any red file makes it Large."""

    STANDARD = "Standard"
    LARGE = "Large"


class Assessment(StrEnum):
    """The result of a command that Fair Witness ran; only `pass` and `fail` are evidence."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    VIOLATION = "violation"
    LOST = "lost"


class Workflow(StrEnum):
    """The three workflows."""

    FEATURE = "feature"
    AUTOPILOT = "autopilot"
    FORGE = "forge"


def worst_verdict(verdicts: tuple[CategoryVerdict, ...]) -> CategoryVerdict:
    """Return the most severe of the verdicts.

    >>> worst_verdict((CategoryVerdict.APPROVE, CategoryVerdict.BLOCKER, CategoryVerdict.NEEDS_REVISION)).value
    'blocker'
    """
    return max(verdicts, key=VERDICTS.index)


def worst_severity(severities: Iterable[Severity]) -> Severity | None:
    """Return the worst severity, or None if there are none.

    >>> worst_severity((Severity.MINOR, Severity.BLOCKER, Severity.MAJOR)).value
    'Blocker'
    """
    return min(severities, key=SEVERITIES.index, default=None)


def highest_risk(risks: tuple[Risk, ...]) -> Risk:
    """Return the highest of the risks.

    >>> highest_risk((Risk.GREEN, Risk.RED, Risk.YELLOW)).value
    '🔴'
    """
    return max(risks, key=RISKS.index)
