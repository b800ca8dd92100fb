"""The joins of a run: refineries and helpers that settle conflicts, held against what git makes of the branches.

The work of every task is known from its attempt: the commit it began with and the commit that was verified. A join that
drops a task's work fails; a run whose target lacks the work of a merged task is not completed.
"""

from collections.abc import Collection, Iterable, Iterator

from fairwitness.contracts.forge.dag import NodeState, NodeType
from fairwitness.contracts.forge.documents import WalkthroughStatus
from fairwitness.contracts.forge.returns import RefineryReturn, WorkerReturn
from fairwitness.contracts.graph.orders import AttemptOrder, AttemptStart, MergeMember
from fairwitness.git.objects import GITLINK, SYMLINK, TreeEntry
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.ledger.kept import recorded
from fairwitness.rules.joined_work import FileStep, lost_work, stray_changes
from fairwitness.runs.forge.log import ForgeLog
from fairwitness.runs.graph.attempts import PREPARED
from fairwitness.runs.shared.sections import change_text

TEXT_LIMIT = 2 << 20
"""The most bytes of a file that is compared line by line."""


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
        return (*stray_changes(changed, prepared.conflicts, fixes), *self._lost(self.members(order, prepared), tree))

    def objections(
        self, order: AttemptOrder, prepared: AttemptStart, tree: str, answer: WorkerReturn | RefineryReturn
    ) -> tuple[str, ...]:
        """Return why the answer of a refinery or of a conflict's helper is not taken; it is then asked again."""
        fixes: tuple[str, ...] = ()
        if isinstance(answer, RefineryReturn):
            fixes = tuple(each.path for each in answer.fixes)
            if answer.unmerged or answer.failing_tests:
                return ()  # it says itself that it is not done
        elif answer.walkthrough.status is not WalkthroughStatus.COMPLETED:
            return ()
        return self.problems(order, prepared, tree, fixes)

    def lost_from(self, commit: str) -> tuple[str, ...]:
        """Return a sentence for each merged task whose work a commit lacks."""
        nodes, tasks = self._log.run().nodes, self._tasks()
        merged = [
            each for each in self._verified() if each.node in tasks and nodes[each.node].status is NodeState.MERGED
        ]
        return self._lost(merged, self._repository.tree_of(commit))

    def members(self, order: AttemptOrder, prepared: AttemptStart) -> tuple[MergeMember, ...]:
        """Return the tasks whose work must be in the tree of a join: those that it brings or began with."""
        brought, tasks = self.brought(order), self._tasks()
        return tuple(
            each
            for each in self._verified()
            if each.node in tasks and (each.node in brought or self._repository.is_ancestor(each.commit, prepared.base))
        )

    def brought(self, order: AttemptOrder) -> frozenset[str]:
        """Return the nodes that a join adds to the target; a refinery in conflict brings what it joined."""
        if order.conflict is None:
            return frozenset(each.node for each in order.includes)
        _, dag = self._log.effective()
        below = {node.id: node.dependencies for node in dag.nodes if node.type is NodeType.REFINERY}
        found, left = set[str](), [order.node]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += below.get(name, ())
        return frozenset(found)

    def changes(self, names: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the tasks of these names that were verified, each with the diff that it made itself."""
        members = [each for each in self._verified() if each.node in names]
        for member in members:
            start = self._start(member)
            if start is not None:
                trees = (self._repository.tree_of(start), self._repository.tree_of(member.commit))
                yield member.node, change_text(self._shadow, *trees, limit=max(_SHORTEST, _CHANGES // len(members)))

    def _verified(self) -> tuple[MergeMember, ...]:
        """Return the last verified attempt of each node, with its own commit and not that of a helper after it."""
        found: dict[str, MergeMember] = {}
        for event in self._log.ledger.events(self._log.run_id):
            if event.type == "task.verified":
                node, attempt = event.data["nodeId"], event.data["attemptId"]
                if node not in found or found[node].attempt != attempt:
                    found.pop(node, None)  # the last attempt counts, and when it was made
                    found[node] = MergeMember(node=node, attempt=attempt, commit=event.data["commit"])
        return tuple(found.values())

    def _tasks(self) -> frozenset[str]:
        _, dag = self._log.effective()
        return frozenset(node.id for node in dag.nodes if node.type is NodeType.TASK)

    def _lost(self, members: Iterable[MergeMember], tree: str) -> tuple[str, ...]:
        steps = [step for member in members for step in self._steps(member)]
        entries = self._shadow.entries(tree) if steps else {}
        final = {path: _id(entry) for path, entry in entries.items()}
        moved = {step.path for step in steps if final.get(step.path) != step.after}
        contents = {each for step in steps if step.path in moved for each in (step.before, step.after)}
        contents |= {final.get(path) for path in moved}
        return lost_work(steps, final, self._lines(each for each in contents if each is not None))

    def _lines(self, contents: Iterable[str]) -> dict[str, frozenset[str]]:
        """Return the lines of contents that are text; blank ones say nothing."""
        files = {each: each.split()[1] for each in contents if not each.startswith((SYMLINK, GITLINK))}
        texts = {
            id_: frozenset(line for each in data.decode(errors="replace").splitlines() if (line := each.strip()))
            for id_, data in self._shadow.small_blobs(set(files.values()), limit=TEXT_LIMIT)
            if b"\0" not in data
        }
        return {each: texts[id_] for each, id_ in files.items() if id_ in texts}

    def _start(self, member: MergeMember) -> str | None:
        """Return the commit that an attempt began with; None if it was not made by this run."""
        row = self._log.ledger.observation(self._log.run_id, f"{PREPARED}:{member.node}:{member.attempt}")
        return None if row is None else recorded(AttemptStart, row).start

    def _steps(self, member: MergeMember) -> Iterator[FileStep]:
        start = self._start(member)
        if start is None:
            return
        for change in self._shadow.diff(self._repository.tree_of(start), self._repository.tree_of(member.commit)):
            before, after = change.old_entry, change.new_entry
            yield FileStep(
                member.node, change.path, None if before is None else _id(before), None if after is None else _id(after)
            )


_CHANGES = 80_000
"""How many characters the diffs of all joined tasks have together."""
_SHORTEST = 4_000
"""How many characters the diff of a task has at least."""


def _id(entry: TreeEntry) -> str:
    return f"{entry.mode} {entry.id}"
