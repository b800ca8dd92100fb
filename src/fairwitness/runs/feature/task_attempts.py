"""Steps 5 and 6 for one task: an implementer works in a worktree, the harness checks the result, a verifier reports.

The gates that decide about the run also decide whether an attempt is merged. They read the rows of the ledger, not what
an agent says.
"""

from functools import partial
from pathlib import Path

from fairwitness.contracts.agents.dispatch import Brief, OutcomeStatus, PromptSection
from fairwitness.contracts.common.gates import Blocked
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.common.vocabulary import CompletionStatus, Workflow
from fairwitness.contracts.feature.facts import Step
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.feature.review import ReviewScope
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, Proof, Worked
from fairwitness.kit.killpoints import killpoint
from fairwitness.kit.text import bounded
from fairwitness.rules.findings import RaisedFinding
from fairwitness.rules.gates import is_verified, task_gates
from fairwitness.runs.dispatch import Dispatched, DispatchPosition
from fairwitness.runs.dispatch.blocking import run_blocking, run_blocking_stoppable
from fairwitness.runs.feature.answers import store
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.evidence import AttemptEvidence
from fairwitness.runs.feature.facts import attempt_facts
from fairwitness.runs.feature.failed_attempts import FailedAttempt
from fairwitness.runs.feature.findings import answer_problems, findings_section, open_design_findings, open_findings
from fairwitness.runs.feature.tasks import FIX_NODE, RecordedAttempt, TaskGraph, note_attempt, task_of, writes_of
from fairwitness.runs.graph.agent_work import worked
from fairwitness.runs.graph.repo_context import Prove, RepoContext
from fairwitness.runs.graph.runner import ExclusiveTargetGraph
from fairwitness.runs.shared.agent_calls import AgentCaller, with_check
from fairwitness.runs.shared.conflicts import conflict_section, conflict_text

_SUMMARY = 60


class TaskImplementer:
    """Lets an implementer work on a task (the `AgentWork` of a graph)."""

    def __init__(self, context: FeatureContext, graph: TaskGraph, caller: AgentCaller, briefs: FeatureBriefs) -> None:
        self._context, self._graph, self._caller, self._briefs = context, graph, caller, briefs

    async def __call__(self, order: AttemptOrder, prepared: AttemptStart, folder: Path) -> Worked:
        """Call the implementer, and again after a transient failure; each try starts with the same files."""
        brief = await run_blocking(self._brief, order, prepared, _id(Step.IMPLEMENT, order))
        position = _position(Step.IMPLEMENT, order)
        equip = (
            with_check(ImplementationReport, self._objections)
            if order.node == FIX_NODE and order.conflict is None
            else None
        )
        done = await self._caller.ask_in(brief, position, folder, prepared.base, id_of=_numbered, equip=equip)
        if done.outcome.status is OutcomeStatus.OK and order.conflict is None:
            await run_blocking(store, self._context, Role.IMPLEMENTER, order.node, done)
        return worked(done, _unfinished, bounded(self._title(order.node), _SUMMARY))

    def _brief(self, order: AttemptOrder, prepared: AttemptStart, dispatch_id: str) -> Brief:
        context, known = self._context, open_design_findings(self._context)
        if order.node == FIX_NODE:
            found = findings_section("Findings", self._found())
            return self._briefs.fixer(dispatch_id, found, self._graph.writes, known=known)
        before = self._before(order, prepared)
        return self._briefs.implementer(dispatch_id, task_of(context, order.node), before=before, findings=known)

    def _found(self) -> tuple[RaisedFinding, ...]:
        """Return the findings that the fix has to answer."""
        return open_findings(self._context, ReviewScope.CODE)

    def _objections(self, answer: ImplementationReport) -> tuple[str, ...]:
        return answer_problems(self._found(), answer)

    def _before(self, order: AttemptOrder, prepared: AttemptStart) -> tuple[PromptSection, ...]:
        """Return what is known of the attempt before this one, and the conflicts that this one starts with."""
        told = self._context.state().tasks.get(order.node)
        failed = [each.attempt for each in (told.attempts if told else ()) if each.reason]
        conflicts = conflict_text(self._context.repository, order, prepared)
        if not failed:
            return conflict_section(conflicts)
        last = FailedAttempt(self._context, order.node, failed[-1])
        return last.sections(base=prepared.base, conflicts=conflicts)

    def _title(self, node: str) -> str:
        if node == FIX_NODE:
            return "what the review found"
        return task_of(self._context, node).task.title


