"""The questions of a forge run to a person, and the effects of the answers.

A question is built from the log whenever it is shown, so it is the same after a restart. An answer is recorded once.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from fairwitness.contracts.common.approvals import ApprovalOption, ApprovalRequest
from fairwitness.contracts.forge.dag import DagNode
from fairwitness.contracts.forge.events import CaptainMessage, RunFailed
from fairwitness.contracts.graph.forge_order import ForgePlan
from fairwitness.errors import UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.change_requests import RequestDecision
from fairwitness.rules.next_forge_move import INTERVIEW, ForgeMove, ForgeMoveKind, next_move
from fairwitness.runs.forge.captain_briefs import PlanMessageKind, plan_messages
from fairwitness.runs.forge.change_requests import decide, request_of
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.plan_files import approve
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout

ANSWER, PROCEED, APPROVE, RETURN, REJECT, ABANDON = "answer", "proceed", "approve", "return", "reject", "abandon"
WANTS_WORDS: Final = frozenset({ANSWER, RETURN, REJECT})
"""Answers that need a text."""
_PLANNING, _EXECUTING = "plan", "execute"
_SHOWN = 40


def open_question(log: ForgeLog) -> ApprovalRequest | None:
    """Return the question that the run waits for, or None."""
    move = _awaited(log)
    if move is None or move.gate is None:
        return None
    if move.request is not None:
        return _asked(
            move.gate,
            _EXECUTING,
            "A refinery requests a change of the plan. Should the captain plan it?",
            _request(log, move.request),
            {APPROVE: "let the captain add it to the plan", REJECT: "continue with the current plan; give a reason"},
        )
    proposal = _proposal(log)
    if move.gate.startswith(f"{INTERVIEW}."):
        return _asked(
            move.gate,
            _PLANNING,
            "The captain has questions. What is your answer?",
            proposal.questions,
            {ANSWER: "answer in your own words; the captain makes a new plan", PROCEED: "let the captain decide"},
        )
    choices = {APPROVE: "approve the plan as it is in its files, and carry it out"}
    if _returned(log) < _plan_rounds(log):
        choices[RETURN] = "return the plan to the captain; say what should change"
    choices[ABANDON] = "end the run and keep its files"
    question = "The plan is ready. Carry it out?"
    return _asked(move.gate, _PLANNING, question, tuple(_plan(proposal)), choices)


def answer(log: ForgeLog, store: Store, layout: ForgeLayout, option: str, said: str | None, actor: str) -> str:
    """Record an answer, once; return the name under which the engine waits for it."""
    question, move = open_question(log), _awaited(log)
    if question is None or move is None or move.gate is None:
        raise UsageError(
            f"run {log.run_id} has no open question", next_step="fairwitness inbox lists pending approvals"
        )
    offered = {each.id: each.description for each in question.options}
    if option not in offered:
        raise UsageError(
            f"{option!r} is not an answer to {question.gate_id}", next_step=f"choose {' or '.join(offered)}"
        )
    words = (said or "").strip()
    if option in WANTS_WORDS and not words:
        raise UsageError(f"{option} needs a text", next_step=f"add --text: {offered[option]}")
    if move.request is not None:
        decide(log, move.request, RequestDecision(option), actor, words or None)
    elif option == APPROVE:
        approve(log, store, layout, actor)
    elif option == ABANDON:
        log.review(RunFailed(reason=f"abandoned by {actor}"))
    elif option == PROCEED:
        log.review(CaptainMessage(speaker="user", text=words or PROCEED, round=log.course().asked))
    else:
        log.give_back(actor, words, answers=log.course().asked if option == ANSWER else None)
    killpoint("forge.answered")
    return move.gate


def _awaited(log: ForgeLog) -> ForgeMove | None:
    order = log.order()
    if order is None:
        return None
    move = next_move(log.course(), order.mode, order.limits)
    return move if move.kind is ForgeMoveKind.WAIT else None


def _asked(gate: str, step: str, question: str, context: Sequence[str], choices: Mapping[str, str]) -> ApprovalRequest:
    """Return an approval request; the prompt suggests the first choice, but none is made automatically."""
    first = next(iter(choices))
    return ApprovalRequest(
        gate_id=gate,
        pipeline_step=step,
        question=question,
        context="\n".join(context),
        options=tuple(
            ApprovalOption(id=name, label=name, description=does, is_default=name == first)
            for name, does in choices.items()
        ),
    )


def _proposal(log: ForgeLog) -> ForgePlan:
    plan = log.proposal()
    assert plan is not None, "nobody is asked about a plan that was not proposed"
    return plan


def _returned(log: ForgeLog) -> int:
    """Return how many plans were returned to the captain; interview answers do not count."""
    said = plan_messages(log.ledger.events(log.run_id))
    return sum(saying.kind is PlanMessageKind.RETURNED for saying in said)


def _plan_rounds(log: ForgeLog) -> int:
    order = log.order()
    assert order is not None
    return order.limits.plan_rounds


def _plan(plan: ForgePlan) -> Iterator[str]:
    about = {task.id: f"{task.estimated_complexity.value}  {task.title}" for task in plan.tasks}
    for node in plan.dag.nodes[:_SHOWN]:
        yield f"{node.id}  {node.worker}  {about.get(node.id, 'joins what it waits for')}{_after(node)}"
    more = len(plan.dag.nodes) - _SHOWN
    if more > 0:
        yield f"and {more} more"
    yield from (f"assumed: {text}" for text in plan.assumptions)
    yield from (f"left open: {text}" for text in plan.questions)


def _after(node: DagNode) -> str:
    return f" (after {', '.join(node.dependencies)})" if node.dependencies else ""


def _request(log: ForgeLog, cr_id: str) -> tuple[str, ...]:
    request = request_of(log, cr_id)
    return (
        f"{cr_id} of {request.emitted_by}: {request.title}",
        f"because: {request.reason}",
        f"suggested: {request.suggested_changes}",
        f"affects: {', '.join(request.affected_tasks) or 'no task'}",
    )
