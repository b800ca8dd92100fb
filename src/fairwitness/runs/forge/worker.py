"""The agent of one attempt of a forge run: its brief, its tools, and what is kept of its answer."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fairwitness.agents.toolset.model import ToolSource
from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus, PromptSection
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.ids import attempt_branch
from fairwitness.contracts.common.tools import Role, Scope, Tool
from fairwitness.contracts.forge.dag import DagNode, NodeType
from fairwitness.contracts.forge.documents import ChangeRequest, WalkthroughStatus
from fairwitness.contracts.forge.returns import RefineryReturn, WorkerReturn
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, MergeMember, Worked
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import spell
from fairwitness.kit.text import bounded
from fairwitness.ledger.record import Record
from fairwitness.rules.captain_answer import writes_of
from fairwitness.rules.helper_limits import ROLE_OF
from fairwitness.rules.retry_material import FailureCause, Material, causes_of
from fairwitness.runs.dispatch import DispatchContext, DispatchDeps, Dispatched, DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.forge.criteria import TaskCriteria
from fairwitness.runs.forge.helpers import AttemptContext, NotingRecorder, SpawningAgent, helper_tools, spec_sections
from fairwitness.runs.forge.joins import Joins
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.subtasks import Subtasks
from fairwitness.runs.forge.walkthroughs import SeenAttempts, keep_walkthrough, last_walkthrough
from fairwitness.runs.graph.agent_work import EVERYTHING, STEP, worked
from fairwitness.runs.graph.attempts import start_of
from fairwitness.runs.graph.log import failures_of
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.conflicts import conflict_text
from fairwitness.runs.shared.retry_sections import (
    changed_since,
    failed_subject,
    failed_texts,
    listed,
    proof_rows,
    proven_change,
    retry_sections,
)
from fairwitness.runs.shared.sections import list_section
from fairwitness.store.artifacts import Store
from fairwitness.store.layout.forge import ForgeLayout
from fairwitness.verify.failed_checks import spelled

WANTED = "wanted"
"""The kind of observation that holds a refinery's change requests by tool, whatever it returned."""
_SUBJECT = 60
"""The most characters of a commit's subject."""
_SOLVE = (
    "Two changes of the same files do not fit together. Settle the conflict so that both keep what they do. "
    "Change only the files in conflict."
)


