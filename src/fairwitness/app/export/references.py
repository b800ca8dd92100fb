"""The three reference documents: all forms, the order of calls with bounded loops, and the severities."""

from collections.abc import Callable, Iterator, Mapping

from fairwitness.agents.schema_text import explain
from fairwitness.app.export import completions
from fairwitness.app.export.documents import DOCUMENTS, FOLDER, NINE, FeatureDocument
from fairwitness.app.export.pages import table, worded
from fairwitness.contracts.catalog import entry_of
from fairwitness.contracts.common.completion import Header
from fairwitness.contracts.common.decisions import HaltOutcome
from fairwitness.contracts.common.policy import Policy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import Risk, Severity, Size
from fairwitness.contracts.feature.document import SignedDocument
from fairwitness.contracts.feature.facts import OPTIONS, Step
from fairwitness.rules.confidence import FINDING_AT_MOST
from fairwitness.rules.evidence_worth import depth_of, effective_size
from fairwitness.rules.feature_retry import CLASS_OF, BoundedLoop, after_failed_iteration, bounds, retries_inside
from fairwitness.rules.feature_routes import (
    AGENT_OF,
    CALLS_OF,
    GATE_OF,
    OUTCOME_OF,
    ROUTES,
    Action,
    RouteOutcome,
    StepRoute,
    default_choice,
)
from fairwitness.rules.review import RESOLUTIONS, VERDICT_OF

_POLICY = Policy()

MEANINGS: Mapping[Severity, str] = {
    Severity.BLOCKER: "can be exploited, loses data, or cannot be built at all",
    Severity.CRITICAL: "wrong in a case that will happen",
    Severity.MAJOR: "will have to be redone",
    Severity.MINOR: "everything else",
}
"""The instructions of the reviewer, which contain the same text."""

_RISKS: Mapping[Risk, str] = {
    Risk.GREEN: "only adds: tests, documents, new helpers",
    Risk.YELLOW: "changes existing logic, signatures, queries or state",
    Risk.RED: "sign-in, secrets, payments, deletion, migrations, concurrency, public interfaces",
}


def schemas() -> str:
    """Return every form of the pipeline, field by field."""
    rows = table(
        ("document", "written by", "read by", "where", "what it is"),
        (
            (
                f"`{each.contract}`",
                _roles(each.producers),
                _roles(each.consumers),
                f"`{FOLDER}/{each.path}`" if each.path else "in a message",
                each.what,
            )
            for each in DOCUMENTS
        ),
    )
    header = explain(_SIGNED, ("agent_output.payload", "completion"))
    return worded("schemas", documents=rows, header=header, forms="\n\n".join(_form(each) for each in DOCUMENTS))


def _roles(roles: tuple[Role, ...]) -> str:
    return "every agent" if roles == NINE else ", ".join(role.value for role in roles)


_SIGNED = "research-output"
"""One of the signed forms; all have the same header."""
_HEADER = tuple(f"agent_output.{name}" for name in Header.model_fields)


def _form(document: FeatureDocument) -> str:
    """Return the fields of a form; the common fields of signed forms have their own section."""
    entry = entry_of(document.contract)
    if not issubclass(entry.shape, SignedDocument):
        return f"## {entry.name} {entry.version}\n\n{explain(entry.name, ())}"
    return (
        f"## {entry.name} {entry.version}\n\n{explain(entry.name, (*_HEADER, 'completion'))}\n\n"
        f"With the header above, and the completion of {entry.shape.signer.value}:\n\n"
        f"{completions.contract(entry.shape.signer, signs=True)}"
    )


