"""The briefs of the agents of an autopilot run.

Text by a person, a repository or an agent goes into prompt sections; only the task and the section titles are ours. A
reviewer's brief holds exactly what that role may see, and no claim of the agent under review. Building a brief writes
nothing, so it can be repeated.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fairwitness.contracts.agents.dispatch import Brief, PromptSection
from fairwitness.contracts.autopilot.audit import GapDetail
from fairwitness.contracts.autopilot.execution import ExecutionResult
from fairwitness.contracts.autopilot.facts import PathItem
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PhasePlan, PlanCriterion, PlanTask
from fairwitness.contracts.autopilot.returns import ResearcherReturn
from fairwitness.contracts.autopilot.roadmap import Criterion, DetailedPhase, Requirement
from fairwitness.contracts.autopilot.verification import VerifierReturn
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.errors import UsageError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit import yaml_text
from fairwitness.runs.autopilot.lineage import tasks_of
from fairwitness.runs.autopilot.log import AutopilotLog, step_dispatch
from fairwitness.runs.shared.sections import change_text, document_section, list_section, text_section
from fairwitness.store.layout.autopilot import PLANNING, RUNTIME
from fairwitness.verify.discovery.repository_checks import SETTINGS
from fairwitness.verify.failed_checks import shorten


def phase_section(phase: DetailedPhase) -> PromptSection:
    """Return a phase as the roadmap describes it."""
    return PromptSection(title="The phase", text="\n".join(_phase_lines(phase)))


def _phase_lines(phase: DetailedPhase) -> Iterator[str]:
    yield f"Phase {phase.id}: {phase.name}"
    yield f"Kind: {phase.type.value}"
    yield f"Goal: {phase.goal}"
    yield "Requirements:" if phase.requirements else "Requirements: none are named"
    yield from (f"- {_requirement_line(each)}" for each in phase.requirements)
    yield "Success criteria:" if phase.criteria else "Success criteria: none are named"
    yield from _criteria_lines(phase.criteria)


def _requirement_line(requirement: Requirement) -> str:
    return f"{requirement.id}: {requirement.text or '(no specification describes it)'}"


_FIX: Final = "Fix every listed point, each with a test that shows it if the project has tests, and nothing else."


class RatedCriterion(NamedTuple):
    """A criterion that a rating scores, and its command if it has one; a command may have several lines."""

    text: str
    command: str | None


def criteria_section(criteria: Sequence[RatedCriterion]) -> PromptSection:
    """Return the acceptance criteria, each with its verification command if it has one."""
    return PromptSection(title="The acceptance criteria", text="\n".join(_criteria_lines(criteria)))


def _criteria_lines(criteria: Iterable[Criterion | RatedCriterion]) -> Iterator[str]:
    for number, each in enumerate(criteria, start=1):
        yield f"{number}. {each.text}"
        if each.command is not None and "\n" in each.command.strip():
            yield "   command:"
            yield from _indented(each.command.strip())
        elif each.command is not None:
            yield f"   command: {each.command}"


def plan_section(plan: PhasePlan, only: Sequence[str] = (), title: str = "The plan") -> PromptSection:
    """Return a plan with all its tasks, or only with the tasks named in `only`."""
    plain = plan.plain()
    if only:
        plain["tasks"] = [task for task in plain["tasks"] if task["id"] in only]
        plain["total_tasks"] = len(plain["tasks"])
    return PromptSection(title=title, text=yaml_text.render(plain))


def task_section(task: PlanTask) -> PromptSection:
    """Return a task with everything that its plan says about it."""
    return document_section("The task", task)


def items_section(items: Sequence[PathItem]) -> PromptSection:
    """Return the deficiencies that a rating named."""
    return PromptSection(title="What to fix", text=yaml_text.render([item.plain() for item in items]))


def executed_sections(executed: Sequence[ExecutionResult], proven: Sequence[str] = ()) -> tuple[PromptSection, ...]:
    """Return what the harness ran: the commands of criteria, and the checks of the project at the same tree."""
    text = "\n".join(line for run in executed for line in _run_lines(run)) or "(nothing)"
    return (
        PromptSection(title="What the program ran, and how it ended", text=text),
        *text_section("What the project's checks said about this tree, run by the program", "\n".join(proven)),
    )


def _indented(text: str) -> Iterator[str]:
    yield from (f"      {line}" for line in text.splitlines())


def _run_lines(run: ExecutionResult) -> Iterator[str]:
    """Yield a command and its result; the lines of a command stay as they are."""
    yield f"- {run.criterion}"
    yield from _indented(run.command)
    code = "" if run.exit_code is None else f", exit code {run.exit_code}"
    yield f"  {run.assessment.value}{code}, {run.duration_ms} ms"
    for name, output in (("stdout", run.stdout_truncated), ("stderr", run.stderr_truncated)):
        if output.strip():
            yield f"  {name}:"
            yield from _indented(output)


def change_section(diff: str) -> PromptSection:
    """Return a diff."""
    return PromptSection(title="The change", text=diff)


_PART: Final = " Only a part of the phase is done yet: judge it by the tasks of the plan below, which are this part."


class ReviewBriefs:
    """The briefs of the agents that review work."""

    def __init__(self, log: AutopilotLog, repository: Repository, shadow: Shadow) -> None:
        self._log, self._repository, self._shadow = log, repository, shadow

    def diff(self, base: str | None, head: str) -> str:
        """Return the diff between two commits, branches or trees; None as `base` is the empty tree.

        A long diff is cut, and says so.
        """
        return change_text(self._shadow, self._tree(base), self._tree(head))

    def _tree(self, name: str | None) -> str:
        if name is None:
            return self._shadow.git.run("hash-object", "-t", "tree", "-w", "--stdin", stdin=b"").decode().strip()
        (tree,) = self._repository.ids(f"{name}^{{tree}}")
        return name if tree is None else tree  # our own trees are not in the user's repository

    def plan_checker(
        self, phase_pass: PhasePass, number: int, plan: PhasePlan, *, before: tuple[PromptSection, ...] = ()
    ) -> Brief:
        """Return the brief for checking a plan: the phase and the plan; `before` says what was refused before."""
        return self._step(
            phase_pass,
            StepName.PLAN_CHECK,
            number,
            Role.PLAN_CHECKER,
            f"Check the plan of phase {phase_pass.phase}.",
            inputs=(phase_section(self.phase(phase_pass.phase)), plan_section(plan), *before),
        )

    def verifier(
        self,
        phase_pass: PhasePass,
        number: int,
        plan: PhasePlan | None,
        diff: str,
        executed: Sequence[ExecutionResult],
        proven: Sequence[str] = (),
        *,
        warned: str = "",
    ) -> Brief:
        """Return the brief for verifying a phase: criteria, plan, diff, and the commands that the harness ran.

        `warned` says why this phase needs a stricter verification than others.
        """
        return self._step(
            phase_pass,
            StepName.VERIFY,
            number,
            Role.PHASE_VERIFIER,
            f"Verify phase {phase_pass.phase}.{_PART if tasks_of(self._log, phase_pass) else ''}",
            inputs=(
                *self._judged(phase_pass, plan, diff),
                *executed_sections(executed, proven),
                *text_section("Why this phase needs a stricter verification", warned),
            ),
            scope=self._looking(),
            known={"verification_duration_seconds": 0.0},
        )

    def judge(
        self,
        phase_pass: PhasePass,
        number: int,
        plan: PhasePlan | None,
        diff: str,
        verification: VerifierReturn,
        executed: Sequence[ExecutionResult] = (),
        proven: Sequence[str] = (),
    ) -> Brief:
        """Return the brief for the second opinion: what the verifier had, and what it returned."""
        return self._step(
            phase_pass,
            StepName.JUDGE,
            number,
            Role.JUDGE,
            f"Judge phase {phase_pass.phase}.{_PART if tasks_of(self._log, phase_pass) else ''}",
            inputs=(
                *self._judged(phase_pass, plan, diff),
                *executed_sections(executed, proven),
                document_section("The verifier's return", verification),
            ),
            scope=self._looking(),
        )

    def rater(
        self,
        phase_pass: PhasePass,
        number: int,
        criteria: Sequence[RatedCriterion],
        diff: str,
        executed: Sequence[ExecutionResult] = (),
        proven: Sequence[str] = (),
    ) -> Brief:
        """Return the brief for the score: criteria, texts of requirements, diff and evidence, but no id or number."""
        if not criteria:
            raise UsageError("there is no criterion to score", next_step="give the phase success criteria")
        texts = [each.text for each in self.phase(phase_pass.phase).requirements if each.text is not None]
        return self._brief(
            step_dispatch(phase_pass, StepName.RATE, number),
            Role.RATER,
            "Score the change against the criteria.",
            inputs=(
                criteria_section(criteria),
                *list_section("The requirements", texts),
                change_section(diff),
                *executed_sections(executed, proven),
            ),
            known={"scorecard[].command_output": ""},  # the program runs the commands
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
        executed: Sequence[ExecutionResult] = (),
    ) -> Brief:
        """Return the brief for checking one task: the task or the deficiencies, the diff, and what the harness ran."""
        name = node if task is None else task.id
        return self._brief(
            f"{node}-{attempt}-check-{k}",
            Role.MINI_VERIFIER,
            f"Check {name}. Its criteria are {'those of the task' if task else 'that each point below is fixed'}.",
            parameters={"task_id": name},
            inputs=(
                *work_sections(task, items, problems),
                *self._demanded(_phase_of(node), None if task is None else task.requirements),
                change_section(diff),
                *(executed_sections(executed) if executed else ()),
            ),
            scope=self._looking(),
            known={"task_id": name},
        )

    def self_audit(self, number: int, phases: Sequence[DetailedPhase], specs: Mapping[str, str]) -> Brief:
        """Return the brief for the self-audit; `specs` maps paths to the locked texts of the specifications."""
        if not specs:
            raise UsageError("there is no specification to audit against", next_step="pass the locked texts")
        return self._brief(
            f"self-audit-{number}",
            Role.SELF_AUDIT,
            "Check what is in the repository against every requirement of the phases below.",
            inputs=(
                *(phase_section(phase) for phase in phases),
                *(
                    PromptSection(title="A specification, as it was frozen", text=f"{path}\n\n{specs[path]}")
                    for path in specs
                ),
            ),
        )

    def phase(self, phase_id: str) -> DetailedPhase:
        """Return a phase of the roadmap; a part of a split phase is that phase under the part's id."""
        known = {phase.id: phase for phase in self._log.order().roadmap.phases}
        whole = phase_id if phase_id in known else phase_id[:-1]
        if whole not in known:
            raise UsageError(f"the roadmap has no phase {phase_id}", next_step="name one that it has")
        texts = self._log.order().requirements
        described = tuple(
            each if each.text is not None else each.model_copy(update={"text": texts.get(each.id)})
            for each in known[whole].requirements
        )
        return known[whole].model_copy(update={"id": phase_id, "requirements": described})

    def _demanded(self, phase_id: str, only: Sequence[str] | None = None) -> tuple[PromptSection, ...]:
        """Return the texts of a phase's requirements, or of those that are named."""
        if phase_id == AUDIT:
            return ()
        known = self.phase(phase_id).requirements
        lines = [_requirement_line(each) for each in known if only is None or each.id in only]
        return list_section("The requirements", lines)

    def _judged(self, phase_pass: PhasePass, plan: PhasePlan | None, diff: str) -> tuple[PromptSection, ...]:
        plans = () if plan is None else (plan_section(plan, tasks_of(self._log, phase_pass)),)
        return (phase_section(self.phase(phase_pass.phase)), *plans, change_section(diff))

    def _looking(self) -> Scope:
        """Allow the project's commands, and no writes."""
        return Scope()

    def _step(self, phase_pass: PhasePass, step: StepName, number: int, role: Role, task: str, **more: Any) -> Brief:
        id_ = step_dispatch(phase_pass, step, number)
        return self._brief(id_, role, task, parameters={"phase": phase_pass.phase}, **more)

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


