"""Graphs of a paper run: tasks one after the other, with the rows that their checks would leave, and no commit."""

import hashlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from fairwitness.contracts.common.budgets import BudgetHalt
from fairwitness.contracts.common.events import EventData
from fairwitness.contracts.common.evidence import Execution, Phase, SandboxTier
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.forge.dag import DagNode, NodeState
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptResult,
    AttemptStart,
    Candidate,
    Culprit,
    GraphEnd,
    LandedMember,
    MergeResult,
)
from fairwitness.ledger.record import Record
from fairwitness.rules import graph_events
from fairwitness.rules.criteria import required_checks
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.evidence import AttemptEvidence
from fairwitness.runs.feature.task_attempts import FeatureGraphRunner, TaskImplementer
from fairwitness.runs.feature.tasks import ATTEMPT, RecordedAttempt
from fairwitness.verify.subject import VerifyDeps
from support.paper.script import Rows, Script

CHECKS = ("lint", "type-check", "tests")
LOAD = "import-check"
_EMPTY = "sha256:" + hashlib.sha256(b"").hexdigest()


def hash_of(*words: object) -> str:
    """A commit or a tree that nobody made, by what it stands for."""
    return hashlib.sha1("/".join(map(str, words)).encode(), usedforsecurity=False).hexdigest()


def changed_by(task: str) -> ChangedFile:
    """The one file that a task changes."""
    return ChangedFile(path=f"till/{task.replace('-', '_')}.py", change=ChangeKind.MODIFIED)


def write_rows(
    context: FeatureContext, task: str, number: int, tree: str, rows: Rows, *, required: Iterable[str] = ()
) -> None:
    """What the checks of a task said before and after; again it does nothing."""
    said = {name: _assessed(name, rows) for name in (*CHECKS, *([LOAD] if rows.can_run else []), *required)}

    def write(record: Record) -> None:
        before = [name for name in said if name in (*CHECKS, LOAD)] if rows.has_baseline else []
        for name in before:
            ran = _ran(context, task, f"before/{number}/{name}", hash_of("base"), Assessment.PASS)
            record.executed(ran, phase=Phase.BASELINE, check_name=f"baseline-{name}", round_=number - 1, instance=name)
        for name, assessment in said.items():
            ran = _ran(context, task, f"after/{number}/{name}", tree, assessment)
            record.executed(ran, phase=Phase.AFTER, check_name=name, round_=number, instance=name)
        secrets = context.observation(f"{task}/secrets/{number}", "proof", task, {}, task_id=task, tree=tree)
        record.observed(secrets, phase=Phase.AFTER, check_name="readiness-secrets", round_=number)
        if not rows.can_run:
            told = context.observation(f"{task}/tier3/{number}", "proof", task, {}, task_id=task, tree=tree)
            record.observed(told, phase=Phase.AFTER, check_name="tier3-infeasible", round_=number)

    if context.ledger.execution_id(context.run_id, f"{task}/after/{number}/{CHECKS[0]}") is None:
        context.write(write)


def _assessed(name: str, rows: Rows) -> Assessment:
    if name in rows.silent:
        return Assessment.TIMEOUT
    return Assessment.FAIL if name in rows.failing else Assessment.PASS


def _ran(context: FeatureContext, task: str, key: str, tree: str, assessment: Assessment) -> Execution:
    ends = {Assessment.PASS: 0, Assessment.FAIL: 1}
    return Execution(
        run_id=context.run_id,
        task_id=task,
        key=f"{task}/{key}",
        argv=("check", key),
        cwd=".",
        env_digest=_EMPTY,
        tool="check",
        tool_version=None,
        tree=tree,
        sandbox=SandboxTier.NAMESPACES,
        started_at=context.now(),
        duration_ms=1,
        exit_code=ends.get(assessment),
        signal=None if assessment in ends else 9,
        stdout=_EMPTY,
        stderr=_EMPTY,
        assessment=assessment,
    )


