"""The frontier: after every move it answers as the plain rules do, and a whole run costs little more than its size."""

from collections.abc import Iterable
from itertools import product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.forge.dag import Dag, DagNode, DagOverlay, NodeState, NodeType
from fairwitness.contracts.forge.status import DagStatus, NodeStatus
from fairwitness.rules.dag import (
    TRANSITIONS,
    TransitionKind,
    dag_problems,
    effective_dag,
    grown_dag,
    is_exhausted,
    moved,
)
from fairwitness.rules.schedule import (
    GOOD_ENOUGH,
    LOOKAHEAD,
    Frontier,
    GraphProgress,
    NextTry,
    after_failure,
    collected,
    dag_outcome,
    ready_nodes,
    starts,
    ways_to_the_end,
)

FOLLOW_UP = "follow-up"
"""A helper that runs beside the graph and has declared nothing."""


def _node(name: str, others: Iterable[str] = ()) -> DagNode:
    """Names that begin with r are refineries."""
    refines = name.startswith("r")
    return DagNode(
        id=name,
        type=NodeType.REFINERY if refines else NodeType.TASK,
        agentType="refinery" if refines else 2,
        dependencies=tuple(others),
        status=NodeState.PENDING,
    )


def _dag(**dependencies: str) -> Dag:
    return _graph([_node(name, others.split()) for name, others in dependencies.items()])


def _graph(nodes: list[DagNode]) -> Dag:
    refineries = sum(node.type is NodeType.REFINERY for node in nodes)
    metadata = {
        "createdAt": "2024-01-15T09:00:00Z",
        "createdBy": "captain",
        "totalTasks": len(nodes) - refineries,
        "totalRefineries": refineries,
    }
    return Dag.model_validate({"version": 1, "runId": "run-7f2", "nodes": nodes, "metadata": metadata})


def _at(name: str, state: NodeState = NodeState.PENDING, attempt: int = 1, most: int = 3) -> NodeStatus:
    return NodeStatus(taskId=name, status=state, currentAttempt=attempt, maxAttempts=most)


def _all(dag: Dag, most: int = 3) -> dict[str, NodeStatus]:
    return {node.id: _at(node.id, most=most) for node in dag.nodes}


def _status(nodes: dict[str, NodeStatus]) -> DagStatus:
    return DagStatus(runId="run-7f2", updatedAt="2024-01-15T10:00:00Z", nodes=nodes)


