"""The evidence about one attempt: what is run, what becomes of the verifier's words, and what it all comes to."""

import threading

from fairwitness.contracts.agents.dispatch import Change as Became
from fairwitness.contracts.agents.dispatch import ChangedPath
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.feature.facts import Change
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.task import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder
from fairwitness.contracts.verify.report import Side, Subject
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.plan import MAX_PRODUCTION_LINES, is_test_file
from fairwitness.runs.feature import criteria, discrepancies
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts_tasks import attempt_facts
from fairwitness.runs.feature.reports import When, filled, shown
from fairwitness.runs.feature.tasks import Attempted
from fairwitness.verify.subject import VerifyDeps, prove

_BECAME = {Change.ADDED: Became.ADDED, Change.MODIFIED: Became.MODIFIED, Change.DELETED: Became.DELETED}
LINES = "lines"


class Evidence:
    """Gathers the evidence of a run's attempts."""

    def __init__(self, context: FeatureContext, parts: VerifyDeps) -> None:
        self._context, self._parts = context, parts

    def run(
        self, order: AttemptOrder, attempt: Attempted, *, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> None:
        """Runs the checks before and after the change."""
        prove(
            self._parts,
            self._context.run_id,
            Subject(task_id=order.node, round=order.attempt),
            base=self._side(attempt.base),
            head=self._side(attempt.head),
            declared=declared,
            stop=stop,
        )

    def judge(
        self,
        order: AttemptOrder,
        attempt: Attempted,
        document: TaskDocument,
        report: VerificationReport | None,
        stop: threading.Event,
    ) -> tuple[str, ...]:
        """Judges the task's criteria one by one; what is unmet or unjudged."""
        return criteria.judge(
            self._parts,
            self._context.run_id,
            order.node,
            order.attempt,
            document.task.acceptance_criteria,
            report,
            base=self._side(attempt.base),
            head=self._side(attempt.head),
            stop=stop,
        )

    def conclude(
        self,
        order: AttemptOrder,
        attempt: Attempted,
        document: TaskDocument,
        report: VerificationReport | None,
        unmet: tuple[str, ...],
    ) -> None:
        """Compares what was said with what was seen, and writes the task's verification report."""
        context = self._context
        self._measure(order, attempt)
        baseline = context.ledger.tally(context.run_id, order.node, Phase.BASELINE, order.attempt - 1)
        after = context.ledger.tally(context.run_id, order.node, Phase.AFTER, order.attempt)
        path = context.layout.implementation_report(order.node)
        if path in context.state().artifacts:
            said = context.document(path, ImplementationReport)
            changed = [ChangedPath(path=file.path, change=_BECAME[file.change], allowed=True) for file in attempt.files]
            discrepancies.record(
                context,
                order.node,
                order.attempt,
                discrepancies.compare(said, changed, baseline, after),
                baseline=discrepancies.untrue_baseline(said, baseline),
                tree=attempt.tree,
            )
        path = context.layout.verification_report(order.node)
        now = context.now()
        whole = filled(
            report,
            attempt_facts(context, order.node, order.attempt, document),
            context.run_id,
            shown(context.ledger, context.run_id, order.node),
            policy=context.order.policy,
            path=path,
            when=When(now, now),
            unmet=unmet,
        )
        context.put_document(path, whole)

    def _measure(self, order: AttemptOrder, attempt: Attempted) -> None:
        """A task that grew beyond its limit should have been two; one that changed nothing was not carried out."""
        context, key = self._context, f"{LINES}:{order.node}:{order.attempt}"
        if context.ledger.observation(context.run_id, key) is not None:
            return
        base, head = (context.repository.tree_of(commit) for commit in (attempt.base, attempt.head))
        changes = context.shadow.diff(base, head)
        lines = sum(len(change.added) for change in changes if not is_test_file(change.path))
        holds = bool(changes) and lines <= MAX_PRODUCTION_LINES
        seen = context.seen(
            key, LINES, order.node, {"lines": lines}, holds=holds, task_id=order.node, tree=attempt.tree
        )
        told = f"{lines} production lines where a task has at most {MAX_PRODUCTION_LINES}"
        told = told if changes else "nothing was changed"
        if holds:
            context.write(lambda record: record.observation(seen))
        else:
            context.write(
                lambda record: record.observed(
                    seen, phase=Phase.AFTER, check_name="scope", round_=order.attempt, output=told, instance=LINES
                )
            )
        killpoint("feature.measured")

    def rendered(self, order: AttemptOrder) -> str:
        """What was run, as a verifier is shown it."""
        context = self._context
        rows = (
            *context.ledger.tally(context.run_id, order.node, Phase.BASELINE, order.attempt - 1).rows,
            *context.ledger.tally(context.run_id, order.node, Phase.AFTER, order.attempt).rows,
        )
        return "\n".join(
            f"{row.phase.value:<9} {row.check_name:<32} {'passed' if row.passed else 'failed'} ({row.provenance.value})"
            for row in rows
        )

    def _side(self, commit: str) -> Side:
        return Side(ref=commit[:12], commit=commit, tree=self._context.repository.tree_of(commit))