class FeatureGraphRunner(ExclusiveTargetGraph):
    """The runner of one graph of a feature run."""

    def __init__(
        self,
        repo: RepoContext,
        context: FeatureContext,
        graph: TaskGraph,
        caller: AgentCaller,
        briefs: FeatureBriefs,
        prove: Prove,
        evidence: AttemptEvidence,
    ) -> None:
        super().__init__(
            repo,
            context.ledger,
            context.run_id,
            TaskImplementer(context, graph, caller, briefs),
            prove,
            workflow=Workflow.FEATURE,
            phase=str(graph.number),
            clock=context.clock,
        )
        self._context, self._graph, self._caller, self._briefs = context, graph, caller, briefs
        self._evidence, self._folders = evidence, repo.worktrees

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """Commit the agents' work. An attempt without changes is proven too, so that the state of its checks is
        recorded."""
        made = await super().commit(order, prepared, worked)
        if made is not None or order.conflict is not None:
            return made
        worktree = self._folders.named(order.run_id, order.node, order.attempt)
        tip = await run_blocking(self._folders.tip, worktree)
        if tip is None:
            return None
        return Candidate(node=order.node, commit=tip, tree=self._context.repository.tree_of(tip))

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Run the checks, call the verifier and judge the criteria; the gates decide the result."""
        if order.conflict is not None:
            return await super().prove(order, prepared, candidate)
        context, evidence = self._context, self._evidence
        attempt = await run_blocking(note_attempt, context, order.node, order.attempt, prepared.base, candidate.commit)
        if order.node == FIX_NODE:
            await run_blocking_stoppable(lambda stop: evidence.run(order, attempt, declared=None, stop=stop))
            await run_blocking(evidence.measure, order, attempt)  # a fix that changes nothing repairs nothing
            return await run_blocking(self._judged, order, None)
        document = await run_blocking(task_of, context, order.node)
        await run_blocking_stoppable(lambda stop: evidence.run(order, attempt, declared=writes_of(document), stop=stop))
        report = await self._verified(order, prepared, attempt, document)
        unmet = await run_blocking_stoppable(lambda stop: evidence.judge(order, attempt, document, report, stop))
        await run_blocking(evidence.conclude, order, attempt, document, report, unmet)
        killpoint("feature.proven")
        return await run_blocking(self._judged, order, document)

    async def _verified(
        self, order: AttemptOrder, prepared: AttemptStart, attempt: RecordedAttempt, document: TaskDocument
    ) -> VerificationReport | None:
        """Return the verifier's report; None if it made none, and then its criteria are unjudged."""
        evidence = self._evidence
        seen = await run_blocking(evidence.rendered, order)
        change = await run_blocking(evidence.change, attempt)
        commands = await run_blocking(evidence.commands, attempt)
        folder = self._folders.named(order.run_id, order.node, order.attempt).folder
        changed = tuple(file.path for file in attempt.files)
        brief = await run_blocking(
            lambda: self._briefs.verifier(
                _id(Step.VERIFY, order), document, changed=changed, change=change, seen=seen, commands=commands
            )
        )

        equip = with_check(VerificationReport, partial(evidence.objections, attempt, document))
        position = _position(Step.VERIFY, order)
        done = await self._caller.ask_in(brief, position, folder, prepared.base, id_of=_numbered, equip=equip)
        report = done.answer(VerificationReport)
        if report is not None:
            await run_blocking(store, self._context, Role.VERIFIER, order.node, done)
        return report

    def _judged(self, order: AttemptOrder, document: TaskDocument | None) -> Proof:
        facts = attempt_facts(self._context, order.node, order.attempt, document)
        policy = self._context.order.policy
        if is_verified(facts, policy):
            return Proof(holds=True, reasons=())
        missing = [
            each for answer in task_gates(facts, policy) if isinstance(answer, Blocked) for each in answer.missing
        ]
        return Proof(holds=False, reasons=tuple(missing))


def _id(step: Step, order: AttemptOrder) -> str:
    helper = "-help" if order.conflict is not None else ""
    return f"{step.value}-{order.phase}-{order.node}{helper}"


def _numbered(call: str, number: int) -> str:
    """Return the dispatch id of a try; every call of a feature run has its number at the end."""
    return f"{call}-{number}"


def _position(step: Step, order: AttemptOrder) -> DispatchPosition:
    return DispatchPosition(step.value, task=order.node, phase=order.phase, attempt=order.attempt)


def _unfinished(done: Dispatched) -> str | None:
    report = done.answer(ImplementationReport)
    assert report is not None
    said = report.completion
    if said.status is CompletionStatus.DONE:
        return None
    return f"its implementer says {said.status.value}: {said.summary}"[:500]
