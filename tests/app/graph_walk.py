"""Runs of graphs in real ledgers, moved by the executor's own rules: one move at a time, or at random by a seed."""

import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.ids import run_ref
from fairwitness.contracts.forge import events as happened
from fairwitness.contracts.forge.dag import Dag, DagMetadata, DagNode, DagOverlay, NodeState, NodeType
from fairwitness.contracts.forge.status import DagStatus
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptResult,
    Clash,
    Culprit,
    GraphOptions,
    LandedMember,
    MergeResult,
)
from fairwitness.ledger.ledger import Ledger
from fairwitness.rules import graph_events
from fairwitness.rules.dag import is_exhausted
from fairwitness.rules.graph_run import AttemptStage, GraphRun
from fairwitness.rules.schedule import collected, ready_nodes
from fairwitness.runs.graph.log import GraphLog
from support.state import own_state

MOMENT = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
COMMIT, TREE = "b" * 40, "c" * 40


def dag_of(run_id: str, waits: Mapping[str, Iterable[str]], *, refineries: Iterable[str] = ()) -> Dag:
    """A graph by what each node waits for."""
    taken = frozenset(refineries)
    nodes = tuple(
        DagNode(
            id=name,
            type=NodeType.REFINERY if name in taken else NodeType.TASK,
            agentType="refinery" if name in taken else 2,
            dependencies=tuple(others),
            status=NodeState.PENDING,
        )
        for name, others in waits.items()
    )
    return Dag(
        version=1,
        runId=run_id,
        nodes=nodes,
        metadata=DagMetadata(
            createdAt="2026-02-26T14:30:00Z",
            createdBy="captain",
            totalTasks=len(nodes) - len(taken),
            totalRefineries=len(taken),
        ),
    )


