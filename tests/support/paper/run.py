"""A feature run on paper: a real ledger and room, the product's own decisions and actions, and nobody behind them.

No agent is asked, nothing is run and nothing is committed: a script says how each call ends. Everything that the rules
and the facts look at is written as the real steps write it. The clock stands still, so the same script leaves the same
ledger.
"""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from fairwitness.contracts.common.budgets import BudgetCaps, BudgetTable, Caps
from fairwitness.contracts.common.decisions import Decision, Finish, Halt, Wait, WaitsFor
from fairwitness.contracts.common.ids import baseline_tag, run_ref
from fairwitness.contracts.feature.events import Committed, FeatureRunResumed
from fairwitness.contracts.feature.facts import GateChoice, HumanGate
from fairwitness.contracts.feature.order import FeatureOrder
from fairwitness.contracts.graph.orders import GraphEnd
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.errors import FairWitnessError, UsageError
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.disk_watch import DiskWatch
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.dispatch.events import FeatureEvents
from fairwitness.runs.dispatch.model import DispatchContext
from fairwitness.runs.feature.actions import ActionRunner
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext, write_beginning
from fairwitness.runs.feature.decisions import take_decision
from fairwitness.runs.feature.facts import WHOLE
from fairwitness.runs.feature.questions import WANTS_WORDS, answer, open_question
from fairwitness.runs.feature.task_attempts import FeatureGraphRunner, TaskImplementer
from fairwitness.runs.feature.tasks import graphs_of
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.sandbox.scripted import ScriptedRunner
from fairwitness.store.artifacts import Store
from fairwitness.verify.subject import VerifyDeps
from support import demo_feature as demo
from support.paper.calls import PaperCaller
from support.paper.graph import PaperEvidence, PaperGraph, changed_by, hash_of, write_rows
from support.paper.script import How, Rows, Script

RUN = demo.DEMO.repository.committed_at
BEGAN = datetime(2026, 2, 26, 14, 30, tzinfo=UTC)
MOST = 150
"""Decisions that no run comes near to; whoever takes more goes round in circles."""
_UNLIMITED = Caps(tokens=None, money_micros=None, milliseconds=None)


class Step(NamedTuple):
    """A decision of a paper run."""

    number: int
    step: str | None
    decision: Decision


class Stuck(Exception):
    """A decision that nothing can be done about, or a run that does not end."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What all paper runs stand on and none of them touches: the demo's repository."""

    repository: Repository
    shadow: Shadow

    @classmethod
    def lay(cls, folder: Path) -> "Ground":
        """In a new folder."""
        repository = Repository.open(demo.DEMO.lay_out(folder / "till"))
        (folder / "shadow").mkdir()
        return cls(repository, Shadow.open(folder / "shadow", repository))


class PaperActions(ActionRunner):
    """Does what was decided; what would need a repository is written down as if it had been done."""

    def __init__(
        self, context: FeatureContext, caller: AgentCaller, briefs: FeatureBriefs, parts: VerifyDeps, script: Script
    ) -> None:
        super().__init__(context, caller, briefs, parts, lambda: context.order.base_commit)
        self._script = script

    async def _bundle(self) -> None:
        """The whole change's rows, and a page."""
        context, life = self._context, self._context.state().resumed
        rows = self._script.rows.get(f"{WHOLE}:{life}", Rows())
        tree, key = hash_of(WHOLE, life), f"{WHOLE}:{life}"
        write_rows(context, WHOLE, life + 1, tree, rows)
        if context.ledger.observation(context.run_id, key) is None:
            merged = [task for task, state in context.state().tasks.items() if state.merged is not None]
            detail: dict[str, object] = {
                "round": life + 1,
                "tree": tree,
                "commit": hash_of("tip", life),
                "files": [changed_by(task).plain() for task in merged],
            }
            context.write(lambda record: record.observation(context.observation(key, WHOLE, WHOLE, detail, tree=tree)))
        self._fail_if_told("step-8b", "evidence-bundle")
        context.put(context.layout.evidence_bundle, f"# Evidence of {context.run_id}\n")

    def _commit(self) -> None:
        self._fail_if_told("step-9", "commit")
        if self._context.state().commit is None:
            self._context.write_event(Committed(commit=hash_of("commit"), rollback_command="fairwitness rollback"))

    def _fail_if_told(self, step: str, instance: str) -> None:
        """The last call that was begun and has not ended is the one at hand."""
        for id_, dispatch in self._context.state().dispatches.items():
            is_here = (dispatch.step, dispatch.instance, dispatch.status) == (step, instance, None)
            if is_here and self._script.ending(id_).how is not How.DONE:
                raise UsageError(f"the script says that {instance} fails", next_step="none")


