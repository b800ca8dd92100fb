"""The watch over a simulated world: it knows what must never happen, and counts without the product's folds.

It is told of every event, child, start and landing at the moment at which they become durable.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairwitness.contracts.common.events import Envelope
from fairwitness.contracts.forge.dag import Dag, DagNode, NodeState
from fairwitness.contracts.graph.orders import MERGE, AttemptOrder, Candidate, GraphOptions, GraphPlan
from fairwitness.rules.schedule import GOOD_ENOUGH, collide, write_set
from support.graph.sim_git import SimGit
from support.graph.sim_journal import Kept

_OUT = frozenset({NodeState.FAILED, NodeState.STALE})


class Seen(NamedTuple):
    """A node, as its events tell."""

    state: NodeState
    attempt: int


class Watch:
    """Everything that was seen of a run, and what was wrong with it."""

    def __init__(self, options: GraphOptions, git: SimGit) -> None:
        self.broken: list[str] = []
        self.nodes: dict[str, Seen] = {}
        self.started: Counter[str] = Counter()
        self.most_at_work = 0
        self.verified: dict[str, str] = {}
        """By node, the commit that was proven last."""
        self.most: dict[str, int] = {}
        """By node, how often it may be tried."""
        self.paid: Counter[str] = Counter()
        self._options, self._git = options, git
        self._facts: dict[str, DagNode] = {}
        self._writes: Mapping[str, frozenset[str]] | None = None
        self._dependencies: dict[str, tuple[str, ...]] = {}
        """By node, what its current attempt had to wait for."""
        self._running: dict[str, None] = {}
        self._children: dict[str, Kept] = {}
        self._paid_at: dict[str, int] = {}
        self._proven: set[str] = set()
        self._is_paused = False
        self._requests: set[str] = set()
        self._counts = Counter[NodeState]()
        self._exhausted = 0

    @property
    def counts(self) -> dict[str, int]:
        """What a run says about its graph, counted event by event."""
        return {
            "totalTasks": len(self.nodes),
            "completedTasks": self._counts[NodeState.MERGED],
            "failedTasks": self._exhausted,
            "runningTasks": self._counts[NodeState.RUNNING],
        }

    def grows(self, plan: GraphPlan) -> None:
        """The graph is this now."""
        self._facts = {node.id: node for node in plan.dag.nodes}
        self._writes = plan.writes

    def event(self, envelope: Envelope, base: Dag) -> None:
        """Something was written down."""
        data = envelope.data
        match envelope.type:
            case "plan.proposed":
                self._add(node.id for node in base.nodes)
            case "overlay.applied":
                self._add(data["addedNodes"])
                self._requests.discard(data["crId"])
            case "cr.emitted":
                self._requests.add(data["crId"])
            case "cr.rejected":
                self._requests.discard(data["crId"])
            case "task.reopened":
                self._exhausted -= self._is_out(data["nodeId"])
                self.most[data["nodeId"]] = data["maxAttempts"]
            case "node.changed":
                self._moves(data["nodeId"], NodeState(data["previousStatus"]), NodeState(data["newStatus"]), data)
            case "task.verified":
                self.verified[data["nodeId"]] = data["commit"]
            case "run.paused":
                self._is_paused = True
            case "run.started" | "run.resumed":
                self._is_paused = False
            case _:
                pass

    def _add(self, names: Iterable[str]) -> None:
        for name in names:
            self.nodes[name] = Seen(NodeState.PENDING, 1)
            self.most[name] = self._options.max_attempts
            self._counts[NodeState.PENDING] += 1

    def _moves(self, name: str, before: NodeState, after: NodeState, data: Mapping[str, object]) -> None:
        seen = self.nodes[name]
        self._expect(seen.state is before, f"{name} is {seen.state}, not {before}")
        attempt = seen.attempt + (after is NodeState.PENDING)
        self._expect(data["attemptId"] == attempt, f"{name} is at attempt {attempt}, not {data['attemptId']}")
        self._expect(attempt <= self.most[name], f"{name} begins attempt {attempt}")
        self._exhausted -= self._is_out(name)
        self._counts[before] -= 1
        self._counts[after] += 1
        self.nodes[name] = Seen(after, attempt)
        self._exhausted += self._is_out(name)
        if after is NodeState.RUNNING:
            self._starts(name)
            self._running[name] = None
        else:
            self._running.pop(name, None)
        if after is NodeState.MERGED:
            commit = self.verified.get(name)
            self._expect(
                commit in self._git.landed or self._git.back > 0, f"{name} is merged, but {commit} is not in the target"
            )

    def _is_out(self, name: str) -> bool:
        seen = self.nodes[name]
        return seen.state in _OUT and seen.attempt == self.most[name]

    def _starts(self, name: str) -> None:
        self.started[name] += 1
        self._expect(not self._is_paused, f"{name} starts while the run is paused")
        self._expect(not self._requests, f"{name} starts while {', '.join(self._requests)} has no answer")
        self._expect(self.started[name] <= self.most[name], f"{name} starts too often")
        node = self._facts[name]
        self._dependencies[name] = node.dependencies
        for other in node.dependencies:
            enough = GOOD_ENOUGH[self._facts[other].type, node.type]
            self._expect(self.nodes[other].state in enough, f"{name} starts while {other} is {self.nodes[other].state}")
        claim = write_set(name, self._writes)
        for other in self._running if self._writes is not None else ():
            collides = collide(claim, write_set(other, self._writes))
            self._expect(not collides, f"{name} starts beside {other}, which writes the same")

    def submitted(self, kept: Kept) -> None:
        """A flow was given to the engine."""
        if kept.parent is None:
            return
        self._children = {id_: child for id_, child in self._children.items() if not child.ended}
        self._children[kept.id] = kept
        merging = sum(child.flow == MERGE for child in self._children.values())
        at_work = len(self._children) - merging
        self.most_at_work = max(self.most_at_work, at_work)
        self._expect(at_work <= self._options.cap, f"{kept.id} is one agent too many")
        self._expect(merging <= 1, f"{kept.id} is a second merge at a time")

    def began(self, order: AttemptOrder, start: str) -> None:
        """An attempt has its worktree."""
        for other in self._dependencies.get(order.node, ()):
            held = order.branch in self._git.misled or self._git.holds(start, self.verified[other])
            self._expect(held, f"{order.branch} begins without {other}")

    def pays(self, order: AttemptOrder, crashes: int) -> None:
        """An agent is set to work; again only if a process died since."""
        again = self._paid_at.get(order.branch)
        self._expect(again is None or again < crashes, f"{order.branch} is paid twice")
        self._paid_at[order.branch] = crashes
        self.paid[order.branch] += 1

    def proves(self, candidate: Candidate) -> None:
        """A merged tree was found green."""
        self._proven.add(candidate.commit)

    def lands(self, candidate: Candidate) -> None:
        """The target is about to move."""
        self._expect(candidate.commit in self._proven, f"the target moves to {candidate.commit}, which is not proven")
        self._expect(not any(self._git.red_pairs(candidate.commit)), f"the target turns red with {candidate.commit}")

    def ends(self, under_way: tuple[Kept, ...]) -> None:
        """The run is over."""
        left = [kept.id for kept in under_way if kept.parent is not None]
        self._expect(not left, f"after the end there is still {', '.join(left)}")
        for name, seen in self.nodes.items():
            if seen.state is NodeState.MERGED and not self._git.back:
                self._expect(self._git.holds(self._git.tip, self.verified[name]), f"{name} is not in the target")

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.broken.append(otherwise)
