"""The joins of a run: refineries and helpers that settle conflicts, held against what git makes of the branches.

The work of every task is known from its attempt: the commit it began with and the commit that was verified. A join that
drops a task's work fails; a run whose target lacks the work of a merged task is not completed.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from fairwitness.contracts.forge.dag import NodeState, NodeType
from fairwitness.contracts.forge.returns import RefineryReturn
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, MergeMember
from fairwitness.git.objects import TreeEntry
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.kept import recorded
from fairwitness.rules.joined_work import FileStep, lost_work, stray_changes
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.graph.attempts import PREPARED


def is_join_of(log: ForgeLog, order: AttemptOrder) -> bool:
    """Return whether an attempt joins the work of others instead of adding its own."""
    _, dag = log.effective()
    kinds = {node.id: node.type for node in dag.nodes}
    return order.conflict is not None or kinds[order.node] is NodeType.REFINERY


class Joins:
    """Judges what the joins of a run made of its tasks' work."""

    def __init__(self, repository: Repository, shadow: Shadow, log: ForgeLog) -> None:
        self._repository, self._shadow, self._log = repository, shadow, log

    def problems(
        self, order: AttemptOrder, prepared: AttemptStart, tree: str, fixes: Collection[str]
    ) -> tuple[str, ...]:
        """Return what is wrong with the tree of a join; `fixes` are the files that it says it mended."""
        start = self._repository.tree_of(prepared.start)
        changed = [each.path for each in self._shadow.diff(start, tree)]
        members = order.includes
        if order.conflict is not None:
            members = (MergeMember(node=order.node, attempt=order.attempt, commit=order.conflict.commit),)
        return (*stray_changes(changed, prepared.conflicts, fixes), *self._lost(members, tree))

    def objections(
        self, order: AttemptOrder, prepared: AttemptStart, folder: Path, answer: dict[str, Any]
    ) -> tuple[str, ...]:
        """Return why a refinery's answer is not taken; it is then asked again."""
        said = RefineryReturn.model_validate(answer)
        if said.unmerged or said.failing_tests:
            return ()  # it says itself that it is not done
        tree = self._shadow.take(folder, self._repository.tree_of(prepared.start)).tree
        return self.problems(order, prepared, tree, [each.path for each in said.fixes])

    def lost_from(self, commit: str) -> tuple[str, ...]:
        """Return a sentence for each merged task whose work a commit lacks."""
        return self._lost(tuple(self._merged()), self._repository.tree_of(commit))

    def _merged(self) -> Iterator[MergeMember]:
        nodes = self._log.run().nodes
        verified = {
            event.data["nodeId"]: MergeMember(
                node=event.data["nodeId"], attempt=event.data["attemptId"], commit=event.data["commit"]
            )
            for event in self._log.ledger.events(self._log.run_id)
            if event.type == "task.verified"
        }
        for name, member in verified.items():
            if nodes[name].status is NodeState.MERGED:
                yield member

    def _lost(self, members: Iterable[MergeMember], tree: str) -> tuple[str, ...]:
        _, dag = self._log.effective()
        tasks = {node.id for node in dag.nodes if node.type is NodeType.TASK}
        steps = [step for member in members if member.node in tasks for step in self._steps(member)]
        entries = self._shadow.entries(tree) if steps else {}
        return lost_work(steps, {path: _id(entry) for path, entry in entries.items()})

    def _steps(self, member: MergeMember) -> Iterator[FileStep]:
        row = self._log.ledger.observation(self._log.run_id, f"{PREPARED}:{member.node}:{member.attempt}")
        if row is None:
            return  # an attempt that was not made by this run
        start = recorded(AttemptStart, row).start
        for change in self._shadow.diff(self._repository.tree_of(start), self._repository.tree_of(member.commit)):
            before, after = change.old_entry, change.new_entry
            yield FileStep(
                member.node, change.path, None if before is None else _id(before), None if after is None else _id(after)
            )


def _id(entry: TreeEntry) -> str:
    return f"{entry.mode} {entry.id}"
