"""Validation of a document against its contract and the rules that a schema cannot express.

All problems are reported, in sentences. A small hostile text can violate a contract in a million places: where there
are too many problems to list, the first are listed and the rest are counted.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.catalog import CatalogEntry
from fairwitness.contracts.common.completion import Completion, CompletionDocument
from fairwitness.contracts.common.problems import Path, Problem, ProblemLevel
from fairwitness.contracts.feature.implementation import ImplementationReport, TestSummary
from fairwitness.contracts.feature.plan import PlanOutput, TaskDocument
from fairwitness.contracts.feature.review import ReviewReturn, ReviewVerdict
from fairwitness.contracts.feature.verification import CheckPhase, GateStatus, VerificationPayload, VerificationReport
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.captain_answer import captain_problems, graph_problems
from fairwitness.rules.dag import dag_problems
from fairwitness.rules.feature_plan import plan_problems, task_problems
from fairwitness.rules.problem_words import LISTED, cut, problems_of
from fairwitness.rules.review import review_problems, verdict_problems

_PAYLOAD = ("agent_output", "payload")


def _sum_problem(where: Path, passed: int, failed: int, total: int, name: str) -> Iterator[Problem]:
    if passed + failed != total:
        yield Problem(where=(*where, name), expected=f"passed + failed, {passed + failed}", found=str(total))


def completion_problems(completion: Completion, where: Path = ("completion",)) -> tuple[Problem, ...]:
    """Return all problems of an agent's own counts."""
    counts = completion.evidence_summary
    if counts is None:
        return ()
    place = (*where, "evidence_summary")
    return tuple(_sum_problem(place, counts.passed, counts.failed, counts.total_checks, "total_checks"))


def implementation_problems(report: ImplementationReport) -> tuple[Problem, ...]:
    """Return all problems of one implementation report."""
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
            # skipped tests are in the total only, so only an excess is a contradiction
            level=ProblemLevel.ERROR if tests.passed + tests.failed > tests.total else ProblemLevel.WARNING,
        )


def verification_problems(report: VerificationReport) -> tuple[Problem, ...]:
    """Return all problems of one verification report."""
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
                level=ProblemLevel.WARNING,
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


KNOWN_MAJOR = 1


def version_warning(version: str, where: Path) -> Problem | None:
    """A warning if the major version is one this code has never seen.

    >>> version_warning("1.7", ("schema_version",)) is None
    True
    >>> version_warning("2.0", ("schema_version",)).level.value
    'warning'
    """
    if int(version.split(".", 1)[0]) == KNOWN_MAJOR:
        return None
    return Problem(where=where, expected=f"major version {KNOWN_MAJOR}", found=version, level=ProblemLevel.WARNING)


def version_place(document: Mapping[str, object]) -> Path | None:
    """Where a plain document says its version, if it does."""
    header = document.get("agent_output")
    if isinstance(header, Mapping) and isinstance(header.get("schema_version"), str):
        return ("agent_output", "schema_version")
    return ("schema_version",) if isinstance(document.get("schema_version"), str) else None


def document_problems(document: object) -> tuple[Problem, ...]:
    """Everything wrong inside one document that its schema cannot say; nothing for kinds without such rules."""
    match document:
        case PlanOutput():
            return plan_problems(document)
        case TaskDocument():
            return task_problems(document)
        case ImplementationReport():
            return implementation_problems(document)
        case VerificationReport():
            return verification_problems(document)
        case CompletionDocument():
            return completion_problems(document.completion)
        case ReviewVerdict():
            return verdict_problems(document)
        case ReviewReturn():
            return review_problems(document)
        case Dag():
            return dag_problems(document)
        case CaptainReturn():
            return captain_problems(document)
        case _:
            return ()


_SAMPLE = 20
"""How many entries of each list are looked at to find the first problems of a hopeless document."""


@cache
def adapter(entry: CatalogEntry) -> TypeAdapter[Any]:
    """The validator of a contract."""
    return TypeAdapter(entry.shape)


class Validated(NamedTuple):
    """A document as its contract, and everything wrong with it."""

    document: Any
    """None if the value has not the shape of the contract, whatever the rules say about it."""
    problems: tuple[Problem, ...]


def validated(value: Any, entry: CatalogEntry, *, strict: bool) -> Validated:
    """Return a plain value as its contract, with what its schema refuses and what the rules say about the rest."""
    document = None
    try:
        document = adapter(entry).validate_python(value)
        problems = document_problems(document)
        if not strict:
            problems = tuple(problem.model_copy(update={"level": ProblemLevel.WARNING}) for problem in problems)
    except ValidationError as error:
        problems = (*_contract_problems(value, entry, error), *_graph_problems(value, entry))
    return Validated(document, (*problems, *_version_warnings(value)))


def problems_in(value: Any, entry: CatalogEntry, *, strict: bool) -> tuple[Problem, ...]:
    """Return everything wrong with a plain value."""
    return validated(value, entry, strict=strict).problems


def _contract_problems(value: Any, entry: CatalogEntry, error: ValidationError) -> tuple[Problem, ...]:
    count = error.error_count()
    if count <= LISTED:
        return problems_of(value, error.errors(include_url=False))
    del error  # its list alone can be larger than all else
    sample = _sample(value)
    try:
        adapter(entry).validate_python(sample)
        first: tuple[Problem, ...] = ()
    except ValidationError as smaller:
        first = problems_of(sample, smaller.errors(include_url=False))
    return cut(first, count)


def _graph_problems(value: Any, entry: CatalogEntry) -> tuple[Problem, ...]:
    """Return the problems of a captain's graph, although other parts of the answer cannot be read."""
    if entry.shape is not CaptainReturn or not isinstance(value, dict):
        return ()
    try:
        dag = Dag.model_validate(value.get("dag"))
    except ValidationError:
        return ()
    return graph_problems(dag, ())


def _sample(value: Any) -> Any:
    """The value with long lists and mappings cut short."""
    if isinstance(value, list):
        return [_sample(entry) for entry in value[:_SAMPLE]]
    if isinstance(value, dict):
        return {key: _sample(inner) for key, inner in list(value.items())[: _SAMPLE * 5]}
    return value


def _version_warnings(value: Any) -> tuple[Problem, ...]:
    place = version_place(value) if isinstance(value, dict) else None
    if place is None:
        return ()
    version = value
    for part in place:
        version = version[part]
    try:
        warning = version_warning(version, place)
    except ValueError:
        return ()  # not a version at all: the schema has said so already
    return (warning,) if warning is not None else ()
