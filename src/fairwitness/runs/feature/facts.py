"""The current facts of a feature run, read from its events, ledger rows and documents.

Nothing is cached between calls, so two processes read the same facts.
"""

from collections.abc import Iterator

from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.vocabulary import Risk, Severity, Size, worst_severity
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import (
    Approval,
    CallFacts,
    CanStart,
    ChangedFile,
    FeatureFacts,
    FixFacts,
    GateChoice,
    ReviewFacts,
    Step,
    TaskFacts,
)
from fairwitness.contracts.feature.intake import IntakeReturn
from fairwitness.contracts.feature.plan import PlannedTask, TaskDocument
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.contracts.feature.spec import SpecOutput
from fairwitness.contracts.feature.state import DispatchState, FeatureState
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules.criteria import required_checks
from fairwitness.rules.feature_events import Raised, call_of, visit_of
from fairwitness.rules.feature_paths import path_of_review
from fairwitness.rules.feature_routes import GATE_OF
from fairwitness.rules.review import STEP_OF
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.failed_attempts import FailedAttempt
from fairwitness.runs.feature.tasks import (
    FIX,
    FIX_NODE,
    TASKS,
    RecordedAttempt,
    TaskGraph,
    files_of,
    graphs_of,
    is_waived,
    iteration_of,
    open_tasks,
    plan_of,
    recorded_attempt,
    task_of,
)
from fairwitness.runs.shared.call_facts import call_facts

WHOLE = "whole"
_AT_WORK = (Step.IMPLEMENT.value, Step.VERIFY.value)


def task_facts(context: FeatureContext, state: FeatureState, graphs: tuple[TaskGraph, ...]) -> Iterator[TaskFacts]:
    """Return the facts of every task of the plan, in its order."""
    plan = plan_of(context)
    if plan is None:
        return
    planned = plan.agent_output.payload.tasks
    open_ = frozenset(open_tasks(context, plan))
    iteration = iteration_of(state)
    for task in planned:
        yield _task(context, state, task, graphs, iteration, open_)


def _task(
    context: FeatureContext,
    state: FeatureState,
    task: PlannedTask,
    graphs: tuple[TaskGraph, ...],
    iteration: int,
    open_: frozenset[str],
) -> TaskFacts:
    mine = [graph for graph in graphs if graph.kind == TASKS and task.id in graph.nodes]
    last = mine[-1] if mine else None
    is_lost = last is not None and last.life != state.resumed and state.current_step in _AT_WORK
    is_begun = last is not None and (task.id not in open_ or (last.iteration == iteration and not is_lost))
    number = last.number if last is not None and is_begun else len(graphs) + 1
    document = task_of(context, task.id)
    done = recorded_attempt(context, task.id, number) if is_begun else None
    return _evidence_facts(
        context,
        task.id,
        number,
        done,
        document,
        iteration=last.iteration if last is not None and is_begun else iteration,
        is_ready=all(other not in open_ for other in task.depends_on),
        has_ended=is_begun and bool(state.tasks.get(task.id) and state.tasks[task.id].attempts),
    )


def attempt_facts(context: FeatureContext, task: str, number: int, document: TaskDocument | None) -> TaskFacts:
    """Return the facts of one attempt, by the number of its graph; a fix has no document and no criteria."""
    return _evidence_facts(context, task, number, recorded_attempt(context, task, number), document)


def whole_of(context: FeatureContext) -> TaskFacts | None:
    """Return the facts of the whole change on the tree to be committed; None until its checks ran."""
    rows = context.ledger.observations(context.run_id, WHOLE)
    if not rows:
        return None
    detail = rows[-1].detail  # the commit checks that it is still what would be committed
    files = tuple(ChangedFile.model_validate(file) for file in detail["files"])
    whole = RecordedAttempt(context.order.base_commit, str(detail["commit"]), str(detail["tree"]), files)
    return _evidence_facts(context, WHOLE, int(detail["round"]), whole, None)


