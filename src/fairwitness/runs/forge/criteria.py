"""The acceptance criteria of forge's tasks: what a worker must name, and what the harness makes of it.

A criterion is met by a command or tests that the harness runs on the attempt's tree. The plan may name them; where it
is silent the worker does. Text, which cannot be run, is met by a line that the attempt wrote. New behaviour needs a
test, or a command of a criterion, that fails on the files that the attempt began with.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from fairwitness.contracts.common.criteria import CriterionJudgement
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.feature.facts import ChangedFile
from fairwitness.contracts.feature.implementation import TaskType
from fairwitness.contracts.forge.documents import ForgeTask, Walkthrough, WalkthroughStatus
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, Candidate, MergeMember
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
    planned_problem,
    planned_words,
    task_type,
)
from fairwitness.runs.forge.joins import Joins, is_join_of
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.forge.walkthroughs import walkthrough_of
from fairwitness.runs.graph.attempts import HELP
from fairwitness.runs.shared.criteria import (
    CriteriaQuestion,
    PlaceProblem,
    changed_files,
    discovered,
    judge,
    proposals_of,
)
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
        self._deps, self._log, self._joins = deps, log, Joins(deps.repository, deps.shadow, log)

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

    def plan_problems(self, tasks: Sequence[ForgeTask], commit: str) -> tuple[Problem, ...]:
        """Return which commands of planned criteria can never be run; a worker could not mend it."""
        tree = self._tree(commit)
        checks = [spec for spec, _ in pair_checks(*discovered(self._deps, tree, tree))]
        paths = frozenset(TreeView(self._deps.shadow, tree).paths)
        allowed = ", ".join(f"`{command}`" for command in beginnings(checks))
        return tuple(
            Problem(
                where=("tasks", index, "evidence", place), expected=f"a command that begins with {allowed}", found=why
            )
            for index, task in enumerate(tasks)
            for place, each in enumerate(task.evidence or ())
            if each.command is not None and (why := planned_problem(each.command, checks, paths)) is not None
        )

    def judge(
        self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate, stop: threading.Event
    ) -> tuple[str, ...]:
        """Run what judges the criteria of an attempt; return sentences about what is unmet, unjudged or untested."""
        is_join = is_join_of(self._log, order)
        task = None if order.conflict is not None else self.task(order.node)
        evidence = _evidence(task, walkthrough_of(self._log, order.node, order.attempt)) if task is not None else ()
        criteria = task.acceptance_criteria if task is not None else ()
        gone: tuple[str, ...] = ()
        if is_join:  # what the joined tasks promise must hold on the joined tree
            gone = self._gone_places(order, prepared, candidate.tree)
            again = tuple(self._commands_of(order, prepared))
            criteria, evidence = (*criteria, *(each.criterion for each in again)), (*evidence, *again)
        if not criteria:
            return gone
        own = self._own_change(prepared, candidate.tree)
        is_waived = task is None or is_join or self.is_waived(task)
        asked = CriteriaQuestion(
            task=order.node if order.conflict is None else f"{order.node}--{HELP}",
            round=order.attempt,
            criteria=criteria,
            judgements=evidence,
            base=self._side(prepared.base),
            head=self._side(candidate.commit),
            who=_WHO,
            agent=f"{order.node}-{order.attempt}",
            place_problem=_place_problem(task, own),
            before=self._side(prepared.start) if needs_new_test(own.files, is_waived=is_waived) else None,
        )
        return (*gone, *judge(self._deps, order.run_id, asked, stop))

    def _commands_of(self, order: AttemptOrder, prepared: AttemptStart) -> Iterator[CriterionJudgement]:
        """Yield the criteria of joined tasks that commands judge; places in a text move when it is joined."""
        brought = self._joins.brought(order)
        for member in self._joins.members(order, prepared):
            task = self.task(member.node) if member.node in brought else None
            for each in self._shown(member, task):
                if each.command is not None:
                    yield each.model_copy(update={"criterion": f"{member.node}: {each.criterion}"})

    def promised(self, order: AttemptOrder, prepared: AttemptStart) -> Iterator[str]:
        """Yield the criteria of the tasks that a join brings, each with the command or the place that shows it."""
        brought = self._joins.brought(order)
        for member in self._joins.members(order, prepared):
            task = self.task(member.node) if member.node in brought else None
            shown = {each.criterion: each for each in self._shown(member, task)}
            for text in task.acceptance_criteria if task is not None else ():
                by = shown.get(text)
                how = by.command or by.location if by is not None else None
                yield f"{member.node}: {text}" + (f" (shown by `{how}`)" if how else "")

    def _gone_places(self, order: AttemptOrder, prepared: AttemptStart, tree: str) -> tuple[str, ...]:
        """Return a sentence for each line that shows a criterion, and that the join took away.

        A line that is not in the merge with its conflict marks was taken away by a later task.
        """
        start, now = (TreeView(self._deps.shadow, each) for each in (self._tree(prepared.start), tree))
        found: list[str] = []
        for member in self._joins.members(order, prepared):
            written = TreeView(self._deps.shadow, self._tree(member.commit))
            for each in self._shown(member, self.task(member.node)):
                if each.command is None and each.location is not None:
                    path, _, number = each.location.rpartition(":")
                    path = path.removeprefix("./")
                    line = dict(enumerate(_lines(written, path), 1)).get(int(number))
                    if line and line in _lines(start, path) and not any(line in other for other in _lines(now, path)):
                        found.append(
                            f"the line of {path} is gone that shows {each.criterion!r} of {member.node}: {line}"
                        )
        return tuple(found)

    def _shown(self, member: MergeMember, task: ForgeTask | None) -> tuple[CriterionJudgement, ...]:
        """Return how the criteria of a joined task were judged."""
        said = walkthrough_of(self._log, member.node, member.attempt)
        return () if task is None else _evidence(task, said)

    def objections(self, order: AttemptOrder, prepared: AttemptStart, now: str, said: Walkthrough) -> tuple[str, ...]:
        """Return why criteria cannot be judged by what a worker answered; it is then asked again.

        `now` is the tree of its worktree.
        """
        if said.status is not WalkthroughStatus.COMPLETED:
            return ()
        start = self._tree(prepared.start)
        if is_join_of(self._log, order):
            return self._gone_places(order, prepared, now)
        task = self.task(order.node)
        if task is None:
            return ()
        checks = [spec for spec, _ in pair_checks(*discovered(self._deps, start, now))]
        proposals = proposals_of(
            task.acceptance_criteria, _evidence(task, said), checks, TreeView(self._deps.shadow, now), _WHO
        )
        problem = _place_problem(task, self._own_change(prepared, now))
        reasons = [
            f"walkthrough.evidence: {check_name(number)}, {text!r}: {reason}"
            for number, (text, each) in enumerate(zip(task.acceptance_criteria, proposals, strict=True), 1)
            for reason in _objection(text, each, problem)
        ]
        allowed = ", ".join(f"`{command}`" for command in beginnings(checks)) or "nothing: the project has no checks"
        return (*reasons, f"commands may begin with: {allowed}") if reasons else ()

    def is_waived(self, task: ForgeTask) -> bool:
        """Return whether a person approved that a task has no test; nobody sees what a captain adds later."""
        is_planned = task.id in self._log.begun().documents
        return task.test_waiver is not None and is_planned and self._log.is_approved_by_person()

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


def _lines(tree: TreeView, path: str) -> list[str]:
    content = tree.read(path) or b""
    return [line.strip() for line in content.decode(errors="replace").splitlines()]


def _place_problem(task: ForgeTask | None, own: OwnChange) -> PlaceProblem:
    """Return the rule for places: beside code, the criterion itself must speak of the file; else its task may."""
    planned = () if task is None else task.evidence or ()
    is_text = task_type(own.files) is not TaskType.CODE
    about = f" {task.title} {task.body}" if task is not None and is_text else ""

    def problem(criterion: str, path: str, line: int) -> str | None:
        return own_place_problem(planned_words(criterion, planned) + about, path, line, own.added)

    return problem


def _objection(criterion: str, proposed: Proposal, problem: PlaceProblem) -> Iterator[str]:
    if isinstance(proposed, Unjudged):
        yield proposed.reason
    elif isinstance(proposed, ByPlace):
        found = problem(criterion, proposed.path, proposed.line)
        if found is not None:
            yield found
