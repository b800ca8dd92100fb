"""Fold the events of a feature run into its state."""

from collections.abc import Iterable
from typing import Any, TypeAlias

from pydantic import TypeAdapter

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.feature import events as happened
from fairwitness.contracts.feature.events import FeatureEvent
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.state import (
    ApprovalState,
    AttemptState,
    DegradationState,
    DispatchState,
    ExhaustedState,
    FeatureState,
    GateState,
    LedgerHead,
    LeftPath,
    PushbackState,
    ReplanState,
    ReviewState,
    RunEnding,
    StepState,
    TaskState,
)
from fairwitness.contracts.forge import events as graph
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.rules.fold import UPCASTERS, Upcasters, at, fold, next_event, typed

Changes: TypeAlias = dict[str, Any]
OfATask: TypeAlias = (
    graph.TaskStarted | graph.TaskVerified | graph.NodeChanged | graph.BranchMerged | happened.TaskReverted
)

_SHAPE: TypeAdapter[FeatureEvent] = TypeAdapter(FeatureEvent)
_NO_TASK = TaskState(attempts=(), merged=None, merged_attempt=None, reverts=0)


def fold_feature(
    envelopes: Iterable[Envelope],
    *,
    onto: FeatureState | None = None,
    upcasters: Upcasters = UPCASTERS[Workflow.FEATURE],
) -> FeatureState | Problem:
    """Return the run after these events, from its beginning or from an earlier state."""
    return fold(envelopes, onto, lambda state, envelope: _apply(state, envelope, upcasters))


def _apply(state: FeatureState | None, envelope: Envelope, upcasters: Upcasters) -> FeatureState | Problem:
    event = next_event(
        envelope,
        Workflow.FEATURE,
        _SHAPE,
        upcasters,
        last_seq=state.seq if state is not None else 0,
        run_id=state.run_id if state is not None else None,
    )
    if isinstance(event, Problem):
        return event
    if state is None:
        return _begun(envelope, event)
    changes = _changes(state, envelope, event)
    if isinstance(changes, Problem):
        return changes
    seen = {"seq": envelope.seq, "last_event_id": envelope.event_id, "updated_at": envelope.timestamp}
    return state.model_copy(update={**changes, **seen})


def _begun(envelope: Envelope, event: FeatureEvent) -> FeatureState | Problem:
    if not isinstance(event, happened.FeatureRunStarted):
        return at(envelope, ("type",), "run_started as the first event", envelope.type)
    value = {
        **event.model_dump(exclude={"type"}),
        "run_id": envelope.run_id,
        "seq": envelope.seq,
        "last_event_id": envelope.event_id,
        "started_at": envelope.timestamp,
        "updated_at": envelope.timestamp,
    }
    return typed(envelope, value, TypeAdapter(FeatureState))


