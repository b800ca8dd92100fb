"""A simulated repository: what each commit holds of the work of attempts and of people, and a target that only grows.

Two pieces of work that do not know each other may not fit, or may be red together. They know each other in a commit
that holds a third one which began with both, or one which began with the other.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from fairwitness.contracts.graph.orders import AttemptOrder, Candidate


class Work(NamedTuple):
    """What somebody made: an attempt, the helper of one, or a person."""

    node: str
    attempt: int
    is_helper: bool


class Tree(NamedTuple):
    """What a commit holds: all that the target held at a height, and more."""

    height: int
    more: frozenset[str]
    """Commits of work that the target does not hold at this height."""
    direct: frozenset[str] = frozenset()
    """Those of them that were merged by name, and not because others began with them."""


@dataclass(slots=True)
class Pairs:
    """Nodes that do not go together."""

    of: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, one: str, other: str) -> None:
        """Both ways."""
        if one != other:
            self.of[one].add(other)
            self.of[other].add(one)


class SimGit:
    """One repository."""

    def __init__(self) -> None:
        self.trees: dict[str, Tree] = {}
        self.works: dict[str, Work] = {}
        self.landed: dict[str, int] = {}
        """By commit of work, the height at which the target came to hold it."""
        self.branches: dict[str, str] = {}
        self.starts: dict[str, str] = {}
        self.worktrees: dict[str, None] = {}
        self.clashing, self.reddening = Pairs(), Pairs()
        self._of_node: defaultdict[str, list[str]] = defaultdict(list)
        self._count = 0
        self.target: dict[str, int] = {self.commit(Tree(0, frozenset())): 0}
        """Every commit of the target, with its height."""
        self.back = 0
        """So many of them were taken out of it by somebody who may put them back."""
        self.misled: set[str] = set()
        """Branches that began while something was taken out."""

    @property
    def tip(self) -> str:
        """Of the target."""
        return next(islice(reversed(self.target), self.back, None))

    @property
    def height(self) -> int:
        """Of the target."""
        return len(self.target) - 1 - self.back

    def commit(self, tree: Tree) -> str:
        """A new commit."""
        self._count += 1
        name = f"{self._count:040x}"
        self.trees[name] = tree
        return name

    def holds(self, commit: str, work: str) -> bool:
        """Whether a commit holds a piece of work."""
        tree = self.trees[commit]
        return work in tree.more or self.landed.get(work, tree.height + 1) <= tree.height

    def begin(self, order: AttemptOrder) -> str:
        """The start of an attempt on its branch: the target, and all that it includes; asked again, the same one."""
        if order.branch not in self.starts:
            merged = [member.commit for member in order.includes]
            if order.conflict is not None:
                merged.append(order.conflict.commit)
            self.starts[order.branch] = self.commit(Tree(self.height, self._more(merged)))
            if self.back:
                self.misled.add(order.branch)
        self.worktrees[order.branch] = None
        return self.starts[order.branch]

    def work(self, order: AttemptOrder) -> str:
        """What an attempt made, as one commit; asked again, the same one."""
        if order.branch not in self.branches:
            work = Work(order.node, order.attempt, order.conflict is not None)
            self.branches[order.branch] = self._worked(self.starts[order.branch], work)
        return self.branches[order.branch]

    def push(self, person: str) -> None:
        """Somebody moves the target forward, knowing what is in it."""
        made = self._worked(self.tip, Work(person, 1, is_helper=False))
        self._move(made, {made})

    def stacked(self, top: str, member: str) -> str:
        """A commit on top of another one; that one itself if it holds the work already."""
        if self.holds(top, member):
            return top
        tree = self.trees[top]
        more = tree.more | self._more([member], height=tree.height)
        return self.commit(Tree(tree.height, more, tree.direct | {member}))

    def clashes(self, top: str, member: str) -> Iterator[str]:
        """Who in a commit does not fit a piece of work, or something that this began with."""
        for work in self._more([member], height=self.trees[top].height) - self.trees[top].more:
            for other in self._partners(self.clashing, work):
                if self.holds(top, other) and not self.holds(member, other):
                    yield self.works[other].node

    def red_pairs(self, commit: str) -> Iterator[str]:
        """Who is red together in a commit, since nobody there knew both."""
        tree = self.trees[commit]
        for work in tree.more:
            for other in self._partners(self.reddening, work):
                if self.holds(commit, other) and not any(
                    self.holds(knowing, work) and self.holds(knowing, other) for knowing in tree.more
                ):
                    yield f"{self.works[work].node} with {self.works[other].node}"

    def land(self, candidate: Candidate) -> bool:
        """Moves the target, if it is where the candidate was put on; True too if it holds the candidate already."""
        if self.is_in_target(candidate.commit):
            return True
        tree = self.trees[candidate.commit]
        if tree.height != self.height:
            return False
        self._move(candidate.commit, tree.more)
        return True

    def is_in_target(self, commit: str) -> bool:
        """Whether the target is at this commit, or was and went on from it."""
        return self.target.get(commit, self.height + 1) <= self.height

    def rewind(self, count: int) -> None:
        """Somebody takes the last commits out of the target."""
        self.back = min(self.back + count, len(self.target) - 1)

    def restore(self) -> None:
        """Somebody puts back what was taken out, unless the target has gone elsewhere since."""
        self.back = 0

    def _move(self, commit: str, works: Iterable[str]) -> None:
        if self.back:
            height, self.back = self.height, 0
            self.target = dict(islice(self.target.items(), height + 1))
            self.landed = {work: at for work, at in self.landed.items() if at <= height}
        self.target[commit] = len(self.target)
        for work in works:
            self.landed.setdefault(work, self.height)
        self.trees[commit] = Tree(self.height, frozenset())

    def _more(self, commits: Iterable[str], height: int | None = None) -> frozenset[str]:
        """All work in some commits that the target does not hold at a height."""
        at = self.height if height is None else height
        found: set[str] = set()
        for commit in commits:
            tree = self.trees[commit]
            found |= {work for work in tree.more if self.landed.get(work, at + 1) > at}
        return frozenset(found)

    def _worked(self, start: str, work: Work) -> str:
        tree = self.trees[start]
        name = self.commit(tree)
        self.trees[name] = Tree(tree.height, tree.more | {name})
        self.works[name] = work
        self._of_node[work.node].append(name)
        return name

    def _partners(self, pairs: Pairs, work: str) -> Iterator[str]:
        for node in sorted(pairs.of.get(self.works[work].node, ())):
            yield from self._of_node[node]
