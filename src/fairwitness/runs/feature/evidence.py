"""The evidence about one attempt: its checks, the verdicts on its acceptance criteria, and its verification report."""

import threading
from collections.abc import Sequence

from fairwitness.contracts.agents.dispatch import ChangedPath
from fairwitness.contracts.agents.dispatch import PathChangeKind as Became
from fairwitness.contracts.common.evidence import Phase
from fairwitness.contracts.feature.facts import ChangeKind
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.feature.verification import VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder
from fairwitness.contracts.verify.checks import CheckSpec
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.kit.killpoints import killpoint
from fairwitness.rules.criteria import Unjudged, beginnings, check_name
from fairwitness.rules.evidence_worth import ValuedRow, baseline_worth, latest, valued_rows
from fairwitness.rules.feature_plan import MAX_PRODUCTION_LINES, is_test_file
from fairwitness.runs.feature import reports
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import attempt_facts
from fairwitness.runs.feature.reports import ReportTimes, filled, shown
from fairwitness.runs.feature.tasks import RecordedAttempt
from fairwitness.runs.shared.criteria import CriteriaQuestion, all_unjudged, discovered, judge, proposals_of
from fairwitness.runs.shared.sections import change_text
from fairwitness.verify.cascade import pair_checks
from fairwitness.verify.failed_checks import check_texts, spelled
from fairwitness.verify.subject import VerifyDeps, prove
from fairwitness.verify.tree_view import TreeView

VERIFIER = "verifier"
_WHO = "the verifier"


def judge_report(
    verify_deps: VerifyDeps,
    run_id: str,
    task: str,
    round_: int,
    criteria: Sequence[str],
    report: VerificationReport | None,
    *,
    base: Side,
    head: Side,
    stop: threading.Event,
) -> tuple[str, ...]:
    """Judge criteria as a verifier proposes; return sentences about those that are unmet or unjudged.

    Without a report nothing is written, so a later report still counts.
    """
    if report is None:
        return tuple(each.sentence for each in all_unjudged(criteria, "the verifier said nothing"))
    payload = report.agent_output.payload
    asked = CriteriaQuestion(
        task=task,
        round=round_,
        criteria=criteria,
        judgements=payload.criteria or (),
        base=base,
        head=head,
        who=_WHO,
        agent=VERIFIER,
        unjudged=None if payload.task_id == task else f"the verifier's report is about {payload.task_id}",
    )
    return judge(verify_deps, run_id, asked, stop)


_BECAME = {ChangeKind.ADDED: Became.ADDED, ChangeKind.MODIFIED: Became.MODIFIED, ChangeKind.DELETED: Became.DELETED}
LINES = "lines"


