"""The approval gates of a run: the question, its context, and the effect of each answer.

A question is built from the run's events and documents each time it is shown, so it is the same after a restart. An
answer is an event and a row, written once.
"""

from collections.abc import Mapping

from fairwitness.contracts.common.approvals import ApprovalOption, ApprovalRequest
from fairwitness.contracts.feature.events import ApprovalAnswered
from fairwitness.contracts.feature.facts import GateChoice, HumanGate, Step
from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.feature.plan import PlanOutput
from fairwitness.contracts.feature.research import Focus, ResearchOutput
from fairwitness.contracts.feature.spec import SpecOutput
from fairwitness.errors import UsageError
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_events import visit_of
from fairwitness.rules.feature_routes import default_choice
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.decisions import answered
from fairwitness.runs.feature.tasks import task_of, waiver_of

_QUESTIONS: Mapping[HumanGate, str] = {
    HumanGate.REQUEST_PUSHBACK: "There are concerns about the request. How do we go on?",
    HumanGate.RESEARCH: "The research is done. How do we go on?",
    HumanGate.SPEC_PUSHBACK: "The specification raises concerns. How do we go on?",
    HumanGate.PLAN: "The plan is done. Shall it be carried out?",
}
_DOES: Mapping[GateChoice, str] = {
    GateChoice.PROCEED: "go on as it is",
    GateChoice.APPROVE: "carry the plan out",
    GateChoice.MODIFY: "change the request; say how",
    GateChoice.EXPAND: "research once more; say what is missing",
    GateChoice.REVISE: "make another plan; say what should be different",
    GateChoice.OTHER: "something else; say what",
    GateChoice.ABANDON: "end the run; what it wrote is kept",
    GateChoice.ABORT: "end the run; what it wrote is kept",
}
WANTS_WORDS = frozenset({GateChoice.MODIFY, GateChoice.EXPAND, GateChoice.REVISE, GateChoice.OTHER})
"""Answers that require a text."""
_SHOWN = 12


def key_of(gate: str, visit: int) -> str:
    """Return the name of the engine's gate."""
    return f"{gate}.{visit}"


def open_question(context: FeatureContext) -> ApprovalRequest | None:
    """Return the question that the run waits for, or None."""
    state = context.state()
    if state.ending is not None or state.current_step is None:
        return None
    for gate_id, asked in state.approvals.items():
        if asked.selected_option is None:
            gate = HumanGate(gate_id)
            return ApprovalRequest(
                gate_id=gate_id,
                pipeline_step=state.current_step,
                question=_QUESTIONS[gate],
                context=_context(context, gate),
                options=tuple(
                    ApprovalOption(
                        id=option,
                        label=option,
                        description=_DOES[GateChoice(option)],
                        is_default=option == default_choice(gate).value,
                    )
                    for option in asked.options
                ),
            )
    return None


def _context(context: FeatureContext, gate: HumanGate) -> str:
    match gate:
        case HumanGate.REQUEST_PUSHBACK:
            return "\n".join(said_at_intake(context))
        case HumanGate.RESEARCH:
            return "\n".join(_research(context))
        case HumanGate.SPEC_PUSHBACK:
            log = context.document(context.layout.spec, SpecOutput).agent_output.payload.pushback_log
            concerns = () if log is None else log.concerns
            return "\n".join(f"{each.severity.value}: {each.title}. {each.recommendation}" for each in concerns)
        case HumanGate.PLAN:
            return "\n".join(_plan(context))


def intake_return(context: FeatureContext) -> IntakeReturn | None:
    """Return the last answer of the intake agent, if there is one."""
    for id_, dispatch in reversed(tuple(context.state().dispatches.items())):
        done = ended(context.ledger, context.run_id, id_) if dispatch.step == Step.SETUP.value else None
        said = None if done is None else done.answer(IntakeReturn)
        if said is not None:
            return said
    return None


def said_at_intake(context: FeatureContext) -> list[str]:
    """Return how the intake agent understood the request, and its concerns."""
    said = intake_return(context)
    if said is None:
        return []
    concerns = [f"{each.severity.value}: {each.title}. {each.recommendation}" for each in said.concerns]
    return [f"Understood as: {said.understanding}", *concerns]


def _research(context: FeatureContext) -> list[str]:
    lines = []
    for focus in Focus:
        path = context.layout.research(focus.value)
        if path in context.state().artifacts:
            said = context.document(path, ResearchOutput)
            lines.append(f"{focus.value}: {said.completion.summary}")
        else:
            lines.append(f"{focus.value}: nothing was found out")
    return lines


def _plan(context: FeatureContext) -> list[str]:
    payload = context.document(context.layout.plan, PlanOutput).agent_output.payload
    lines = [
        f"{task.id} {task.risk.value} {task.size.value:<8} {task.title}"
        + (f" (after {', '.join(task.depends_on)})" if task.depends_on else "")
        + _waived(context, task.id)
        for task in payload.tasks[:_SHOWN]
    ]
    more = len(payload.tasks) - _SHOWN
    return [*lines, *([f"and {more} more in {context.layout.plan_companion}"] if more > 0 else [])]


def _waived(context: FeatureContext, task: str) -> str:
    why = waiver_of(task_of(context, task))
    return "" if why is None else f" (WITHOUT A NEW TEST: {why})"


def answer(context: FeatureContext, option: str, said: str | None, actor: str) -> str:
    """Record an answer once; return the name of the engine's gate."""
    question = open_question(context)
    if question is None:
        raise UsageError(f"run {context.run_id} asks nothing", next_step="fairwitness inbox lists what waits for you")
    offered = [each.id for each in question.options]
    if option not in offered:
        raise UsageError(f"{option!r} is no answer to {question.gate_id}", next_step=f"choose {' or '.join(offered)}")
    words = (said or "").strip() or None
    if GateChoice(option) in WANTS_WORDS and words is None:
        raise UsageError(f"{option} needs a word of yours", next_step=f"add --text: {_DOES[GateChoice(option)]}")
    event = ApprovalAnswered(gate_id=question.gate_id, selected_option=option, auto_selected=False, actor=actor)
    now = context.now()
    visit = visit_of(context.state())

    def write(record: Record) -> None:
        record.approval(answered(context, event, now, said=words))
        write_events(record, (event,), now)

    context.write(write)
    killpoint("feature.answered")
    return key_of(question.gate_id, visit)
