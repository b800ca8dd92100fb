"""Execute and debug: the tasks of a pass as a graph of their own, and what came of each."""

from collections.abc import Awaitable, Callable, Sequence

from fairwitness.contracts.autopilot.facts import StepError
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import ExecuteStep, PhaseSteps, TaskRecord, TaskStatus
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.words import FailureCategory, StepName, WorkState
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.errors import NotReady
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.done import Done, Span, first_line, over_budget
from fairwitness.runs.autopilot.graph_runner import BUDGET
from fairwitness.runs.autopilot.pages_phase import LoggedTask, execution_page
from fairwitness.runs.autopilot.task_checks import failures
from fairwitness.runs.autopilot.tasks import PlannedNode, begin_graph, deviations, graphs_of, logged, rest_of
from fairwitness.runs.graph.repo_context import run_blocking

Carry = Callable[[int], Awaitable[GraphEnd]]


async def execute(context: AutopilotContext, asked: PhasePass, number: int, carry: Carry) -> Done:
    """Carries out the tasks of the plan, or what a cycle is to mend; what fails is said, and the others go on."""
    nodes = await run_blocking(_nodes, context, asked)
    done = await _carried(context, asked, f"execute-{number}", nodes, carry)
    everything = await run_blocking(_of_phase, context, asked.phase)
    tasks_log, said = (
        await run_blocking(logged, context.log, *everything),
        await run_blocking(deviations, context.log, *everything),
    )
    page = execution_page(context.phase(asked.phase), tasks_log, said)
    path = context.layout(asked.phase).execution_log
    await run_blocking(context.put, path, page)
    good = done.is_done
    return Done(
        StepResult(step=StepName.EXECUTE, number=number, good=good, issues=() if good else done.issues),
        steps=PhaseSteps(execute=await run_blocking(_step, context, asked, done)),
        output=path,
        error=None if good else _error(done),
        new_commits=done.merged,
        spans=done.spans,
    )


def _of_phase(context: AutopilotContext, phase: str) -> tuple[int, ...]:
    """The graphs of a phase: its log tells of all of them, also of those before a cycle."""
    return tuple(graph.number for graph in graphs_of(context.log) if graph.phase == phase)


def _nodes(context: AutopilotContext, asked: PhasePass) -> tuple[PlannedNode, ...]:
    if asked.kind is PassKind.CYCLE:
        name = f"p{asked.phase}-cycle"
        return (PlannedNode(id=name, role=Role.EXECUTOR, task=None, items=asked.items, problems=(), wave=1),)
    return tuple(
        PlannedNode(
            id=f"p{asked.phase}-{task.id}", role=Role.EXECUTOR, task=task, items=(), problems=(), wave=task.wave
        )
        for task in context.tasks(asked)
    )


async def debug(context: AutopilotContext, asked: PhasePass, number: int, carry: Carry) -> Done:
    """Lets a debugger mend what verification and judge found; whether it did is for the next verification to see."""
    problems = await run_blocking(_problems, context, asked)
    name = f"p{asked.phase}-debug"
    node = PlannedNode(id=name, role=Role.DEBUGGER, task=None, items=(), problems=problems, wave=1)
    done = await _carried(context, asked, f"debug-{number}", (node,), carry)
    good = done.is_done
    return Done(
        StepResult(step=StepName.DEBUG, number=number, good=good, issues=() if good else done.issues),
        error=None if good else _error(done),
        new_commits=done.merged,
        spans=done.spans,
    )


def _problems(context: AutopilotContext, asked: PhasePass) -> tuple[str, ...]:
    """What the last verification and its judge left to be mended."""
    results = context.log.results(asked)
    last: dict[StepName, StepResult] = {result.step: result for result in results}
    found = [issue for step in (StepName.VERIFY, StepName.JUDGE) if step in last for issue in last[step].issues]
    return tuple(dict.fromkeys(found)) or ("the judge asks for debugging",)


class _Carried:
    """Graphs that came to their end."""

    def __init__(self, merged: int, tasks_log: tuple[LoggedTask, ...], failed: tuple[StepError, ...]) -> None:
        self.merged, self.tasks_log, self.failed = merged, tasks_log, failed

    @property
    def is_done(self) -> bool:
        """Whether everything was carried out."""
        return all(task.status is TaskStatus.COMPLETED for task in self.tasks_log)

    @property
    def issues(self) -> tuple[str, ...]:
        """What was not carried out."""
        failed = [task for task in self.tasks_log if task.status is not TaskStatus.COMPLETED]
        told = tuple(f"{task.id} is {task.status.value}: {task.description}" for task in failed)
        return told or ("the tasks were not carried out",)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Each task as a line of the trace."""
        return tuple(
            Span(
                TraceAction.AGENT_SPAWN,
                f"{task.id}: {task.description}",
                task.status.value,
                round((task.duration_seconds or 0) * 1000),
                task.status is TaskStatus.COMPLETED,
            )
            for task in self.tasks_log
        )


async def _carried(
    context: AutopilotContext, asked: PhasePass, purpose: str, nodes: Sequence[PlannedNode], carry: Carry
) -> _Carried:
    """Graph after graph: what only waited for something that failed is begun without it."""
    numbers: list[int] = []
    merged, left = 0, tuple(nodes)
    while left:
        turn = purpose if not numbers else f"{purpose}-rest-{len(numbers)}"
        numbers.append(await run_blocking(begin_graph, context.log, asked, turn, left, await run_blocking(context.tip)))
        end = await carry(numbers[-1])
        if end.reason is not None and end.reason.startswith(BUDGET):
            raise over_budget(end.reason.removeprefix(BUDGET))
        if end.reason is not None:
            raise NotReady(end.reason, next_step=f"mend that, then: fairwitness resume {context.log.run_id}")
        merged += end.merged
        left = await run_blocking(rest_of, context.log, numbers[-1])
    tasks_log = await run_blocking(logged, context.log, *numbers)
    failed = await run_blocking(failures, context.log, *numbers)
    return _Carried(merged, tasks_log, failed)


def _step(context: AutopilotContext, asked: PhasePass, done: _Carried) -> ExecuteStep:
    """What the state file keeps: the tasks of this step, beside those that were carried out before."""
    record = context.log.state().state.phases.get(asked.phase)
    before = {} if record is None or record.steps.execute is None else dict(record.steps.execute.tasks)
    tasks = {
        task.id: TaskRecord(status=task.status, commit=task.commit, retries=task.debug_attempts)
        for task in done.tasks_log
    }
    completed = [task.status is TaskStatus.COMPLETED for task in done.tasks_log]
    status = WorkState.COMPLETED if all(completed) else WorkState.PARTIAL if any(completed) else WorkState.FAILED
    return ExecuteStep(status=status, tasks=before | tasks)


def _error(done: _Carried) -> StepError:
    if done.failed:
        return done.failed[0]
    said = first_line(done.issues, "the tasks were not carried out")
    return StepError(category=FailureCategory.EXECUTOR_INCOMPLETE, first_line=said)
