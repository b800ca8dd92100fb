"""Questions of runs that wait for somebody, and answers to them."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from assay.app.carrying import engine_at
from assay.app.database import ledger_in
from assay.app.feature import ANSWERED, order_of, room_of
from assay.app.looking import meant, opened, run_lines
from assay.app.state import state_of
from assay.app.workers import has_engine
from assay.contracts.common.approvals import ApprovalRequest
from assay.errors import UsageError
from assay.git.identity import read_identity
from assay.git.repository import Repository
from assay.steps.feature.questions import WANTS_WORDS as WANTS_WORDS  # faces know no step
from assay.steps.feature.questions import answer as write_answer
from assay.steps.feature.questions import open_question

WAITING = "waiting"


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question, and the run that asks it."""

    run_id: str
    slug: str
    question: ApprovalRequest


def inbox(root: Path) -> list[Waiting]:
    """Everything that waits for a person, the newest run first."""
    lines, _ = run_lines(root)
    waiting = [line.run_id for line in lines if line.status == WAITING and not line.is_over]
    return [found for run_id in waiting if (found := question_of(root, run_id)) is not None]


def question_of(root: Path, run_id: str) -> Waiting | None:
    """What one run asks; None if it asks nothing."""
    repository = Repository.open(root)
    ledger = ledger_in(state_of(repository))
    try:
        order, _ = order_of(ledger, run_id)
        question = open_question(room_of(repository, ledger, run_id, order))
        return None if question is None else Waiting(run_id, order.slug, question)
    finally:
        ledger.close()


def asked_run(root: Path, wanted: str | None) -> str:
    """The run a person means: by name, or the only one that waits."""
    if wanted is not None:
        with opened(root) as database:
            return meant(database, wanted)
    waiting = inbox(root)
    if len(waiting) == 1:
        return waiting[0].run_id
    if not waiting:
        raise UsageError("nothing waits for you", next_step="assay status")
    listed = ", ".join(each.run_id for each in waiting)
    raise UsageError(f"{len(waiting)} runs wait for you: {listed}", next_step="name one of them")


def answer(root: Path, run_id: str, option: str, said: str | None) -> None:
    """Writes an answer down, and wakes whoever carries the run; where nobody does, the next one finds it."""
    repository = Repository.open(root)
    identity = read_identity(repository)
    ledger = ledger_in(state_of(repository))
    try:
        order, _ = order_of(ledger, run_id)
        actor = f"{identity.author_name} <{identity.author_email}>"
        key = write_answer(room_of(repository, ledger, run_id, order), option, said, actor)
    finally:
        ledger.close()
    if has_engine(root):
        asyncio.run(_wake(root, run_id, key))


async def _wake(root: Path, run_id: str, key: str) -> None:
    async with engine_at(root, worker=False) as engine:
        if any(run.id == run_id for run in await engine.runs()):
            await engine.answer(run_id, key, ANSWERED)
