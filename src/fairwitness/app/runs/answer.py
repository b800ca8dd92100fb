"""Answers to the questions of runs."""

import asyncio
from pathlib import Path

from fairwitness.app.run_records.autopilot import answer_verdict, open_autopilot_run
from fairwitness.app.run_records.feature import ANSWERED, open_feature_run
from fairwitness.app.run_records.forge import open_forge_run
from fairwitness.app.runs.drive import engine_at
from fairwitness.app.views.inbox import FORGE, workflow_of
from fairwitness.app.views.workers import has_engine, worker_on
from fairwitness.git.identity import read_identity
from fairwitness.ledger.run_summary import AUTOPILOT
from fairwitness.runs.feature import questions as feature_questions
from fairwitness.runs.forge import questions as forge_questions


def answer(root: Path, run_id: str, option: str, said: str | None) -> None:
    """Record an answer and notify the engine. If no worker executes the run, the next one reads the answer."""
    workflow = workflow_of(root, run_id)
    if workflow == AUTOPILOT:
        with open_autopilot_run(root, run_id) as autopilot:
            key = answer_verdict(autopilot, option, said)
            if worker_on(root, run_id) is None:
                autopilot.refresh()
    elif workflow == FORGE:
        with open_forge_run(root, run_id) as forge:
            key = forge_questions.answer(forge.log, forge.files, forge.layout, option, said, forge.actor)
            forge.refresh()
    else:
        with open_feature_run(root, run_id) as context:
            key = feature_questions.answer(context, option, said, read_identity(context.repository).author)
    if has_engine(root):
        asyncio.run(wake_engine(root, run_id, key))


async def wake_engine(root: Path, run_id: str, key: str) -> None:
    """Notify the engine that a question was answered, if it knows the run."""
    async with engine_at(root, worker=False) as engine:
        if any(run.id == run_id for run in await engine.runs()):
            await engine.answer(run_id, key, ANSWERED)
