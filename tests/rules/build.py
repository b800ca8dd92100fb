"""Facts for the tests of rules, each with one word for what differs from the ordinary."""

from itertools import count
from typing import Any

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import CheckRow, EvidenceQuery, Phase, Provenance, SandboxTier, Tally
from fairwitness.contracts.common.vocabulary import Assessment, CategoryVerdict, Risk, Severity, Size
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import CallFacts, CanStart, FeatureFacts, ReviewFacts, TaskFacts
from fairwitness.contracts.feature.review import Category, Perspective, ReviewScope

TREE = "a" * 40
OTHER_TREE = "b" * 40
QUERY = EvidenceQuery(sql="SELECT 1", values=("run", 1))

_ids = count(1)


def row(name: str, **differs: Any) -> CheckRow:
    """An executed, confined, passing check of iteration 1."""
    ordinary: dict[str, Any] = {
        "id": next(_ids),
        "check_name": name,
        "phase": Phase.AFTER,
        "round": 1,
        "passed": True,
        "verdict": None,
        "severity": None,
        "instance": None,
        "provenance": Provenance.EXECUTED,
        "assessment": Assessment.PASS,
        "tree": TREE,
        "sandbox": SandboxTier.NAMESPACES,
    }
    return CheckRow(**(ordinary | differs))


def failed(name: str, **differs: Any) -> CheckRow:
    """An executed check that failed."""
    return row(name, **({"passed": False, "assessment": Assessment.FAIL} | differs))


def nothing(name: str, assessment: Assessment | None, **differs: Any) -> CheckRow:
    """A command that gave no evidence."""
    return row(name, **({"passed": False, "assessment": assessment} | differs))


def observed(name: str, holds: bool, **differs: Any) -> CheckRow:
    """Something the harness saw."""
    said = {"passed": holds, "provenance": Provenance.OBSERVED, "assessment": None, "sandbox": None, "tree": None}
    return row(name, **(said | differs))


def claimed(name: str, holds: bool, **differs: Any) -> CheckRow:
    """Something an agent said."""
    return observed(name, holds, **({"provenance": Provenance.CLAIMED} | differs))


def baseline(name: str, passed: bool = True, **differs: Any) -> CheckRow:
    """A check at the baseline."""
    outcome = Assessment.PASS if passed else Assessment.FAIL
    at_baseline = {"phase": Phase.BASELINE, "round": 0, "passed": passed, "assessment": outcome, "tree": OTHER_TREE}
    return row(f"baseline-{name}", **(at_baseline | differs))


def tally(*rows: CheckRow) -> Tally:
    """Rows with the query that found them."""
    return Tally(query=QUERY, rows=rows)


A, R, B = CategoryVerdict.APPROVE, CategoryVerdict.NEEDS_REVISION, CategoryVerdict.BLOCKER


def verdict(
    perspective: Perspective | str | None, category: Category, said: CategoryVerdict | None, **differs: Any
) -> CheckRow:
    """One row of a reviewer."""
    scope: ReviewScope = differs.pop("scope", ReviewScope.CODE)
    severity = {R: Severity.MAJOR, B: Severity.BLOCKER}.get(said) if said else None
    filed = {
        "phase": Phase.REVIEW,
        "verdict": said,
        "severity": severity,
        "passed": said is A,
        "instance": perspective.value if isinstance(perspective, Perspective) else perspective,
        "provenance": Provenance.CLAIMED,
        "assessment": None,
        "sandbox": None,
        "tree": None,
    }
    return row(f"review-{scope.value}-{category.value}", **(filed | differs))


def reviewer(
    perspective: Perspective,
    security: CategoryVerdict,
    architecture: CategoryVerdict,
    correctness: CategoryVerdict,
    **differs: Any,
) -> list[CheckRow]:
    """The three rows of a reviewer."""
    said = zip(Category, (security, architecture, correctness), strict=True)
    return [verdict(perspective, category, word, **differs) for category, word in said]


def votes(*triples: tuple[CategoryVerdict, CategoryVerdict, CategoryVerdict] | None, **differs: Any) -> list[CheckRow]:
    """The rows of the three perspectives in their order; None files nothing."""
    said = zip(Perspective, triples, strict=True)
    return [item for perspective, triple in said if triple for item in reviewer(perspective, *triple, **differs)]


def call(instance: str, status: str | None = "DONE", cause: ErrorCause | None = None, attempts: int = 1) -> CallFacts:
    """A call that is done, unless said otherwise."""
    word = DispatchStatus(status) if status else None
    if word is DispatchStatus.ERROR and cause is None:
        cause = ErrorCause.AGENT_ERROR
    if word is DispatchStatus.TIMEOUT:
        cause = ErrorCause.TIMEOUT
    return CallFacts(instance=instance, attempts=attempts, status=word, cause=cause)


def review(*rows: CheckRow, scope: ReviewScope = ReviewScope.CODE, round: int = 1, **differs: Any) -> ReviewFacts:
    """A round whose three reviewers are done."""
    reviewers = tuple(call(perspective.value) for perspective in Perspective)
    ordinary: dict[str, Any] = {"scope": scope, "round": round, "tally": tally(*rows), "reviewers": reviewers}
    return ReviewFacts(**(ordinary | differs))


GOOD = ("syntax-check", "lint", "tests")


def task(name: str = "task-01", *rows: CheckRow, **differs: Any) -> TaskFacts:
    """A small green task whose checks ran once; without rows it has three that passed."""
    ordinary: dict[str, Any] = {
        "task": name,
        "size": Size.STANDARD,
        "risk": Risk.GREEN,
        "files": (),
        "iteration": 1,
        "round": differs.get("iteration", 1),
        "baseline": tally(baseline("tests")),
        "after": tally(*(rows or [row(check, round=differs.get("iteration", 1)) for check in GOOD])),
        "tree": None,
        "required": (),
        "ready": True,
        "check_runs": 1,
        "baseline_runs": 1,
    }
    return TaskFacts(**(ordinary | differs))


def facts(**differs: Any) -> FeatureFacts:
    """An autonomous run that has not begun."""
    ordinary: dict[str, Any] = {
        "mode": ApprovalMode.AUTONOMOUS,
        "step": None,
        "calls": (),
        "concerns": None,
        "approval": None,
        "iteration": 1,
        "tasks": (),
        "whole": None,
        "design_review": None,
        "code_review": None,
        "fix": None,
        "degradations": (),
        "can_start": CanStart.YES,
        "held_by": None,
    }
    return FeatureFacts(**(ordinary | differs))
