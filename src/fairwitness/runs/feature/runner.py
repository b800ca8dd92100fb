"""The runner of a feature run: its decisions, actions, graphs, and the cleanup at its end."""

from fairwitness.contracts.common.decisions import Finish, Halt, Wait, WaitsFor
from fairwitness.contracts.feature.order import KeepArtifacts
from fairwitness.contracts.graph.orders import GraphOptions
from fairwitness.errors import InternalError, NotReady
from fairwitness.git.run_cleanup import sweep
from fairwitness.kit.killpoints import killpoint
from fairwitness.ledger.export import exported
from fairwitness.rules.feature_events import visit_of
from fairwitness.runs.dispatch.blocking import run_blocking
from fairwitness.runs.feature.actions import ActionRunner, RunGraph
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import TakenDecision, take_decision
from fairwitness.runs.feature.evidence import AttemptEvidence
from fairwitness.runs.feature.questions import key_of
from fairwitness.runs.feature.task_attempts import FeatureGraphRunner
from fairwitness.runs.feature.tasks import graphs_of
from fairwitness.runs.graph.merges import MergeRunner
from fairwitness.runs.graph.repo_context import Prove, RepoContext
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.verify.subject import VerifyDeps


class RecordedDecision:
    """The part of a decision that the body reads."""

    def __init__(self, taken: TakenDecision, waits_at: str | None) -> None:
        self.number = taken.number
        self.ends = isinstance(taken.decision, Halt | Finish)
        self.waits_at = waits_at


class FeatureRunner:
    """The runner of one feature run."""

    def __init__(
        self,
        context: FeatureContext,
        repo: RepoContext,
        caller: AgentCaller,
        briefs: FeatureBriefs,
        verify_deps: VerifyDeps,
        prove: Prove,
    ) -> None:
        self.context, self._repo, self._caller, self._briefs, self._prove = context, repo, caller, briefs, prove
        self._merges = MergeRunner(repo, context.run_id, prove, self._last_tip)
        self._actions = ActionRunner(context, caller, briefs, verify_deps, self._own_tip)
        self._evidence = AttemptEvidence(context, verify_deps)
        self._graphs: dict[int, FeatureGraphRunner] = {}

    def _last_tip(self) -> str:
        """Return where the last merge of any graph left the target, or the base commit."""
        graphs = graphs_of(self.context)
        return self.graph(graphs[-1].number).last_tip() if graphs else self.context.order.base_commit

    def _own_tip(self) -> str:
        """Return the commit that the run itself merged; raise an error if somebody else moved the target."""
        target = self.context.order.target
        tip, left = self._merges.settled_tip(target), self._last_tip()
        if tip != left:
            raise NotReady(
                f"{target} was moved from {left[:12]} to {tip[:12]} by another process",
                next_step=f"git branch -f {target} {left[:12]}, then: fairwitness resume {self.context.run_id}",
            )
        return tip

    async def decide(self, after: int) -> RecordedDecision:
        """Return the decision after the one with this number."""
        taken = await run_blocking(take_decision, self.context, after)
        return RecordedDecision(taken, self._waits_at(taken))

    def _waits_at(self, taken: TakenDecision) -> str | None:
        decision = taken.decision
        if not isinstance(decision, Wait):
            return None
        if decision.waits_for is not WaitsFor.PERSON:
            raise InternalError(f"the run waits for {', '.join(decision.what)}")
        return key_of(decision.what[0], visit_of(self.context.state()))

    async def act(self, number: int, run_graph: RunGraph) -> None:
        """Act on the decision with this number."""
        taken = await run_blocking(take_decision, self.context, number - 1)
        await self._actions.act(taken, run_graph)

    async def finish(self) -> None:
        """Remove what only a running run needs, and export the run's copy of its ledger."""
        await run_blocking(self._finish)

    def _finish(self) -> None:
        context, repo = self.context, self._repo
        sweep(repo.worktrees, context.run_id, self._merges.settled_tip(context.order.target), repo.identity)
        repo.worktrees.pool.drain()
        context.files.sweep(context.layout.folder)
        killpoint("feature.swept")
        if context.order.finish.artifacts is KeepArtifacts.SEPARATE_COMMIT and context.state().commit is not None:
            return  # its copy is in the commit
        context.files.put(context.layout.ledger, exported(context.ledger.database, context.run_id, context.now()))
        killpoint("feature.exported")

    def graph(self, number: int) -> FeatureGraphRunner:
        """Return the runner of one of the run's graphs."""
        if number not in self._graphs:
            known = {graph.number: graph for graph in graphs_of(self.context)}
            if number not in known:
                raise InternalError(f"run {self.context.run_id} has no graph {number}")
            self._graphs[number] = FeatureGraphRunner(
                self._repo, self.context, known[number], self._caller, self._briefs, self._prove, self._evidence
            )
        return self._graphs[number]

    async def options(self, number: int) -> GraphOptions:
        """Return the options with which a graph is executed."""
        return await self.graph(number).options()
