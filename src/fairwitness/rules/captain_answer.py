"""What a captain's answer must agree with itself about, beyond the shapes of its parts.

These are rules and no validators of the contract, so that a captain learns all faults of a plan at once.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence

from fairwitness.contracts.common.problems import Path, Problem
from fairwitness.contracts.forge.dag import Dag, DagNode, NodeState, NodeType
from fairwitness.contracts.forge.documents import ForgeTask
from fairwitness.contracts.forge.returns import CaptainReturn
from fairwitness.rules.dag import dag_problems
from fairwitness.rules.globs import overlap


def captain_problems(answer: CaptainReturn) -> tuple[Problem, ...]:
    """Return all problems of a plan, of its extension, or of a rejection."""
    return (
        *_kind_problems(answer),
        *_task_problems(answer),
        *_node_problems(answer),
        *(() if answer.dag is None else graph_problems(answer.dag, answer.tasks)),
        *(() if answer.dag is None else overlapping_writes(answer.dag.nodes, answer.tasks)),
    )


def graph_problems(dag: Dag, tasks: Sequence[ForgeTask]) -> tuple[Problem, ...]:
    """Return the problems of a plan's graph, each at its task if the node only repeats the task's dependencies."""
    places = {task.id: (place, task.dependencies) for place, task in enumerate(tasks)}

    def place_of(where: Path) -> Path:
        if len(where) > 2 and where[2] == "dependencies":
            node = dag.nodes[int(where[1])]
            task = places.get(node.id)
            if task is not None and task[1] == node.dependencies:
                return ("tasks", task[0], *where[2:])
        return ("dag", *where)

    return tuple(each.model_copy(update={"where": place_of(each.where)}) for each in dag_problems(dag))


def writes_of(node: DagNode) -> tuple[str, ...] | None:
    """Return the globs of the files that a node may write; None if it may write any file."""
    declared = (node.metadata or {}).get("writes")
    return tuple(map(str, declared)) if isinstance(declared, list) else None


def overlapping_writes(
    nodes: Sequence[DagNode], tasks: Sequence[ForgeTask], over: Collection[str] = frozenset()
) -> Iterator[Problem]:
    """Yield the new tasks that may write the same files at the same time as another, each pair once.

    A refinery that joins both settles what they changed. `nodes` are those of the whole graph, `tasks` are new, and the
    nodes in `over` write nothing any more.
    """
    joined = [set(node.dependencies) for node in nodes if node.type is NodeType.REFINERY]
    waits = {node.id: node.dependencies for node in nodes}
    writes = {node.id: found for node in nodes if (found := writes_of(node)) and node.type is NodeType.TASK}
    new = {task.id: place for place, task in enumerate(tasks) if task.id in writes}
    before = {name: _before(name, waits) for name in writes}
    for name, place in new.items():
        for other, globs in writes.items():
            is_told = new.get(other, -1) >= place  # told where the later of two new tasks is
            if is_told or other in over or other in before[name] or name in before[other]:
                continue
            if any({name, other} <= each for each in joined):
                continue
            both = [glob for glob in writes[name] if any(overlap(glob, their) for their in globs)]
            if both:
                yield Problem(
                    where=("tasks", place, "writes"),
                    expected=f"other files than {other}, which may run at the same time, or a refinery that joins both",
                    found=", ".join(both[:_NAMED]),
                )


def _before(name: str, waits: Mapping[str, Sequence[str]]) -> set[str]:
    """Return every node that a node waits for, directly or not."""
    found: set[str] = set()
    left = list(waits[name])
    while left:
        other = left.pop()
        if other not in found:
            found.add(other)
            left += waits.get(other, ())
    return found


_NAMED = 5
"""How many overlapping patterns of a task are named."""


def _kind_problems(answer: CaptainReturn) -> Iterator[Problem]:
    said = [name for name in ("dag", "overlay", "rejected") if getattr(answer, name) is not None]
    if len(said) != 1:
        found = ", ".join(said) or "none of them"
        yield Problem(where=("dag",), expected="exactly one of dag, overlay and rejected", found=found)
    for index, spec in enumerate(answer.specs):
        if answer.dag is not None and spec.replaces is not None:
            where = ("specs", index, "replaces")
            yield Problem(where=where, expected="nothing in a new plan, which holds all its specs", found=spec.replaces)
    if answer.rejected is not None and (answer.specs or answer.tasks):
        yield Problem(where=("rejected",), expected="no specs and no tasks beside it", found=answer.rejected)


def _awaited(answer: CaptainReturn, node: DagNode) -> set[str]:
    edges = answer.overlay.addedEdges if answer.overlay is not None else ()
    return {*node.dependencies, *(edge.from_ for edge in edges if edge.to == node.id)}


def _task_problems(answer: CaptainReturn) -> Iterator[Problem]:
    nodes = {node.id: node for node in answer.nodes}
    for index, task in enumerate(answer.tasks):
        where, node = ("tasks", index), nodes.get(task.id)
        if node is None:
            yield Problem(where=(*where, "id"), expected="the id of a node of the graph", found=task.id)
        else:
            awaited = _awaited(answer, node)
            if set(task.dependencies) != awaited:
                expected = f"those of its node: {', '.join(sorted(awaited)) or 'none'}"
                found = ", ".join(task.dependencies) or "none"
                yield Problem(where=(*where, "dependencies"), expected=expected, found=found)
            if task.writes is not None and task.writes != writes_of(node):
                yield Problem(
                    where=(*where, "writes"),
                    expected=f"those of its node, `metadata.writes`: {', '.join(writes_of(node) or ()) or 'none'}",
                    found=", ".join(task.writes) or "none",
                )
            if task.type not in (node.agentType, node.type.value):
                expected = f"{node.agentType}, as its node says"
                yield Problem(where=(*where, "type"), expected=expected, found=str(task.type))
        if task.status is not NodeState.PENDING:
            yield Problem(
                where=(*where, "status"), expected="PENDING of a task that is planned", found=task.status.value
            )
        if task.branch is not None or task.attemptId is not None:
            found = task.branch or f"attempt {task.attemptId}"
            yield Problem(where=where, expected="neither branch nor attemptId before it starts", found=found)


def _node_problems(answer: CaptainReturn) -> Iterator[Problem]:
    graph = ("dag", "nodes") if answer.dag is not None else ("overlay", "addedNodes")
    described = {task.id for task in answer.tasks}
    for index, node in enumerate(answer.nodes):
        if node.type is NodeType.TASK and node.id not in described:
            yield Problem(where=(*graph, index, "id"), expected="a task document for this node", found=node.id)
        if node.status is not NodeState.PENDING:
            yield Problem(
                where=(*graph, index, "status"), expected="PENDING of a node that is planned", found=node.status.value
            )
