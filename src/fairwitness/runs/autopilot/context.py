"""What the steps of one autopilot run share: its log, repository, harness, agents and documents."""

from dataclasses import dataclass
from typing import TypeVar

from fairwitness.contracts.agents.dispatch import Brief
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.autopilot.passes import PhasePass
from fairwitness.contracts.autopilot.plan import PhasePlan, PlanTask, TaskKind
from fairwitness.contracts.autopilot.roadmap import Criterion, DetailedPhase
from fairwitness.contracts.autopilot.vocabulary import StepName
from fairwitness.contracts.common.base import Contract
from fairwitness.errors import InternalError
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.kept import recorded
from fairwitness.rules.phase_plan import parts_of
from fairwitness.runs.autopilot.briefs import AutopilotBriefs, RatedCriterion
from fairwitness.runs.autopilot.commands import CommandHarness, CriterionCommand
from fairwitness.runs.autopilot.lineage import tasks_of
from fairwitness.runs.autopilot.log import AutopilotLog, pass_name, step_dispatch
from fairwitness.runs.autopilot.revert import tip_of
from fairwitness.runs.dispatch import Dispatched, DispatchPosition
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.store.artifacts import Store, content_hash
from fairwitness.store.layout.autopilot import PhaseLayout

C = TypeVar("C", bound=Contract)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutopilotContext:
    """The parts and the documents of one run."""

    log: AutopilotLog
    repo: RepoContext
    shadow: Shadow
    files: Store
    """The user's checkout; the run's folders are in it."""
    harness: CommandHarness
    agent_caller: AgentCaller
    briefs: AutopilotBriefs

    @property
    def order(self) -> AutopilotOrder:
        """The order that the run was started with."""
        return self.log.order()

    @property
    def repository(self) -> Repository:
        """The repository that the run works in."""
        return self.repo.repository

    async def ask(self, phase_pass: PhasePass, step: StepName, number: int, brief: Brief, *, at: str) -> Dispatched:
        """Call the read-only agent of a step in a checkout of the commit `at`."""
        return await ask_step(self.agent_caller, phase_pass, step, number, brief, at=at)

    def phase(self, phase_id: str) -> DetailedPhase:
        """Return a phase of the roadmap; a part of a split phase is that phase under the part's id."""
        known = {phase.id: phase for phase in self.order.roadmap.phases}
        if phase_id in known:
            return known[phase_id]
        return known[phase_id[:-1]].model_copy(update={"id": phase_id})

    def layout(self, phase_id: str) -> PhaseLayout:
        """Return the paths of a phase's files."""
        return PhaseLayout(phase_id)

    def tip(self) -> str:
        """Return the current commit of the run's branch."""
        return tip_of(self.log, self.repository)

    def tree(self, commit: str) -> str:
        """Return the tree of a commit."""
        return self.repository.tree_of(commit)

    def changed(self) -> tuple[str, ...]:
        """Return the files in which the run's branch differs from where the run began."""
        base, tip = self.tree(self.order.base_commit), self.tree(self.tip())
        return tuple(change.path for change in self.shadow.diff(base, tip))

    def put(self, path: str, text: str) -> str:
        """Write a file of the run and return its hash."""
        data = text.encode()
        self.files.put(path, data)
        killpoint("autopilot.written")
        return content_hash(data)

    def keep(self, kind: str, phase_pass: PhasePass, number: int, document: C) -> C:
        """Record a document of a step, once."""
        return self.log.keep(f"{kind}:{pass_name(phase_pass)}:{number}", kind, phase_pass.phase, document)

    def latest(self, kind: str, phase_id: str, shape: type[C]) -> C | None:
        """Return the last document of a kind for a phase; a part falls back to its whole phase."""
        rows = self.log.ledger.observations(self.log.run_id, kind)
        for subject in dict.fromkeys((phase_id, phase_id.rstrip("abcdefghijklmnopqrstuvwxyz"))):
            own = [row for row in rows if row.subject == subject]
            if own:
                return recorded(shape, own[-1], "document")
        return None

    def plan(self, phase_id: str) -> PhasePlan | None:
        """Return the last plan of a phase."""
        return self.latest(PLAN, phase_id, PhasePlan)

    def tasks(self, phase_pass: PhasePass) -> tuple[PlanTask, ...]:
        """Return the tasks that agents carry out in a pass; tasks for a person are left out."""
        plan = self.plan(phase_pass.phase)
        tasks = () if plan is None else plan.tasks
        own = tasks_of(self.log, phase_pass)
        return tuple(task for task in tasks if task.kind is TaskKind.AUTO and (not own or task.id in own))

    def criteria(self, phase_pass: PhasePass) -> tuple[CriterionCommand, ...]:
        """Return the commands that decide about a pass, of the phase's criteria and its plan's, without duplicates."""
        named = [
            CriterionCommand(each.text, each.command)
            for each in self._own_criteria(phase_pass)
            if each.command is not None
        ]
        named += [
            CriterionCommand(each.criterion, each.command) for task in self.tasks(phase_pass) for each in task.criteria
        ]
        return tuple(dict.fromkeys(named))

    def rated_criteria(self, phase_pass: PhasePass) -> tuple[RatedCriterion, ...]:
        """Return the criteria that a rating scores: the phase's, or its plan's if the phase has none."""
        own = tuple(RatedCriterion(each.text, each.command) for each in self._own_criteria(phase_pass))
        return own or tuple(RatedCriterion(each.criterion, each.command) for each in self.criteria(phase_pass))

    def _own_criteria(self, phase_pass: PhasePass) -> tuple[Criterion, ...]:
        """Return the phase's criteria.

        For a part, only those that no later part contributes to, because the others cannot hold yet.
        """
        criteria, plan = self.phase(phase_pass.phase).criteria, self.plan(phase_pass.phase)
        tasks = tasks_of(self.log, phase_pass)
        if not tasks or plan is None:
            return criteria
        parts = [tuple(task.id for task in part) for part in parts_of(plan)]
        serving = [{name for task in part for name in task.requirements} for part in parts_of(plan)]
        own = parts.index(tasks)
        last = {
            each.text: max((at for at, named in enumerate(serving) if each.text in named), default=len(parts) - 1)
            for each in criteria
        }
        return tuple(each for each in criteria if last[each.text] == own)


async def ask_step(
    caller: AgentCaller, phase_pass: PhasePass, step: StepName, number: int, brief: Brief, *, at: str
) -> Dispatched:
    """Call the read-only agent of a step in a checkout of the commit `at`."""
    name = step_dispatch(phase_pass, step, number)
    if (brief.dispatch_id, brief.instance) != (name, name):
        raise InternalError(f"the brief of {name} says that it is {brief.dispatch_id}")
    return await caller.ask_at(brief, DispatchPosition(step.value, phase=phase_pass.phase, dispatch_count=number), at)


PREFLIGHT, TRIAGE, RESEARCH, PLAN, PLAN_CHECK = "preflight", "triage", "research", "plan", "plan-check"
VERIFICATION, JUDGEMENT, RATING, SEEN = "verification", "judgement", "rating", "seen"
"""The kinds of documents that a phase leaves."""
