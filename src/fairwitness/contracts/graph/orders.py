"""Orders and results of attempts, helpers and merges, stored as JSON by the engine, and the graph that is executed."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.budgets import BudgetHalt
from fairwitness.contracts.common.evidence import Tree
from fairwitness.contracts.common.ids import Commit, GitRef, NodeId, PhaseId, RelPath, RunId
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag

PREFIX = "fairwitness"
"""The prefix of the branches of a run's attempts."""
DEFAULT_CAP = 4
DEFAULT_ATTEMPTS = 3
ATTEMPT, HELPER, MERGE = "graph.attempt", "graph.helper", "graph.merge"
"""The names of the executor's child workflows."""


class GraphOptions(Contract):
    """How a graph is executed; part of the run's arguments, so that a restart follows the same rules."""

    target: GitRef
    """The run's own branch that everything is merged into; it must not be checked out anywhere."""
    prefix: GitRef = PREFIX
    """The prefix of the attempts' branches."""
    cap: Positive = DEFAULT_CAP
    """The maximum number of working attempts; those waiting for a merge do not count."""
    first_attempt: Annotated[Positive, Field(le=99)] = 1
    """The number of each node's first attempt; runs of several graphs continue counting, so that no branch is used
    twice.
    """
    max_attempts: Annotated[Positive, Field(le=99)] = DEFAULT_ATTEMPTS
    """The number of each node's last attempt."""
    phase: Maybe[PhaseId] = None
    """The phase whose graph this is; null if the run has only one graph."""
    batch: Positive = 8
    """The maximum number of attempts merged and checked together."""
    stale_after_s: Seconds = 60.0
    """Seconds without a heartbeat after which an attempt is given up."""
    look_s: Seconds = 1.0
    """Seconds between two checks for outside events: a pause, an overlay, a lost worker."""


class MergeMember(Contract):
    """A verified attempt that waits to be merged."""

    node: NodeId
    attempt: Positive
    commit: Commit


class Collision(Contract):
    """A verified commit that conflicts with the current target."""

    commit: Commit
    onto: Commit
    paths: tuple[Prose, ...]


class AttemptOrder(Contract):
    """The order of one attempt at a node."""

    run_id: RunId
    node: NodeId
    attempt: Positive
    branch: GitRef
    target: GitRef
    phase: Maybe[PhaseId] = None
    includes: tuple[MergeMember, ...] = ()
    """Verified but unmerged attempts that this one starts from, in this order."""
    conflict: Maybe[Collision] = None
    """The conflict that a helper must resolve; null for the attempt itself."""


class AttemptResult(Contract):
    """The result of an attempt: a verified commit, or the reason for its failure."""

    verified: Flag
    commit: Maybe[Commit] = None
    tree: Maybe[Tree] = None
    reason: Maybe[Text] = None
    halt: Maybe[BudgetHalt] = None
    """Why the run must not start anything more."""

    @model_validator(mode="after")
    def _proven_or_explained(self) -> Self:
        refusals = []
        if self.verified != (self.commit is not None and self.tree is not None):
            refusals.append(
                FieldRefusal(("commit",), "a commit and its tree exactly when it was verified", self.commit)
            )
        if self.verified == (self.reason is not None):
            refusals.append(FieldRefusal(("reason",), "a reason exactly when it was not verified", self.reason))
        refuse_if_any("AttemptResult", refusals)
        return self


class MergeOrder(Contract):
    """The order to merge attempts together, in this sequence."""

    run_id: RunId
    batch: Positive
    target: GitRef
    phase: Maybe[PhaseId] = None
    members: Annotated[tuple[MergeMember, ...], Field(min_length=1)]


class Culprit(Contract):
    """A member whose merge made checks fail, with their reasons."""

    node: NodeId
    reasons: Annotated[Texts, Field(min_length=1)]