def _evidence_facts(
    context: FeatureContext,
    task: str,
    number: int,
    done: RecordedAttempt | None,
    document: TaskDocument | None,
    *,
    iteration: int = 1,
    is_ready: bool = True,
    has_ended: bool = True,
) -> TaskFacts:
    files = () if done is None else done.files
    # an attempt is proven once: its checks do not run a second time
    runs = context.order.policy.retry.checks + 1 if has_ended else 0
    return TaskFacts(
        task=task,
        size=Size.STANDARD if document is None else document.task.size,
        risk=Risk.GREEN if document is None else document.task.risk,
        files=files,
        iteration=iteration,
        round=number,
        baseline=context.ledger.tally(context.run_id, task, Phase.BASELINE, number - 1),
        after=context.ledger.tally(context.run_id, task, Phase.AFTER, number),
        tree=None if done is None else done.tree,
        required=()
        if document is None
        else required_checks(document.task.acceptance_criteria, files, is_waived=is_waived(context, document)),
        ready=is_ready,
        check_runs=runs,
        baseline_runs=runs,
        failing=tuple(FailedAttempt(context, task, number).failing().items()),
        planned=() if document is None or context.state().path is RunPath.FULL else files_of(document),
    )


REFUSED = "refused"
"""The kind of observation for an answer that is readable but refused, such as a plan that breaks its limits."""
HELP = "help"
"""Part of the id of a call that solves a merge conflict."""


def facts_of(context: FeatureContext) -> FeatureFacts:
    """Return all facts that a decision reads."""
    state = context.state()
    step = None if state.current_step is None else Step(state.current_step)
    refused = {row.subject for row in context.ledger.observations(context.run_id, REFUSED)}
    can_start, held_by = _permission(context, state)
    raised = raised_here(context.ledger, context.run_id, state)
    graphs = graphs_of(context)
    code = _review(context, state, ReviewScope.CODE, refused)
    return FeatureFacts(
        mode=state.mode,
        path=state.path,
        step=step,
        calls=() if step is None else _calls(context, state, step, graphs, refused),
        concerns=None if raised is None else raised.worst,
        approval=_approval(state, step),
        iteration=iteration_of(state),
        tasks=tuple(task_facts(context, state, graphs)),
        whole=whole_of(context),
        design_review=_review(context, state, ReviewScope.DESIGN, refused),
        code_review=code,
        fix=None if code is None else _fix(context, state, code.round, graphs),
        degradations=tuple(dict.fromkeys(degraded.kind for degraded in state.degradations)),
        can_start=can_start,
        held_by=held_by,
    )


def _permission(context: FeatureContext, state: FeatureState) -> tuple[CanStart, str | None]:
    spent = context.ledger.last_event(context.run_id, "budget_exhausted")
    resumed = context.ledger.last_event(context.run_id, "run_resumed")
    if spent is None or (resumed is not None and resumed.seq > spent.seq):
        return CanStart.YES, None
    return CanStart.NEVER, f"the budget: {state.exhausted[-1].what}"


def raised_here(ledger: Ledger, run_id: str, state: FeatureState) -> Raised | None:
    """Return the concerns that the current step raised; None if it raises none, or has not yet."""
    if state.current_step not in (Step.SETUP.value, Step.SPEC.value):
        return None
    for dispatch_id, dispatch in reversed(tuple(state.dispatches.items())):
        is_here = (dispatch.step, dispatch.visit) == (state.current_step, visit_of(state))
        if is_here and dispatch.status is DispatchStatus.DONE:
            concerns = _concerns(ledger, run_id, dispatch, dispatch_id)
            return Raised(len(concerns), worst_severity(concerns))
    return None


def _concerns(ledger: Ledger, run_id: str, dispatch: DispatchState, dispatch_id: str) -> tuple[Severity, ...]:
    done = ended(ledger, run_id, dispatch_id)
    if done is None:
        return ()
    if dispatch.step == Step.SETUP.value:
        intake = done.answer(IntakeReturn)
        return () if intake is None else tuple(concern.severity for concern in intake.concerns)
    spec = done.answer(SpecOutput)
    log = None if spec is None else spec.agent_output.payload.pushback_log
    return () if log is None else tuple(concern.severity for concern in log.concerns)


def _approval(state: FeatureState, step: Step | None) -> Approval | None:
    gate = None if step is None else GATE_OF.get(step)
    asked = None if gate is None else state.approvals.get(gate.value)
    if gate is None or asked is None:
        return None
    spent = tuple(GateChoice(option) for option in asked.spent)
    if asked.visit == visit_of(state):
        selected = None if asked.selected_option is None else GateChoice(asked.selected_option)
        return Approval(gate=gate, asked=True, selected=selected, spent=spent)
    answered = () if asked.selected_option is None else (GateChoice(asked.selected_option),)
    return Approval(gate=gate, asked=False, selected=None, spent=(*spent, *answered))


