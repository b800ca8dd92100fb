"""The actions that follow a decision: call agents, execute a graph, bundle the evidence, commit.

Every action can be repeated after a crash: it finds what it did and does the rest.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus
from fairwitness.contracts.common.decisions import Advance, AskHuman, ErrorCause, Replan, Retry, RetryOf, Revert, Revise
from fairwitness.contracts.common.evidence import Observation, Phase, SandboxTier
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.events import (
    Degradation,
    Degraded,
    DispatchFinished,
    DispatchStarted,
    DispatchStatus,
    TaskReverted,
)
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.errors import FairWitnessError, InternalError, NotReady, UsageError, is_machine_fault
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.feature_events import PlannedCall, instance_of
from fairwitness.rules.feature_paths import STEPS_OF
from fairwitness.rules.gates import is_verified
from fairwitness.rules.review import is_unseen
from fairwitness.runs.dispatch import DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.feature.answers import store
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.bundle import prove_whole, write_bundle
from fairwitness.runs.feature.call_briefs import SCOPES, brief_of
from fairwitness.runs.feature.commit import commit_whole
from fairwitness.runs.feature.context import FeatureContext, write_events
from fairwitness.runs.feature.decisions import TakenDecision
from fairwitness.runs.feature.facts import facts_of
from fairwitness.runs.feature.findings import open_findings, writable_files
from fairwitness.runs.feature.knowledge import learn
from fairwitness.runs.feature.plan_check import allowed_commands, with_plan_check
from fairwitness.runs.feature.setup import begin_files
from fairwitness.runs.feature.tasks import (
    FIX,
    TASKS,
    begin_graph,
    fix_node,
    iteration_of,
    nodes_of,
    plan_of,
    recorded_attempt,
    task_of,
    writes_of,
)
from fairwitness.runs.shared.agent_calls import AgentCaller, Equip
from fairwitness.verify.subject import VerifyDeps


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One call: its brief, and the commit of its worktree."""

    call: PlannedCall
    brief: Brief
    at: str
    equip: Equip | None = None


async def call_all(context: FeatureContext, caller: AgentCaller, asks: Sequence[AgentCall]) -> None:
    """Make calls in parallel and store each answer as it arrives."""
    await caller.together([partial(_ask, context, caller, ask) for ask in asks])


async def _ask(context: FeatureContext, caller: AgentCaller, ask: AgentCall) -> None:
    call = ask.call
    position = DispatchPosition(call.step.value, dispatch_count=max(1, call.visit), retry_count=call.number - 1)
    done = await caller.ask_once(ask.brief, position, ask.at, equip=ask.equip)
    if done.outcome.status is OutcomeStatus.OVER_BUDGET:
        return
    await run_blocking(store, context, ask.brief.role, instance_of(call.step, call.instance), done)


RunGraph = Callable[[int], Awaitable[GraphEnd]]
"""Executes the graph with this number to its end."""
_HARNESS = (Step.EVIDENCE, Step.COMMIT)