class Clash(Contract):
    """A member that conflicts with the target or with an earlier member."""

    node: NodeId
    paths: Annotated[tuple[Prose, ...], Field(min_length=1)]


class LandedMember(Contract):
    """A member that was merged into the target."""

    node: NodeId
    commit: Commit
    """The commit that merged it."""


class TargetMove(Contract):
    """The target branch was moved by another process."""

    expected: Commit
    found: Commit | None


class MergeResult(Contract):
    """The result of a merge batch; a member in none of the lists returns to the queue."""

    tip: Commit
    """Of the target, afterwards."""
    landed: tuple[LandedMember, ...]
    culprit: Maybe[Culprit] = None
    clashes: tuple[Clash, ...]
    checks: Count
    moved: Maybe[TargetMove] = None
    halt: Maybe[Text] = None
    """Why nothing more may start, for example because merged work was removed from the target."""


class AttemptStart(Contract):
    """The commits that an attempt starts from."""

    base: Commit
    """The commit of the target that it is compared with."""
    start: Commit
    """The commit in its worktree: the base and the verified attempts that it includes."""
    conflicts: tuple[Prose, ...]
    """Paths with conflict markers, which the attempt must resolve."""


class Worked(Contract):
    """What the agents of an attempt produced; verification follows separately."""

    done: Flag
    changed: tuple[RelPath, ...] | None
    """The changed paths that they were allowed to change; null for everything that git would add."""
    summary: Maybe[Text] = None
    """The subject line of the commit."""
    reason: Maybe[Text] = None
    halt: Maybe[BudgetHalt] = None


class Candidate(Contract):
    """A member merged on top of the previous ones; the target does not contain it yet."""

    node: NodeId
    commit: Commit
    tree: Tree


class Stack(Contract):
    """A batch as candidates on top of the target, lowest first."""

    onto: Commit
    onto_tree: Tree
    candidates: tuple[Candidate, ...]
    clashes: tuple[Clash, ...]
    moved: Maybe[TargetMove] = None
    halt: Maybe[Text] = None
    """Why nothing can be merged: merged work is missing from the moved target."""

    @model_validator(mode="after")
    def _halted_by_a_move(self) -> Self:
        if self.halt is not None and self.moved is None:
            refuse_if_any("Stack", [FieldRefusal(("moved",), "the move that halts it", None)])
        return self


class Proof(Contract):
    """The result of verifying a tree."""

    holds: Flag
    reasons: Texts
    """What is wrong or missing; empty if the tree is verified."""

    @model_validator(mode="after")
    def _refused_with_a_reason(self) -> Self:
        if self.holds == bool(self.reasons):
            refuse_if_any("Proof", [FieldRefusal(("reasons",), "reasons exactly when it does not hold", self.reasons)])
        return self


class Landing(Contract):
    """Whether the target was advanced to a candidate."""

    landed: Flag
    tip: Commit
    """The target's commit afterwards."""
    moved: Maybe[TargetMove] = None


class GraphEnd(Contract):
    """How a graph ended."""

    completed: Flag
    tip: Commit
    """The target's commit, which contains every merged node."""
    merged: Count
    exhausted: tuple[NodeId, ...]
    stranded: tuple[NodeId, ...]
    reason: Maybe[Text] = None
    halt: Maybe[BudgetHalt] = None
    """Present if `reason` is that the budget is used up."""
    requests: tuple[Text, ...] = ()
    """Open change requests; the graph continues when they are answered."""


class GraphPlan(NamedTuple):
    """A graph to execute, with what is known about its tasks."""

    base: Dag
    """The graph as it was planned."""
    dag: Dag
    """The graph including all applied overlays."""
    estimates: Mapping[str, int] | None = None
    """The estimated duration of each task, in any unit."""
    writes: Mapping[str, frozenset[str]] | None = None
    """The files that each task may write; None if undeclared, so that only branches keep tasks apart."""
    workflow: Workflow = Workflow.FORGE
    """The workflow whose events record it."""
