"""What is known about the evidence of each task, of a fix between two rounds of review, and of the whole change."""

from collections.abc import Iterator

from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.common.words import Risk, Size
from fairwitness.contracts.feature.facts import ChangedFile, Step, TaskFacts
from fairwitness.contracts.feature.plan import PlannedTask
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.rules.criteria import required_checks
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.tasks import (
    TASKS,
    Attempted,
    Graph,
    attempted,
    is_waived,
    iteration_of,
    open_tasks,
    plan_of,
    task_of,
)

WHOLE = "whole"
_AT_WORK = (Step.IMPLEMENT.value, Step.VERIFY.value)


def task_facts(context: FeatureContext, state: FeatureState, graphs: tuple[Graph, ...]) -> Iterator[TaskFacts]:
    """Of every task of the plan, in its order."""
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
    graphs: tuple[Graph, ...],
    iteration: int,
    open_: frozenset[str],
) -> TaskFacts:
    mine = [graph for graph in graphs if graph.kind == TASKS and task.id in graph.nodes]
    last = mine[-1] if mine else None
    is_lost = last is not None and last.life != state.resumed and state.current_step in _AT_WORK
    is_begun = last is not None and (task.id not in open_ or (last.iteration == iteration and not is_lost))
    number = last.number if last is not None and is_begun else len(graphs) + 1
    document = task_of(context, task.id)
    done = attempted(context, task.id, number) if is_begun else None
    return _facts(
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
    """What is known of one attempt, by the number of its graph; a fix has no document, and no criteria."""
    return _facts(context, task, number, attempted(context, task, number), document)


def whole_of(context: FeatureContext) -> TaskFacts | None:
    """The whole change on the tree that would be committed; None until its checks ran on it."""
    rows = context.ledger.observations(context.run_id, WHOLE)
    if not rows:
        return None
    detail = rows[-1].detail  # whoever commits looks whether it still is what would be committed
    files = tuple(ChangedFile.model_validate(file) for file in detail["files"])
    whole = Attempted(context.order.base_commit, str(detail["commit"]), str(detail["tree"]), files)
    return _facts(context, WHOLE, int(detail["round"]), whole, None)


def _facts(
    context: FeatureContext,
    task: str,
    number: int,
    done: Attempted | None,
    document: TaskDocument | None,
    *,
    iteration: int = 1,
    is_ready: bool = True,
    has_ended: bool = True,
) -> TaskFacts:
    files = () if done is None else done.files
    # an attempt is proven once and for all: there is no second run of its checks
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
        required=() if document is None else required_checks(document, files, is_waived=is_waived(context, document)),
        ready=is_ready,
        check_runs=runs,
        baseline_runs=runs,
    )
