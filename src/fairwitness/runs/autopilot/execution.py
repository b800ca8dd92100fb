"""The execute and debug steps of a pass: its tasks run as a graph, one agent per node.

An executor works in the worktree of its node, the harness runs the task's commands on exactly the files that would be
committed, and a mini-verifier checks the change. It sees the task and the change, but no claim about them. A debugger
gets at most two tries at what fails.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus, PromptSection
from fairwitness.contracts.autopilot.events_phase import TaskRetried
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import Retries, RetryKind, StepFailureCause
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.phase_record import ExecuteStep, PhaseSteps, TaskRecord, TaskStatus
from fairwitness.contracts.autopilot.plan import PlanCriterion
from fairwitness.contracts.autopilot.returns import DebuggerReturn, ExecutorReturn
from fairwitness.contracts.autopilot.trace import TraceAction
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn
from fairwitness.contracts.autopilot.vocabulary import FailureCategory, StepName, WorkState
from fairwitness.contracts.common.base import Contract, Positive, Texts
from fairwitness.contracts.common.ids import NodeId
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, GraphEnd, Worked
from fairwitness.errors import NotReady
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.text import bounded
from fairwitness.rules.breaker import may_retry
from fairwitness.rules.claims import mini_differences
from fairwitness.runs.autopilot import task_checks
from fairwitness.runs.autopilot.briefs import AutopilotBriefs
from fairwitness.runs.autopilot.commands import CommandHarness, CriterionCommand
from fairwitness.runs.autopilot.context import VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.failed_work import RetryMaterial
from fairwitness.runs.autopilot.log import AutopilotLog, LoggedEvent, new_event, pass_name
from fairwitness.runs.autopilot.pages_phase import LoggedTask, execution_page
from fairwitness.runs.autopilot.step_result import FinishedStep, Halted, Span, answer, first_line
from fairwitness.runs.autopilot.task_checks import failures
from fairwitness.runs.autopilot.task_graphs import (
    ATTEMPT,
    NodeAttempt,
    PlannedGraph,
    TaskNode,
    attempted,
    begin_graph,
    deviations,
    graphs_of,
    logged,
    rest_of,
)
from fairwitness.runs.autopilot.usage import task_retries
from fairwitness.runs.autopilot.verification import PhaseVerification
from fairwitness.runs.dispatch import Dispatched, DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.conflicts import conflict_text

DEBUGS: Final = 2
"""How often a debugger may work on one task."""
RETRY: Final = "task-retry"
HELP: Final = "help"
_INCOMPLETE: Final = FailureCategory.EXECUTOR_INCOMPLETE
_SUMMARY: Final = 60
_REASON: Final = 500


class TaskRetry(Contract):
    """A retry of a task, with the problems that caused it."""

    node: NodeId
    number: Positive
    problems: Texts


class NodeJob(NamedTuple):
    """One attempt at a node: its order and its worktree."""

    order: AttemptOrder
    prepared: AttemptStart
    folder: Path
    node: TaskNode

    @property
    def id(self) -> str:
        """The id of the attempt in keys and dispatch names."""
        helper = f"-{HELP}" if self.order.conflict is not None else ""
        return f"{self.order.node}-{self.order.attempt}{helper}"


@dataclass
class AttemptProgress:
    """What an attempt has done so far."""

    start: str
    """The tree that the attempt started from."""
    tree: str
    """The tree that would be committed."""
    changed: tuple[str, ...] = ()
    """The paths in which the two trees differ."""
    milliseconds: int = 0
    said: ExecutorReturn | None = None
    check: MiniVerifierReturn | None = None
    debugs: int = 0

    @property
    def unfinished(self) -> tuple[str, ...]:
        """Why the executor itself says that the task is not done; empty if it says it is."""
        why = None if self.said is None else task_checks.unfinished(self.said)
        return () if why is None else (why,)

    def ended(self, job: NodeJob, problems: Sequence[str] = (), category: FailureCategory | None = None) -> NodeAttempt:
        """Return the result of the attempt: done if there are no problems."""
        evidence = () if self.said is None else self.said.evidence
        return NodeAttempt(
            node=job.order.node,
            attempt=job.order.attempt,
            done=not problems,
            tree=self.tree,
            files=self.changed,
            evidence=next((each for each in evidence if each.task_id == job.node.name), None),
            deviations=() if self.said is None else self.said.deviations,
            check=self.check,
            debug_attempts=self.debugs,
            problems=tuple(problems),
            category=category,
            seconds=self.milliseconds / 1000,
        )


class NodeExecutor:
    """Runs the agents of a node; the `Work` of a graph."""

    def __init__(
        self,
        log: AutopilotLog,
        graph: PlannedGraph,
        repository: Repository,
        shadow: Shadow,
        harness: CommandHarness,
        agent_caller: AgentCaller,
        briefs: AutopilotBriefs,
    ) -> None:
        self._log, self._graph, self._repository, self._shadow = log, graph, repository, shadow
        self._harness, self._asker, self._briefs = harness, agent_caller, briefs
        self._failed = RetryMaterial(log, harness, agent_caller.context.store, repository, shadow)

    async def __call__(self, order: AttemptOrder, prepared: AttemptStart, folder: Path) -> Worked:
        """Carry out an attempt; calls that ended before a restart are adopted."""
        job = NodeJob(order, prepared, folder, self._graph.node(order.node))
        try:
            done = await (self._adopted(job) if order.conflict is None else self._settled(job))
        except Halted as halted:
            return Worked(done=False, changed=(), reason=halted.reason, halt=halted.halt)
        if done.done:
            return Worked(
                done=True, changed=done.files, summary=bounded(f"{job.node.name} - {job.node.about}", _SUMMARY)
            )
        return Worked(done=False, changed=done.files, reason=done.problems[0][:_REASON])

    async def _adopted(self, job: NodeJob) -> NodeAttempt:
        known = await run_blocking(attempted, self._log, job.order.node, job.order.attempt)
        if known is not None:
            return known
        done = await self._carried_out(job)
        return await run_blocking(self._log.keep, f"{ATTEMPT}:{done.node}:{done.attempt}", ATTEMPT, done.node, done)

    async def _carried_out(self, job: NodeJob) -> NodeAttempt:
        course = await run_blocking(self._course, job)
        said = await self._begun(job, course, await run_blocking(self._first_brief, job))
        if isinstance(said, StepFailureCause):
            return course.ended(job, (said.first_line,), said.category)
        problems = course.unfinished
        if job.node.task is None and not job.node.items:  # the caller checks the result
            return course.ended(job, problems, _INCOMPLETE if problems else None)
        category = _INCOMPLETE
        for number in range(DEBUGS + 1):
            if number:
                refused = await self._mended(job, course, number, problems)
                if refused is not None:
                    return course.ended(job, (refused.first_line, *problems), refused.category)
            runs, check = await self._checked(job, course, number)
            problems = (*task_checks.problems_of(runs, course.check), *(() if number else problems))
            if not problems and isinstance(check, StepFailureCause):
                return course.ended(job, (f"its check came to nothing: {check.first_line}",), check.category)
            if not problems:
                return course.ended(job)
            category = task_checks.category_of_runs(runs)
        return course.ended(job, problems, category)

    def _course(self, job: NodeJob) -> AttemptProgress:
        tree = self._repository.tree_of(job.prepared.start)
        return AttemptProgress(tree, tree)

    async def _begun(
        self, job: NodeJob, course: AttemptProgress, brief: Brief
    ) -> ExecutorReturn | DebuggerReturn | StepFailureCause:
        """Run the first agent of the attempt."""
        done = await self._ask(job, course, brief)
        if job.node.role is Role.DEBUGGER:
            return answer(done, DebuggerReturn)
        said = answer(done, ExecutorReturn)
        course.said = said if isinstance(said, ExecutorReturn) else None
        return said

    def _first_brief(self, job: NodeJob) -> Brief:
        node, order = job.node, job.order
        writes = self._writes(node)
        if node.role is Role.DEBUGGER:
            before = self._phase_before()
            return self._briefs.debugger(
                node.id, order.attempt, 1, node.task, node.problems, writes=writes, before=before
            )
        if node.gap is not None:
            return self._briefs.fixer(node.id, order.attempt, node.gap, writes)
        conflicts = conflict_text(self._repository, order, job.prepared)
        before = self._failed.attempt(node, order.attempt, job.prepared.base, conflicts)
        if node.items:
            before = (*self._phase_before(), *before)
        return self._briefs.executor(
            node.id, order.attempt, node.task, node.items, writes, before=before, criteria=node.criteria
        )

    def _phase_before(self) -> tuple[PromptSection, ...]:
        """Return what is known of the work on the phase before this graph; a graph of no pass has none."""
        own = next((each for each in self._log.passes() if pass_name(each) == self._graph.pass_), None)
        return () if own is None else self._failed.phase(own)

    def _writes(self, node: TaskNode) -> tuple[str, ...]:
        return self._briefs.anywhere() if node.scope is None else node.scope

    async def _mended(
        self, job: NodeJob, course: AttemptProgress, number: int, problems: Sequence[str]
    ) -> StepFailureCause | None:
        """Run a debugger; return an error if none may be started or its answer was refused."""
        if not await run_blocking(self._may_retry, job, number, problems):
            return StepFailureCause(category=_INCOMPLETE, first_line="the retries of the run are used up")
        node, attempt = job.node, job.order.attempt
        trees, check = (course.start, course.tree), course.check

        def made() -> Brief:
            before = self._failed.repair(f"{job.id}-{number - 1}", number, node.id, attempt, check, trees)
            writes = self._writes(node)
            return self._briefs.debugger(node.id, attempt, number, node.task, problems, writes=writes, before=before)

        brief = await run_blocking(made)
        course.debugs = number
        said = answer(done := await self._ask(job, course, brief), DebuggerReturn)
        # a debugger without an answer is no error: its changes are checked either way
        return said if isinstance(said, StepFailureCause) and done.outcome.status is OutcomeStatus.REFUSED else None

    def _may_retry(self, job: NodeJob, number: int, problems: Sequence[str]) -> bool:
        """Record a retry of a task, if the run has retries left."""
        log, order = self._log, job.order
        key = f"{RETRY}:{job.id}:{number}"
        if log.kept(key, TaskRetry) is not None:
            return True
        state = log.state().state
        total = task_retries(state) + sum(each.debug_attempts + each.replan_attempts for each in state.phases.values())
        spent = Retries(debug_in_phase=0, replan_in_phase=0, total=total)
        if not may_retry(RetryKind.TASK, spent, log.order().limits.breaker):
            return False

        def events(now: str) -> tuple[LoggedEvent, ...]:
            if self._graph.phase is None:
                return ()
            event = new_event(
                TaskRetried,
                now,
                phase=self._graph.phase,
                step=StepName.EXECUTE,
                task=job.node.name,
                attempt=number,
                reason=problems[0][:_REASON],
            )
            return (LoggedEvent(event),)

        log.keep(key, RETRY, order.node, TaskRetry(node=order.node, number=number, problems=tuple(problems)), events)
        return True

    async def _checked(
        self, job: NodeJob, course: AttemptProgress, number: int
    ) -> tuple[tuple[ExecutionResult, ...], MiniVerifierReturn | StepFailureCause]:
        """Run the task's commands and its mini-verifier, and record where claims differ from the results."""
        node, order = job.node, job.order
        runs = await self._run(job, course, number)
        brief = await run_blocking(self._check_brief, job, course, number, runs)
        check = answer(await self._ask(job, course, brief), MiniVerifierReturn)
        course.check = check if isinstance(check, MiniVerifierReturn) else None

        def note(by: Role, found: Sequence[str]) -> None:
            task_checks.note_differences(self._log, node.id, order.attempt, number, by.value, found, tree=course.tree)

        if number == 0 and course.said is not None:
            await run_blocking(note, Role.EXECUTOR, task_checks.executor_differences(course.said, runs))
        if course.check is not None:
            await run_blocking(note, Role.MINI_VERIFIER, mini_differences(course.check, runs))
        return runs, check

    def _check_brief(
        self, job: NodeJob, course: AttemptProgress, number: int, runs: tuple[ExecutionResult, ...]
    ) -> Brief:
        """Return the brief with the task, the change and what the harness ran, without any claim about them."""
        node = job.node
        diff = self._briefs.diff(course.start, course.tree)
        return self._briefs.mini_verifier(
            node.id, job.order.attempt, number, node.task, diff, items=node.items, executed=runs
        )

    async def _run(self, job: NodeJob, course: AttemptProgress, number: int) -> tuple[ExecutionResult, ...]:
        if job.node.task is None and not job.node.criteria:
            return ()
        scope, commands = f"{job.id}-{number}", _commands(job.node)
        runs = await run_blocking_stoppable(lambda stop: self._harness.run_all(scope, commands, course.tree, stop=stop))
        course.milliseconds += sum(run.duration_ms for run in runs)
        return runs

    async def _settled(self, job: NodeJob) -> NodeAttempt:
        """Let an executor resolve a conflict between finished work and what was merged meanwhile."""
        course = await run_blocking(self._course, job)
        first = await run_blocking(self._first_brief, job)
        brief = first.model_copy(update={"dispatch_id": job.id, "instance": job.id})
        said = await self._begun(job, course, brief)
        if isinstance(said, StepFailureCause):
            return course.ended(job, (said.first_line,), said.category)
        runs = await self._run(job, course, 0)
        return course.ended(job, (*task_checks.problems_of(runs, None), *course.unfinished))

    async def _ask(self, job: NodeJob, course: AttemptProgress, brief: Brief) -> Dispatched:
        """Call an agent in the attempt's worktree, and take over its changes."""
        step = StepName.DEBUG if job.node.role is Role.DEBUGGER else StepName.EXECUTE
        position = DispatchPosition(step.value, task=job.order.node, phase=self._graph.phase, attempt=job.order.attempt)
        done = await self._asker.ask_in(brief, position, job.folder, job.prepared.base)
        course.milliseconds += done.outcome.duration_ms
        if done.changed and done.outcome.status is not OutcomeStatus.REFUSED and brief.role is not Role.MINI_VERIFIER:
            await run_blocking(self._take_in, course, done)
        return done

    def _take_in(self, course: AttemptProgress, done: Dispatched) -> None:
        """Add an agent's changes to the tree of the attempt; by-products are left out."""
        if done.tree is None:
            return
        left, start = self._shadow.entries(done.tree), self._shadow.entries(course.start)
        paths = {each.path for each in done.changed}
        course.tree = self._shadow.compose(course.tree, {path: left.get(path) for path in paths})
        paths.update(course.changed)
        course.changed = tuple(path for path in sorted(paths) if left.get(path) != start.get(path))


