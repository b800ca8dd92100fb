"""What each agent of an autopilot run is told: those who judge, and here those who find out, plan, build and mend.

Whatever a person, a repository or an agent wrote goes into boxes; tasks and titles are our own words.
"""

from collections.abc import Callable, Sequence
from typing import Final

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.autopilot.audit import GapDetail
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask
from fairwitness.contracts.autopilot.returns import ResearcherReturn
from fairwitness.contracts.autopilot.words import StepName
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.runs.autopilot.briefs_boxes import document_box, listed, phase_box, plan_box, prose
from fairwitness.runs.autopilot.briefs_judging import JudgingBriefs, work_boxes
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.store.layout.autopilot import PLANNING, RUNTIME

AUDIT: Final = "self-audit"
"""What stands in the place of a phase where the whole run is meant."""
FIND_AND_FIX: Final = "find_and_fix"
_WILD: Final = "*?\N{REPLACEMENT CHARACTER}"
"""A name with one of these is no pattern for itself alone."""


def _nothing_said(_phase: str) -> str:
    return ""


class Briefs(JudgingBriefs):
    """The briefs of one run."""

    def __init__(
        self,
        log: AutopilotLog,
        repository: Repository,
        shadow: Shadow,
        learnings: Callable[[], str],
        *,
        answers: Callable[[str], str] = _nothing_said,
    ) -> None:
        """`learnings`: what this run taught so far; `answers`: what a person said about a phase beforehand."""
        super().__init__(log, repository, shadow)
        self._learnings, self._answers = learnings, answers

    def researcher(self, asked: PhasePass, number: int, issues: Sequence[str]) -> Brief:
        """What a plan has to know; `issues` are what the phase came to when it was planned before."""
        return self._step(
            asked,
            StepName.RESEARCH,
            number,
            Role.PHASE_RESEARCHER,
            f"Research phase {asked.phase}.",
            inputs=(
                phase_box(self.phase(asked.phase)),
                *self._said(asked),
                *self._lessons(),
                *listed("What was wrong when it was done before", issues),
            ),
        )

    def planner(
        self,
        asked: PhasePass,
        number: int,
        research: ResearcherReturn,
        refused: Sequence[str],
        *,
        last: PhasePlan | None = None,
    ) -> Brief:
        """The plan; `refused` is why the last one was not taken."""
        task = f"Plan phase {asked.phase}."
        if refused:
            task = f"Plan phase {asked.phase} anew: your last plan was refused. Mend what is named, and keep the rest."
        return self._step(
            asked,
            StepName.PLAN,
            number,
            Role.PHASE_PLANNER,
            task,
            inputs=(
                phase_box(self.phase(asked.phase)),
                document_box("The research", research),
                *self._said(asked),
                *self._lessons(),
                *(() if last is None else (plan_box(last, title="Your last plan"),)),
                *listed("Why the last plan was refused", refused),
            ),
        )

    def executor(
        self,
        node: str,
        attempt: int,
        task: PlanTask | None,
        items: Sequence[PathItem],
        writes: Sequence[str],
        *,
        before: Sequence[str] = (),
    ) -> Brief:
        """One task, or what a cycle is to mend; `before` is what happened to an attempt before."""
        name = node if task is None else task.id
        told = f"Carry out {name}." if task is not None else "Mend what is listed, each point of it, and nothing else."
        boxes = (*work_boxes(task, items, ()), *listed("What happened to the attempt before", before))
        return self._work(node, attempt, Role.EXECUTOR, told, boxes, writes, name)

    def fixer(self, node: str, attempt: int, gap: GapDetail, writes: Sequence[str]) -> Brief:
        """One gap that the self-audit found."""
        told = "Close the gap that the audit found, and do nothing else."
        return self._work(node, attempt, Role.EXECUTOR, told, (document_box("The gap", gap),), writes, node)

    def _work(
        self,
        node: str,
        attempt: int,
        role: Role,
        told: str,
        boxes: tuple[PromptSection, ...],
        writes: Sequence[str],
        name: str,
    ) -> Brief:
        return self._brief(
            f"{node}-{attempt}",
            role,
            told,
            parameters={"phase": _phase_of(node), "task_id": name},
            inputs=(*boxes, *self._lessons()),
            scope=self._building(writes),
            known={"commit_shas": []},
        )

    def debugger(
        self,
        node: str,
        attempt: int,
        k: int,
        task: PlanTask | None,
        problems: Sequence[str],
        *,
        writes: Sequence[str] | None = None,
        ruled_out: Sequence[str] = (),
    ) -> Brief:
        """The cause of a failure, and its repair: within the files of the task, or anywhere if there is none."""
        if not problems:
            raise UsageError("there is nothing to be mended", next_step="hand over what failed")
        if writes is None:
            writes = self.anywhere() if task is None else task.files
        return self._brief(
            f"{node}-{attempt}-debug-{k}",
            Role.DEBUGGER,
            "Find the cause of what went wrong and mend it. The commands that failed are run again after you.",
            parameters={"goal": FIND_AND_FIX},
            inputs=(*work_boxes(task, (), problems), *listed("What was ruled out already", ruled_out)),
            scope=self._building(writes),
            known={"commits": []},
        )

    def anywhere(self) -> tuple[str, ...]:
        """Everything that stands on the run's branch, but what the run is about: its folders and its specifications."""
        order = self._log.order()
        tip = self._repository.ref(f"refs/heads/{order.target}") or order.base_commit
        printed = self._repository.git.run("ls-tree", "-z", f"{tip}^{{tree}}").decode(errors="replace")
        rows = [row.partition("\t") for row in printed.split("\0") if row]
        locked = {spec.path for spec in order.specs}
        globs = []
        for about, _, name in rows:
            is_shut = name in (PLANNING, RUNTIME) or any(path == name or path.startswith(f"{name}/") for path in locked)
            if not is_shut and not any(sign in name for sign in _WILD):
                globs.append(f"{name}/**" if about.split(" ")[1] == "tree" else name)
        return tuple(globs)

    def _building(self, writes: Sequence[str]) -> Scope:
        return Scope(writes=tuple(writes), commands=self._commands())

    def _lessons(self) -> tuple[PromptSection, ...]:
        return prose("Lessons of this run", self._learnings())

    def _said(self, asked: PhasePass) -> tuple[PromptSection, ...]:
        return prose("What a person said about the phase", self._answers(asked.phase))


def _phase_of(node: str) -> str:
    """The phase whose work a node is, as its name tells.

    >>> _phase_of("p6.1-05-01"), _phase_of("p5-cycle"), _phase_of("audit-2")
    ('6.1', '5', 'self-audit')
    """
    first = node.partition("-")[0]
    return first[1:] if first.startswith("p") and first[1:2].isdigit() else AUDIT
