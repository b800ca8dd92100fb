"""The desk of a simulated world: answers every call of an executor and its children as the verdicts have it.

Each call finds what an earlier try of it left. Everything that is durable outlives the process; between what is done
and what is told of it the process may die.
"""

from collections.abc import Sequence

from fairwitness.contracts.common.budgets import BudgetHalt, BudgetLevel, OverBudget, Resource
from fairwitness.contracts.graph.orders import (
    AttemptOrder,
    AttemptStart,
    Candidate,
    Clash,
    Landing,
    MergeOrder,
    Proof,
    Stack,
    TargetMove,
    Worked,
)
from fairwitness.rules.graph_run import GraphRun
from support.graph.sim_book import SimBook
from support.graph.sim_faults import Fault
from support.graph.sim_ground import Ground
from support.graph.sim_journal import Trouble

BUDGET_USED_UP = BudgetHalt(
    reason="the budget is used up",
    refused=OverBudget(level=BudgetLevel.RUN, what=Resource.TOKENS, cap=5, used=5, asked=1),
)
TAKEN_OUT = "merged work was removed from the target"


class SimBench:
    """Where attempts are made."""

    ground: Ground

    async def prepare(self, order: AttemptOrder) -> AttemptStart:
        """A branch with the target and all that the attempt includes."""
        await self._spend(order, "prepare")
        git = self.ground.git
        base, start = git.tip, git.begin(order)
        self.ground.watch.began(order, start)
        await self.ground.weather.breath()
        conflicts = () if order.conflict is None else order.conflict.paths
        return AttemptStart(base=base, start=start, conflicts=conflicts)

    async def work(self, order: AttemptOrder, prepared: AttemptStart) -> Worked:
        """Lets an agent work; one that had finished is not paid again."""
        ground, about = self.ground, _about(order)
        if order.branch not in ground.answers:
            if ground.budget == 0:
                await ground.weather.breath()
                return Worked(done=False, changed=None, reason=BUDGET_USED_UP.reason, halt=BUDGET_USED_UP)
            ground.watch.pays(order, ground.weather.crashes)
            if ground.budget is not None:
                ground.budget -= 1
            await self._spend(order, "work")
            if ground.verdicts.says(Fault.HANGS, *about):
                await ground.engine.hang()
            is_done = not ground.verdicts.says(Fault.AGENT, *about)
            reason = None if is_done else f"the agent gave up on {order.branch}"
            ground.answers[order.branch] = Worked(done=is_done, changed=None, reason=reason)
            await ground.weather.breath()
        return ground.answers[order.branch]

    async def commit(self, order: AttemptOrder, prepared: AttemptStart, worked: Worked) -> Candidate | None:
        """What the agent left; None if it changed nothing."""
        await self._spend(order, "commit")
        if self.ground.verdicts.says(Fault.IDLE, *_about(order)):
            return None
        commit = self.ground.git.work(order)
        await self.ground.weather.breath()
        return Candidate(node=order.node, commit=commit, tree=commit)

    async def prove(self, order: AttemptOrder, prepared: AttemptStart, candidate: Candidate) -> Proof:
        """Runs the checks on it."""
        await self._spend(order, "prove")
        if self.ground.verdicts.says(Fault.RED, *_about(order)):
            return Proof(holds=False, reasons=(f"{order.branch} is red",))
        return Proof(holds=True, reasons=())

    async def leave(self, order: AttemptOrder, *, keep: bool) -> None:
        """Takes the worktree away."""
        await self._spend(order, "leave")
        self.ground.git.worktrees.pop(order.branch, None)
        await self.ground.weather.breath()

    async def _spend(self, order: AttemptOrder, step: str) -> None:
        await self.ground.spend(step)
        if self.ground.verdicts.says(Fault.RAISES, *_about(order), step):
            raise Trouble(f"{step} of {order.branch}")


class SimPress:
    """Where attempts are merged."""

    ground: Ground
    run: GraphRun

    async def stack(self, order: MergeOrder) -> Stack:
        """The batch on top of the target."""
        await self._merges(order, "stack")
        git, says = self.ground.git, self.ground.verdicts.says
        onto = top = git.tip
        left = self.run.tip or next(iter(git.target))
        moved = None if onto == left else TargetMove(expected=left, found=onto)
        if not git.is_in_target(left):
            return Stack(onto=onto, onto_tree=onto, candidates=(), clashes=(), moved=moved, halt=TAKEN_OUT)
        candidates: list[Candidate] = []
        clashes: list[Clash] = []
        for member in order.members:
            paths = sorted({f"src/{node}.py" for node in git.clashes(top, member.commit)})
            again = Fault.CLASH_AGAIN if git.works[member.commit].is_helper else Fault.CLASH
            if git.holds(top, member.commit):
                pass
            elif paths or says(again, member.node, member.attempt):
                clashes.append(Clash(node=member.node, paths=tuple(paths) or ("src/shared.py",)))
                continue
            top = git.stacked(top, member.commit)
            candidates.append(Candidate(node=member.node, commit=top, tree=top))
        await self.ground.weather.breath()
        return Stack(onto=onto, onto_tree=onto, candidates=tuple(candidates), clashes=tuple(clashes), moved=moved)

    async def check(self, order: MergeOrder, stack: Stack, candidate: Candidate) -> Proof:
        """Runs the checks on the merged tree."""
        await self._merges(order, "check")
        git = self.ground.git
        alone = (git.works[commit] for commit in git.trees[candidate.commit].direct)
        reasons = [
            *(work.node for work in alone if self.ground.verdicts.says(Fault.RED_MERGED, work.node, work.attempt)),
            *git.red_pairs(candidate.commit),
        ]
        if not reasons:
            self.ground.watch.proves(candidate)
        return Proof(holds=not reasons, reasons=tuple(sorted(reasons)))

    async def land(self, order: MergeOrder, stack: Stack, candidate: Candidate | None) -> Landing:
        """Moves the target to a candidate, if it is still where it was."""
        await self._merges(order, "land")
        git = self.ground.git
        landed = False
        if candidate is not None:
            if not git.is_in_target(candidate.commit):
                self.ground.watch.lands(candidate)
            landed = git.land(candidate)
        tip = git.tip
        await self.ground.weather.breath()
        is_still = landed or tip == stack.onto
        return Landing(landed=landed, tip=tip, moved=None if is_still else TargetMove(expected=stack.onto, found=tip))

    async def tip(self, target: str) -> str:
        """The target's commit."""
        await self.ground.weather.breath()
        return self.ground.git.tip

    async def tidy(self, order: MergeOrder, landed: Sequence[str]) -> None:
        """There is nothing to take away."""
        await self.ground.weather.breath()

    async def _merges(self, order: MergeOrder, step: str) -> None:
        await self.ground.spend(step)
        if self.ground.verdicts.says(Fault.MERGE_RAISES, order.batch, step):
            raise Trouble(f"{step} of batch {order.batch}")
        if self.ground.verdicts.says(Fault.MERGE_HANGS, order.batch, step):
            await self.ground.engine.hang()


class SimDesk(SimBook, SimBench, SimPress):
    """All of it, for one run."""


def _about(order: AttemptOrder) -> tuple[str, int, bool]:
    return order.node, order.attempt, order.conflict is not None