def _commands(node: TaskNode) -> tuple[CriterionCommand, ...]:
    """Return what the harness runs for a node: the commands of its task, or those of the phase for a cycle."""
    if node.task is not None:
        return task_checks.task_commands(node.task)
    return tuple(CriterionCommand(each.criterion, each.command) for each in node.criteria)


RunGraph = Callable[[int], Awaitable[GraphEnd]]


async def execute(context: AutopilotContext, phase_pass: PhasePass, number: int, run_graph: RunGraph) -> FinishedStep:
    """Carry out the tasks of the plan, or the items of a cycle; a failed task does not stop the others."""
    nodes = await run_blocking(_nodes, context, phase_pass)
    done = await _run_graphs(context, phase_pass, f"execute-{number}", nodes, run_graph)
    everything = await run_blocking(_of_phase, context, phase_pass.phase)
    tasks_log, said = (
        await run_blocking(logged, context.log, *everything),
        await run_blocking(deviations, context.log, *everything),
    )
    page = execution_page(context.phase(phase_pass.phase), tasks_log, said)
    path = context.layout(phase_pass.phase).execution_log
    await run_blocking(context.put, path, page)
    good = done.is_done
    return FinishedStep(
        StepResult(
            step=StepName.EXECUTE,
            number=number,
            good=good,
            unchanged=await run_blocking(_is_as_it_was, context, phase_pass.start),
            issues=() if good else done.issues,
        ),
        steps=PhaseSteps(execute=await run_blocking(_step, context, phase_pass, done)),
        output=path,
        error=None if good else _error(done),
        new_commits=done.merged,
        spans=done.spans,
    )


