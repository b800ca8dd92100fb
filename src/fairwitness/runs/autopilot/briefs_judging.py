"""What those are told who judge work they did not do: exactly what each may see, and nothing that somebody claimed.

Nothing here is written anywhere, so a brief may be made as often as somebody likes.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask
from fairwitness.contracts.autopilot.roadmap import CommandKind, Criterion, DetailedPhase
from fairwitness.contracts.autopilot.verifying import VerifierReturn
from fairwitness.contracts.autopilot.words import StepName
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.runs.autopilot.asking import step_dispatch
from fairwitness.runs.autopilot.briefs_boxes import (
    change_box,
    change_text,
    criteria_box,
    document_box,
    executed_box,
    items_box,
    listed,
    phase_box,
    plan_box,
    prose,
    task_box,
)
from fairwitness.runs.autopilot.lineage import tasks_of
from fairwitness.runs.autopilot.log import AutopilotLog

_PART: Final = " Only a part of the phase is done yet: judge it by the tasks of the plan below, which are this part."


class JudgingBriefs:
    """The briefs of one run for everybody who judges."""

    def __init__(self, log: AutopilotLog, repository: Repository, shadow: Shadow) -> None:
        self._log, self._repository, self._shadow = log, repository, shadow

    def diff(self, base: str | None, head: str) -> str:
        """What differs between two commits, branches or trees; None is a tree with nothing in it.

        It is bounded, and says so when cut.
        """
        return change_text(self._shadow, self._tree(base), self._tree(head))

    def _tree(self, name: str | None) -> str:
        if name is None:
            return self._shadow.git.run("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"").decode().strip()
        (tree,) = self._repository.ids(f"{name}^{{tree}}")
        return name if tree is None else tree  # a tree of ours is not in their store

    def plan_checker(self, asked: PhasePass, number: int, plan: PhasePlan) -> Brief:
        """Whether the plan would reach the goal: the phase and the plan."""
        return self._step(
            asked,
            StepName.PLAN_CHECK,
            number,
            Role.PLAN_CHECKER,
            f"Check the plan of phase {asked.phase}.",
            inputs=(phase_box(self.phase(asked.phase)), plan_box(plan)),
        )

    def verifier(
        self,
        asked: PhasePass,
        number: int,
        plan: PhasePlan | None,
        diff: str,
        executed: Sequence[ExecutionResult],
        *,
        warned: str = "",
    ) -> Brief:
        """Whether the phase does what it should: criteria, plan, change, and what the harness ran itself.

        `warned` says why it has to be verified harder than others.
        """
        return self._step(
            asked,
            StepName.VERIFY,
            number,
            Role.PHASE_VERIFIER,
            f"Verify phase {asked.phase}.{_PART if tasks_of(self._log, asked) else ''}",
            inputs=(
                *self._judged(asked, plan, diff),
                executed_box(executed),
                *prose("Why this phase is to be verified harder", warned),
            ),
            scope=self._looking(),
            known={"verification_duration_seconds": 0.0},
        )

    def judge(
        self, asked: PhasePass, number: int, plan: PhasePlan | None, diff: str, verification: VerifierReturn
    ) -> Brief:
        """The second opinion: what the verifier had, and what it returned."""
        return self._step(
            asked,
            StepName.JUDGE,
            number,
            Role.JUDGE,
            f"Judge phase {asked.phase}.{_PART if tasks_of(self._log, asked) else ''}",
            inputs=(*self._judged(asked, plan, diff), document_box("The verifier's return", verification)),
            scope=self._looking(),
        )

    def rater(self, asked: PhasePass, number: int, criteria: Sequence[Criterion], diff: str) -> Brief:
        """The score: criteria and change, and not even the number of the phase."""
        if not criteria:
            raise UsageError("there is no criterion to be scored", next_step="give the phase success criteria")
        return self._brief(
            step_dispatch(asked, StepName.RATE, number),
            Role.RATER,
            "Score the change against the criteria.",
            inputs=(criteria_box(criteria), change_box(diff)),
        )

    def mini_verifier(
        self,
        node: str,
        attempt: int,
        k: int,
        task: PlanTask | None,
        diff: str,
        *,
        items: Sequence[PathItem] = (),
        problems: Sequence[str] = (),
    ) -> Brief:
        """The check of one task: the task and the change; where there is no task, what was to be mended."""
        name = node if task is None else task.id
        return self._brief(
            f"{node}-{attempt}-check-{k}",
            Role.MINI_VERIFIER,
            f"Check {name}. Its criteria are {'those of the task' if task else 'that each point below is mended'}.",
            parameters={"task_id": name},
            inputs=(*work_boxes(task, items, problems), change_box(diff)),
            scope=self._looking(),
            known={"task_id": name},
        )

    def self_audit(self, number: int, phases: Sequence[DetailedPhase], specs: Mapping[str, str]) -> Brief:
        """What was built, held against the frozen words: `specs` are the texts as they were locked, by path."""
        if not specs:
            raise UsageError("there is no specification to audit against", next_step="hand over the frozen texts")
        return self._brief(
            f"self-audit-{number}",
            Role.SELF_AUDIT,
            "Hold what stands in the repository against every requirement of the phases below.",
            inputs=(
                *(phase_box(phase) for phase in phases),
                *(
                    PromptSection(title="A specification, as it was frozen", text=f"{path}\n\n{specs[path]}")
                    for path in specs
                ),
            ),
        )

    def phase(self, phase_id: str) -> DetailedPhase:
        """A phase of the roadmap; a part of one that was split is that phase under an id of its own."""
        known = {phase.id: phase for phase in self._log.order().roadmap.phases}
        whole = phase_id if phase_id in known else phase_id[:-1]
        if whole not in known:
            raise UsageError(f"the roadmap has no phase {phase_id}", next_step="name one that it has")
        return known[whole].model_copy(update={"id": phase_id})

    def _judged(self, asked: PhasePass, plan: PhasePlan | None, diff: str) -> tuple[PromptSection, ...]:
        plans = () if plan is None else (plan_box(plan, tasks_of(self._log, asked)),)
        return (phase_box(self.phase(asked.phase)), *plans, change_box(diff))

    def _looking(self) -> Scope:
        """Commands, and no file to write."""
        return Scope(commands=self._commands())

    def _commands(self) -> tuple[tuple[str, ...], ...]:
        """How the project's own commands begin; one that is no plain command line is run by the harness alone."""
        commands = self._log.order().commands
        said = [commands.get(kind) or "" for kind in CommandKind]
        return tuple(dict.fromkeys(words for words in map(_words, said) if words))

    def _step(self, asked: PhasePass, step: StepName, number: int, role: Role, task: str, **more: Any) -> Brief:
        id_ = step_dispatch(asked, step, number)
        return self._brief(id_, role, task, parameters={"phase": asked.phase}, **more)

    def _brief(
        self,
        dispatch_id: str,
        role: Role,
        task: str,
        *,
        inputs: tuple[PromptSection, ...],
        parameters: dict[str, str] | None = None,
        scope: Scope | None = None,
        known: dict[str, Any] | None = None,
    ) -> Brief:
        return Brief(
            dispatch_id=dispatch_id,
            run_id=self._log.run_id,
            role=role,
            instance=dispatch_id,
            task=task,
            parameters=parameters or {},
            inputs=inputs,
            scope=scope or Scope(),
            known=known or {},
        )


def work_boxes(task: PlanTask | None, items: Sequence[PathItem], problems: Sequence[str]) -> tuple[PromptSection, ...]:
    """What somebody had to do: a task, or what was to be mended; never nothing."""
    boxes = (
        *(() if task is None else (task_box(task),)),
        *((items_box(items),) if items else ()),
        *listed("What went wrong", problems),
    )
    if not boxes:
        raise UsageError("there is nothing to be done", next_step="hand over a task, items or problems")
    return boxes


def _words(line: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(line))
    except ValueError:
        return ()
