"""The children of a running graph: what each is called, and what it is told. The same state gives the same child."""

from collections.abc import Mapping
from typing import NamedTuple

from fairwitness.contracts.common.ids import attempt_branch, run_ref, sub_branch
from fairwitness.contracts.graph.orders import ATTEMPT, HELPER, MERGE, AttemptOrder, GraphOptions, MergeOrder
from fairwitness.engine.base import Json
from fairwitness.rules.graph_run import GraphRun, Stage, verified_before

HELP = "help"


class Child(NamedTuple):
    """Something that is, or should be, under way."""

    id: str
    flow: str
    node: str | None = None
    """None for a merge."""


class Children:
    """From the state of a graph to the children it needs."""

    def __init__(self, options: GraphOptions) -> None:
        self._options = options

    def wanted(self, run: GraphRun) -> dict[str, Child]:
        """Every child that the graph waits for, by its id.

        A helper is an agent too, so it takes a place under the cap; those that conflicted first are helped first, and
        while one waits for a place nothing new is started.
        """
        working = run.in_stage((Stage.WORKING,))
        helping = run.in_stage((Stage.HELPING,))[: max(0, self._options.cap - len(working))]
        found = [self._attempt(run, node) for node in (*working, *helping)]
        if run.batch is not None:
            found.append(Child(f"{run.run_id}/m/{run.batch.number}", MERGE))
        return {child.id: child for child in found}

    def args(self, run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], child: Child) -> Json:
        """What a child is told when it is submitted."""
        if child.node is None:
            return self._merge(run).plain()
        work = run.work[child.node]
        order = self.order(run, dependencies, child.node, work.attempt)
        if work.stage is Stage.HELPING:
            branch = sub_branch(order.branch, HELP)
            order = order.model_copy(update={"branch": branch, "conflict": work.collision, "includes": ()})
        return order.plain()

    def order(
        self, run: GraphRun, dependencies: Mapping[str, tuple[str, ...]], node: str, attempt: int
    ) -> AttemptOrder:
        """What an attempt is told."""
        return AttemptOrder(
            run_id=run.run_id,
            node=node,
            attempt=attempt,
            branch=attempt_branch(node, attempt, prefix=f"{self._options.prefix}/{run_ref(run.run_id)}"),
            target=self._options.target,
            phase=self._options.phase,
            includes=verified_before(run, dependencies, node),
        )

    def _attempt(self, run: GraphRun, node: str) -> Child:
        """The child that works for a node, or that helps it with a conflict."""
        work = run.work[node]
        id_ = f"{run.run_id}/t/{node}/{work.attempt}"
        return Child(f"{id_}/{HELP}", HELPER, node) if work.stage is Stage.HELPING else Child(id_, ATTEMPT, node)

    def _merge(self, run: GraphRun) -> MergeOrder:
        assert run.batch is not None
        return MergeOrder(
            run_id=run.run_id,
            batch=run.batch.number,
            target=self._options.target,
            phase=self._options.phase,
            members=tuple(run.member(node) for node in run.batch.nodes),
        )
