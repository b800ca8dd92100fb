"""The evidence about one attempt: what is run, what becomes of the verifier's words, and what it all comes to."""

import threading

from assay.contracts.agents.dispatch import Change as Became
from assay.contracts.agents.dispatch import ChangedPath
from assay.contracts.common.evidence import Phase
from assay.contracts.common.words import Risk, Size
from assay.contracts.feature.facts import Change, TaskFacts
from assay.contracts.feature.implementation import ImplementationReport
from assay.contracts.feature.task import TaskDocument
from assay.contracts.feature.verification import VerificationReport
from assay.contracts.graph.orders import AttemptOrder
from assay.contracts.verify.report import Side, Subject
from assay.kit.killpoints import reach
from assay.rules.criteria import required_checks
from assay.rules.plan import MAX_PRODUCTION_LINES, is_test_file
from assay.steps.feature import criteria, discrepancies
from assay.steps.feature.briefs_task import writes_of
from assay.steps.feature.reports import When, filled, shown
from assay.steps.feature.room import Room
from assay.steps.feature.tasks import Attempted, attempted, is_waived
from assay.steps.verify.subject import Parts, prove

_BECAME = {Change.ADDED: Became.ADDED, Change.MODIFIED: Became.MODIFIED, Change.DELETED: Became.DELETED}
LINES = "lines"


class Evidence:
    """Gathers the evidence of a run's attempts."""

    def __init__(self, room: Room, parts: Parts) -> None:
        self._room, self._parts = room, parts

    def declared(self, document: TaskDocument) -> tuple[str, ...]:
        """What the task may touch."""
        return writes_of(document)

    def run(
        self, order: AttemptOrder, attempt: Attempted, *, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> None:
        """Runs the checks before and after the change."""
        prove(
            self._parts,
            self._room.run_id,
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
            self._room.run_id,
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
        room = self._room
        self._measure(order, attempt)
        baseline = room.ledger.tally(room.run_id, order.node, Phase.BASELINE, order.attempt - 1)
        after = room.ledger.tally(room.run_id, order.node, Phase.AFTER, order.attempt)
        path = room.layout.implementation_report(order.node)
        if path in room.state().artifacts:
            said = room.document(path, ImplementationReport)
            changed = [ChangedPath(path=file.path, change=_BECAME[file.change], allowed=True) for file in attempt.files]
            discrepancies.record(
                room,
                order.node,
                order.attempt,
                discrepancies.compare(said, changed, baseline, after),
                baseline=discrepancies.untrue_baseline(said, baseline),
                tree=attempt.tree,
            )
        path = room.layout.verification_report(order.node)
        now = room.now()
        whole = filled(
            report,
            self.facts(order, document),
            room.run_id,
            shown(room.ledger, room.run_id, order.node),
            policy=room.order.policy,
            path=path,
            when=When(now, now),
            unmet=unmet,
        )
        room.put_document(path, whole)

    def _measure(self, order: AttemptOrder, attempt: Attempted) -> None:
        """A task that grew beyond its limit should have been two; one that changed nothing was not carried out."""
        room, key = self._room, f"{LINES}:{order.node}:{order.attempt}"
        if room.ledger.observation(room.run_id, key) is not None:
            return
        base, head = (room.repository.tree_of(commit) for commit in (attempt.base, attempt.head))
        changes = room.shadow.diff(base, head)
        lines = sum(len(change.added) for change in changes if not is_test_file(change.path))
        holds = bool(changes) and lines <= MAX_PRODUCTION_LINES
        seen = room.seen(key, LINES, order.node, {"lines": lines}, task_id=order.node, tree=attempt.tree).model_copy(
            update={"holds": holds}
        )
        told = f"{lines} production lines where a task has at most {MAX_PRODUCTION_LINES}"
        told = told if changes else "nothing was changed"
        if holds:
            room.write(lambda record: record.observation(seen))
        else:
            room.write(
                lambda record: record.observed(
                    seen, phase=Phase.AFTER, check_name="scope", round_=order.attempt, output=told, instance=LINES
                )
            )
        reach("feature.measured")

    def rendered(self, order: AttemptOrder) -> str:
        """What was run, as a verifier is shown it."""
        room = self._room
        rows = (
            *room.ledger.tally(room.run_id, order.node, Phase.BASELINE, order.attempt - 1).rows,
            *room.ledger.tally(room.run_id, order.node, Phase.AFTER, order.attempt).rows,
        )
        return "\n".join(
            f"{row.phase.value:<9} {row.check_name:<32} {'passed' if row.passed else 'failed'} ({row.provenance.value})"
            for row in rows
        )

    def facts(self, order: AttemptOrder, document: TaskDocument | None) -> TaskFacts:
        """What is known about the attempt now."""
        room = self._room
        done = attempted(room, order.node, order.attempt)
        return TaskFacts(
            task=order.node,
            size=Size.STANDARD if document is None else document.task.size,
            risk=Risk.GREEN if document is None else document.task.risk,
            files=() if done is None else done.files,
            iteration=1,
            round=order.attempt,
            baseline=room.ledger.tally(room.run_id, order.node, Phase.BASELINE, order.attempt - 1),
            after=room.ledger.tally(room.run_id, order.node, Phase.AFTER, order.attempt),
            tree=None if done is None else done.tree,
            required=() if document is None or done is None else self._required(document, done),
            ready=True,
            check_runs=1,
            baseline_runs=1,
        )

    def _required(self, document: TaskDocument, done: Attempted) -> tuple[str, ...]:
        return required_checks(document, done.files, is_waived=is_waived(self._room, document))

    def _side(self, commit: str) -> Side:
        return Side(ref=commit[:12], commit=commit, tree=self._room.repository.tree_of(commit))
