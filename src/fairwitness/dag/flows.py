"""The flows that a worker must know to carry out graphs."""

from collections.abc import Callable

from fairwitness.contracts.graph.orders import ATTEMPT, HELPER, MERGE, AttemptOrder, MergeOrder
from fairwitness.dag.attempt import attempt
from fairwitness.dag.merge import merge
from fairwitness.dag.ports import GraphPorts
from fairwitness.engine.base import Body, Flow, Json


def graph_flows(runner_of: Callable[[AttemptOrder | MergeOrder], GraphPorts]) -> dict[str, Body]:
    """By name, the bodies of a graph's children; `desk_of` knows the world of an order."""

    async def attempting(flow: Flow, args: Json) -> Json:
        order = AttemptOrder.model_validate(args)
        return (await attempt(flow, runner_of(order), order)).plain()

    async def merging(flow: Flow, args: Json) -> Json:
        order = MergeOrder.model_validate(args)
        return (await merge(flow, runner_of(order), order)).plain()

    return {ATTEMPT: attempting, HELPER: attempting, MERGE: merging}
