"""A feature run told step by step: events and ended calls as the harness writes them, with a word for what differs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairwitness.contracts.agents.dispatch import DispatchOutcome
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import Claim
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.events import (
    ApprovalAnswered,
    ApprovalRequested,
    DispatchFinished,
    DispatchStarted,
    DispatchStatus,
    FeatureRunResumed,
    FeatureStepStarted,
    StepFinished,
    StepOutcome,
)
from fairwitness.contracts.feature.facts import OPTIONS, GateChoice, HumanGate, Step
from fairwitness.contracts.forge import events as graph
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.demo.sessions import RecordedSession
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.ledger import Ledger
from fairwitness.ledger.record import Record
from fairwitness.runs.dispatch.model import Dispatched
from fairwitness.runs.feature.answers import store
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.store.artifacts import Store
from runs.feature.contexts import RUN, clock, order_of

_USAGE = {"tokens_in": 1, "tokens_out": 1, "source": "agent"}


def enter(context: FeatureContext, step: Step) -> None:
    """Begins a step; one that is under way is over then."""
    leave(context)
    context.write_event(FeatureStepStarted(step=step.value))


def leave(context: FeatureContext, outcome: StepOutcome = StepOutcome.ADVANCED) -> None:
    """Ends the step at hand, if there is one."""
    step = context.state().current_step
    if step is not None:
        context.write_event(StepFinished(step=step, outcome=outcome))


def resume(context: FeatureContext, step: Step) -> None:
    """The run goes on in a step."""
    context.write_event(FeatureRunResumed(from_step=step.value))


def outcome_of(answer: Mapping[str, Any] | None, **differs: Any) -> DispatchOutcome:
    """What a dispatch came to: ok if there is an answer."""
    plain: dict[str, Any] = {
        "status": "ok" if answer is not None else "agent_error",
        "raw_text": "done",
        "asked": 1,
        "usage": _USAGE,
        "duration_ms": 5,
        **({"answer": dict(answer)} if answer is not None else {"cause": "agent_error", "problems": ["it failed"]}),
    }
    return DispatchOutcome.model_validate(plain | differs)


def call(
    context: FeatureContext,
    dispatch_id: str,
    step: Step,
    role: Role,
    instance: str,
    *,
    status: DispatchStatus | None = DispatchStatus.DONE,
    cause: ErrorCause | None = None,
    attempt: int | None = None,
    answer: Mapping[str, Any] | None = None,
    tree: str | None = None,
) -> Dispatched:
    """A call that began, and ended unless its status is None; its answer stands where that of any dispatch does."""
    begun = DispatchStarted(dispatch_id=dispatch_id, step=step.value, agent=role, instance=instance)
    context.write_event(begun, attempt=attempt)
    outcome = outcome_of(answer)
    done = Dispatched(dispatch_id, outcome=outcome, tree=tree)
    if status is None:
        return done
    key = f"dispatch:{dispatch_id}:ended"
    plain = outcome.plain()
    names: tuple[str, ...] = ("answer", "raw_text")
    said = {name: plain.pop(name) for name in names if name in plain}
    detail: dict[str, object] = {
        "role": role.value,
        "instance": instance,
        "outcome": plain,
        "changed": [],
        "byproducts": 0,
        "start_tree": None,
        "transcript": None,
    }
    claim = Claim(
        run_id=context.run_id,
        task_id=None,
        key=key,
        agent=role.value,
        instance=instance,
        kind="answer",
        body=said,
        claimed_at=context.now(),
    )
    ended = DispatchFinished(dispatch_id=dispatch_id, status=status, duration_ms=5, tokens=2, cause=cause)

    def write(record: Record) -> None:
        record.observation(context.observation(key, "dispatch-ended", dispatch_id, detail, tree=tree))
        record.claim(claim)
        write_events(record, (ended,), context.now(), attempt=attempt)

    context.write(write)
    return done


def played(
    context: FeatureContext, session: RecordedSession, dispatch_id: str | None = None, **differs: Any
) -> Dispatched:
    """A session of the recorded team, stored as its caller does it."""
    done = Dispatched(
        dispatch_id or id_of(session), outcome=outcome_of(session.answer), tree=tree_of(context, session), **differs
    )
    store(context, session.role, session.instance, done)
    return done


def id_of(session: RecordedSession) -> str:
    return f"{session.role.value}-{session.instance}-{session.number}"


def files_of(session: RecordedSession) -> dict[str, str]:
    """What a session writes as whole files."""
    calls = [call for turn in session.turns for call in turn.calls]
    return {call.args["path"]: call.args["content"] for call in calls if "content" in call.args}


def tree_of(context: FeatureContext, session: RecordedSession) -> str:
    return tree_with(context, files_of(session))


def tree_with(context: FeatureContext, files: Mapping[str, str | bytes]) -> str:
    """A worktree with nothing but these files, as it was left."""
    folder = context.kept.root / "left" / str(len(list(context.kept.root.glob("left/*"))))
    folder.mkdir(parents=True)
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return context.shadow.snapshot(folder, context.repository.tree_of(context.order.base_commit))


def ask(context: FeatureContext, gate: HumanGate, answer: GateChoice | None = None) -> None:
    """A question, and its answer if there is one."""
    context.write_event(ApprovalRequested(gate_id=gate.value, options=tuple(option.value for option in OPTIONS[gate])))
    if answer is not None:
        context.write_event(
            ApprovalAnswered(gate_id=gate.value, selected_option=answer.value, auto_selected=False, actor="ada")
        )


def attempt(context: FeatureContext, task: str, number: int, *, merged: bool | None) -> None:
    """An attempt of a task in a graph: merged, failed, or (None) under way."""

    def change(before: NodeState, after: NodeState) -> graph.NodeChanged:
        return graph.NodeChanged(
            nodeId=task, previousStatus=before, newStatus=after, timestamp=context.now(), attemptId=number
        )

    branch = f"fairwitness/{task}/attempt-{number}"
    context.write_event(
        change(NodeState.PENDING, NodeState.RUNNING),
        graph.TaskStarted(nodeId=task, attemptId=number, branch=branch, agent="type 2"),
    )
    head = context.order.base_commit
    if merged:
        context.write_event(graph.TaskVerified(nodeId=task, attemptId=number, commit=head, tree=head))
        context.write_event(graph.BranchMerged(nodeId=task, commit=head))
    elif merged is False:
        context.write_event(change(NodeState.RUNNING, NodeState.FAILED))


def reopened(folder: Path) -> FeatureContext:
    """The room of a run that was begun in a folder before, as another process opens it."""
    repository, state = Repository.open(folder / "till"), folder / "state"
    assert repository.top is not None
    return FeatureContext(
        run_id=RUN,
        order=order_of(repository, folder),
        repository=repository,
        shadow=Shadow.open(state / "git", repository),
        ledger=Ledger.open_file(state / "evidence.db", clock=clock),
        files=Store(repository.top),
        kept=Store(state),
        clock=clock,
    )
