"""The evidence about one attempt: its checks, the verdicts on its acceptance criteria, and its verification report.

Criteria are judged by running the commands that the verifier proposed and by looking at the places it named. A
command's result is recorded at once, under its key; the claims and the conclusion follow in one record. After a crash
the recorded results are found, and a repeated call returns the recorded conclusion.
"""

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairwitness.contracts.agents.dispatch import ChangedPath
from fairwitness.contracts.agents.dispatch import PathChangeKind as Became
from fairwitness.contracts.common.evidence import Claim, Observation, Phase
from fairwitness.contracts.feature.facts import ChangeKind
from fairwitness.contracts.feature.implementation import ImplementationReport
from fairwitness.contracts.feature.plan import TaskDocument
from fairwitness.contracts.feature.verification import VerificationPayload, VerificationReport
from fairwitness.contracts.graph.orders import AttemptOrder
from fairwitness.contracts.verify.checks import CheckSpec, Discovered
from fairwitness.contracts.verify.report import Side, VerifySubject
from fairwitness.errors import UsageError
from fairwitness.kit.clock import spell
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.record import Record
from fairwitness.rules.criteria import (
    ByCommand,
    ByPlace,
    Proposal,
    Unjudged,
    beginnings,
    check_name,
    command_verdict,
    proposal,
)
from fairwitness.rules.evidence_worth import ValuedRow, baseline_worth, latest, valued_rows
from fairwitness.rules.feature_plan import MAX_PRODUCTION_LINES, is_test_file
from fairwitness.runs.feature import reports
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.facts import attempt_facts
from fairwitness.runs.feature.reports import ReportTimes, filled, shown
from fairwitness.runs.feature.tasks import CRITERIA as KIND
from fairwitness.runs.feature.tasks import RecordedAttempt
from fairwitness.runs.shared.sections import change_text
from fairwitness.verify.cascade import pair_checks, project_of
from fairwitness.verify.conclusion import recorded_outcome
from fairwitness.verify.failed_checks import check_texts, spelled
from fairwitness.verify.folder_lock import locked_folder
from fairwitness.verify.harness import run_once
from fairwitness.verify.model import CheckRequest, refuse_stopped
from fairwitness.verify.subject import VerifyDeps, harness_of, ignore_progress, prove
from fairwitness.verify.tree_view import TreeView, checks_at

"""The kind of observation that concludes the judging of a task's criteria."""
VERIFIER = "verifier"


class CriterionVerdict(NamedTuple):
    """One criterion and its verdict."""

    check: str
    criterion: str
    met: bool | None
    """None if the criterion cannot be judged."""
    text: str
    """The reason, in one clause."""
    claim: dict[str, object] | None = None
    """The body of the claim on which the verdict rests."""
    seen: str | None = None
    """What the harness saw that contradicts a command that passed."""

    @property
    def sentence(self) -> str:
        """Return the sentence about a criterion that is not met."""
        return f"{self.check} is {'unjudged' if self.met is None else 'unmet'}: {self.criterion} ({self.text})"