def _of_phase(context: AutopilotContext, phase: str) -> tuple[int, ...]:
    """Return the numbers of all graphs of a phase, also of those before a cycle."""
    return tuple(graph.number for graph in graphs_of(context.log) if graph.phase == phase)


def _nodes(context: AutopilotContext, phase_pass: PhasePass) -> tuple[TaskNode, ...]:
    if phase_pass.kind is PassKind.CYCLE:
        name = f"p{phase_pass.phase}-cycle"
        criteria = tuple(
            PlanCriterion(criterion=each, command=command) for each, command in context.criteria(phase_pass)
        )
        return (TaskNode(id=name, role=Role.EXECUTOR, items=phase_pass.items, criteria=criteria),)
    return tuple(
        TaskNode(
            id=f"p{phase_pass.phase}-{task.id}", role=Role.EXECUTOR, task=task, items=(), problems=(), wave=task.wave
        )
        for task in context.tasks(phase_pass)
    )


async def debug(context: AutopilotContext, phase_pass: PhasePass, number: int, run_graph: RunGraph) -> FinishedStep:
    """Let a debugger repair what verifier and judge found; the next verification decides whether it did."""
    problems = await run_blocking(_problems, context, phase_pass)
    name = f"p{phase_pass.phase}-debug"
    node = TaskNode(id=name, role=Role.DEBUGGER, task=None, items=(), problems=problems, wave=1)
    verified = await run_blocking(_verified_at, context, phase_pass)
    done = await _run_graphs(context, phase_pass, f"debug-{number}", (node,), run_graph)
    good = done.is_done
    return FinishedStep(
        StepResult(
            step=StepName.DEBUG,
            number=number,
            good=good,
            unchanged=await run_blocking(_is_as_it_was, context, verified),
            issues=() if good else done.issues,
        ),
        error=None if good else _error(done),
        new_commits=done.merged,
        spans=done.spans,
    )