class AttemptEvidence:
    """Gathers the evidence of a run's attempts."""

    def __init__(self, context: FeatureContext, verify_deps: VerifyDeps) -> None:
        self._context, self._verify_deps = context, verify_deps

    def run(
        self, order: AttemptOrder, attempt: RecordedAttempt, *, declared: tuple[str, ...] | None, stop: threading.Event
    ) -> None:
        """Run the checks before and after the change."""
        prove(
            self._verify_deps,
            self._context.run_id,
            VerifySubject(task_id=order.node, round=order.attempt),
            base=self._side(attempt.base),
            head=self._side(attempt.head),
            declared=declared,
            stop=stop,
        )

    def change(self, attempt: RecordedAttempt) -> str:
        """Return the change of an attempt as a diff."""
        return change_text(self._context.shadow, self._side(attempt.base).tree, attempt.tree)

    def commands(self, attempt: RecordedAttempt) -> tuple[str, ...]:
        """Return how the commands that judge criteria may begin."""
        return beginnings(self._checks(attempt))

    def _checks(self, attempt: RecordedAttempt) -> list[CheckSpec]:
        trees = self._side(attempt.base).tree, self._side(attempt.head).tree
        return [spec for spec, _ in pair_checks(*discovered(self._verify_deps, *trees))]

    def objections(
        self, attempt: RecordedAttempt, document: TaskDocument, report: VerificationReport
    ) -> tuple[str, ...]:
        """Return why criteria cannot be judged by what a verifier answered; it is then asked again."""
        criteria, checks = document.task.acceptance_criteria, self._checks(attempt)
        tree = TreeView(self._verify_deps.shadow, attempt.tree)
        said = report.agent_output.payload.criteria or ()
        proposed = proposals_of(criteria, said, checks, tree, _WHO)
        reasons = [
            f"agent_output.payload.criteria: {check_name(number)}, {text!r}: {each.reason}"
            for number, (text, each) in enumerate(zip(criteria, proposed, strict=True), 1)
            if isinstance(each, Unjudged)
        ]
        allowed = ", ".join(f"`{command}`" for command in beginnings(checks)) or "none: name a `location` and a `claim`"
        return (*reasons, f"commands may begin with: {allowed}") if reasons else ()

    def judge(
        self,
        order: AttemptOrder,
        attempt: RecordedAttempt,
        document: TaskDocument,
        report: VerificationReport | None,
        stop: threading.Event,
    ) -> tuple[str, ...]:
        """Judge the task's criteria; return sentences about those that are unmet or unjudged."""
        return judge_report(
            self._verify_deps,
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
        attempt: RecordedAttempt,
        document: TaskDocument,
        report: VerificationReport | None,
        unmet: tuple[str, ...],
    ) -> None:
        """Compare the claims with the observations, and write the task's verification report."""
        context = self._context
        self.measure(order, attempt)
        baseline = context.ledger.tally(context.run_id, order.node, Phase.BASELINE, order.attempt - 1)
        after = context.ledger.tally(context.run_id, order.node, Phase.AFTER, order.attempt)
        path = context.layout.implementation_report(order.node)
        if path in context.state().artifacts:
            said = context.document(path, ImplementationReport)
            changed = [ChangedPath(path=file.path, change=_BECAME[file.change], allowed=True) for file in attempt.files]
            reports.record(
                context,
                order.node,
                order.attempt,
                reports.compare(said, changed, baseline, after),
                baseline=reports.untrue_baseline(said, baseline),
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
            when=ReportTimes(now, now),
            unmet=unmet,
        )
        context.put_document(path, whole)

    def measure(self, order: AttemptOrder, attempt: RecordedAttempt) -> None:
        """Record whether an attempt stayed within its size limit, and whether it changed anything."""
        context, key = self._context, f"{LINES}:{order.node}:{order.attempt}"
        if context.ledger.observation(context.run_id, key) is not None:
            return
        base, head = (context.repository.tree_of(commit) for commit in (attempt.base, attempt.head))
        changes = context.shadow.diff(base, head)
        lines = sum(len(change.added) for change in changes if not is_test_file(change.path))
        holds = bool(changes) and lines <= MAX_PRODUCTION_LINES
        seen = context.observation(
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
        """Return what was run, as a verifier is shown it: commands, exit codes, and what failed."""
        context = self._context
        baseline = context.ledger.tally(context.run_id, order.node, Phase.BASELINE, order.attempt - 1)
        after = context.ledger.tally(context.run_id, order.node, Phase.AFTER, order.attempt)
        earlier = [ValuedRow(row, baseline_worth(row, tree=None)) for row in latest(baseline.rows)]
        later = valued_rows(after, iteration=order.attempt, baseline=baseline)
        before, now = (
            check_texts(context.ledger, context.kept, context.run_id, order.node, rows) for rows in (earlier, later)
        )
        # a baseline that failed is evidence as well, so its worth does not say how it ended
        ended = [text._replace(worth="passed" if text.passed else "failed") for text in before]
        parts = (("Before the change", ended), ("After the change", now))
        return "\n\n".join(f"{title}:\n\n{spelled(texts)}" for title, texts in parts if texts)

    def _side(self, commit: str) -> Side:
        return Side(ref=commit[:12], commit=commit, tree=self._context.repository.tree_of(commit))