class ForgeWorker:
    """Runs the agents of a forge run's graph."""

    def __init__(
        self,
        caller: AgentCaller,
        log: ForgeLog,
        store: Store,
        repository: Repository,
        criteria: TaskCriteria,
        joins: Joins,
        seen: SeenAttempts,
    ) -> None:
        """`store` holds the run's own files."""
        self._caller, self._log, self._store, self._repository = caller, log, store, repository
        self._criteria, self._joins, self._seen = criteria, joins, seen
        self._layout = ForgeLayout(log.run_id)

    async def __call__(self, order: AttemptOrder, prepared: AttemptStart, folder: Path) -> Worked:
        """Carry out an attempt; a call that ended before a restart is adopted."""
        node = await run_blocking(self._node, order.node)
        role = _role(node, order)
        instance = f"{order.node}-{order.attempt}" + ("" if order.conflict is None else "-help")
        brief = await run_blocking(self._brief, order, prepared, node, role, instance)
        attempt = await run_blocking(self._attempt_context, order, prepared, folder, brief.scope)

        def equip(brief: Brief, context: DispatchContext, deps: DispatchDeps) -> tuple[DispatchContext, DispatchDeps]:
            wanted: list[ChangeRequest] = []
            own = replace(attempt, base_tree=deps.base_tree)
            given = self._given(own, SpawningAgent(role, instance, 0), deps, wanted)
            equipped = replace(deps, sources={**deps.sources, **given}, check=objections)
            return self._beside(brief, context, wanted), equipped

        def objections(said: Contract) -> tuple[str, ...]:
            assert isinstance(said, WorkerReturn | RefineryReturn)
            tree = self._seen.tree_in(folder, prepared)
            joined: tuple[str, ...] = ()
            if role is Role.REFINERY or order.conflict is not None:
                joined = self._joins.objections(order, prepared, tree, said)
            refuted = () if order.conflict is not None else self._seen.objections(prepared, tree, said)
            return (*joined, *refuted, *self._criteria.objections(order, prepared, tree, said.walkthrough))

        position = DispatchPosition(STEP, task=order.node, attempt=order.attempt)
        done = await self._caller.ask_in(brief, position, folder, prepared.base, equip=equip)
        await run_blocking(self._keep, order, role, done)
        return worked(done, partial(_unfinished, role), await run_blocking(self._subject, order, node))

    def _subject(self, order: AttemptOrder, node: DagNode) -> str | None:
        """Return the subject of the attempt's commit: the title of the task, or what a refinery joins."""
        task = self._criteria.task(order.node)
        if task is not None:
            return bounded(task.title, _SUBJECT)
        return bounded(f"join {', '.join(node.dependencies)}", _SUBJECT) if node.type is NodeType.REFINERY else None

    def _node(self, name: str) -> DagNode:
        _, dag = self._log.effective()
        for node in dag.nodes:
            if node.id == name:
                return node
        raise UsageError(f"there is no node {name}", next_step=f"fairwitness dag show {self._log.run_id}")

    def _brief(self, order: AttemptOrder, prepared: AttemptStart, node: DagNode, role: Role, instance: str) -> Brief:
        declared = writes_of(node)
        return Brief(
            dispatch_id=instance,
            run_id=order.run_id,
            role=role,
            instance=instance,
            task=_SOLVE if order.conflict is not None else f"Carry out {order.node}.",
            parameters={"task_id": order.node},
            inputs=tuple(self._inputs(order, prepared, node, role)),
            scope=Scope(writes=EVERYTHING if declared is None else declared),
            known={
                "walkthrough.task_id": order.node,
                "walkthrough.branch": order.branch,
                "walkthrough.base_ref": order.target,
                **(_of_refinery(order, spell(self._log.clock())) if role is Role.REFINERY else {}),
            },
        )

    def _inputs(
        self, order: AttemptOrder, prepared: AttemptStart, node: DagNode, role: Role
    ) -> Iterator[PromptSection]:
        yield PromptSection(title=f"Task {order.node}", text=self._log.document(order.node))
        if order.conflict is None and role is not Role.REFINERY:
            yield from list_section(
                "How the command of a criterion may begin (`walkthrough.evidence`)", self._criteria.commands(prepared)
            )
        if role is Role.REFINERY:
            yield PromptSection(title="Branches that were joined, in this order", text=_joined(order, node))
            yield from list_section("What must hold on the joined tree", self._criteria.promised(order, prepared))
            names = {*node.dependencies, *(member.node for member in order.includes)}
            for name, change in self._joins.changes(names):
                yield PromptSection(title=f"Change of {name}", text=change)
        yield from self._before(order, prepared)
        yield from spec_sections(self._log)
        for name in dict.fromkeys((*(member.node for member in order.includes), *node.dependencies)):
            kept = last_walkthrough(self._log, name) if name in node.dependencies or role is Role.REFINERY else None
            if kept is not None:
                yield PromptSection(title=f"Walkthrough of {name}", text=kept.text)

    def _before(self, order: AttemptOrder, prepared: AttemptStart) -> tuple[PromptSection, ...]:
        """Return what is known of the attempt before this one, and the conflicts that this one starts with."""
        known = self._caller.context
        failures = failures_of(known.ledger, order.run_id, order.node)
        conflicts = conflict_text(self._repository, order, prepared)
        causes: tuple[FailureCause, ...] = (FailureCause.CONFLICT,) if conflicts else ()
        if not failures:
            return retry_sections(causes, {Material.CONFLICT: lambda: conflicts})
        last, reason = failures[-1]
        task, round_ = failed_subject(known.ledger, order.run_id, order.node, last, reason)
        rows = proof_rows(known.ledger, order.run_id, task, round_)
        began = start_of(known.ledger, order.run_id, order.node, last)
        causes += (FailureCause.MERGE,) if task != order.node else causes_of(rows, unmet=False, unjudged=False)
        return retry_sections(
            causes,
            {
                Material.CHECKS: lambda: spelled(failed_texts(known.ledger, known.store, order.run_id, task, rows)),
                Material.DIFF: lambda: proven_change(known.ledger, known.shadow, order.run_id, order.node, last),
                Material.HISTORY: lambda: listed(f"attempt {number}: {why}" for number, why in failures),
                Material.SINCE: lambda: changed_since(
                    self._repository, known.shadow, began.base if began else None, prepared.base
                ),
                Material.CONFLICT: lambda: conflicts,
            },
        )

    def _attempt_context(
        self, order: AttemptOrder, prepared: AttemptStart, folder: Path, scope: Scope
    ) -> AttemptContext:
        subtasks = Subtasks(self._log, self._store, self._layout, order.node)
        if order.conflict is None and order.attempt > 1:
            subtasks.reopen(order.attempt)
        asked = self._log.order()
        return AttemptContext(
            caller=self._caller,
            log=self._log,
            order=order,
            prepared=prepared,
            folder=folder,
            base_tree=None,
            scope=scope,
            subtasks=subtasks,
            store=self._store,
            limits=ForgeTable() if asked is None else asked.limits,
        )

    def _given(
        self, attempt: AttemptContext, spawner: SpawningAgent, deps: DispatchDeps, wanted: list[ChangeRequest]
    ) -> Mapping[Tool, ToolSource]:
        given = helper_tools(attempt, spawner)
        if spawner.role is not Role.REFINERY:
            return given
        from fairwitness.runs.forge import refinery  # only a refinery needs it

        run_check = deps.sources.get(Tool.RUN_CHECK)
        tools = refinery.refinery_tools(attempt.order, attempt.prepared, attempt.folder, deps.checks, run_check, wanted)
        return {**given, **tools}

    def _beside(self, brief: Brief, context: DispatchContext, wanted: list[ChangeRequest]) -> DispatchContext:
        """Record a refinery's change requests by tool together with its end, so that a crash loses none."""
        if brief.role is not Role.REFINERY:
            return context

        def keep(record: Record, now: str) -> None:
            detail, dispatch_id = {"requests": [request.plain() for request in wanted]}, brief.dispatch_id
            record.observation(self._log.observation(f"{WANTED}:{dispatch_id}", WANTED, dispatch_id, detail, now))

        return replace(context, recorder=NotingRecorder(context.recorder, at_end=keep))

    def _keep(self, order: AttemptOrder, role: Role, done: Dispatched) -> None:
        """Record the agent's walkthrough and change requests; a refused agent's are void."""
        answer = _returned(role, done)
        if answer is not None:
            changed = [each.path for each in done.changed]
            fixes = [each.path for each in answer.fixes] if isinstance(answer, RefineryReturn) else ()
            keep_walkthrough(self._log, self._store, self._layout, order, answer.walkthrough, changed, fixes)
        if role is Role.REFINERY and done.outcome.status is not OutcomeStatus.REFUSED:
            asked = self._asked_for(done)
            if asked:
                from fairwitness.runs.forge import change_requests  # only a refinery needs it

                change_requests.emit(self._log, order.node, order.attempt, asked)

    def _asked_for(self, done: Dispatched) -> list[ChangeRequest]:
        answer = done.answer(RefineryReturn)
        asked = () if answer is None else answer.change_requests
        titles = {request.title for request in asked}
        row = self._log.ledger.observation(self._log.run_id, f"{WANTED}:{done.dispatch_id}")
        by_tool = [] if row is None else [ChangeRequest.model_validate(each) for each in row.detail["requests"]]
        return [*asked, *(request for request in by_tool if request.title not in titles)]


