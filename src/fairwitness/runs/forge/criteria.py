"""The acceptance criteria of forge's tasks: what a worker must name, and what the harness makes of it.

A criterion is met by a command or tests that the harness runs on the attempt's tree. The plan may name them; where it
is silent the worker does. Text, which cannot be run, is met by a line that the attempt wrote. New behaviour needs a
test, or a command of a criterion, that fails on the files that the attempt began with.
"""

import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.feature.facts import ChangedFile
from fairwitness.contracts.forge.documents import ForgeTask, Walkthrough, WalkthroughStatus
from fairwitness.contracts.forge.returns import WorkerReturn
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate
from fairwitness.contracts.verify.report import Side
from fairwitness.errors import BadDocument
from fairwitness.kit.documents import Format, read
from fairwitness.rules.criteria import (
    ByPlace,
    Proposal,
    Unjudged,
    beginnings,
    check_name,
    evidence_for,
    needs_new_test,
    own_place_problem,
)
from fairwitness.rules.feature_plan import is_test_file
from fairwitness.runs.forge.joins import is_join_of
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.walkthroughs import walkthrough_of
from fairwitness.runs.graph.attempts import HELP
from fairwitness.runs.shared.criteria import NOT_RED, CriteriaQuestion, changed_files, discovered, judge, proposals_of
from fairwitness.verify.cascade import pair_checks
from fairwitness.verify.subject import VerifyDeps
from fairwitness.verify.tree_view import TreeView

_WHO = "the worker"


class OwnChange(NamedTuple):
    """What an attempt itself changed; the work of other tasks that it began with is not part of it."""

    files: tuple[ChangedFile, ...]
    added: Mapping[str, frozenset[int]]
    """The lines that it wrote, by path."""


class TaskCriteria:
    """Judges the criteria of a run's tasks."""

    def __init__(self, deps: VerifyDeps, log: ForgeLog) -> None:
        self._deps, self._log = deps, log

    def task(self, node: str) -> ForgeTask | None:
        """Return the task of a node; None if its document names no criteria, like that of a refinery."""
        try:
            plain = read(self._log.document(node).encode(), Format.MARKDOWN).value
        except BadDocument:
            return None
        return ForgeTask.model_validate(plain) if "acceptance_criteria" in plain else None

    def commands(self, prepared: AttemptStart) -> tuple[str, ...]:
        """Return how the command of a criterion may begin."""
        tree = self._tree(prepared.start)
        return beginnings(spec for spec, _ in pair_checks(*discovered(self._deps, tree, tree)))

    def judge(
        self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate, stop: threading.Event
    ) -> tuple[str, ...]:
        """Run what judges the criteria of an attempt; return sentences about what is unmet, unjudged or untested."""
        is_join = is_join_of(self._log, order)
        task = None if order.conflict is not None else self.task(order.node)
        evidence = _evidence(task, walkthrough_of(self._log, order.node, order.attempt)) if task is not None else ()
        criteria = task.acceptance_criteria if task is not None else ()
        name = order.node
        if is_join:  # what the joined tasks promise must hold on the joined tree
            joined = [(member.node, member.attempt) for member in order.includes]
            if order.conflict is not None:
                joined, name = [(order.node, order.attempt)], f"{order.node}--{HELP}"
            again = tuple(each for node, attempt in joined for each in self._commands_of(node, attempt))
            criteria, evidence = (*criteria, *(each.criterion for each in again)), (*evidence, *again)
        if not criteria:
            return ()
        own = self._own_change(prepared, candidate.tree)
        is_waived = task is None or is_join or self._is_waived(task)
        is_code = needs_new_test(own.files, is_waived=is_waived)
        asked = CriteriaQuestion(
            task=name,
            round=order.attempt,
            criteria=criteria,
            judgements=evidence,
            base=self._side(prepared.base),
            head=self._side(candidate.commit),
            who=_WHO,
            agent=f"{order.node}-{order.attempt}",
            place_problem=partial(own_place_problem, added=own.added),
            before=self._tree(prepared.start) if is_code else None,
        )
        missing = judge(self._deps, order.run_id, asked, stop)
        if is_code and order.includes and not missing and not any(is_test_file(file.path) for file in own.files):
            return (NOT_RED,)  # the test that fails at the base belongs to a task that this one began with
        return missing

    def _commands_of(self, node: str, attempt: int) -> Iterator[CriterionJudgement]:
        """Yield the criteria of a task that commands judge; places in a text move when it is joined with others."""
        task = self.task(node)
        for each in () if task is None else _evidence(task, walkthrough_of(self._log, node, attempt)):
            if each.command is not None:
                yield each.model_copy(update={"criterion": f"{node}: {each.criterion}"})

    def objections(
        self, order: AttemptOrder, prepared: AttemptStart, folder: Path, answer: Mapping[str, Any]
    ) -> tuple[str, ...]:
        """Return why criteria cannot be judged by what a worker answered; it is then asked again."""
        said = WorkerReturn.model_validate(answer).walkthrough
        task = self.task(order.node)
        if task is None or said.status is not WalkthroughStatus.COMPLETED:
            return ()
        start = self._tree(prepared.start)
        now = self._deps.shadow.take(folder, start).tree
        checks = [spec for spec, _ in pair_checks(*discovered(self._deps, start, now))]
        proposals = proposals_of(
            task.acceptance_criteria, _evidence(task, said), checks, TreeView(self._deps.shadow, now), _WHO
        )
        added = self._own_change(prepared, now).added
        reasons = [
            f"walkthrough.evidence: {check_name(number)}, {text!r}: {reason}"
            for number, (text, each) in enumerate(zip(task.acceptance_criteria, proposals, strict=True), 1)
            for reason in _objection(each, added)
        ]
        allowed = ", ".join(f"`{command}`" for command in beginnings(checks)) or "nothing: the project has no checks"
        return (*reasons, f"commands may begin with: {allowed}") if reasons else ()

    def _is_waived(self, task: ForgeTask) -> bool:
        return task.test_waiver is not None and self._log.is_approved_by_person()

    def _own_change(self, prepared: AttemptStart, tree: str) -> OwnChange:
        changes = self._deps.shadow.diff(self._tree(prepared.start), tree)
        added = {each.path: frozenset(line.number for line in each.added) for each in changes}
        return OwnChange(changed_files(changes), added)

    def _side(self, commit: str) -> Side:
        return Side(ref=commit[:12], commit=commit, tree=self._tree(commit))

    def _tree(self, commit: str) -> str:
        return self._deps.repository.tree_of(commit)


def _evidence(task: ForgeTask, said: Walkthrough | None) -> tuple[CriterionJudgement, ...]:
    claimed = () if said is None else said.evidence or ()
    return evidence_for(task.acceptance_criteria, task.evidence or (), claimed)


def _objection(proposed: Proposal, added: Mapping[str, frozenset[int]]) -> Iterator[str]:
    if isinstance(proposed, Unjudged):
        yield proposed.reason
    elif isinstance(proposed, ByPlace):
        problem = own_place_problem(proposed.path, proposed.line, added)
        if problem is not None:
            yield problem
