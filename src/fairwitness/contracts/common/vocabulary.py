"""The closed vocabularies that every workflow shares."""

from collections.abc import Iterable
from enum import StrEnum


class CompletionStatus(StrEnum):
    """The three ways an agent's dispatch can end by its own word."""

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
    """How dangerous a change is; drives how deep it is verified."""

    GREEN = "🟢"
    YELLOW = "🟡"
    RED = "🔴"


RISKS = tuple(Risk)
"""Mildest first."""


class CategoryVerdict(StrEnum):
    """What a reviewer says of one category."""

    APPROVE = "approve"
    NEEDS_REVISION = "needs_revision"
    BLOCKER = "blocker"


VERDICTS = tuple(CategoryVerdict)
"""Mildest first."""


class Confidence(StrEnum):
    """How sure a decision, or a run's evidence, lets us be."""

    HIGH = "High"
    MEDIUM = "Medium"
    LOW = "Low"


class Size(StrEnum):
    """How large a task is; any red file makes it Large."""

    STANDARD = "Standard"
    LARGE = "Large"


class Assessment(StrEnum):
    """What a command that we ran came to; only the first two are evidence."""

    PASS = "pass"
    FAIL = "fail"
    TIMEOUT = "timeout"
    VIOLATION = "violation"
    LOST = "lost"


class Workflow(StrEnum):
    """The three bodies over one set of steps."""

    FEATURE = "feature"
    AUTOPILOT = "autopilot"
    FORGE = "forge"


def worst_verdict(verdicts: tuple[CategoryVerdict, ...]) -> CategoryVerdict:
    """The harshest of some verdicts.

    >>> worst_verdict((CategoryVerdict.APPROVE, CategoryVerdict.BLOCKER, CategoryVerdict.NEEDS_REVISION)).value
    'blocker'
    """
    return max(verdicts, key=VERDICTS.index)


def worst_severity(severities: Iterable[Severity]) -> Severity | None:
    """The worst of some severities; None if there is none.

    >>> worst_severity((Severity.MINOR, Severity.BLOCKER, Severity.MAJOR)).value
    'Blocker'
    """
    return min(severities, key=SEVERITIES.index, default=None)


def highest_risk(risks: tuple[Risk, ...]) -> Risk:
    """The most dangerous of some colours.

    >>> highest_risk((Risk.GREEN, Risk.RED, Risk.YELLOW)).value
    '🔴'
    """
    return max(risks, key=RISKS.index)
