"""Questions of runs that wait for a person."""

from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.run_records.autopilot import WANTS_WORDS as VERDICTS_WANT_WORDS
from fairwitness.app.run_records.autopilot import open_autopilot_run, open_verdict
from fairwitness.app.run_records.feature import open_feature_run
from fairwitness.app.run_records.forge import open_forge_run
from fairwitness.app.views.detail import open_database, resolve_run_at, run_lines
from fairwitness.contracts.common.approvals import ApprovalRequest
from fairwitness.errors import UsageError
from fairwitness.ledger.run_summary import AUTOPILOT, RunSummary
from fairwitness.ledger.summary import run_summaries
from fairwitness.runs.feature import questions as feature_questions
from fairwitness.runs.forge import questions as forge_questions

WAITING, FORGE = "waiting", "forge"
WANTS_WORDS = feature_questions.WANTS_WORDS | forge_questions.WANTS_WORDS | VERDICTS_WANT_WORDS
"""Answers that require an explanation."""
ENDING = frozenset({"abandon", "abort"})
"""Answers that end a run."""


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question and the run that asks it."""

    run_id: str
    slug: str
    question: ApprovalRequest


def inbox(root: Path) -> list[PendingQuestion]:
    """Return all questions that wait for a person, of the newest run first."""
    lines, _ = run_lines(root)
    asking = (FORGE, AUTOPILOT)  # these may ask while they are running
    waiting = [
        line.run_id for line in lines if not line.is_over and (line.status == WAITING or line.workflow in asking)
    ]
    return [found for run_id in waiting if (found := pending_question(root, run_id)) is not None]


def pending_question(root: Path, run_id: str) -> PendingQuestion | None:
    """Return the open question of a run, or None."""
    workflow = workflow_of(root, run_id)
    if workflow == AUTOPILOT:
        with open_autopilot_run(root, run_id) as autopilot:
            verdict = open_verdict(autopilot)
            return None if verdict is None else PendingQuestion(run_id, AUTOPILOT, verdict)
    if workflow == FORGE:
        with open_forge_run(root, run_id) as forge:
            order, asked = forge.log.order(), forge_questions.open_question(forge.log)
            return None if asked is None or order is None else PendingQuestion(run_id, order.slug, asked)
    with open_feature_run(root, run_id) as context:
        question = feature_questions.open_question(context)
        return None if question is None else PendingQuestion(run_id, context.order.slug, question)


def run_to_answer(root: Path, wanted: str | None) -> str:
    """Return the id of the named run, or of the only run that waits for an answer."""
    if wanted is not None:
        return resolve_run_at(root, wanted)
    waiting = inbox(root)
    if len(waiting) == 1:
        return waiting[0].run_id
    if not waiting:
        raise UsageError("no run waits for an answer", next_step="fairwitness status lists the runs")
    listed = ", ".join(each.run_id for each in waiting)
    raise UsageError(f"{len(waiting)} runs wait for an answer: {listed}", next_step="name one of them")


def workflow_of(root: Path, run_id: str) -> str | None:
    """Return the workflow of a run, or None if the ledger holds no such run."""
    with open_database(root) as database:
        return next((run.workflow for run in run_summaries(database, RunSummary) if run.run_id == run_id), None)
