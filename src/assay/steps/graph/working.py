"""One agent for one attempt: the node's document as its brief, its branch as its place, its walkthrough as a claim."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from assay.agents.roles import ROLES
from assay.contracts.agents.dispatch import Box, Brief, OutcomeStatus
from assay.contracts.common.tools import Role, Scope
from assay.contracts.forge.dag import DagNode, NodeType
from assay.contracts.forge.documents import WalkthroughStatus
from assay.contracts.graph.orders import AttemptOrder, Prepared, Worked
from assay.errors import UsageError
from assay.steps.dispatch import Context, Dispatched, Means, Occasion, dispatch
from assay.steps.graph.book import GraphBook

STEP = "execute"
EVERYTHING = ("**",)
_ROLES = {1: Role.THROWAWAY, 2: Role.WORKER, 3: Role.SUB_EXECUTOR}
_SOLVE = "Two changes of the same files do not fit together. Settle the conflict so that both keep what they do."

MeansOf = Callable[[Role, str, Path, str], Means]
"""What a dispatch of a role is done with: its instance, its folder and the commit that it is compared with."""


class Worker:
    """Sends out the agents of a graph."""

    def __init__(
        self, context: Context, book: GraphBook, means_of: MeansOf, commands: tuple[tuple[str, ...], ...]
    ) -> None:
        self._context, self._book, self._means_of, self._commands = context, book, means_of, commands

    async def __call__(self, order: AttemptOrder, prepared: Prepared, folder: Path) -> Worked:
        """See `Work`: what had ended before is adopted, and nobody is asked twice."""
        node = self._node(order.node)
        role = _role(node, order)
        instance = f"{order.node}-{order.attempt}" + ("" if order.conflict is None else "-help")
        brief = self._brief(order, prepared, node, role, instance)
        means = self._means_of(role, instance, folder, prepared.base)
        occasion = Occasion(STEP, task=order.node, attempt=order.attempt)
        return worked(await dispatch(self._context, ROLES[role], brief, occasion, means), _unfinished)

    def _node(self, name: str) -> DagNode:
        _, dag = self._book.effective()
        for node in dag.nodes:
            if node.id == name:
                return node
        raise UsageError(f"there is no node {name}", next_step=f"assay dag show {self._book.run_id}")

    def _brief(self, order: AttemptOrder, prepared: Prepared, node: DagNode, role: Role, instance: str) -> Brief:
        document = self._book.document(order.node)
        inputs = [Box(title=f"Task {order.node}", text=document)]
        if prepared.conflicts:
            inputs.append(Box(title="Files with conflict marks", text="\n".join(prepared.conflicts)))
        before = self._book.last_error(order.node)
        if order.attempt > 1 and before is not None:
            inputs.append(Box(title="What happened to the attempt before", text=before))
        declared = (node.metadata or {}).get("writes")
        writes = tuple(map(str, declared)) if isinstance(declared, list) else EVERYTHING
        return Brief(
            dispatch_id=instance,
            run_id=order.run_id,
            role=role,
            instance=instance,
            task=_SOLVE if order.conflict is not None else f"Carry out {order.node}.",
            parameters={"task_id": order.node},
            inputs=tuple(inputs),
            scope=Scope(writes=writes, commands=self._commands),
            known={
                "walkthrough.task_id": order.node,
                "walkthrough.branch": order.branch,
                "walkthrough.base_ref": order.target,
            },
        )


def _role(node: DagNode, order: AttemptOrder) -> Role:
    if order.conflict is not None:
        return Role.THROWAWAY
    return Role.REFINERY if node.type is NodeType.REFINERY else _ROLES[int(node.agentType)]


def worked(
    done: Dispatched, unfinished: Callable[[Mapping[str, Any]], str | None], summary: str | None = None
) -> Worked:
    """What came of an agent's work; `unfinished` reads in its answer why it says itself that it is not done."""
    outcome = done.outcome
    changed = tuple(each.path for each in done.changed)
    problem = outcome.problems[0] if outcome.problems else outcome.status.value
    if outcome.status is OutcomeStatus.OVER_BUDGET:
        return Worked(done=False, changed=changed, reason=problem, halt=f"the budget is used up: {problem}")
    if outcome.status is not OutcomeStatus.OK or outcome.answer is None:
        return Worked(done=False, changed=changed, reason=f"{outcome.status.value}: {problem}")
    reason = unfinished(outcome.answer)
    if reason is not None:
        return Worked(done=False, changed=changed, reason=reason)
    return Worked(done=True, changed=changed, summary=summary)


def _unfinished(answer: Mapping[str, Any]) -> str | None:
    status = answer["walkthrough"]["status"]
    return None if status == WalkthroughStatus.COMPLETED.value else f"its agent says that it is {status}"
