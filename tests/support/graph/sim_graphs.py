"""Random graphs of tasks and refineries, and random overlays that fit them or do not."""

from collections.abc import Iterable
from random import Random
from typing import Any

from fairwitness.contracts.forge.dag import AddedEdge, Dag, DagMetadata, DagNode, DagOverlay, NodeState, NodeType

RUN = "run-simulated"
_FOLDERS = ("src", "docs", "tests")


def node(name: str, dependencies: Iterable[str] = (), *, refinery: bool = False, **about: Any) -> DagNode:
    """One node that has not been started; `writes` and `estimate` are told about it."""
    return DagNode(
        id=name,
        type=NodeType.REFINERY if refinery else NodeType.TASK,
        agentType="refinery" if refinery else 2,
        dependencies=tuple(dependencies),
        status=NodeState.PENDING,
        metadata=about or None,
    )


def dag_of(nodes: Iterable[DagNode]) -> Dag:
    """A graph of these nodes."""
    listed = tuple(nodes)
    refineries = sum(each.type is NodeType.REFINERY for each in listed)
    metadata = DagMetadata(
        createdAt="2026-02-26T14:00:00Z",
        createdBy="captain",
        totalTasks=len(listed) - refineries,
        totalRefineries=refineries,
    )
    return Dag(version=1, runId=RUN, nodes=listed, metadata=metadata)


def simple_dag(**dependencies: str) -> Dag:
    """A graph in which names that begin with r are refineries: `simple_dag(t1="", t2="t1", r1="t2")`."""
    return dag_of(node(name, others.split(), refinery=name.startswith("r")) for name, others in dependencies.items())


def random_dag(
    rng: Random,
    size: int,
    *,
    refineries: float = 0.1,
    edges: float = 1.5,
    reach: int = 40,
    writes: float = 0.0,
    undeclared: float = 0.02,
) -> Dag:
    """A graph whose nodes wait for some that came not long before them.

    `edges` is how many each waits for on average, `reach` how far back they lie; `writes` is the share of graphs whose
    tasks say what they write, and `undeclared` the share of tasks that do not even so.
    """
    declares = rng.random() < writes
    made: list[DagNode] = []
    tasks: list[str] = []
    for place in range(size):
        about: dict[str, Any] = {"estimate": rng.randint(1, 9)} if rng.random() < 0.7 else {}
        if declares and rng.random() >= undeclared:
            about["writes"] = _written(rng, size)
        if tasks and rng.random() < refineries:
            others = _some(rng, tasks[-reach:], rng.randint(1, 5))
            made.append(node(f"r{place}", others, refinery=True, **about))
        else:
            others = _some(rng, [each.id for each in made[-reach:]], int(rng.expovariate(1 / edges)) if edges else 0)
            made.append(node(f"t{place}", others, **about))
            tasks.append(made[-1].id)
    return dag_of(made)


def random_overlay(
    rng: Random, dag: Dag, number: int, now: str, *, refineries: bool = True, unfit: bool = False
) -> DagOverlay:
    """Up to three new nodes and some edges, to nodes that are there too; it is for the rules to say if it fits.

    Without refineries it leaves it as it is which tasks are collected by one.
    """
    old = [each.id for each in dag.nodes]
    made: list[DagNode] = []
    for place in range(rng.randint(0, 3)):
        is_refinery = refineries and rng.random() < 0.2
        others = _some(rng, [*old[-60:], *(each.id for each in made)], rng.randint(1 if is_refinery else 0, 3))
        about: dict[str, Any] = {"writes": _written(rng, len(old))} if rng.random() < 0.5 else {}
        made.append(node(f"n{number}x{place}", others, refinery=is_refinery, estimate=rng.randint(1, 9), **about))
    new = [each.id for each in made]
    ends = old if refineries else [each.id for each in dag.nodes if each.type is NodeType.TASK]
    edges = [
        AddedEdge.model_validate({"from": rng.choice([*new, *old]), "to": rng.choice(ends)})
        for _ in range(rng.randint(0 if made else 1, 2))
    ]
    if unfit:
        edges.append(_unfit_edge(rng, old))
    return DagOverlay(crId=f"cr-{number:03}", appliedAt=now, addedNodes=tuple(made), addedEdges=tuple(edges))


def _unfit_edge(rng: Random, old: list[str]) -> AddedEdge:
    name = rng.choice(old)
    return AddedEdge.model_validate({"from": rng.choice([name, "nobody"]), "to": name})


def _some(rng: Random, names: list[str], count: int) -> list[str]:
    return rng.sample(names, min(count, len(names)))


def _written(rng: Random, size: int) -> list[str]:
    folder = rng.choice(_FOLDERS)
    files = [f"{folder}/{rng.randrange(max(4, size))}.py" for _ in range(rng.randint(1, 2))]
    return [*files, folder + "/deep/"] if rng.random() < 0.05 else files
