"""Questions of runs that wait for somebody, and answers to them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from fairwitness.app.autopilot_course import AUTOPILOT
from fairwitness.app.autopilot_questions import WANTS_WORDS as VERDICTS_WANT_WORDS
from fairwitness.app.autopilot_questions import answer_verdict, open_verdict
from fairwitness.app.autopilot_run import opened_autopilot
from fairwitness.app.carrying import engine_at
from fairwitness.app.feature_run import ANSWERED, opened_context
from fairwitness.app.forge_run import opened_forge
from fairwitness.app.looking import meant_run, opened, run_lines
from fairwitness.app.workers import has_engine, worker_on
from fairwitness.contracts.common.approvals import ApprovalRequest
from fairwitness.errors import UsageError
from fairwitness.git.identity import read_identity
from fairwitness.ledger.glance import glance
from fairwitness.runs.feature import questions as feature_questions
from fairwitness.runs.forge import questions as forge_questions

WAITING, FORGE = "waiting", "forge"
WANTS_WORDS = feature_questions.WANTS_WORDS | forge_questions.WANTS_WORDS | VERDICTS_WANT_WORDS
"""Answers that mean nothing without a text."""
ENDING = frozenset({"abandon", "abort"})
"""Answers that end a run."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question, and the run that asks it."""

    run_id: str
    slug: str
    question: ApprovalRequest


def inbox(root: Path) -> list[Waiting]:
    """Everything that waits for a person, the newest run first."""
    lines, _ = run_lines(root)
    asking = (FORGE, AUTOPILOT)  # runs that may ask while they go on
    waiting = [
        line.run_id for line in lines if not line.is_over and (line.status == WAITING or line.workflow in asking)
    ]
    return [found for run_id in waiting if (found := question_of(root, run_id)) is not None]


def question_of(root: Path, run_id: str) -> Waiting | None:
    """What one run asks; None if it asks nothing."""
    workflow = _workflow(root, run_id)
    if workflow == AUTOPILOT:
        with opened_autopilot(root, run_id) as autopilot:
            verdict = open_verdict(autopilot)
            return None if verdict is None else Waiting(run_id, AUTOPILOT, verdict)
    if workflow == FORGE:
        with opened_forge(root, run_id) as forge:
            order, asked = forge.log.order(), forge_questions.open_question(forge.log)
            return None if asked is None or order is None else Waiting(run_id, order.slug, asked)
    with opened_context(root, run_id) as context:
        question = feature_questions.open_question(context)
        return None if question is None else Waiting(run_id, context.order.slug, question)


def asked_run(root: Path, wanted: str | None) -> str:
    """The run a person means: by name, or the only one that waits."""
    if wanted is not None:
        return meant_run(root, wanted)
    waiting = inbox(root)
    if len(waiting) == 1:
        return waiting[0].run_id
    if not waiting:
        raise UsageError(f"nothing waits for you in {root}", next_step="fairwitness status")
    listed = ", ".join(each.run_id for each in waiting)
    raise UsageError(f"{len(waiting)} runs wait for you: {listed}", next_step="name one of them")


def answer(root: Path, run_id: str, option: str, said: str | None) -> None:
    """Writes an answer down, and wakes whoever carries the run; where nobody does, the next one finds it."""
    workflow = _workflow(root, run_id)
    if workflow == AUTOPILOT:
        with opened_autopilot(root, run_id) as autopilot:
            key = answer_verdict(autopilot, option, said)
            if worker_on(root, run_id) is None:
                autopilot.refresh()
    elif workflow == FORGE:
        with opened_forge(root, run_id) as forge:
            key = forge_questions.answer(forge.log, forge.files, forge.layout, option, said, forge.actor)
            forge.refresh()
    else:
        with opened_context(root, run_id) as context:
            key = feature_questions.answer(context, option, said, read_identity(context.repository).author)
    if has_engine(root):
        asyncio.run(wake(root, run_id, key))


def _workflow(root: Path, run_id: str) -> str | None:
    with opened(root) as database:
        return next((run.workflow for run in glance(database) if run.run_id == run_id), None)


async def wake(root: Path, run_id: str, key: str) -> None:
    """Tells the engine that a question was answered, if it knows the run."""
    async with engine_at(root, worker=False) as engine:
        if any(run.id == run_id for run in await engine.runs()):
            await engine.answer(run_id, key, ANSWERED)