def _changes(state: FeatureState, envelope: Envelope, event: FeatureEvent) -> Changes | Problem:
    match event:
        case happened.FeatureRunStarted():
            return at(envelope, ("type",), "run_started once", "a second one")
        case happened.FeatureRunResumed():
            return {"resumed": state.resumed + 1, "ending": None, **_reopened(state, event.from_step)}
        case happened.PathChanged():
            reviewed = state.steps.get(Step.CODE_REVIEW.value)
            left = LeftPath(reason=event.reason, code_reviews=0 if reviewed is None else reviewed.runs)
            return {"path": event.path, "left_path": left}
        case happened.RunFinished():
            ending = RunEnding(**event.model_dump(exclude={"type"}), finished_at=envelope.timestamp)
            return {"ending": ending, "current_step": None}
        case happened.FeatureStepStarted() | happened.StepFinished():
            return _step(state, envelope, event)
        case happened.DispatchStarted() | happened.DispatchFinished() | happened.CallRefused():
            return _dispatch(state, envelope, event)
        case (
            graph.TaskStarted()
            | graph.TaskVerified()
            | graph.NodeChanged()
            | graph.BranchMerged()
            | happened.TaskReverted()
        ):
            return _task(state, envelope, event)
        case (
            graph.TaskStale()
            | graph.NodeRetried()
            | graph.TaskExhausted()
            | graph.ConflictFound()
            | graph.MergeStarted()
            | graph.MergeFinished()
            | graph.TargetBranchMoved()
        ):
            return {}  # handled by the graph's own fold; node changes carry what concerns a task
        case happened.DecisionTaken():
            return {"decisions": event.number}
        case happened.ApprovalRequested() | happened.ApprovalAnswered():
            return _approval(state, envelope, event)
        case happened.ReviewSubmitted():
            return {"reviews": _with_review(state, event)}
        case happened.ArtifactWritten():
            return {"artifacts": {**state.artifacts, event.path: event.sha256}}
        case happened.PushbackRecorded():
            return {"pushbacks": (*state.pushbacks, PushbackState(**event.model_dump(exclude={"type"})))}
        case happened.GateEvaluated():
            answer = GateState(**event.model_dump(exclude={"type", "gate"}), asked_at=envelope.timestamp)
            return {"gates": {**state.gates, event.gate: answer}}
        case happened.ReplanStarted():
            return {"replans": (*state.replans, ReplanState(**event.model_dump(exclude={"type"})))}
        case happened.Degraded():
            return {"degradations": (*state.degradations, DegradationState(kind=event.kind, detail=event.detail))}
        case happened.BudgetExhausted():
            return {"exhausted": (*state.exhausted, ExhaustedState(**event.model_dump(exclude={"type"})))}
        case happened.HeadRecorded():
            return {"ledger_head": LedgerHead(head=event.head, rows=event.rows)}
        case happened.Committed():  # pragma: no branch  # mypy holds the match exhaustive
            return {"commit": event.commit, "rollback_command": event.rollback_command}


def _reopened(state: FeatureState, step: str) -> Changes:
    """Reopen the step at which a run continues, in the same visit."""
    before = state.steps.get(step)
    if before is None:
        return {"current_step": step}
    again = before.model_copy(update={"finished_at": None, "outcome": None, "reason": None})
    return {"current_step": step, "steps": {**state.steps, step: again}}


def _step(
    state: FeatureState, envelope: Envelope, event: happened.FeatureStepStarted | happened.StepFinished
) -> Changes | Problem:
    before = state.steps.get(event.step)
    if isinstance(event, happened.FeatureStepStarted):
        after = StepState(
            runs=1 if before is None else before.runs + 1,
            started_at=envelope.timestamp,
            finished_at=None,
            outcome=None,
        )
        return {"steps": {**state.steps, event.step: after}, "current_step": event.step}
    if before is None or before.outcome is not None:
        return at(envelope, ("data", "step"), "a step that is under way", event.step)
    after = before.model_copy(
        update={"finished_at": envelope.timestamp, "outcome": event.outcome, "reason": event.reason}
    )
    current = None if state.current_step == event.step else state.current_step
    return {"steps": {**state.steps, event.step: after}, "current_step": current}


def _dispatch(
    state: FeatureState,
    envelope: Envelope,
    event: happened.DispatchStarted | happened.DispatchFinished | happened.CallRefused,
) -> Changes | Problem:
    before = state.dispatches.get(event.dispatch_id)
    if isinstance(event, happened.DispatchStarted):
        if before is not None and before.status is not None:
            return at(envelope, ("data", "dispatch_id"), "a dispatch that has not ended", event.dispatch_id)
        # a step that is repeated after a crash starts its dispatch again under the same id
        after = DispatchState(
            step=event.step,
            agent=event.agent,
            instance=event.instance,
            started_at=envelope.timestamp,
            status=None,
            duration_ms=0,
            tokens=0,
            refused_calls=0,
            visit=state.steps[event.step].runs if event.step in state.steps else 0,
            attempt=envelope.attempt,
            life=state.resumed,
        )
    elif before is None or before.status is not None:
        return at(envelope, ("data", "dispatch_id"), "a dispatch that is under way", event.dispatch_id)
    elif isinstance(event, happened.CallRefused):
        after = before.model_copy(update={"refused_calls": before.refused_calls + 1})
    else:
        after = before.model_copy(
            update={
                "status": event.status,
                "duration_ms": event.duration_ms,
                "tokens": event.tokens,
                "reason": event.reason,
                "cause": event.cause,
            }
        )
    return {"dispatches": {**state.dispatches, event.dispatch_id: after}}