def _verified_at(context: AutopilotContext, phase_pass: PhasePass) -> str:
    """Return the commit that the last verification of the phase looked at."""
    known = context.latest(VERIFICATION, phase_pass.phase, PhaseVerification)
    return phase_pass.start if known is None else known.commit


def _is_as_it_was(context: AutopilotContext, commit: str) -> bool:
    return context.tree(context.tip()) == context.tree(commit)


def _problems(context: AutopilotContext, phase_pass: PhasePass) -> tuple[str, ...]:
    """Return what the last verification and its judge found."""
    results = context.log.results(phase_pass)
    last: dict[StepName, StepResult] = {result.step: result for result in results}
    found = [issue for step in (StepName.VERIFY, StepName.JUDGE) if step in last for issue in last[step].issues]
    return tuple(dict.fromkeys(found)) or ("the judge asks for debugging",)


class GraphResults:
    """The results of graphs that ended."""

    def __init__(self, merged: int, tasks_log: tuple[LoggedTask, ...], failed: tuple[StepFailureCause, ...]) -> None:
        self.merged, self.tasks_log, self.failed = merged, tasks_log, failed

    @property
    def is_done(self) -> bool:
        """Whether every task is completed."""
        return all(task.status is TaskStatus.COMPLETED for task in self.tasks_log)

    @property
    def issues(self) -> tuple[str, ...]:
        """What was not carried out, and why."""
        failed = [task for task in self.tasks_log if task.status is not TaskStatus.COMPLETED]
        events = tuple(f"{task.id} is {task.status.value}: {task.reason or task.description}" for task in failed)
        return events or ("the tasks were not carried out",)

    @property
    def spans(self) -> tuple[Span, ...]:
        """Each task as a trace span."""
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


