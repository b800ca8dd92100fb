"""The runs that are played on paper and kept: what is special about each; everything else in them goes well."""

from collections.abc import Iterator, Mapping

from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import OnExhausted, Policy, ReviewPolicy
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature.facts import GateChoice, HumanGate
from fairwitness.contracts.feature.review import Category, Perspective
from support.paper.script import (
    INTERACTIVE,
    Ending,
    How,
    Rows,
    Script,
    error,
    fails,
    finds,
    worries,
)

_SECURITY, _ARCHITECTURE, _PRAGMATIC = (perspective.value for perspective in Perspective)
_WRONG = finds((Category.CORRECTNESS, Severity.MAJOR))
_BLOCKER = finds((Category.SECURITY, Severity.BLOCKER))
_SPENT = Ending(How.OVER_BUDGET)


def two_object(step: str, visit: int) -> Mapping[str, Ending]:
    """Two of three reviewers want a revision."""
    return {f"{step}-{visit}-{_ARCHITECTURE}-1": _WRONG, f"{step}-{visit}-{_PRAGMATIC}-1": _WRONG}


CALLS: Mapping[str, str] = {
    "intake": "step-0-1-intake",
    "spec": "step-2-1-spec",
    "designer": "step-3-1-designer",
    "design-reviewer": f"step-3b-1-{_SECURITY}",
    "planner": "step-4-1-planner",
    "code-reviewer": f"step-7-1-{_SECURITY}",
    "knowledge": "step-8-1-knowledge-agent",
    "evidence": "step-8b-1-evidence-bundle",
    "commit": "step-9-1-commit",
}
"""Every kind of call outside of a graph, up to the number of its try."""
IN_GRAPH: Mapping[str, str] = {"implementer": "step-5-1-task-01", "verifier": "step-6-1-task-01"}


def _failing_calls() -> Iterator[tuple[str, Script]]:
    """Each call fails once and is made again; and fails twice, whereupon the run stops and somebody resumes it."""
    for name, call in {**CALLS, **IN_GRAPH}.items():
        yield f"{name}-fails-once", Script(calls={f"{call}-1": error()})
        resumes = 0 if name == "verifier" else 1  # what comes then stands in OPEN
        yield f"{name}-fails-twice", Script(calls={f"{call}-1": error(), f"{call}-2": error()}, resumes=resumes)
    lost = {f"step-1-1-researcher-{focus}-{number}": error() for focus in ("impact", "patterns") for number in (1, 2)}
    yield "researchers-two-of-four", Script(calls=lost)
    third = {f"step-1-1-researcher-dependencies-{number}": error() for number in (1, 2)}
    yield "researchers-one-of-four", Script(calls={**lost, **third}, resumes=1)
    yield "researcher-fails-once", Script(calls={"step-1-1-researcher-impact-1": Ending(How.TIMEOUT)})


def _people() -> Iterator[tuple[str, Script]]:
    """What a person can answer, and how often."""
    request, spec = {"step-0-1-intake-1": worries(Severity.MINOR)}, {"step-2-1-spec-1": worries(Severity.MAJOR)}
    again = {f"step-0-{visit}-intake-1": worries(Severity.CRITICAL) for visit in (1, 2, 3)}
    spec_again = {f"step-2-{visit}-spec-1": worries(Severity.CRITICAL) for visit in (1, 2, 3)}
    gates, twice = HumanGate, 2

    def answered(gate: HumanGate, *choices: GateChoice, calls: Mapping[str, Ending] | None = None) -> Script:
        return Script(mode=INTERACTIVE, calls=calls or {}, answers={gate: choices})

    yield "interactive-concerns", Script(mode=INTERACTIVE, calls={**request, **spec})
    yield "autonomous-concerns", Script(calls={**request, **spec})
    yield "request-modified-twice", answered(gates.REQUEST_PUSHBACK, *[GateChoice.MODIFY] * twice, calls=again)
    yield (
        "request-other",
        answered(gates.REQUEST_PUSHBACK, GateChoice.OTHER, GateChoice.MODIFY, GateChoice.OTHER, calls=again),
    )
    yield "request-abandoned", answered(gates.REQUEST_PUSHBACK, GateChoice.ABANDON, calls=again)
    yield "research-expanded-twice", answered(gates.RESEARCH, *[GateChoice.EXPAND] * twice)
    yield "research-other", answered(gates.RESEARCH, GateChoice.OTHER, GateChoice.EXPAND, GateChoice.OTHER)
    yield "research-aborted", answered(gates.RESEARCH, GateChoice.ABORT)
    yield "spec-modified-twice", answered(gates.SPEC_PUSHBACK, *[GateChoice.MODIFY] * twice, calls=spec_again)
    yield "spec-abandoned", answered(gates.SPEC_PUSHBACK, GateChoice.ABANDON, calls=spec_again)
    yield "plan-revised-twice", answered(gates.PLAN, *[GateChoice.REVISE] * twice)
    yield "plan-aborted", answered(gates.PLAN, GateChoice.REVISE, GateChoice.ABORT)