def _task(state: FeatureState, envelope: Envelope, event: OfATask) -> Changes | Problem:
    name = event.task if isinstance(event, happened.TaskReverted) else event.nodeId
    task = state.tasks.get(name, _NO_TASK)
    attempts = {attempt.attempt: attempt for attempt in task.attempts}
    after, expected = None, "a task"
    match event:
        case graph.TaskStarted():
            if event.attemptId > max(attempts, default=0):
                begun = AttemptState(
                    attempt=event.attemptId, branch=event.branch, started_at=envelope.timestamp, verified=None
                )
                after = task.model_copy(update={"attempts": (*task.attempts, begun)})
            expected = "a new attempt"
        case graph.TaskVerified():
            # a helper that settled a conflict verifies the same attempt once more
            under_way = attempts.get(event.attemptId)
            if under_way is not None and under_way.verified is not False:
                attempts[event.attemptId] = under_way.model_copy(update={"verified": True, "tree": event.tree})
                after = task.model_copy(update={"attempts": tuple(attempts.values())})
            expected = "an attempt that is under way"
        case graph.NodeChanged():
            after = _moved(task, event)
        case graph.BranchMerged():
            merged = max(attempts.values(), key=lambda attempt: attempt.attempt, default=None)
            if merged is not None and merged.verified:
                after = task.model_copy(update={"merged": event.commit, "merged_attempt": merged.attempt})
            expected = "a verified attempt"
        case happened.TaskReverted():  # pragma: no branch  # mypy holds the match exhaustive
            # a task that is reverted to the baseline is no longer merged
            after = task.model_copy(update={"merged": None, "merged_attempt": None, "reverts": task.reverts + 1})
    if after is None:
        return at(envelope, ("data", "attempt"), expected, f"{name}, {envelope.type}")
    return {"tasks": {**state.tasks, name: after}}


def _moved(task: TaskState, event: graph.NodeChanged) -> TaskState:
    """Update a task from a node change; only a failed attempt adds information."""
    if event.newStatus not in (NodeState.FAILED, NodeState.STALE) or not task.attempts:
        return task
    last = task.attempts[-1].model_copy(update={"verified": False, "reason": event.reason})
    return task.model_copy(update={"attempts": (*task.attempts[:-1], last)})


def _approval(
    state: FeatureState, envelope: Envelope, event: happened.ApprovalRequested | happened.ApprovalAnswered
) -> Changes | Problem:
    before = state.approvals.get(event.gate_id)
    if isinstance(event, happened.ApprovalRequested):
        step = state.steps.get(state.current_step or "")
        answered = () if before is None or before.selected_option is None else (before.selected_option,)
        after = ApprovalState(
            options=event.options,
            asked_at=envelope.timestamp,
            answered_at=None,
            selected_option=None,
            auto_selected=False,
            visit=0 if step is None else step.runs,
            spent=(*(() if before is None else before.spent), *answered),
        )
        return {"approvals": {**state.approvals, event.gate_id: after}}
    if before is None or before.selected_option is not None:
        return at(envelope, ("data", "gate_id"), "a question that waits", event.gate_id)
    if event.selected_option not in before.options:
        return at(envelope, ("data", "selected_option"), " or ".join(before.options), event.selected_option)
    after = before.model_copy(
        update={
            "answered_at": envelope.timestamp,
            "selected_option": event.selected_option,
            "auto_selected": event.auto_selected,
            "actor": event.actor,
        }
    )
    return {"approvals": {**state.approvals, event.gate_id: after}}


def _with_review(state: FeatureState, event: happened.ReviewSubmitted) -> tuple[ReviewState, ...]:
    """Add a review; a reviewer that submits again replaces its earlier review of that round."""
    said = ReviewState(scope=event.scope, round=event.round, perspective=event.perspective, verdicts=event.verdicts)
    key = (said.scope, said.round, said.perspective)
    others = (one for one in state.reviews if (one.scope, one.round, one.perspective) != key)
    return (*others, said)