def _calls(
    context: FeatureContext, state: FeatureState, step: Step, graphs: tuple[TaskGraph, ...], refused: set[str]
) -> tuple[CallFacts, ...]:
    if step not in (Step.IMPLEMENT, Step.VERIFY):
        visit = visit_of(state)
        return _facts(
            state,
            {
                id_: dispatch
                for id_, dispatch in state.dispatches.items()
                if (dispatch.step, dispatch.visit) == (step.value, visit)
            },
            refused,
        )
    here = [graph for graph in graphs if (graph.kind, graph.iteration) == (TASKS, iteration_of(state))]
    here = [graph for graph in here if graph.life == state.resumed]
    numbers = {graph.number for graph in here}
    # what was merged before the last resume is done; a fruitless attempt from then is made again
    merged = {name: task.merged_attempt for name, task in state.tasks.items() if task.merged is not None}
    found = _facts(
        state,
        {
            id_: dispatch
            for id_, dispatch in state.dispatches.items()
            if dispatch.step == step.value
            and (dispatch.attempt in numbers or merged.get(dispatch.instance) == dispatch.attempt)
            and not _helps(id_, dispatch)
        },
        refused,
    )
    if step is Step.IMPLEMENT or not here:
        return found
    # an attempt without changes leaves nothing for a verifier
    known = {call.instance for call in found}
    return (
        *found,
        *(
            CallFacts(instance=name, attempts=1, status=DispatchStatus.DONE, cause=None)
            for name in here[-1].nodes
            if name not in known and recorded_attempt(context, name, here[-1].number) is None
        ),
    )


def _helps(dispatch_id: str, dispatch: DispatchState) -> bool:
    """Return whether a call solved a merge conflict: the merge reports its result, which says nothing about the work
    itself."""
    return f"-{dispatch.instance}-{HELP}-" in dispatch_id


def _facts(state: FeatureState, dispatches: dict[str, DispatchState], refused: set[str]) -> tuple[CallFacts, ...]:
    """Return the facts of each instance: its tries since the last resume, or what it had done before."""
    tries: dict[str, list[tuple[str, DispatchState]]] = {}
    for id_, dispatch in dispatches.items():
        tries.setdefault(call_of(dispatch), []).append((id_, dispatch))
    found = []
    for instance, all_ in tries.items():
        last_id, last = all_[-1]
        is_done = last.status in (DispatchStatus.DONE, DispatchStatus.NEEDS_REVISION) and last_id not in refused
        here = [dispatch for _, dispatch in all_ if dispatch.life == state.resumed]
        if is_done or here:
            found.append(_call(instance, max(1, len(here)), last, is_refused=last_id in refused))
    return tuple(sorted(found, key=lambda call: call.instance))


def _call(instance: str, attempts: int, last: DispatchState, *, is_refused: bool) -> CallFacts:
    if is_refused:
        return call_facts(instance, attempts, DispatchStatus.ERROR, ErrorCause.SCHEMA_VIOLATION)
    return call_facts(instance, attempts, last.status, last.cause)


def _review(context: FeatureContext, state: FeatureState, scope: ReviewScope, refused: set[str]) -> ReviewFacts | None:
    step = STEP_OF[scope].value
    if step not in state.steps:
        return None
    round_ = state.steps[step].runs
    here = {
        id_: dispatch for id_, dispatch in state.dispatches.items() if (dispatch.step, dispatch.visit) == (step, round_)
    }
    return ReviewFacts(
        scope=scope,
        round=min(round_, 2),
        tally=context.ledger.tally(context.run_id, review_subject(context, scope), Phase.REVIEW),
        reviewers=_facts(state, here, refused),
        path=path_of_review(state, scope, round_),
    )


def review_subject(context: FeatureContext, scope: ReviewScope) -> str:
    """Return the subject under which the rows of a review are recorded."""
    return f"{context.order.slug}-{scope.value}-review"


def _fix(context: FeatureContext, state: FeatureState, round_: int, graphs: tuple[TaskGraph, ...]) -> FixFacts | None:
    here = [graph for graph in graphs if (graph.kind, graph.iteration) == (FIX, round_)]
    if not here:
        return None
    number = here[-1].number
    calls = _facts(
        state,
        {
            id_: dispatch
            for id_, dispatch in state.dispatches.items()
            if (dispatch.step, dispatch.attempt) == (Step.IMPLEMENT.value, number) and not _helps(id_, dispatch)
        },
        set(),
    )
    if not calls:
        return None
    return FixFacts(call=calls[0], checks=attempt_facts(context, FIX_NODE, number, None))
