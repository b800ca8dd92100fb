"""The events that record a feature run's decision, and the agent calls that it starts.

They are written in one ledger record with the decision, so that a crash leaves either all of them or none.
"""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
    Finish,
    FinishOutcome,
    Halt,
    HaltOutcome,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Revise,
    Wait,
)
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.gates import GateAnswer, Open
from fairwitness.contracts.common.vocabulary import Severity
from fairwitness.contracts.feature import events as happened
from fairwitness.contracts.feature.events import Degradation, StepOutcome
from fairwitness.contracts.feature.facts import OPTIONS, GateChoice, HumanGate, Step
from fairwitness.contracts.feature.pushback import PushbackOption
from fairwitness.contracts.feature.research import Focus
from fairwitness.contracts.feature.state import DispatchState, FeatureState
from fairwitness.rules.feature_routes import GATE_OF

PIPELINE = "pipeline"
"""The actor recorded for answers that no person gave."""

_REASON = 1000


class Raised(NamedTuple):
    """The number of a step's concerns and the worst severity."""

    concerns: int
    worst: Severity | None


class PlannedCall(NamedTuple):
    """A call that a decision starts, with a stable id."""

    dispatch_id: str
    step: Step
    visit: int
    instance: str
    """The call's name within its step."""
    number: int
    """The number of the try, from 1."""


def instance_of(step: Step, name: str) -> str:
    """Return a call's instance name as its role uses it.

    >>> instance_of(Step.RESEARCH, "impact"), instance_of(Step.SPEC, "spec")
    ('researcher-impact', 'spec')
    """
    return f"researcher-{name}" if step is Step.RESEARCH else name


def call_of(dispatch: DispatchState) -> str:
    """Return the call's name within its step, from the instance name of its dispatch."""
    known = {f"researcher-{focus.value}": focus.value for focus in Focus}
    return known.get(dispatch.instance, dispatch.instance)


def events_of(state: FeatureState, decision: Decision, number: int, *, raised: Raised | None) -> tuple[EventData, ...]:
    """Return the events of a decision; `raised` holds the concerns of the current step, if it reports concerns."""
    said = happened.DecisionTaken(number=number, kind=decision.kind, reason=decision.reason)
    return (said, *(_gate(gate) for gate in decision.gates), *_moves(state, decision, raised))


def _gate(answer: GateAnswer) -> happened.GateEvaluated:
    about = next((str(value) for value in answer.query.values[1:2] if value is not None), "")
    return happened.GateEvaluated(
        gate=f"{answer.gate.value}.{about}" if about else answer.gate.value,
        open=isinstance(answer, Open),
        count=answer.count,
        threshold=answer.threshold,
        missing=() if isinstance(answer, Open) else answer.missing,
    )


def _moves(state: FeatureState, decision: Decision, raised: Raised | None) -> Iterator[EventData]:
    match decision:
        case Advance():
            yield from _advance(state, decision, raised)
        case Revise():
            yield from _answered_concerns(state, None, raised)
            yield from _turn(state, StepOutcome.REVISED, decision.to, decision.reason)
        case Replan():
            yield from _end(state, StepOutcome.REVISED, decision.reason)
            yield happened.ReplanStarted(iteration=decision.iteration, failing=decision.tasks, by=decision.by)
            yield happened.FeatureStepStarted(step=(Step.PLAN if decision.by is None else Step.IMPLEMENT).value)
        case AskHuman():
            yield happened.ApprovalRequested(gate_id=decision.gate_id, options=decision.options)
        case Halt():
            if decision.outcome is HaltOutcome.ABANDONED:
                yield from _answered_concerns(state, None, raised)
            yield from _end(state, StepOutcome.FAILED, decision.reason)
            outcome = happened.FeatureRunOutcome(decision.outcome.value)
            yield happened.RunFinished(outcome=outcome, confidence=None, reason=decision.reason)
        case Finish():
            yield from _end(state, StepOutcome.ADVANCED, decision.reason)
            yield happened.RunFinished(
                outcome=happened.FeatureRunOutcome(decision.outcome.value),
                confidence=decision.confidence,
                commit=state.commit if decision.outcome is FinishOutcome.COMMITTED else None,
                reason=decision.reason,
            )
        case Retry() | Revert() | Wait():
            return
        case _:
            assert_never(decision)