class PaperRun:
    """One run of a script."""

    def __init__(self, ground: Ground, folder: Path, script: Script) -> None:
        """`folder` is new, and the run's own."""
        self.script = script
        self.context = _context(ground, folder, script)
        context, repository = self.context, ground.repository
        worktrees = Worktrees(repository, ground.shadow, folder / "worktrees", prefix="fairwitness")
        identity = read_identity(repository)
        caps = BudgetCaps(dispatch=_UNLIMITED, phase=_UNLIMITED, run=_UNLIMITED)
        shared = DispatchContext(
            context.ledger,
            context.kept,
            ground.shadow,
            caps,
            FeatureEvents(),
            context.clock,
            DiskWatch((context.kept.root,)),
        )
        self._caller = PaperCaller(context, shared, script, worktrees, identity)
        candidates = Candidates(repository, ground.shadow)
        self._world = RepoContext(repository, worktrees, candidates, folder / "locks", identity)
        self._verify_deps = VerifyDeps(
            repository=repository,
            runner=ScriptedRunner((), tier=script.sandbox),
            shadow=ground.shadow,
            ledger=context.ledger,
            state=folder,
            scratch=folder,
            settings=VerifySettings(),
            digest="0" * 64,
            clock=context.clock,
        )
        self._briefs = FeatureBriefs(context)
        self._actions = PaperActions(context, self._caller, self._briefs, self._verify_deps, script)
        self._answered: dict[str, int] = {}

    def play(self) -> tuple[Step, ...]:
        """Until the run has ended and nobody resumes it; every decision it took."""
        return asyncio.run(self._play())

    async def _play(self) -> tuple[Step, ...]:
        taken: list[Step] = []
        number, resumes = 0, self.script.resumes
        while True:
            before = self.context.state().current_step
            next_ = take_decision(self.context, number)
            number, decision = next_.number, next_.decision
            taken.append(Step(number, before, decision))
            if len(taken) > MOST:
                raise Stuck(f"more than {MOST} decisions, the last {decision.kind}: {decision.reason}")
            match decision:
                case Halt(resumable=True) if resumes:
                    resumes -= 1
                    self._resume()
                case Halt() | Finish():
                    return tuple(taken)
                case Wait(waits_for=WaitsFor.PERSON):
                    self._answer()
                case Wait():
                    raise Stuck(f"decision {number} waits for {', '.join(decision.what)}, and nothing is under way")
                case _:
                    try:
                        await self._actions.act(next_, self._carry)
                    except FairWitnessError as error:
                        raise Stuck(f"decision {number} ({decision.kind}: {decision.reason}): {error}") from error

    def _resume(self) -> None:
        last = self.context.ledger.last_event(self.context.run_id, "step_started")
        assert last is not None
        self.context.write_event(FeatureRunResumed(from_step=last.data["step"]))

    def _answer(self) -> None:
        question = open_question(self.context)
        assert question is not None
        gate = HumanGate(question.gate_id)
        said = self.script.answers.get(gate, ())
        turn = self._answered.get(gate.value, 0)
        self._answered[gate.value] = turn + 1
        offered = [option.id for option in question.options]
        option = said[turn].value if turn < len(said) and said[turn].value in offered else offered[0]
        words = "more of it" if GateChoice(option) in WANTS_WORDS else None
        answer(self.context, option, words, "a person")

    async def _carry(self, number: int) -> GraphEnd:
        context = self.context
        graph = next(graph for graph in graphs_of(context) if graph.number == number)
        evidence = PaperEvidence(context, self._verify_deps, self.script)
        runner = FeatureGraphRunner(self._world, context, graph, self._caller, self._briefs, _no_proof, evidence)
        work = TaskImplementer(context, graph, self._caller, self._briefs)
        return await PaperGraph(context, runner, work, self.script).carry(number)

    def close(self) -> None:
        """Leaves the ledger as it is."""
        self.context.ledger.close()


def _no_proof(*_args: Any, **_kwargs: Any) -> Any:
    raise AssertionError("nothing is run on paper")


def _context(ground: Ground, folder: Path, script: Script) -> FeatureContext:
    """The room of a run whose order and beginning are written down."""

    def clock() -> datetime:
        return BEGAN

    head = ground.repository.head
    assert head is not None
    state = folder / "state"
    state.mkdir(parents=True)
    (folder / "files").mkdir()
    order = FeatureOrder(
        request=demo.DEMO.request,
        slug=demo.DEMO.slug,
        mode=script.mode,
        base_commit=head,
        base_branch=ground.repository.branch,
        baseline_tag=baseline_tag(RUN),
        target=f"fairwitness/{run_ref(RUN)}/target",
        policy=script.policy,
        verify=VerifySettings(),
        settings_hash=f"sha256:{'0' * 64}",
        started_by="Demo <demo@localhost>",
    )
    context = FeatureContext(
        run_id=RUN,
        order=order,
        repository=ground.repository,
        shadow=ground.shadow,
        ledger=Ledger.open_file(state / "evidence.db", clock=clock),
        files=Store(folder / "files"),
        kept=Store(state),
        clock=clock,
    )
    write_beginning(context, BudgetTable())
    return context