def judge(
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
    """Record one row for each criterion that can be judged; return sentences about those that are unmet or unjudged.

    This blocks and runs commands; when `stop` is set, the running command is killed and `Stopped` is raised. Without a
    report nothing is written, so a later report still counts. Raise `UsageError` if the round was about another tree.
    """
    subject = VerifySubject(task_id=task, round=round_)
    recorded_outcome(verify_deps.ledger, run_id, subject, base=base.tree, head=head.tree)  # refuses other trees
    if report is None:
        return tuple(each.sentence for each in _all_unjudged(criteria, "the verifier said nothing"))
    known = _concluded(verify_deps, run_id, subject, head)
    if known is not None:
        return known
    refuse_stopped(stop)
    with locked_folder(verify_deps.scratch / "work", _name_of(run_id, subject), stop) as work:
        known = _concluded(verify_deps, run_id, subject, head)
        if known is not None:
            return known
        judged = _judged(verify_deps, run_id, subject, criteria, report, base, head, work, stop)
        return _conclude(verify_deps, run_id, subject, head, judged)


def _name_of(run_id: str, subject: VerifySubject) -> str:
    """Return a folder name that is the same for every try, and short, since a socket path must fit into it."""
    return f"criteria-{hashlib.sha256(f'{run_id} {subject.name}'.encode()).hexdigest()[:12]}"


def _key(subject: VerifySubject) -> str:
    return f"{KIND}:{subject.name}"


def _concluded(verify_deps: VerifyDeps, run_id: str, subject: VerifySubject, head: Side) -> tuple[str, ...] | None:
    found = verify_deps.ledger.observation(run_id, _key(subject))
    if found is None:
        return None
    if found.tree != head.tree:
        raise UsageError(
            f"the criteria of {subject.name} were judged for another tree in this run ({found.tree})",
            next_step="a round is judged once; judge this tree in another round",
        )
    return tuple(map(str, found.detail["missing"]))


def _all_unjudged(criteria: Sequence[str], reason: str) -> tuple[CriterionVerdict, ...]:
    return tuple(
        CriterionVerdict(check_name(number), text, None, reason) for number, text in enumerate(criteria, start=1)
    )


def _judged(
    verify_deps: VerifyDeps,
    run_id: str,
    subject: VerifySubject,
    criteria: Sequence[str],
    report: VerificationReport,
    base: Side,
    head: Side,
    work: Path,
    stop: threading.Event,
) -> tuple[CriterionVerdict, ...]:
    payload = report.agent_output.payload
    if payload.task_id != subject.task_id:
        return _all_unjudged(criteria, f"the verifier's report is about {payload.task_id}")
    tree = TreeView(verify_deps.shadow, head.tree)
    before, after = _discovered(verify_deps, base, head)
    proposals = _proposals(criteria, payload, [spec for spec, _ in pair_checks(before, after)], tree)
    with harness_of(
        verify_deps, subject, before, after, run_id=run_id, work=work, on_progress=ignore_progress, stop=stop
    ) as harness:

        def of(number: int, text: str, proposed: Proposal) -> CriterionVerdict:
            name = check_name(number)
            match proposed:
                case Unjudged(reason):
                    return CriterionVerdict(name, text, None, reason)
                case ByPlace():
                    return _looked_at(name, text, proposed, tree)
                case ByCommand(spec, check):
                    question = CheckRequest(
                        spec, project_of(check, after), head.tree, f"criterion-{number}", Phase.AFTER
                    )
                    met, why, seen = command_verdict(spec.report, run_once(harness, question))
                    return CriterionVerdict(name, text, met, why, seen=seen)

        return tuple(
            of(number, text, proposed)
            for number, (text, proposed) in enumerate(zip(criteria, proposals, strict=True), 1)
        )


def _discovered(verify_deps: VerifyDeps, base: Side, head: Side) -> tuple[Discovered, Discovered]:
    before, after = (checks_at(verify_deps.shadow, side.tree, verify_deps.settings) for side in (base, head))
    return before, after


def _proposals(
    criteria: Sequence[str], payload: VerificationPayload, checks: Sequence[CheckSpec], tree: TreeView
) -> list[Proposal]:
    return [
        proposal(number, text, payload.criteria or (), checks, frozenset(tree.paths))
        for number, text in enumerate(criteria, start=1)
    ]


def _looked_at(name: str, criterion: str, place: ByPlace, tree: TreeView) -> CriterionVerdict:
    """Accept a claim about a place only if the place exists."""
    spoken = f"{place.path}:{place.line}"
    content = tree.read(place.path)
    if content is None:
        return CriterionVerdict(name, criterion, None, f"there is no file {place.path} that could be read")
    lines = len(content.splitlines())
    if not 1 <= place.line <= lines:
        return CriterionVerdict(
            name, criterion, None, f"there is no line {place.line} in {place.path}, which has {lines}"
        )
    body: dict[str, object] = {"met": place.met, "criterion": criterion, "place": spoken, "claim": place.claim}
    return CriterionVerdict(name, criterion, place.met, f"the verifier says so of {spoken}: {place.claim}", claim=body)


def _conclude(
    verify_deps: VerifyDeps, run_id: str, subject: VerifySubject, head: Side, judged: Sequence[CriterionVerdict]
) -> tuple[str, ...]:
    """Record everything that was not run, and the conclusion."""
    now = spell(verify_deps.clock())
    missing = tuple(each.sentence for each in judged if each.met is not True)

    def observation(key: str, kind: str, holds: bool, detail: dict[str, object]) -> Observation:
        return Observation(
            run_id=run_id,
            task_id=subject.task_id,
            key=key,
            kind=kind,
            subject=subject.task_id,
            holds=holds,
            detail=detail,
            tree=head.tree,
            observed_at=now,
        )

    def write(record: Record) -> None:
        for each in judged:
            key = f"criterion:{subject.name}:{each.check}"
            if each.claim is not None:
                claim = Claim(
                    run_id=run_id,
                    task_id=subject.task_id,
                    key=key,
                    agent=VERIFIER,
                    instance=None,
                    kind="criterion",
                    body=each.claim,
                    claimed_at=now,
                )
                record.inspected(claim, check_name=each.check, round_=subject.round)
            if each.seen is not None:
                seen = observation(key, "criterion", False, {"text": each.seen})
                record.observed(seen, phase=Phase.AFTER, check_name=each.check, round_=subject.round, output=each.seen)
        told = [{"check": each.check, "met": each.met, "text": each.text} for each in judged]
        detail: dict[str, object] = {"head": head.tree, "judged": told, "missing": list(missing)}
        record.observation(observation(_key(subject), KIND, not missing, detail))

    verify_deps.ledger.record(run_id, write)
    killpoint("feature.criteria")
    return missing


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
        sides = self._side(attempt.base), self._side(attempt.head)
        return [spec for spec, _ in pair_checks(*_discovered(self._verify_deps, *sides))]

    def objections(
        self, attempt: RecordedAttempt, document: TaskDocument, report: VerificationReport
    ) -> tuple[str, ...]:
        """Return why criteria cannot be judged by what a verifier answered; it is then asked again."""
        criteria, checks = document.task.acceptance_criteria, self._checks(attempt)
        tree = TreeView(self._verify_deps.shadow, attempt.tree)
        proposed = _proposals(criteria, report.agent_output.payload, checks, tree)
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
        return judge(
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
        self._measure(order, attempt)
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

    def _measure(self, order: AttemptOrder, attempt: RecordedAttempt) -> None:
        """Record whether the task stayed within its size limit, and whether it changed anything."""
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