class _World:
    """A graph whose nodes move at random, and what the plain rules say about it."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        nodes: list[DagNode] = []
        for index in range(chance.randint(1, 9)):
            others = self._some([node.id for node in nodes])
            nodes.append(_node(f"{'r' if others and chance.random() < 0.3 else 't'}{index}", others))
        self.dag = _graph(nodes)
        self.most = chance.randint(1, 3)
        self.nodes = _all(self.dag, self.most)
        self.estimates: dict[str, int] = {node.id: chance.randint(1, 9) for node in nodes if chance.random() < 0.7}
        self.writes: dict[str, frozenset[str]] | None = None
        if chance.random() < 0.7:
            self.writes = {node.id: self._files() for node in nodes if chance.random() < 0.9}
        self.overlays = 0

    def _some(self, names: list[str]) -> list[str]:
        return self.chance.sample(names, self.chance.randint(0, min(3, len(names))))

    def _files(self) -> frozenset[str]:
        return frozenset(self._some(["a.py", "src", "src/b.py", "src/deep/c.py", "src/deep/", "d.py"]))

    def frontier(self) -> Frontier:
        return Frontier(self.dag, self.nodes, estimates=self.estimates, writes=self.writes)

    def move(self) -> NodeStatus | None:
        """A node after one to four legal moves; None if it cannot move."""
        name = self.chance.choice(list(self.nodes))
        for _ in range(self.chance.choice([1, 1, 1, 2, 4])):
            ways = [state for state in NodeState if TRANSITIONS[self.nodes[name].status, state] is TransitionKind.LEGAL]
            after = moved(self.nodes[name], self.chance.choice(ways)) if ways else None
            if not isinstance(after, NodeStatus):
                return None
            self.nodes[name] = after
        return self.nodes[name]

    def overlay(self) -> Dag | None:
        """The graph with a few nodes and edges more; None if they do not fit."""
        self.overlays += 1
        names = list(self.nodes)
        added = [_node(f"t9{self.overlays}", self._some(names)), _node(f"r9{self.overlays}", [names[0]])]
        edges = [(self.chance.choice([*names, added[0].id]), self.chance.choice(names)) for _ in range(2)]
        overlay = DagOverlay.model_validate(
            {
                "crId": f"cr-{self.overlays:03}",
                "appliedAt": "2024-01-15T11:00:00Z",
                "addedNodes": added,
                "addedEdges": [{"from": start, "to": end} for start, end in edges],
            }
        )
        grown = grown_dag(self.dag, overlay, _status(self.nodes))
        return grown if isinstance(grown, Dag) else None

    def agrees(self, frontier: Frontier) -> None:
        status = _status(self.nodes)
        running = [name for name, node in self.nodes.items() if node.status is NodeState.RUNNING]
        ways = ways_to_the_end({node.id: node.dependencies for node in self.dag.nodes}, self.estimates)
        ready = ready_nodes(self.dag, status)
        for beside in (running, [], [*running, FOLLOW_UP]):
            for cap in (self.chance.randint(0, 6), 4, 99):
                expected = starts(ready, ways, running=beside, cap=cap, writes=self.writes)
                assert frontier.starts(beside, cap) == expected
        outcome = dag_outcome(self.dag, status)
        assert frontier.outcome() == outcome
        assert frontier.end is outcome.end


@pytest.mark.req("F3", "F5", "F10", "X7")
@settings(max_examples=200)
@given(st.randoms(use_true_random=False))
def test_after_every_move_and_overlay_the_frontier_answers_as_the_plain_rules_do(chance: Random) -> None:
    world = _World(chance)
    frontier = world.frontier()
    world.agrees(frontier)
    for _ in range(25):
        if chance.random() < 0.1:
            grown = world.overlay()
            if grown is None:
                continue
            world.dag = grown
            added = {name: _at(name, most=world.most) for name in _all(grown) if name not in world.nodes}
            estimates = {name: chance.randint(1, 9) for name in added}
            writes = None if world.writes is None else {f"t9{world.overlays}": frozenset({"src/b.py"})}
            world.nodes |= added
            world.estimates |= estimates
            world.writes = None if world.writes is None or writes is None else world.writes | writes
            frontier.grow(grown, added, estimates=estimates, writes=writes)
        else:
            node = world.move()
            if node is not None:
                frontier.moved(node)
            else:
                frontier = world.frontier()  # whoever begins again in the middle of a run finds the same
        world.agrees(frontier)


@pytest.mark.req("F10")
@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_it_goes_by_what_it_is_told_even_if_no_run_could_get_there(chance: Random) -> None:
    world = _World(chance)
    frontier = world.frontier()
    states = [*NodeState, NodeState.FAILED, NodeState.STALE, NodeState.MERGED, NodeState.MERGED]
    for _ in range(25):
        name = chance.choice(list(world.nodes))
        world.nodes[name] = _at(name, chance.choice(states), attempt=chance.randint(1, 3))
        frontier.moved(world.nodes[name])
        world.agrees(frontier)


@pytest.mark.req("F9", "F10")
@settings(max_examples=200)
@given(st.randoms(use_true_random=False), st.integers(0, 100))
def test_every_run_ends_with_at_most_its_attempts_and_never_before_its_dependencies(
    chance: Random, failing: int
) -> None:
    """A small engine, as the executor is one: what is collected lands with its refinery, all else by itself."""
    world = _World(chance)
    frontier, nodes = world.frontier(), world.nodes
    graph = {node.id: node for node in world.dag.nodes}
    held = collected(world.dag)
    began = dict.fromkeys(nodes, 0)

    def go(name: str, *states: NodeState) -> None:
        for state in states:
            after = moved(nodes[name], state)
            assert isinstance(after, NodeStatus)
            nodes[name] = after
        frontier.moved(nodes[name])

    running: list[str] = []
    for _ in range(2 * len(nodes) * world.most):
        for name in frontier.starts(running):
            for other in graph[name].dependencies:
                assert nodes[other].status in GOOD_ENOUGH[graph[other].type, graph[name].type]
            began[name] += 1
            running.append(name)
            go(name, NodeState.RUNNING)
        if not running:
            break
        assert frontier.end is GraphProgress.GOING
        name = running.pop(chance.randrange(len(running)))
        if chance.randrange(100) < failing:
            go(name, NodeState.FAILED)
            if isinstance(after_failure(nodes[name]), NextTry):
                go(name, NodeState.PENDING)
        elif name in held:
            go(name, NodeState.DONE, NodeState.MERGE_READY)
        else:
            for other in graph[name].dependencies:
                if nodes[other].status is NodeState.MERGE_READY and graph[name].type is NodeType.REFINERY:
                    go(other, NodeState.MERGED)
            go(name, NodeState.DONE, NodeState.MERGE_READY, NodeState.MERGED)
    outcome = frontier.outcome()
    assert outcome == dag_outcome(world.dag, _status(nodes))
    assert max(began.values()) <= world.most
    assert outcome.end is (GraphProgress.FAILED if outcome.exhausted else GraphProgress.COMPLETED)
    assert outcome.exhausted == tuple(name for name in graph if is_exhausted(nodes[name]))


@pytest.mark.req("F3", "F9")
@pytest.mark.parametrize(("before", "after"), list(product(("t1", "r1"), ("t2", "r2"))))
@pytest.mark.parametrize("state", list(NodeState))
def test_a_node_is_ready_in_exactly_those_states_of_its_dependency(before: str, after: str, state: NodeState) -> None:
    dag = _dag(**{"t0": "", before: "t0", after: before})
    kinds = {node.id: node.type for node in dag.nodes}
    frontier = Frontier(dag, _all(dag))
    frontier.moved(_at("t0", NodeState.MERGED))
    frontier.moved(_at(before, state))
    is_ready = state in GOOD_ENOUGH[kinds[before], kinds[after]]
    assert (after in frontier.starts(())) is is_ready


@pytest.mark.req("F3")
def test_what_may_start_stays_ready_until_it_has_moved_and_comes_back_for_another_attempt() -> None:
    dag = _dag(t1="", t2="", t3="t1")
    frontier = Frontier(dag, _all(dag))
    assert frontier.starts(()) == frontier.starts(()) == ("t1", "t2")
    frontier.moved(_at("t1", NodeState.RUNNING))
    assert frontier.starts(("t1",)) == ("t2",)
    frontier.moved(_at("t1", NodeState.FAILED))
    frontier.moved(_at("t1", NodeState.PENDING, attempt=2))
    assert frontier.starts(()) == ("t1", "t2")


@pytest.mark.req("F5")
def test_an_overlay_can_hold_back_what_was_ready_and_lengthen_every_way() -> None:
    dag = _dag(t1="", t2="", t3="")
    frontier = Frontier(dag, _all(dag))
    assert frontier.starts((), 1) == ("t1",)
    overlay = {
        "crId": "cr-001",
        "appliedAt": "2024-01-15T11:00:00Z",
        "addedNodes": [_node("t4", ["t3"])],
        "addedEdges": [{"from": "t4", "to": "t1"}],
    }
    grown = effective_dag(dag, [DagOverlay.model_validate(overlay)])
    assert isinstance(grown, Dag)
    frontier.grow(grown, {"t4": _at("t4")})
    assert frontier.starts(()) == ("t3", "t2")


@pytest.mark.req("F5")
def test_a_node_that_the_run_does_not_know_yet_is_not_started_and_nothing_builds_on_it() -> None:
    dag = _dag(t1="", t2="t1")
    frontier = Frontier(dag, {"t2": _at("t2")})
    assert frontier.starts(()) == ()
    assert (frontier.end, frontier.outcome().stranded) == (GraphProgress.FAILED, ("t1", "t2"))
    frontier.grow(dag, {"t1": _at("t1")})
    assert frontier.starts(()) == ("t1",)


@pytest.mark.req("F10")
def test_a_node_that_was_given_more_attempts_is_awaited_and_then_ready_again() -> None:
    dag = _dag(t1="", t2="t1")
    frontier = Frontier(dag, _all(dag, most=1))
    frontier.moved(_at("t1", NodeState.FAILED, most=1))
    assert (frontier.outcome().end, frontier.outcome().exhausted) == (GraphProgress.FAILED, ("t1",))
    for node, chosen in ((_at("t1", NodeState.FAILED, most=2), ()), (_at("t1", attempt=2, most=2), ("t1",))):
        frontier.moved(node)
        assert (frontier.outcome().end, frontier.outcome().exhausted) == (GraphProgress.GOING, ())
        assert frontier.starts(()) == chosen


@pytest.mark.req("F10")
def test_what_waits_in_vain_is_told_anew_when_it_was_merged_after_all() -> None:
    dag = _dag(t1="", t2="", r1="t1 t2")
    lost = {"t1": _at("t1", NodeState.MERGE_READY), "t2": _at("t2", NodeState.FAILED, attempt=3), "r1": _at("r1")}
    frontier = Frontier(dag, lost)
    assert (frontier.outcome().end, frontier.outcome().stranded) == (GraphProgress.FAILED, ("t1", "r1"))
    frontier.moved(_at("t1", NodeState.MERGED))
    assert (frontier.outcome().end, frontier.outcome().stranded) == (GraphProgress.FAILED, ("r1",))


@pytest.mark.req("P9")
def test_write_sets_that_come_with_an_overlay_bind_the_tasks_that_have_none() -> None:
    dag = _dag(t1="", t2="")
    frontier = Frontier(dag, _all(dag))
    assert frontier.starts(()) == ("t1", "t2")
    frontier.grow(dag, {}, writes={"t2": frozenset({"a.py"})})
    assert frontier.starts(()) == ("t1",)
    frontier.grow(dag, {}, writes={"t1": frozenset({"b.py"})})
    assert frontier.starts(()) == ("t1", "t2")


def _crowd(ahead: int) -> Frontier:
    """So many tasks with a longer way that all write `a.py`, each beside a file of its own, and one that does not."""
    names = [f"t{number}" for number in range(ahead)]
    dag = _graph([*(_node(name) for name in names), _node("free")])
    writes = {name: frozenset({"a.py", f"{name}.py"}) for name in names} | {"free": frozenset({"free.py"})}
    return Frontier(dag, _all(dag), estimates=dict.fromkeys(names, 2), writes=writes)


@pytest.mark.req("P9", "X7")
def test_only_so_many_colliding_tasks_are_passed_over_for_one_that_is_free() -> None:
    assert LOOKAHEAD == 200
    assert _crowd(LOOKAHEAD).starts(("t0",)) == ("free",)
    assert _crowd(LOOKAHEAD + 1).starts(("t0",)) == ()
    assert _crowd(LOOKAHEAD + 1).starts(()) == ("t0", "free")


@pytest.mark.req("P9", "X7")
@pytest.mark.timeout(60)
@pytest.mark.parametrize("own", [False, True])
def test_thousands_of_writers_of_one_file_are_worked_off_one_by_one(own: bool) -> None:
    size = 500 if own else 5_000
    names = [f"t{number}" for number in range(size)]
    dag = _graph([_node(name) for name in names])
    writes = {name: frozenset({"a.py", f"{name}.py"} if own else {"a.py"}) for name in names}
    frontier = Frontier(dag, _all(dag), writes=writes)
    for name in names:
        assert frontier.starts(()) == (name,)
        frontier.moved(_at(name, NodeState.RUNNING))
        assert frontier.starts((name,)) == ()
        frontier.moved(_at(name, NodeState.MERGED))
    assert frontier.end is GraphProgress.COMPLETED


@pytest.mark.req("F10", "X7")
@pytest.mark.timeout(60)
def test_a_graph_of_ten_thousand_nodes_runs_to_its_end() -> None:
    chance = Random(7)
    nodes = [
        _node(f"t{number}", {f"t{chance.randrange(max(0, number - 50), number)}" for _ in range(3)} if number else ())
        for number in range(10_000)
    ]
    dag = _graph(nodes)
    assert dag_problems(dag) == ()
    frontier = Frontier(dag, _all(dag))
    running: list[str] = []
    while frontier.end is GraphProgress.GOING:
        for name in frontier.starts(running):
            running.append(name)
            frontier.moved(_at(name, NodeState.RUNNING))
        frontier.moved(_at(running.pop(chance.randrange(len(running))), NodeState.MERGED))
    assert frontier.end is GraphProgress.COMPLETED