class Walk:
    """A run that is moved by hand; time goes on by `step_s` with every record, and back if that is negative."""

    def __init__(
        self,
        where: Path | Ledger,
        dag: Dag,
        *,
        request: str = "do it",
        actor: str = "Ada",
        max_attempts: int = 2,
        step_s: int = 1,
    ) -> None:
        seconds = count(0, step_s)
        clock: Callable[[], datetime] = lambda: MOMENT + timedelta(seconds=next(seconds))  # noqa: E731
        if isinstance(where, Path):
            where = Ledger.open_file(own_state(where) / "evidence.db", clock=clock)
        self.ledger = where
        self.log = GraphLog(self.ledger, dag.runId, clock=clock)
        self.log.begin(
            dag,
            GraphOptions(target=f"fairwitness/{run_ref(dag.runId)}/target", max_attempts=max_attempts),
            base_commit="a" * 40,
            documents={},
            settings={"verify": {}, "digest": "x", "agents": None, "cassettes": None},
            request=request,
            repo_url="file:///here",
            model="scripted",
            actor=actor,
        )
        self.run_id = dag.runId
        self.dag = dag
        self.run: GraphRun = self.log.run()

    def close(self) -> None:
        """Lets go of the ledger."""
        self.ledger.close()

    def tell(self, *events: EventData) -> None:
        """Writes events in one record."""
        self._write(lambda _now: events)

    def _write(self, make: Callable[[str], Iterable[EventData]]) -> None:
        self.log.write(make)
        for envelope in self.ledger.events(self.run_id, after=self.run.seq):
            problem = self.run.apply(envelope)
            assert problem is None, problem

    @property
    def _waits(self) -> dict[str, tuple[str, ...]]:
        return {node.id: node.dependencies for node in self.dag.nodes}

    def start(self, name: str) -> None:
        """An attempt begins."""
        status = self.run.nodes[name]
        node = next(node for node in self.dag.nodes if node.id == name)
        order = AttemptOrder(
            run_id=self.run_id, node=name, attempt=status.currentAttempt, branch="fairwitness/b", target="fairwitness/t"
        )
        self._write(lambda now: graph_events.started(status, node, order, now))

    def verify(self, name: str) -> None:
        """An attempt, or its helper, is proven."""
        result = AttemptResult(verified=True, commit=COMMIT, tree=TREE)
        held = name in collected(self.dag)
        self._write(lambda now: graph_events.attempt_ended(self.run.nodes[name], result, is_collected=held, now=now))

    def fail(self, name: str, reason: str = "it is red") -> None:
        """An attempt fails."""
        self._write(lambda now: graph_events.failed(self.run.nodes[name], reason, now))

    def lose(self, name: str) -> None:
        """An attempt loses its worker."""
        self._write(lambda now: graph_events.lost(self.run.nodes[name], "2026-02-26T14:30:00Z", now))

    def reopen(self, name: str, more: int = 1) -> None:
        """A person gives a node without attempts more of them."""
        self._write(lambda now: graph_events.reopened(self.run.nodes[name], more, "Ada", now))

    def begin_merge(self, most: int = 8) -> None:
        """The queue's first are merged."""
        members = [self.run.member(name) for name in list(self.run.queue)[:most]]
        self._write(lambda _now: graph_events.merge_started(self.run.batches + 1, members))

    def end_merge(
        self, *, landed: Iterable[str] = (), culprit: str | None = None, clashing: Iterable[str] = ()
    ) -> None:
        """The batch is through; whoever is in no list goes back to the queue."""
        result = MergeResult(
            tip="d" * 40,
            landed=tuple(LandedMember(node=name, commit="e" * 40) for name in landed),
            culprit=None if culprit is None else Culprit(node=culprit, reasons=("test_x failed",)),
            clashes=tuple(Clash(node=name, paths=("a.py",)) for name in clashing),
            checks=1,
        )
        self._write(lambda now: graph_events.merge_ended(self.run, self._waits, "fairwitness/t", result, now))

    def finish(self, name: str) -> None:
        """From the start to the target."""
        self.start(name)
        self.verify(name)
        if name in self.run.queue:
            self.begin_merge()
            self.end_merge(landed=[name])

    def grow(self, number: int, name: str) -> None:
        """A node is added."""
        node = DagNode(id=name, type=NodeType.TASK, agentType=2, dependencies=(), status=NodeState.PENDING)
        overlay = DagOverlay(
            crId=f"cr-{number:03d}", appliedAt="2026-02-26T14:31:00Z", addedNodes=(node,), addedEdges=()
        )
        assert self.log.grow(overlay) == ()
        self.dag = self.log.effective()[1]
        self._write(lambda _now: ())

    def step(self, rng: random.Random) -> bool:
        """One move that an executor could make, at random; False if there is none."""
        moves = list(self._moves(rng))
        if not moves:
            return False
        rng.choice(moves)()
        return True

    def _moves(self, rng: random.Random) -> Iterable[Callable[[], Any]]:
        run = self.run
        status = DagStatus(runId=self.run_id, updatedAt="2026-02-26T14:30:00Z", nodes=run.nodes)
        for name in ready_nodes(self.dag, status)[:3]:
            yield partial(self.start, name)
        for name in run.in_stage({AttemptStage.WORKING, AttemptStage.HELPING}):
            yield partial(self.verify, name)
            yield partial(self.fail, name, f"reason {rng.random()}")
            if rng.random() < 0.2:
                yield partial(self.lose, name)
        for name, node in run.nodes.items():
            if is_exhausted(node):
                yield partial(self.reopen, name, rng.randint(1, 2))
        if run.batch is None and run.queue:
            yield lambda: self.begin_merge(rng.randint(1, 3))
        elif run.batch is not None:
            names = list(run.batch.nodes)
            rng.shuffle(names)
            cut = rng.randint(0, len(names))
            rest = names[cut:]
            culprit = rest.pop() if rest and rng.random() < 0.4 else None
            clashing = rest[: rng.randint(0, len(rest))]
            yield lambda: self.end_merge(landed=names[:cut], culprit=culprit, clashing=clashing)
        if rng.random() < 0.05:
            yield lambda: self.tell(happened.ForgeRunResumed() if run.is_paused else happened.RunPaused(reason="lunch"))
        if rng.random() < 0.05:
            yield lambda: self.grow(rng.randint(1, 999_999) + 100, f"added-{len(run.nodes)}")


def random_walk(root: Path | Ledger, seed: int, *, nodes: int = 12, steps: int = 120) -> Walk:
    """A run in the middle of things."""
    rng = random.Random(seed)
    names = [f"task-{number:02d}" for number in range(nodes)]
    waits: dict[str, list[str]] = {
        name: rng.sample(names[:place], min(place, rng.choice([0, 0, 1, 2]))) for place, name in enumerate(names)
    }
    refineries = [name for name in names if waits[name] and rng.random() < 0.2]
    walk = Walk(root, dag_of(f"run-{seed}", waits, refineries=refineries))
    walk.tell(happened.ForgeRunStarted())
    for _ in range(steps):
        if not walk.step(rng):
            break
    return walk