class ActionRunner:
    """Carries out the decisions of one run."""

    def __init__(
        self,
        context: FeatureContext,
        caller: AgentCaller,
        briefs: FeatureBriefs,
        verify_deps: VerifyDeps,
        tip_of: Callable[[], str],
    ) -> None:
        """`tip_of` returns the target's commit."""
        self._context, self._caller, self._briefs, self._verify_deps, self._tip_of = (
            context,
            caller,
            briefs,
            verify_deps,
            tip_of,
        )

    async def act(self, taken: TakenDecision, run_graph: RunGraph) -> None:
        """Carry out a decision completely."""
        match taken.decision:
            case Advance(to=Step.IMPLEMENT.value | Step.VERIFY.value, start=start) if start:
                await self._implement(run_graph)  # the graph calls the verifiers; after a resume, with a new attempt
            case Revise(to=Step.IMPLEMENT.value, round=round_):
                await self._fix(round_ - 1, run_graph)
            case Advance() | Retry(what=RetryOf.CALL):
                await self._call(taken.calls)
            case Revert(tasks=tasks):
                await run_blocking(self._revert, tasks)
            case Revise() | Replan() | AskHuman():
                return  # its events have moved the run; the next decision continues from there
            case _:
                raise InternalError(f"nothing can be done about {taken.decision.kind}")

    async def _call(self, calls: tuple[PlannedCall, ...]) -> None:
        agents = tuple(call for call in calls if call.step not in _HARNESS)
        if any(call.step is Step.SETUP for call in agents):
            await run_blocking(begin_files, self._context)
            await run_blocking(self._note_sandbox)
        if agents:
            tip = await run_blocking(self._tip_of)
            asks = [await run_blocking(self._agent_call, call, tip) for call in agents]
            await call_all(self._context, self._caller, asks)
        if any(call.step in SCOPES for call in agents):
            await run_blocking(self._note_reviews, agents[0])
        for call in calls:
            if call.step is Step.KNOWLEDGE:
                await run_blocking(self._learn_anyway, call)
            elif call.step is Step.EVIDENCE:
                await run_blocking(self._write_metrics, call)
                await self._by_us(call, self._bundle)
            elif call.step is Step.COMMIT:
                await self._by_us(call, partial(run_blocking, self._commit))

    def _agent_call(self, call: PlannedCall, tip: str) -> AgentCall:
        brief = brief_of(self._context, self._briefs, call, tip)
        if call.step is not Step.PLAN:
            return AgentCall(call, brief, tip)
        allowed = allowed_commands(self._verify_deps, self._context.repository.tree_of(tip))
        brief = brief.model_copy(update={"inputs": (*brief.inputs, *allowed)})
        return AgentCall(call, brief, tip, with_plan_check(self._context, self._verify_deps))

    def _note_sandbox(self) -> None:
        tier = self._verify_deps.runner.tier
        if tier is not SandboxTier.NAMESPACES:
            self._degrade(Degradation.SANDBOX_TIER, f"commands are kept in by {tier.value}, not by namespaces")

    def _note_reviews(self, call: PlannedCall) -> None:
        """Note a degradation if all three reviewers used the same model, or if nothing that one opened was seen."""
        context = self._context
        models: dict[str, str] = {}
        unseen: list[str] = []
        for id_, dispatch in context.state().dispatches.items():
            if (dispatch.step, dispatch.visit) != (call.step.value, call.visit):
                continue
            done = ended(context.ledger, context.run_id, id_)
            if done is not None and done.outcome.answer is not None:
                models[dispatch.instance] = done.outcome.model or "one that nobody named"
                unseen += [dispatch.instance] * is_unseen(dispatch.agent, done.outcome.opened)
        if len(models) == len(Perspective) and len(set(models.values())) == 1:
            told = f"all three reviewers used the same model: {next(iter(models.values()))}"
            self._degrade(Degradation.SINGLE_MODEL, told)
        if unseen:
            told = f"no file was seen to be opened by {', '.join(unseen)}: their program may read files by itself"
            self._degrade(Degradation.UNSEEN_REVIEW, told)

    def _degrade(self, kind: Degradation, detail: str) -> None:
        """Record once that the run goes on in a degraded way."""
        if all(each.kind is not kind for each in self._context.state().degradations):
            self._context.write_event(Degraded(kind=kind, detail=detail))
            killpoint("feature.degraded")

    def _learn_anyway(self, call: PlannedCall) -> None:
        """Write the run log and the post-mortem also if the knowledge agent failed."""
        done = ended(self._context.ledger, self._context.run_id, call.dispatch_id)
        if done is None or done.outcome.answer is None:
            learn(self._context, None)

    def _write_metrics(self, call: PlannedCall) -> None:
        """Write the run log and the post-mortem of a path without a knowledge agent, before the evidence is bundled."""
        state = self._context.state()
        if Step.KNOWLEDGE not in STEPS_OF[state.path] and call.dispatch_id not in state.dispatches:
            learn(self._context, None)

    async def _by_us(self, call: PlannedCall, work: Callable[[], Awaitable[None]]) -> None:
        """Run a call that the program answers itself, with the same events as an agent's call."""
        context = self._context
        known = context.state().dispatches.get(call.dispatch_id)
        if known is not None and known.status is not None:
            return
        if known is None:
            started = DispatchStarted(
                dispatch_id=call.dispatch_id, step=call.step.value, agent=Role.ORCHESTRATOR, instance=call.instance
            )
            await run_blocking(context.write_event, started)
        began = context.clock()
        status, reason, cause = DispatchStatus.DONE, None, None
        try:
            await work()
        except FairWitnessError as error:
            if is_machine_fault(error):
                raise
            status, reason, cause = DispatchStatus.ERROR, error.what, ErrorCause.AGENT_ERROR
        finished = DispatchFinished(
            dispatch_id=call.dispatch_id,
            status=status,
            duration_ms=max(0, int((context.clock() - began).total_seconds() * 1000)),
            tokens=0,
            reason=reason,
            cause=cause,
        )
        await run_blocking(context.write_event, finished)
        killpoint("feature.by_us")

    async def _implement(self, run_graph: RunGraph) -> None:
        number = await run_blocking(self._begin_tasks)
        _refuse_held_up(await run_graph(number))
        await run_blocking(self._note_red_merges, number)

    def _begin_tasks(self) -> int:
        plan = plan_of(self._context)
        if plan is None:
            raise UsageError("there is no plan to carry out", next_step=f"fairwitness status {self._context.run_id}")
        return begin_graph(self._context, TASKS, nodes_of(self._context, plan), iteration_of(self._context.state()))

    def _note_red_merges(self, number: int) -> None:
        """Record evidence against attempts that passed by themselves but could not be merged."""
        context = self._context
        state, policy = context.state(), context.order.policy
        facts = facts_of(context)
        fix = None if facts.fix is None else facts.fix.checks
        for task in (*facts.tasks, *(() if fix is None else (fix,))):
            known = state.tasks.get(task.task)
            if task.round != number or known is None or known.merged_attempt == number or not is_verified(task, policy):
                continue
            key = f"unmerged:{task.task}:{number}"
            if context.ledger.observation(context.run_id, key) is None:
                why = known.attempts[-1].reason or "it was not merged"
                refused = context.observation(
                    key, "merge", task.task, {"reason": why}, holds=False, task_id=task.task, tree=task.tree
                )
                self._write_row(refused, "regressions", number, why)

    def _write_row(self, seen: Observation, check: str, round_: int, output: str) -> None:
        self._context.write(
            lambda record: record.observed(
                seen, phase=Phase.AFTER, check_name=check, round_=round_, output=output, instance="merged"
            )
        )

    async def _fix(self, round_: int, run_graph: RunGraph) -> None:
        number = await run_blocking(self._begin_fix, round_)
        _refuse_held_up(await run_graph(number))
        await run_blocking(self._note_red_merges, number)

    def _begin_fix(self, round_: int) -> int:
        """Begin the graph of a fix: it may write what was changed or planned, and what the findings name."""
        context = self._context
        base, tip = (context.repository.tree_of(commit) for commit in (context.order.base_commit, self._tip_of()))
        found = open_findings(context, ReviewScope.CODE)
        plan = plan_of(context)
        planned = () if plan is None else (task_of(context, task.id) for task in plan.agent_output.payload.tasks)
        files = dict.fromkeys(change.path for change in context.shadow.diff(base, tip))
        files |= dict.fromkeys(path for task in planned for path in writes_of(task))
        files |= dict.fromkeys(writable_files(context, found))
        return begin_graph(context, FIX, [fix_node(tuple(files))], round_, tuple(each.id for each in found))

    def _revert(self, tasks: tuple[str, ...]) -> None:
        """Record that failed tasks are reverted. Nothing of them was merged, so their files are unchanged."""
        context = self._context
        rounds = {task.task: task.round for task in facts_of(context).tasks}
        for task in tasks:
            number = rounds[task]
            key = f"revert:{task}:{number}"
            if context.ledger.observation(context.run_id, key) is not None:
                continue
            done = recorded_attempt(context, task, number)
            files = () if done is None else tuple(file.path for file in done.files)
            seen = context.observation(
                key,
                "revert",
                task,
                {"files": list(files), "tip": self._tip_of()},
                holds=False,
                task_id=task,
                tree=None if done is None else done.tree,
            )
            context.write(partial(_reverted, seen=seen, reverted=TaskReverted(task=task, files=files), number=number))
            killpoint("feature.reverted")

    async def _bundle(self) -> None:
        tip = await run_blocking(self._tip_of)
        if Step.KNOWLEDGE.value not in self._context.state().steps:
            await run_blocking(
                learn, self._context, None
            )  # no agent was asked, and the run log is written all the same
        await run_blocking_stoppable(lambda stop: prove_whole(self._context, self._verify_deps, tip, stop))
        await run_blocking(write_bundle, self._context)

    def _commit(self) -> None:
        commit_whole(self._context, self._tip_of())


def _reverted(record: Record, *, seen: Observation, reverted: TaskReverted, number: int) -> None:
    told = "put back to the baseline: its attempt was not merged"
    record.observed(seen, phase=Phase.AFTER, check_name=f"revert-{reverted.task}", round_=number, output=told)
    write_events(record, (reverted,), seen.observed_at, task=reverted.task)


def _refuse_held_up(end: GraphEnd) -> None:
    """Raise `NotReady` if the machine or a person stopped the graph: it has not failed, and the run can be resumed."""
    if end.reason is not None and end.halt is None:
        raise NotReady(end.reason, next_step="mend that, then: fairwitness resume")