def _advance(state: FeatureState, decision: Advance, raised: Raised | None) -> Iterator[EventData]:
    known = {degraded.kind for degraded in state.degradations}
    for name in decision.degradations:
        if Degradation(name) not in known:
            yield happened.Degraded(kind=Degradation(name), detail=decision.reason[:_REASON])
    if decision.path is not None:
        yield happened.PathChanged(path=decision.path, reason=decision.reason[:_REASON])
    if decision.to == state.current_step:
        return  # the step continues with its calls
    yield from _answered_concerns(state, decision.auto_selected, raised)
    if decision.auto_selected is not None and _gate_here(state) in (HumanGate.RESEARCH, HumanGate.PLAN):
        gate = _gate_here(state)
        assert gate is not None
        yield happened.ApprovalRequested(gate_id=gate.value, options=tuple(option.value for option in OPTIONS[gate]))
        yield happened.ApprovalAnswered(
            gate_id=gate.value, selected_option=decision.auto_selected, auto_selected=True, actor=PIPELINE
        )
    yield from _turn(state, StepOutcome.ADVANCED, decision.to, decision.reason)


def _answered_concerns(state: FeatureState, auto: str | None, raised: Raised | None) -> Iterator[EventData]:
    """Record the outcome of a pushback, also when there were no concerns."""
    gate = _gate_here(state)
    if raised is None or gate not in (HumanGate.REQUEST_PUSHBACK, HumanGate.SPEC_PUSHBACK):
        return
    assert state.current_step is not None
    asked = state.approvals.get(gate.value)
    selected = asked.selected_option if asked is not None and asked.visit == visit_of(state) else None
    yield happened.PushbackRecorded(
        step=state.current_step,
        concerns=raised.concerns,
        worst=raised.worst,
        selected_option=PushbackOption(selected or auto or GateChoice.PROCEED.value),
        auto_selected=selected is None and state.mode is ApprovalMode.AUTONOMOUS,
    )


def _turn(state: FeatureState, outcome: StepOutcome, to: str, reason: str) -> Iterator[EventData]:
    yield from _end(state, outcome, reason)
    yield happened.FeatureStepStarted(step=to)


def _end(state: FeatureState, outcome: StepOutcome, reason: str) -> Iterator[EventData]:
    step = None if state.current_step is None else state.steps.get(state.current_step)
    # a run that went on after it had ended stands in a step that was told as failed already
    if state.current_step is not None and step is not None and step.outcome is None:
        yield happened.StepFinished(step=state.current_step, outcome=outcome, reason=reason[:_REASON])


def _gate_here(state: FeatureState) -> HumanGate | None:
    return None if state.current_step is None else GATE_OF.get(Step(state.current_step))


def visit_of(state: FeatureState) -> int:
    """Return the number of the run's current visit of its step."""
    step = state.steps.get(state.current_step or "")
    return 0 if step is None else step.runs


def calls_of(state: FeatureState, decision: Decision) -> tuple[PlannedCall, ...]:
    """Return the calls that a decision starts, each with the number of its try; `state` is the state before the
    decision.
    """
    match decision:
        case Advance():
            step, names = Step(decision.to), decision.start
        case Retry() if decision.what is RetryOf.CALL:
            step, names = Step(decision.step), decision.instances
        case _:
            return ()
    runs = state.steps[step.value].runs if step.value in state.steps else 0
    visit = runs if step.value == state.current_step else runs + 1
    return tuple(_call(state, step, visit, name) for name in names)


def _call(state: FeatureState, step: Step, visit: int, name: str) -> PlannedCall:
    instance = instance_of(step, name)
    # a call that was begun and never ended is repeated under its own id
    ended = sum(
        dispatch.step == step.value and dispatch.instance == instance and dispatch.visit == visit
        for dispatch in state.dispatches.values()
        if dispatch.status is not None
    )
    number = ended + 1
    return PlannedCall(f"{step.value}-{visit}-{instance}-{number}", step, visit, name, number)