def dispatch_patterns() -> str:
    """Return the order of calls, their parallelism, retries and transitions."""
    review = _POLICY.review
    return worded(
        "dispatch-patterns",
        at_once=str(_POLICY.max_concurrent),
        foci=str(len(CALLS_OF[Step.RESEARCH])),
        researchers=str(_POLICY.researchers),
        reviewers=str(len(CALLS_OF[Step.CODE_REVIEW])),
        approvals=str(review.approvals),
        iterations=str(_POLICY.verification.iterations),
        calls=table(("step", "name", "who works", "calls"), _calls()),
        loops=table(
            ("loop", "at most", "counted in", "then"),
            ((loop.value, bound.times, bound.counted, bound.then) for loop, bound in bounds(_POLICY).items()),
        ),
        failures=table(
            ("failed iteration", "then"),
            (
                (iteration, after_failed_iteration(iteration, _POLICY).value)
                for iteration in range(1, _POLICY.verification.iterations + 1)
            ),
        ),
        errors=table(
            ("cause", "class", "seconds between tries inside a call"),
            (
                (
                    cause.value.replace("_", " "),
                    kind.value,
                    ", ".join(str(seconds) for seconds in retries_inside(cause, _POLICY.retry)) or "none",
                )
                for cause, kind in CLASS_OF.items()
            ),
        ),
        resolutions=table(
            ("the reviewers", "a round is left", "then"),
            (
                (situation.value, "yes" if left else "no", resolution.value)
                for (situation, left), resolution in RESOLUTIONS.items()
            ),
        ),
        routes=table(("step", "outcome", "then", "because"), _routes()),
        exhausted=f"`{review.on_exhausted.value}`: {bounds(_POLICY)[BoundedLoop.CODE_REVIEW].then}",
        gates=table(("step", "gate", "a person may say", "autonomous runs take"), _gates()),
    )


def _calls() -> Iterator[tuple[str, str, str, str]]:
    for step, agent in AGENT_OF.items():
        who = agent.value if agent is not None else "a person" if step in GATE_OF else "Fair Witness, or a person"
        several = step in (Step.IMPLEMENT, Step.VERIFY)
        calls = "one for each task" if several else ", ".join(CALLS_OF[step]) or "none"
        yield step.value, step.name.lower().replace("_", " "), who, calls


def _routes() -> Iterator[tuple[str, str, str, str]]:
    for (step, outcome), route in ROUTES.items():
        if route.action is not Action.HALT or outcome is RouteOutcome.ERROR or route.halt is HaltOutcome.ABANDONED:
            yield step.value, outcome.value.replace("_", " "), _then(route), route.because


def _then(route: StepRoute) -> str:
    if route.to is not None:
        return f"{route.action.value} to {route.to.value}"
    return f"{route.action.value} ({route.halt.value})" if route.halt is not None else route.action.value


def _gates() -> Iterator[tuple[str, str, str, str]]:
    for step, gate in GATE_OF.items():
        said = (f"{choice.value} ({OUTCOME_OF[choice].value.replace('_', ' ')})" for choice in OPTIONS[gate])
        yield step.value, f"`{gate.value}`", ", ".join(said), default_choice(gate).value


def severity_taxonomy() -> str:
    """Return the meaning and effect of each severity, and the risk scale."""
    return worded(
        "severity-taxonomy",
        severities=table(
            ("severity", "means", "verdict on its category", "left open, confidence at most"),
            (
                (severity.value, MEANINGS[severity], VERDICT_OF[severity].value, FINDING_AT_MOST[severity].value)
                for severity in Severity
            ),
        ),
        risks=table(("risk", "a file that"), ((risk.value, _RISKS[risk]) for risk in Risk)),
        depths=table(("planned as", "risk", "verified as", "tiers", "checks that must pass"), _depths()),
    )


def _depths() -> Iterator[tuple[str, str, str, str, int]]:
    for size in Size:
        for risk in Risk:
            depth = depth_of(effective_size(size, risk), _POLICY)
            yield size.value, risk.value, depth.size.value, ", ".join(map(str, depth.tiers)), depth.checks


REFERENCES: Mapping[str, Callable[[], str]] = {
    "schemas": schemas,
    "dispatch-patterns": dispatch_patterns,
    "severity-taxonomy": severity_taxonomy,
}
"""The reference documents by name."""

ABOUT: Mapping[str, str] = {
    "schemas": "every form that the pipeline's agents exchange",
    "dispatch-patterns": "who is called when, how often again, and where a run goes next",
    "severity-taxonomy": "what a severity means and what follows from it",
}