class PaperEvidence(AttemptEvidence):
    """Writes what the script says that the checks said."""

    def __init__(self, context: FeatureContext, parts: VerifyDeps, script: Script) -> None:
        super().__init__(context, parts)
        self._script, self._paper = script, context

    def run(
        self, order: AttemptOrder, attempt: RecordedAttempt, *, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> None:
        """Criteria follow with the verifier's report; a fix has none."""
        if declared is None:
            rows = self._script.rows_of(order.node, order.attempt)
            write_rows(self._paper, order.node, order.attempt, attempt.tree, rows)

    def measure(self, order: AttemptOrder, attempt: RecordedAttempt) -> None:
        """There are no lines to be counted."""

    def change(self, attempt: RecordedAttempt) -> str:
        return "(on paper)"

    def commands(self, attempt: RecordedAttempt) -> tuple[str, ...]:
        return ()

    def objections(
        self, attempt: RecordedAttempt, document: TaskDocument, report: VerificationReport
    ) -> tuple[str, ...]:
        return ()

    def judge(
        self,
        order: AttemptOrder,
        attempt: RecordedAttempt,
        document: TaskDocument,
        report: VerificationReport | None,
        stop: threading.Event,
    ) -> tuple[str, ...]:
        """Without a report nobody has judged a criterion."""
        names = required_checks(document.task.acceptance_criteria, (), is_waived=False)
        rows = self._script.rows_of(order.node, order.attempt)
        write_rows(
            self._paper, order.node, order.attempt, attempt.tree, rows, required=names if report is not None else ()
        )
        return () if report is not None else names

    def conclude(
        self,
        order: AttemptOrder,
        attempt: RecordedAttempt,
        document: TaskDocument,
        report: VerificationReport | None,
        unmet: tuple[str, ...],
    ) -> None:
        """No decision rests on a report."""


class PaperGraph:
    """Carries out one graph, a node at a time."""

    def __init__(
        self, context: FeatureContext, runner: FeatureGraphRunner, work: TaskImplementer, script: Script
    ) -> None:
        self._context, self._runner, self._work, self._script = context, runner, work, script
        self._tip = context.order.base_commit

    async def carry(self, number: int) -> GraphEnd:
        """Until no node can be begun any more, or nothing may be started."""
        halt = None
        while halt is None and (node := self._next()) is not None:
            halt = await self._attempt(node, number)
        nodes = self._runner.run().nodes
        merged = sum(status.status is NodeState.MERGED for status in nodes.values())
        failed = tuple(name for name, status in nodes.items() if status.status is NodeState.FAILED)
        waiting = tuple(name for name, status in nodes.items() if status.status is NodeState.PENDING)
        return GraphEnd(
            completed=merged == len(nodes),
            tip=self._tip,
            merged=merged,
            exhausted=failed,
            stranded=waiting,
            reason=None if halt is None else halt.reason,
            halt=halt,
        )

    def _next(self) -> DagNode | None:
        nodes = self._runner.run().nodes
        merged = {name for name, status in nodes.items() if status.status is NodeState.MERGED}
        for node in self._runner.begun().dag.nodes:
            if nodes[node.id].status is NodeState.PENDING and merged.issuperset(node.dependencies):
                return node
        return None

    async def _attempt(self, node: DagNode, number: int) -> BudgetHalt | None:
        context, runner = self._context, self._runner
        order = AttemptOrder(
            run_id=context.run_id,
            node=node.id,
            attempt=number,
            branch=f"paper/{node.id}/attempt-{number}",
            target=context.order.target,
            phase=str(number),
        )
        if runner.run().nodes[node.id].status is NodeState.PENDING:
            self._tell(lambda now: graph_events.started(runner.run().nodes[node.id], node, order, now))
        prepared = AttemptStart(base=context.order.base_commit, start=context.order.base_commit, conflicts=())
        worked = await self._work(order, prepared, Path())
        result = await self._proven(order, prepared) if worked.done else None
        if result is None:
            reason = worked.reason or "it did not finish"
            result = AttemptResult(verified=False, reason=reason, halt=worked.halt)
        ended = result
        self._tell(
            lambda now: graph_events.attempt_ended(runner.run().nodes[node.id], ended, is_collected=False, now=now)
        )
        if result.verified:
            self._merge(node.id, number)
        return result.halt

    async def _proven(self, order: AttemptOrder, prepared: AttemptStart) -> AttemptResult:
        commit, tree = hash_of(order.node, order.attempt), hash_of("tree", order.node, order.attempt)
        context, key = self._context, f"{ATTEMPT}:{order.node}:{order.attempt}"
        if context.ledger.observation(context.run_id, key) is None:
            detail: dict[str, object] = {
                "base": prepared.base,
                "head": commit,
                "tree": tree,
                "files": [changed_by(order.node).plain()],
            }
            seen = context.observation(key, ATTEMPT, order.node, detail, task_id=order.node, tree=tree)
            context.write(lambda record: record.observation(seen))
        proof = await self._runner.prove(order, prepared, Candidate(node=order.node, commit=commit, tree=tree))
        if not proof.holds:
            return AttemptResult(verified=False, reason="; ".join(proof.reasons) or "it was not proven")
        return AttemptResult(verified=True, commit=commit, tree=tree)

    def _merge(self, node: str, number: int) -> None:
        runner = self._runner
        run = runner.run()
        self._tell(lambda _now: graph_events.merge_started(run.batches + 1, [run.member(node)]))
        commit = hash_of("merged", node, number)
        if self._script.rows_of(node, number).merges:
            self._tip = commit
            result = MergeResult(tip=commit, landed=(LandedMember(node=node, commit=commit),), clashes=(), checks=1)
        else:
            culprit = Culprit(node=node, reasons=("the script says so",))
            result = MergeResult(tip=self._tip, landed=(), culprit=culprit, clashes=(), checks=1)
        needs = {each.id: each.dependencies for each in runner.begun().dag.nodes}
        self._tell(lambda now: graph_events.merge_ended(runner.run(), needs, self._context.order.target, result, now))

    def _tell(self, make: Callable[[str], Iterable[EventData]]) -> None:
        self._runner.write(make)