def _budgets() -> Iterator[tuple[str, Script]]:
    """The budget is used up, and somebody resumes the run."""
    for name, call in {**CALLS, **IN_GRAPH, "researcher": "step-1-1-researcher-impact"}.items():
        if name not in ("evidence", "commit"):  # these cost nothing
            yield f"budget-at-{name}", Script(calls={f"{call}-1": _SPENT}, resumes=1)


_ALWAYS_RED = {f"task-04:{number}": fails() for number in (1, 2, 3)}
SCRIPTS: Mapping[str, Script] = {
    "happy-autonomous": Script(),
    "happy-interactive": Script(mode=INTERACTIVE),
    # loops
    "design-revised": Script(calls={f"step-3b-1-{_SECURITY}-1": finds((Category.SECURITY, Severity.MAJOR))}),
    "design-exhausted": Script(calls={**two_object("step-3b", 1), **two_object("step-3b", 2)}),
    "replanned-once": Script(rows={"task-04:1": fails()}),
    "iterations-exhausted": Script(rows=_ALWAYS_RED),
    "first-task-always-red": Script(rows={f"task-01:{number}": fails("tests", "lint") for number in (1, 2, 3)}),
    "review-fixed": Script(calls=two_object("step-7", 1)),
    "review-exhausted": Script(calls={**two_object("step-7", 1), **two_object("step-7", 2)}),
    "review-exhausted-is-an-error": Script(
        policy=Policy(review=ReviewPolicy(on_exhausted=OnExhausted.ERROR)),
        calls={**two_object("step-7", 1), **two_object("step-7", 2)},
    ),
    "fix-dropped": Script(calls=two_object("step-7", 1), rows={"task-00:2": fails()}),
    "fixer-fails-twice": Script(
        calls={**two_object("step-7", 1), "step-5-2-task-00-1": error(), "step-5-2-task-00-2": error()}
    ),
    "review-dissent": Script(calls={f"step-7-1-{_ARCHITECTURE}-1": _WRONG}),
    "plan-unusable-once": Script(calls={"step-4-1-planner-1": Ending(How.UNUSABLE)}),
    "plan-unusable-twice": Script(
        calls={f"step-4-1-planner-{number}": Ending(How.UNUSABLE) for number in (1, 2)}, resumes=1
    ),
    # blockers
    "blocker-request": Script(calls={"step-0-1-intake-1": worries(Severity.BLOCKER)}),
    "blocker-spec": Script(mode=INTERACTIVE, calls={"step-2-1-spec-1": worries(Severity.BLOCKER, Severity.MINOR)}),
    "blocker-design-review": Script(calls={f"step-3b-1-{_PRAGMATIC}-1": _BLOCKER}, resumes=1),
    "blocker-code-review": Script(calls={f"step-7-1-{_SECURITY}-1": _BLOCKER}, resumes=1),
    "security-blocker": Script(calls={"step-3-1-designer-1": error(ErrorCause.SECURITY_BLOCKER)}, resumes=1),
    "deterministic-error": Script(calls={"step-2-1-spec-1": error(ErrorCause.MISSING_INPUT)}),
    # going on with less
    "tier-3-infeasible": Script(rows={"task-02:1": Rows(can_run=False)}),
    "single-model": Script(is_one_model=True),
    "weaker-sandbox": Script(sandbox=SandboxTier.LANDLOCK),
    # evidence
    "whole-red": Script(rows={"whole:0": fails()}),
    "merge-red": Script(rows={"task-02:1": Rows(merges=False)}),
    "silent-checks": Script(rows={"task-02:1": Rows(silent=frozenset({"tests"}))}),
    "no-baseline": Script(rows={"task-02:1": Rows(has_baseline=False)}, resumes=1),
    "verifier-objects": Script(calls={"step-6-1-task-01-1": Ending(How.REVISION)}),
    **dict(_failing_calls()),
    **dict(_people()),
    **dict(_budgets()),
}
