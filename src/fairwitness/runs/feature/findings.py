"""The open findings of a run's reviews as data for the next agents, and what the fixer answered to them."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.feature.implementation import FindingAnswer, ImplementationReport
from fairwitness.contracts.feature.review import ReviewReturn, ReviewScope
from fairwitness.kit import yaml_text
from fairwitness.rules.findings import RaisedFinding, named_files, still_open, unanswered
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import FIX_NODE

_REVIEWS: Final = "SELECT key, body FROM claims WHERE run_id = ? AND kind = 'review' ORDER BY id"


def open_findings(
    context: FeatureContext, scope: ReviewScope, *, before: str | None = None
) -> tuple[RaisedFinding, ...]:
    """Return every finding of a review that is still open, whatever its severity and however the vote went.

    Answers of dispatches whose id begins with `before` are left out: reviewers of a round do not see each other.
    """
    rows = context.ledger.database.read(_REVIEWS, (context.run_id,))
    said = [
        ReviewReturn.model_validate(json.loads(body))
        for key, body in rows
        if before is None or not str(key).startswith(f"review:{before}")
    ]
    return still_open(review for review in said if review.scope is scope)


def open_design_findings(context: FeatureContext) -> tuple[PromptSection, ...]:
    """Return what the review of the design left open, for those who plan, build and judge the code."""
    title = "Open findings of the design review, which bind you as far as they concern your task"
    return findings_section(title, open_findings(context, ReviewScope.DESIGN))


def fix_answers(context: FeatureContext) -> dict[str, FindingAnswer]:
    """Return what the last fixer answered, by the id of the finding."""
    path = context.layout.implementation_report(FIX_NODE)
    if path not in context.state().artifacts:
        return {}
    report = context.document(path, ImplementationReport)
    return {answer.id: answer for answer in report.agent_output.payload.finding_answers or ()}


def findings_section(
    title: str, findings: Sequence[RaisedFinding], answers: Mapping[str, FindingAnswer] | None = None
) -> tuple[PromptSection, ...]:
    """Return findings as one section of data, each with its answer if there is one; no section without findings."""
    if not findings:
        return ()
    known = answers or {}
    plain = [
        each.finding.plain() | {"id": each.id} | ({"answer": _answer(known[each.id])} if each.id in known else {})
        for each in findings
    ]
    return (PromptSection(title=title, text=yaml_text.render(plain)),)


def _answer(answer: FindingAnswer) -> dict[str, str]:
    return {"outcome": answer.outcome.value, "note": answer.note}


def answer_problems(findings: Sequence[RaisedFinding], report: ImplementationReport) -> tuple[str, ...]:
    """Return why a fixer's report cannot be taken: each finding needs an answer."""
    answered = {answer.id for answer in report.agent_output.payload.finding_answers or ()}
    missing = unanswered(findings, answered)
    if not missing:
        return ()
    where = "agent_output.payload.finding_answers"
    return (f"{where}: expected an entry for each finding, missing: {', '.join(missing)}",)


def writable_files(context: FeatureContext, findings: Sequence[RaisedFinding]) -> tuple[str, ...]:
    """Return the files that findings name as affected, except documents of the run."""
    layout = context.layout
    own = {path.rpartition("/")[2] for path in (layout.spec, layout.design, layout.plan)}
    return tuple(path for path in named_files(findings) if path not in own and not path.startswith(f"{layout.folder}/"))
