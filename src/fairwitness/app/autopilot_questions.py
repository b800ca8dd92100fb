"""What an autopilot run asks a person: whether a phase that no command could decide about is as it should be."""

from collections.abc import Iterator

from fairwitness.app.autopilot_run import ISSUES, WORDS, AutopilotRoom, record_verdict
from fairwitness.contracts.autopilot.roadmap import DetailedPhase
from fairwitness.contracts.common.approvals import ApprovalOption, ApprovalRequest
from fairwitness.errors import UsageError

WANTS_WORDS = frozenset({ISSUES})
"""Answers that mean nothing without a text."""
_DOES = {
    "pass": "the phase is completed, and what rests on it goes on",
    "fail": "the phase failed; what rests on it is not run",
    ISSUES: "the phase failed for what you found; say what that is",
}
_STEP = "verify"


def open_verdict(context: AutopilotRoom) -> ApprovalRequest | None:
    """The first phase that waits for a verdict, as a question; None if none does."""
    waiting = context.waiting()
    if not waiting:
        return None
    phase = waiting[0]
    return ApprovalRequest(
        gate_id=f"verdict.{phase}",
        pipeline_step=_STEP,
        question=f"Phase {phase} is done as far as commands can tell. What do you say?",
        context="\n".join(_known(context, phase)) or "nothing is known about it",
        options=tuple(
            # nobody passes a phase by pressing a key: the answer that is offered first asks for words
            ApprovalOption(id=word, label=word, description=_DOES[word], is_default=word == ISSUES)
            for word in WORDS
        ),
    )


def _known(context: AutopilotRoom, phase: str) -> Iterator[str]:
    state, order = context.log.state().state, context.log.order()
    named = _phase_of(order.roadmap.phases, phase)
    yield f"{named.name}: {named.goal}"
    deferrals = [each for each in state.meta.deferral_history if each.phase_id == phase]
    if deferrals:
        sure = deferrals[-1].autonomous_confidence
        yield f"why you: {deferrals[-1].reason}" + ("" if sure is None else f" (its own confidence: {sure} of 10)")
    why = state.phases[phase].human_verify_justification
    if why is not None:
        yield f"to look at: {why.task_description}"
        yield f"automatic tasks: {why.auto_tasks_passed} of {why.auto_tasks_total} passed"
    yield from (f"criterion: {each.text}" for each in named.criteria)
    yield f"branch: {order.target}"


def _phase_of(phases: tuple[DetailedPhase, ...], phase: str) -> DetailedPhase:
    known = {each.id: each for each in phases}
    return known[phase] if phase in known else known[phase[:-1]]


def answer_verdict(context: AutopilotRoom, option: str, said: str | None) -> str:
    """Writes the answer down, once; the name under which the engine waits for it."""
    waiting = context.waiting()
    if not waiting:
        raise UsageError(
            f"run {context.log.run_id} asks nothing", next_step="fairwitness inbox lists what waits for you"
        )
    if option not in WORDS:
        raise UsageError(f"{option!r} is no verdict", next_step=f"choose {' or '.join(WORDS)}")
    if option in WANTS_WORDS and not (said or "").strip():
        raise UsageError(f"{option} needs a word of yours", next_step=f"add --text: {_DOES[option]}")
    return record_verdict(context, waiting[0], WORDS[option], [said] if said else []).gate