def work_sections(
    task: PlanTask | None, items: Sequence[PathItem], problems: Sequence[str]
) -> tuple[PromptSection, ...]:
    """Return what an agent had to do: a task, deficiencies or problems; `UsageError` if there is nothing."""
    boxes = (
        *(() if task is None else (task_section(task),)),
        *((items_section(items),) if items else ()),
        *list_section("What went wrong", problems),
    )
    if not boxes:
        raise UsageError("there is no work for the agent", next_step="pass a task, items or problems")
    return boxes


AUDIT: Final = "self-audit"
"""Stands for a phase id where the whole run is meant."""
FIND_AND_FIX: Final = "find_and_fix"
_WILD: Final = "*?\N{REPLACEMENT CHARACTER}"
"""Characters that make a file name match more than itself as a glob."""


def _nothing_said(_phase: str) -> str:
    return ""


class AutopilotBriefs(ReviewBriefs):
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
        """`learnings` returns the lessons of this run; `answers` returns what a person said about a phase."""
        super().__init__(log, repository, shadow)
        self._learnings, self._answers = learnings, answers

    def researcher(self, phase_pass: PhasePass, number: int, before: tuple[PromptSection, ...] = ()) -> Brief:
        """Return the brief for research; `before` is what is known of the last attempt at this phase."""
        return self._step(
            phase_pass,
            StepName.RESEARCH,
            number,
            Role.PHASE_RESEARCHER,
            f"Research phase {phase_pass.phase}.",
            inputs=(
                phase_section(self.phase(phase_pass.phase)),
                *self._said(phase_pass),
                *self._lessons(),
                *before,
            ),
        )

    def planner(
        self,
        phase_pass: PhasePass,
        number: int,
        research: ResearcherReturn,
        *,
        last: PhasePlan | None = None,
        before: tuple[PromptSection, ...] = (),
    ) -> Brief:
        """Return the brief for a plan; `last` is the plan that was refused, `before` why it or its work failed."""
        task = f"Plan phase {phase_pass.phase}."
        if last is not None:
            task = f"Plan phase {phase_pass.phase} again: your last plan was refused. Fix what is named, keep the rest."
        return self._step(
            phase_pass,
            StepName.PLAN,
            number,
            Role.PHASE_PLANNER,
            task,
            inputs=(
                phase_section(self.phase(phase_pass.phase)),
                document_section("The research", research),
                *self._said(phase_pass),
                *self._lessons(),
                *(() if last is None else (plan_section(last, title="Your last plan"),)),
                *before,
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
        before: tuple[PromptSection, ...] = (),
        criteria: Sequence[PlanCriterion] = (),
    ) -> Brief:
        """Return the brief for a task, or for the items of a cycle; `before` describes an earlier attempt.

        `criteria` are those that must still hold after a cycle.
        """
        name = node if task is None else task.id
        events = f"Carry out {name}." if task is not None else _FIX
        held = [line for each in criteria for line in (f"- {each.criterion}", *_indented(each.command))]
        boxes = (
            *work_sections(task, items, ()),
            *text_section("The criteria of the phase, which must hold after you", "\n".join(held)),
            *before,
        )
        requirements = None if task is None else task.requirements
        return self._work(node, attempt, Role.EXECUTOR, events, boxes, writes, name, requirements)

    def fixer(self, node: str, attempt: int, gap: GapDetail, writes: Sequence[str]) -> Brief:
        """Return the brief for closing one gap of the self-audit."""
        events = "Close the gap that the audit found, and do nothing else."
        return self._work(node, attempt, Role.EXECUTOR, events, (document_section("The gap", gap),), writes, node)

    def _work(
        self,
        node: str,
        attempt: int,
        role: Role,
        events: str,
        boxes: tuple[PromptSection, ...],
        writes: Sequence[str],
        name: str,
        requirements: Sequence[str] | None = None,
    ) -> Brief:
        return self._brief(
            f"{node}-{attempt}",
            role,
            events,
            parameters={"phase": _phase_of(node), "task_id": name},
            inputs=(*boxes, *self._demanded(_phase_of(node), requirements), *self._lessons()),
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
        before: tuple[PromptSection, ...] = (),
    ) -> Brief:
        """Return the brief for a repair within the task's files, or anywhere if there is no task.

        `before` is what is known of the failed work; with it, each problem is one short line.
        """
        if not problems:
            raise UsageError("there is nothing to repair", next_step="pass the problems")
        if writes is None:
            writes = self.anywhere() if task is None else task.files
        return self._brief(
            f"{node}-{attempt}-debug-{k}",
            Role.DEBUGGER,
            "Find the cause of the failure and fix it. The failed commands run again after you.",
            parameters={"goal": FIND_AND_FIX},
            inputs=(
                *work_sections(task, (), [shorten(each) for each in problems] if before else problems),
                *self._demanded(_phase_of(node), None if task is None else task.requirements),
                *before,
            ),
            scope=self._building(writes),
            known={"commits": []},
        )

    def anywhere(self) -> tuple[str, ...]:
        """Return globs for everything on the run's branch but its own folders, its specifications and the settings."""
        order = self._log.order()
        tip = self._repository.ref(f"refs/heads/{order.target}") or order.base_commit
        printed = self._repository.git.run("ls-tree", "-z", f"{tip}^{{tree}}").decode(errors="replace")
        rows = [row.partition("\t") for row in printed.split("\0") if row]
        locked = {spec.path for spec in order.specs}
        globs = []
        for about, _, name in rows:
            is_own = name in (PLANNING, RUNTIME, SETTINGS)
            is_shut = is_own or any(path == name or path.startswith(f"{name}/") for path in locked)
            if not is_shut and not any(sign in name for sign in _WILD):
                globs.append(f"{name}/**" if about.split(" ")[1] == "tree" else name)
        return tuple(globs)

    def _building(self, writes: Sequence[str]) -> Scope:
        return Scope(writes=tuple(writes))

    def _lessons(self) -> tuple[PromptSection, ...]:
        return text_section("Lessons of this run", self._learnings())

    def _said(self, phase_pass: PhasePass) -> tuple[PromptSection, ...]:
        return text_section("What a person said about the phase", self._answers(phase_pass.phase))


def _phase_of(node: str) -> str:
    """Return the phase that a node belongs to, read from the node's name.

    >>> _phase_of("p6.1-05-01"), _phase_of("p5-cycle"), _phase_of("audit-2")
    ('6.1', '5', 'self-audit')
    """
    first = node.partition("-")[0]
    return first[1:] if first.startswith("p") and first[1:2].isdigit() else AUDIT
