"""Steps 5 and 6 for one task: an implementer in its worktree, the harness on what it left, and a verifier beside it.

Whether an attempt is merged is asked of the same gates that decide about the run: the rows of the ledger answer, and no
agent does.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus
from fairwitness.contracts.common.gates import Blocked
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.words import Workflow
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder, Candidate, Prepared, Proof, Worked
from fairwitness.kit.killpoints import reach
from fairwitness.rules.gates import is_verified, task_gates
from fairwitness.runs.dispatch import Occasion
from fairwitness.runs.feature.briefs import Briefs
from fairwitness.runs.feature.briefs_task import writes_of
from fairwitness.runs.feature.calls import Caller
from fairwitness.runs.feature.evidence import Evidence
from fairwitness.runs.feature.facts_tasks import attempt_facts
from fairwitness.runs.feature.room import Room
from fairwitness.runs.feature.storing import store
from fairwitness.runs.feature.tasks import FIX_NODE, Attempted, Graph, note_attempt, task_of
from fairwitness.runs.graph.sole_desk import SoleDesk
from fairwitness.runs.graph.working import worked
from fairwitness.runs.graph.world import Prove, World, to_end, until_stopped

_SUMMARY = 60


class Implementing:
    """Lets an implementer work on a task; `Work` of a graph."""

    def __init__(self, room: Room, graph: Graph, caller: Caller, briefs: Briefs) -> None:
        self._room, self._graph, self._caller, self._briefs = room, graph, caller, briefs

    async def __call__(self, order: AttemptOrder, prepared: Prepared, folder: Path) -> Worked:
        """Asks it, and once more if it failed in a way that may pass; each try begins with the same files."""
        room = self._room

        def asked(dispatch_id: str, number: int) -> tuple[Brief, Occasion]:
            return self._brief(order, prepared, dispatch_id), _occasion(Step.IMPLEMENT, order, number)

        dispatch_id, done = await self._caller.persist(
            order.node, lambda number: _id(Step.IMPLEMENT, order, number), asked, folder, prepared.base
        )
        if done.outcome.status is OutcomeStatus.OK and order.conflict is None:
            await to_end(store, room, Role.IMPLEMENTER, dispatch_id, order.node, done)
        return worked(done, _unfinished, self._title(order.node)[:_SUMMARY])

    def _brief(self, order: AttemptOrder, prepared: Prepared, dispatch_id: str) -> Brief:
        room = self._room
        before = tuple(
            f"{path} has the marks of a conflict: settle it so that both sides keep what they do."
            for path in prepared.conflicts
        )
        if order.node == FIX_NODE:
            return self._briefs.fixer(dispatch_id, self._graph.findings, self._graph.writes)
        told = room.state().tasks.get(order.node)
        reasons = tuple(
            f"attempt {each.attempt}: {each.reason}" for each in (told.attempts if told else ()) if each.reason
        )
        return self._briefs.implementer(dispatch_id, task_of(room, order.node), before=(*before, *reasons))

    def _title(self, node: str) -> str:
        if node == FIX_NODE:
            return "what the review found"
        return task_of(self._room, node).task.title


class FeatureGraphDesk(SoleDesk):
    """The desk of one graph of a feature run."""

    def __init__(
        self,
        world: World,
        room: Room,
        graph: Graph,
        caller: Caller,
        briefs: Briefs,
        prove: Prove,
        evidence: Evidence,
    ) -> None:
        super().__init__(
            world,
            room.ledger,
            room.run_id,
            Implementing(room, graph, caller, briefs),
            prove,
            workflow=Workflow.FEATURE,
            phase=str(graph.number),
            clock=room.clock,
        )
        self._room, self._graph, self._caller, self._briefs = room, graph, caller, briefs
        self._evidence, self._folders = evidence, world.worktrees

    async def commit(self, order: AttemptOrder, prepared: Prepared, worked: Worked) -> Candidate | None:
        """What the agents left; also nothing is proven, so that it is on record what held before and what did not."""
        made = await super().commit(order, prepared, worked)
        if made is not None or order.conflict is not None:
            return made
        worktree = self._folders.named(order.run_id, order.node, order.attempt)
        tip = await to_end(self._folders.tip, worktree)
        if tip is None:
            return None
        return Candidate(node=order.node, commit=tip, tree=self._room.repository.tree_of(tip))

    async def prove(self, order: AttemptOrder, prepared: Prepared, candidate: Candidate) -> Proof:
        """Runs the checks, asks the verifier, judges the criteria; the gates say what it comes to."""
        if order.conflict is not None:
            return await super().prove(order, prepared, candidate)
        room, evidence = self._room, self._evidence
        attempt = await to_end(note_attempt, room, order.node, order.attempt, prepared.base, candidate.commit)
        if order.node == FIX_NODE:
            await until_stopped(lambda stop: evidence.run(order, attempt, declared=None, stop=stop))
            return await to_end(self._judged, order, None)
        document = await to_end(task_of, room, order.node)
        await until_stopped(lambda stop: evidence.run(order, attempt, declared=writes_of(document), stop=stop))
        report = await self._verified(order, prepared, attempt, document)
        unmet = await until_stopped(lambda stop: evidence.judge(order, attempt, document, report, stop))
        await to_end(evidence.conclude, order, attempt, document, report, unmet)
        reach("feature.proven")
        return await to_end(self._judged, order, document)

    async def _verified(
        self, order: AttemptOrder, prepared: Prepared, attempt: Attempted, document: TaskDocument
    ) -> VerificationReport | None:
        """What the verifier says; None if it came to no report, and then its criteria are unjudged."""
        room = self._room
        seen = await to_end(self._evidence.rendered, order)
        folder = self._folders.named(order.run_id, order.node, order.attempt).folder
        changed = tuple(file.path for file in attempt.files)

        def asked(dispatch_id: str, number: int) -> tuple[Brief, Occasion]:
            brief = self._briefs.verifier(dispatch_id, document, changed=changed, seen=seen)
            return brief, _occasion(Step.VERIFY, order, number)

        dispatch_id, done = await self._caller.persist(
            order.node, lambda number: _id(Step.VERIFY, order, number), asked, folder, prepared.base
        )
        if done.outcome.answer is None:
            return None
        await to_end(store, room, Role.VERIFIER, dispatch_id, order.node, done)
        return VerificationReport.model_validate(done.outcome.answer)

    def _judged(self, order: AttemptOrder, document: TaskDocument | None) -> Proof:
        facts = attempt_facts(self._room, order.node, order.attempt, document)
        policy = self._room.order.policy
        if is_verified(facts, policy):
            return Proof(holds=True, reasons=())
        missing = [
            each for answer in task_gates(facts, policy) if isinstance(answer, Blocked) for each in answer.missing
        ]
        return Proof(holds=False, reasons=tuple(missing))


def _id(step: Step, order: AttemptOrder, number: int) -> str:
    helper = "-help" if order.conflict is not None else ""
    return f"{step.value}-{order.phase}-{order.node}{helper}-{number}"


def _occasion(step: Step, order: AttemptOrder, number: int) -> Occasion:
    return Occasion(step.value, task=order.node, phase=order.phase, attempt=order.attempt, retry_count=number - 1)


def _unfinished(answer: Mapping[str, Any]) -> str | None:
    said = answer["completion"]
    return None if said["status"] == "DONE" else f"its implementer says {said['status']}: {said['summary']}"[:500]
