"""What the next attempt in an autopilot run is told about failed work: of a task, of a plan, of a phase or of a cycle.

It comes from the ledger: the stored output of commands and checks, the returns of reviewers, the trees of attempts.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from fairwitness.contracts.agents.dispatch import PromptSection
from fairwitness.contracts.autopilot.passes import PassKind, PhasePass, StepResult
from fairwitness.contracts.autopilot.returns import DebuggerReturn, JudgeReturn
from fairwitness.contracts.autopilot.verification import MiniVerifierReturn, PhaseCriterionStatus, TaskCriterionStatus
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.base import Contract
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.kept import recorded
from fairwitness.rules.retry_material import FailureCause, Material, work_causes
from fairwitness.runs.autopilot.commands import CommandHarness
from fairwitness.runs.autopilot.context import JUDGEMENT, RATING, VERIFICATION, AutopilotContext
from fairwitness.runs.autopilot.lineage import passes_of, revert_key
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name
from fairwitness.runs.autopilot.rating import PhaseRating, low_items
from fairwitness.runs.autopilot.revert import Reverted
from fairwitness.runs.autopilot.task_graphs import NodeAttempt, PlannedGraph, TaskNode, attempted, graphs_of
from fairwitness.runs.autopilot.verification import PhaseVerification
from fairwitness.runs.dispatch.records import ended
from fairwitness.runs.graph.attempts import start_of
from fairwitness.runs.graph.log import failures_of
from fairwitness.runs.shared.retry_sections import (
    DISCARDED,
    PRESENT,
    change_between,
    changed_since,
    failed_subject,
    failed_texts,
    listed,
    proof_rows,
    retry_sections,
)
from fairwitness.store.artifacts import Store
from fairwitness.verify.failed_checks import CheckText, shorten, spelled

C = TypeVar("C", bound=Contract)
_TASKS: Final = 3
"""Of how many failed tasks the change is shown."""


class RetryMaterial:
    """The failed work of one run, for those who try again."""

    def __init__(
        self, log: AutopilotLog, harness: CommandHarness, kept: Store, repository: Repository, shadow: Shadow
    ) -> None:
        """`kept` is the store of the state folder."""
        self._log, self._harness, self._kept = log, harness, kept
        self._repository, self._shadow = repository, shadow

    def attempt(self, node: TaskNode, number: int, base: str, conflicts: str = "") -> tuple[PromptSection, ...]:
        """Return what attempt `number` at a node is told: the last attempt if it failed, and conflicts at its start."""
        failures = dict(failures_of(self._log.ledger, self._log.run_id, node.id))
        last = max((graph.attempt for graph in self._graphs(node) if graph.attempt < number), default=0)
        if last not in failures:
            return retry_sections((FailureCause.CONFLICT,), {Material.CONFLICT: lambda: conflicts})
        texts = self._attempt_texts(node.id, last, failures[last])
        done, began = attempted(self._log, node.id, last), start_of(self._log.ledger, self._log.run_id, node.id, last)
        said = "" if done is None else listed(mini_words(done.check))
        return retry_sections(
            work_causes(red=bool(texts), refused=bool(said), conflict=bool(conflicts)),
            {
                Material.CHECKS: lambda: spelled(texts),
                Material.VERIFIER: lambda: said,
                Material.DIFF: lambda: self._attempt_change(node.id, last),
                Material.HISTORY: lambda: listed(f"attempt {number}: {why}" for number, why in failures.items()),
                Material.SINCE: lambda: changed_since(
                    self._repository, self._shadow, None if began is None else began.base, base
                ),
                Material.CONFLICT: lambda: conflicts,
            },
        )

    def _graphs(self, node: TaskNode) -> Iterator[PlannedGraph]:
        """Yield the graphs with this node; a new plan may use the id of a task for other files."""
        for graph in graphs_of(self._log):
            for each in graph.nodes:
                own, other = node.task, each.task
                is_same = own is None or other is None or not {*own.files}.isdisjoint(other.files)
                if each.id == node.id and is_same:
                    yield graph

    def repair(
        self, scope: str, number: int, node: str, attempt: int, check: MiniVerifierReturn | None, trees: tuple[str, str]
    ) -> tuple[PromptSection, ...]:
        """Return what the debugger of a round is told; `scope` is that of the commands which failed before it."""
        texts, said = self._harness.failed(scope), listed(mini_words(check))
        return retry_sections(
            work_causes(red=bool(texts), refused=bool(said)),
            {
                Material.CHECKS: lambda: spelled(texts),
                Material.VERIFIER: lambda: said,
                Material.DIFF: lambda: change_between(self._shadow, *trees, note=PRESENT),
                Material.HISTORY: lambda: listed(
                    line for each in range(1, number) for line in self._repaired(f"{node}-{attempt}-debug-{each}", each)
                ),
            },
        )

    def _repaired(self, dispatch_id: str, number: int) -> Iterator[str]:
        done = ended(self._log.ledger, self._log.run_id, dispatch_id)
        said = None if done is None else done.answer(DebuggerReturn)
        if said is not None:
            left = f"; it said that this remains: {'; '.join(said.remaining_issues)}" if said.remaining_issues else ""
            yield f"debugger {number} changed: {'; '.join(said.changes) or 'nothing'}{left}"

    def plan(self, phase_pass: PhasePass) -> tuple[PromptSection, ...]:
        """Return why plans of this pass were refused, for the next plan and its check."""
        results = self._log.results(phase_pass)
        since = max((at for at, result in enumerate(results) if result.step is StepName.RESEARCH), default=0)
        refused = [each for each in results[since:] if each.step is StepName.PLAN_CHECK and not each.good]
        if not refused:
            return ()
        return retry_sections(
            (FailureCause.PLAN,),
            {
                Material.VERIFIER: lambda: listed(refused[-1].issues),
                Material.HISTORY: lambda: listed(_told(each) for each in refused[:-1]),
            },
        )

    def phase(self, phase_pass: PhasePass) -> tuple[PromptSection, ...]:
        """Return what is known of the work on a phase so far, for a repair, a new plan or another cycle.

        Nothing is known if no step of the phase was verified and no task failed.
        """
        passes = [each for each in passes_of(self._log, phase_pass.phase) if each.number <= phase_pass.number]
        failed = self._failed_nodes(phase_pass.phase)
        texts = (*self._phase_texts(passes), *(text for each in failed for text in each[1]))
        said = listed(dict.fromkeys((*self._words(passes), *(word for each in failed for word in each[2]))))
        if not texts and not said:
            return ()
        return retry_sections(
            work_causes(red=bool(texts), refused=bool(said)),
            {
                Material.CHECKS: lambda: spelled(texts),
                Material.VERIFIER: lambda: said,
                Material.DIFF: lambda: self._phase_change(passes, [each[0] for each in failed]),
                Material.HISTORY: lambda: listed(self._history(passes, said)),
            },
        )

    def _failed_nodes(self, phase: str) -> list[tuple[NodeAttempt, tuple[CheckText, ...], tuple[str, ...]]]:
        """Return the tasks whose last attempt failed, with what their checks and reviewers said."""
        last = {
            node.id: graph.attempt for graph in graphs_of(self._log) if graph.phase == phase for node in graph.nodes
        }
        found = []
        for node, attempt in last.items():
            reason = dict(failures_of(self._log.ledger, self._log.run_id, node)).get(attempt)
            done = attempted(self._log, node, attempt)
            if reason is not None and done is not None:
                texts = tuple(
                    text._replace(name=f"{node}: {text.name}") for text in self._attempt_texts(node, attempt, reason)
                )
                found.append((done, texts, tuple(f"{node}: {word}" for word in mini_words(done.check))))
        return found

    def _attempt_texts(self, node: str, attempt: int, reason: str) -> tuple[CheckText, ...]:
        """Return what failed in an attempt: commands of its task, or checks of the project."""
        ledger, run_id = self._log.ledger, self._log.run_id
        done = attempted(self._log, node, attempt)
        rounds = () if done is None else range(done.debug_attempts, -1, -1)  # after a refused debugger nothing runs
        own = self._harness.failed(*(f"{node}-{attempt}-{number}" for number in rounds))
        task, round_ = failed_subject(ledger, run_id, node, attempt, reason)
        return (*own, *failed_texts(ledger, self._kept, run_id, task, proof_rows(ledger, run_id, task, round_)))

    def _attempt_change(self, node: str, attempt: int) -> str:
        done, began = attempted(self._log, node, attempt), start_of(self._log.ledger, self._log.run_id, node, attempt)
        if done is None or done.tree is None or began is None:
            return ""
        return change_between(self._shadow, self._repository.tree_of(began.start), done.tree, note=DISCARDED)

    def _phase_texts(self, passes: Sequence[PhasePass]) -> tuple[CheckText, ...]:
        """Return what failed in the last verification, and in a rating that followed it."""
        steps = (StepName.VERIFY, StepName.RATE)
        scopes = [
            f"{result.step.value}-{pass_name(each)}-{result.number}"
            for each in passes
            for result in self._log.results(each)
            if result.step in steps
        ]
        since = max((at for at, scope in enumerate(scopes) if scope.startswith(StepName.VERIFY.value)), default=0)
        return tuple(text for scope in scopes[since:] for text in self._harness.failed(scope))

    def _words(self, passes: Sequence[PhasePass]) -> Iterator[str]:
        """Yield what the last verifier, judge and rater of a phase said against it."""
        verified = self._latest(VERIFICATION, passes, PhaseVerification)
        if verified is not None and verified.said is not None:
            yield from (f"verifier: {each}" for each in verified.said.failures)
            failed = [each for each in verified.said.criteria_results if each.status is PhaseCriterionStatus.FAILED]
            yield from (f"verifier: {each.criterion}: {each.evidence}" for each in failed)
        judged = self._latest(JUDGEMENT, passes, JudgeReturn)
        if judged is not None:
            missed = (*judged.missing_requirements, *judged.concerns, *judged.verifier_missed)
            yield from (f"judge: {each}" for each in missed)
        rated = self._latest(RATING, passes, PhaseRating)
        if rated is not None:
            yield from (f"rater: {each}" for each in low_items(rated.settled))

    def _latest(self, kind: str, passes: Sequence[PhasePass], shape: type[C]) -> C | None:
        names = {pass_name(each) for each in passes}
        rows = [row for row in self._log.ledger.observations(self._log.run_id, kind) if row.key.split(":")[1] in names]
        return recorded(shape, rows[-1], "document") if rows else None

    def _phase_change(self, passes: Sequence[PhasePass], failed: Sequence[NodeAttempt]) -> str:
        reverted = self._reverted(passes[-2]) if len(passes) > 1 else None
        if reverted is not None:  # the work of the last cycle is gone, so it is what failed
            trees = self._repository.tree_of(reverted.to), self._repository.tree_of(reverted.from_)
            return change_between(self._shadow, *trees, note=DISCARDED)
        tip = self._repository.ref(f"refs/heads/{self._log.order().target}") or passes[-1].start
        trees = self._repository.tree_of(passes[-1].checkpoint), self._repository.tree_of(tip)
        merged = change_between(self._shadow, *trees, note=PRESENT) if trees[0] != trees[1] else ""
        changes = [f"{each.node}:\n{self._attempt_change(each.node, each.attempt)}" for each in failed[:_TASKS]]
        return "\n\n".join(filter(None, (merged, *changes)))

    def _reverted(self, phase_pass: PhasePass) -> Reverted | None:
        return self._log.kept(revert_key(phase_pass), Reverted)

    def _history(self, passes: Sequence[PhasePass], said: str) -> Iterator[str]:
        """Yield what happened in the passes, without steps of which `said` tells everything."""
        for each in passes:
            if each.kind is PassKind.CYCLE and each is not passes[-1]:
                reverted = self._reverted(each)
                became = "" if reverted is None else f"; it was reverted: {reverted.why}"
                score = (each.before_tenths or 0) / 10
                yield f"pass {each.number} began at {score} and worked on {_named(each)}{became}"
            for result in self._log.results(each):
                if any(issue not in said for issue in result.issues):
                    yield f"pass {each.number}, {_told(result)}"


def failed_work(context: AutopilotContext) -> RetryMaterial:
    """Return the failed work of a run."""
    kept = context.agent_caller.context.store
    return RetryMaterial(context.log, context.harness, kept, context.repository, context.shadow)


def mini_words(check: MiniVerifierReturn | None) -> tuple[str, ...]:
    """Return what the check of a task said against it."""
    if check is None or check.pass_:
        return ()
    failed = [each for each in check.criteria_results if each.status is TaskCriterionStatus.FAIL]
    return (*(f"{each.criterion}: {each.evidence}" for each in failed), *check.concerns)


def _told(result: StepResult) -> str:
    return f"{result.step.value} {result.number}: {'; '.join(shorten(issue) for issue in result.issues)}"


def _named(phase_pass: PhasePass) -> str:
    return "; ".join(item.deficiency for item in phase_pass.items)