def _of_refinery(order: AttemptOrder, now: str) -> dict[str, Any]:
    """Return what a refinery is not asked for: the branches, which were merged before it began, and the time."""
    return {
        "merged_branches": [branch for _, branch in _branches(order)],
        "change_requests[].emitted_by": order.node,
        "change_requests[].emitted_at": now,
    }


def _branches(order: AttemptOrder) -> Iterator[tuple[MergeMember, str]]:
    """Yield the attempts that a join brings, each with its branch."""
    prefix = order.branch.removesuffix(attempt_branch(order.node, order.attempt, prefix=""))
    for member in order.includes:
        yield member, attempt_branch(member.node, member.attempt, prefix=prefix)


def _role(node: DagNode, order: AttemptOrder) -> Role:
    if order.conflict is not None:
        return Role.THROWAWAY
    return Role.REFINERY if node.type is NodeType.REFINERY else ROLE_OF[int(node.agentType)]


def _joined(order: AttemptOrder, node: DagNode) -> str:
    """Return what a refinery's branch contains beside the target, and what the target contained before."""
    lines = [
        f"{number}. {branch} ({member.node}, {member.commit[:12]})"
        for number, (member, branch) in enumerate(_branches(order), start=1)
    ]
    joined = {member.node for member in order.includes}
    lines += [f"- {name} is in {order.target} already" for name in node.dependencies if name not in joined]
    return "\n".join(lines) or "none"


def _returned(role: Role, done: Dispatched) -> RefineryReturn | WorkerReturn | None:
    return done.answer(RefineryReturn) if role is Role.REFINERY else done.answer(WorkerReturn)


def _unfinished(role: Role, done: Dispatched) -> str | None:
    answer = _returned(role, done)
    assert answer is not None
    status = answer.walkthrough.status
    return None if status is WalkthroughStatus.COMPLETED else f"its agent says that it is {status.value}"
