"""Orders and results of attempts, helpers and merges: the JSON that the engine keeps of a running graph."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple, Self

from pydantic import Field, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Maybe, Positive, Prose, Text, Texts
from fairwitness.contracts.common.evidence import Tree
from fairwitness.contracts.common.ids import Commit, GitRef, NodeId, PhaseId, RelPath, RunId
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.sandbox import Seconds
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag

DEFAULT_CAP = 4
DEFAULT_ATTEMPTS = 3
ATTEMPT, HELPER, MERGE = "graph.attempt", "graph.helper", "graph.merge"
"""The flows that the executor's children run."""


class GraphOptions(Contract):
    """How a graph is carried out; stands in the arguments of its run, so that a restart goes on by the same rules."""

    target: GitRef
    """The run's own branch that everything is merged into; nobody may have it checked out."""
    prefix: GitRef = "fairwitness"
    """What the branches of attempts begin with."""
    cap: Positive = DEFAULT_CAP
    """How many attempts work at a time; those that wait to be merged do not count."""
    first_attempt: Annotated[Positive, Field(le=99)] = 1
    """The number of each node's first attempt: a run of several graphs counts on, so that no branch is used twice."""
    max_attempts: Annotated[Positive, Field(le=99)] = DEFAULT_ATTEMPTS
    """The number of each node's last attempt."""
    phase: Maybe[PhaseId] = None
    """Which graph of its run this is; None if it is the only one."""
    batch: Positive = 8
    """How many attempts are merged and checked together at most."""
    stale_after_s: Seconds = 60.0
    """How long a worker may give no sign of life before its attempt is given up."""
    look_s: Seconds = 1.0
    """How often the executor looks for what others did: a pause, an overlay, a lost worker."""


class MergeMember(Contract):
    """A verified attempt that waits to be merged."""

    node: NodeId
    attempt: Positive
    commit: Commit


class Collision(Contract):
    """A verified commit that does not fit the target any more."""

    commit: Commit
    onto: Commit
    paths: tuple[Prose, ...]


class AttemptOrder(Contract):
    """One try at one node."""

    run_id: RunId
    node: NodeId
    attempt: Positive
    branch: GitRef
    target: GitRef
    phase: Maybe[PhaseId] = None
    includes: tuple[MergeMember, ...] = ()
    """Verified attempts that no merge has landed yet and that this one begins with, in this order."""
    conflict: Maybe[Collision] = None
    """What a helper has to solve; None for the attempt itself."""


class AttemptResult(Contract):
    """How a try ended: with a commit that was proven, or with the reason why there is none."""

    verified: Flag
    commit: Maybe[Commit] = None
    tree: Maybe[Tree] = None
    reason: Maybe[Text] = None
    halt: Maybe[Text] = None
    """Why nothing more may be started in this run, as when its budget is used up."""

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
    """Attempts to be merged together, in this order."""

    run_id: RunId
    batch: Positive
    target: GitRef
    phase: Maybe[PhaseId] = None
    members: Annotated[tuple[MergeMember, ...], Field(min_length=1)]


class Culprit(Contract):
    """A member whose merge turned the checks red, and what they said."""

    node: NodeId
    reasons: Annotated[Texts, Field(min_length=1)]


class Clash(Contract):
    """A member that does not fit what is there already."""

    node: NodeId
    paths: Annotated[tuple[Prose, ...], Field(min_length=1)]


class LandedMember(Contract):
    """A member that the target holds now."""

    node: NodeId
    commit: Commit
    """The commit by which the target came to hold it."""


class TargetMove(Contract):
    """The target was not where it had been left."""

    expected: Commit
    found: Commit | None


class MergeResult(Contract):
    """What became of each member of a batch; a member that is in none of the lists goes back to the queue."""

    tip: Commit
    """Of the target, afterwards."""
    landed: tuple[LandedMember, ...]
    culprit: Maybe[Culprit] = None
    clashes: tuple[Clash, ...]
    checks: Count
    moved: Maybe[TargetMove] = None
    halt: Maybe[Text] = None
    """Why nothing more may be started, as when somebody took merged work out of the target."""


class AttemptStart(Contract):
    """Where an attempt begins."""

    base: Commit
    """The target's commit that it is compared with."""
    start: Commit
    """What stands in its worktree: the base, and the verified attempts that it includes."""
    conflicts: tuple[Prose, ...]
    """Paths with the marks of a conflict, which are part of its task."""


class Worked(Contract):
    """What came of the agents of an attempt; whether it is any good is for the harness to find out."""

    done: Flag
    changed: tuple[RelPath, ...] | None
    """The paths that they may have changed and did; None for everything that git would add."""
    summary: Maybe[Text] = None
    """One line for the commit."""
    reason: Maybe[Text] = None
    halt: Maybe[Text] = None


class Candidate(Contract):
    """A member merged on top of those before it; the target knows nothing of it yet."""

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
    """Why nothing can be merged: the target was moved to where merged work is not in it."""

    @model_validator(mode="after")
    def _halted_by_a_move(self) -> Self:
        if self.halt is not None and self.moved is None:
            refuse_if_any("Stack", [FieldRefusal(("moved",), "the move that halts it", None)])
        return self


class Proof(Contract):
    """What the harness found out about a tree."""

    holds: Flag
    reasons: Texts
    """What is wrong or missing; empty if it holds."""

    @model_validator(mode="after")
    def _refused_with_a_reason(self) -> Self:
        if self.holds == bool(self.reasons):
            refuse_if_any("Proof", [FieldRefusal(("reasons",), "reasons exactly when it does not hold", self.reasons)])
        return self


class Landing(Contract):
    """Whether the target took a candidate."""

    landed: Flag
    tip: Commit
    """Of the target, whoever moved it."""
    moved: Maybe[TargetMove] = None


class GraphEnd(Contract):
    """How a graph ended."""

    completed: Flag
    tip: Commit
    """Of the target: every merged node is in it."""
    merged: Count
    exhausted: tuple[NodeId, ...]
    stranded: tuple[NodeId, ...]
    reason: Maybe[Text] = None
    requests: tuple[Text, ...] = ()
    """Change requests that wait for an answer: the graph has not ended, and goes on when they have one."""


class GraphPlan(NamedTuple):
    """What is to be carried out."""

    base: Dag
    """The graph as it was planned."""
    dag: Dag
    """The same with every overlay that was applied."""
    estimates: Mapping[str, int] | None = None
    """How long each task may take, in any unit."""
    writes: Mapping[str, frozenset[str]] | None = None
    """What each task may write; None if nobody declared anything, and then branches alone keep tasks apart."""
    workflow: Workflow = Workflow.FORGE
    """Whose events tell of it."""