async def _run_graphs(
    context: AutopilotContext, phase_pass: PhasePass, purpose: str, nodes: Sequence[TaskNode], run_graph: RunGraph
) -> GraphResults:
    """Run graph after graph: nodes that only waited for a failed one start without it."""
    numbers: list[int] = []
    merged, left = 0, tuple(nodes)
    while left:
        turn = purpose if not numbers else f"{purpose}-rest-{len(numbers)}"
        numbers.append(
            await run_blocking(begin_graph, context.log, phase_pass, turn, left, await run_blocking(context.tip))
        )
        end = await run_graph(numbers[-1])
        if end.halt is not None:
            raise Halted(end.halt)
        if end.reason is not None:
            raise NotReady(end.reason, next_step=f"fix the cause, then: fairwitness resume {context.log.run_id}")
        merged += end.merged
        left = await run_blocking(rest_of, context.log, numbers[-1])
    tasks_log = await run_blocking(logged, context.log, *numbers)
    failed = await run_blocking(failures, context.log, *numbers)
    return GraphResults(merged, tasks_log, failed)


def _step(context: AutopilotContext, phase_pass: PhasePass, done: GraphResults) -> ExecuteStep:
    """Return the record for the state file: the tasks of this step, added to those carried out before."""
    record = context.log.state().state.phases.get(phase_pass.phase)
    before = {} if record is None or record.steps.execute is None else dict(record.steps.execute.tasks)
    tasks = {
        task.id: TaskRecord(status=task.status, commit=task.commit, retries=task.debug_attempts)
        for task in done.tasks_log
    }
    completed = [task.status is TaskStatus.COMPLETED for task in done.tasks_log]
    status = WorkState.COMPLETED if all(completed) else WorkState.PARTIAL if any(completed) else WorkState.FAILED
    return ExecuteStep(status=status, tasks=before | tasks)


def _error(done: GraphResults) -> StepFailureCause:
    if done.failed:
        return done.failed[0]
    said = first_line(done.issues, "the tasks were not carried out")
    return StepFailureCause(category=FailureCategory.EXECUTOR_INCOMPLETE, first_line=said)
