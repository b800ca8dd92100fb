"""Assembles the runner of an autopilot run from its recorded order."""

from typing import TYPE_CHECKING

from fairwitness.app.assembly.backends import runner
from fairwitness.app.assembly.dispatch import DispatchDepsFactory, prover
from fairwitness.app.state import scratch_root, state_of
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.common.budgets import BudgetCaps, BudgetTable, Caps
from fairwitness.contracts.verify.checks import VerifySettings
from fairwitness.git.candidates import Candidates
from fairwitness.git.identity import read_identity
from fairwitness.git.repository import Repository
from fairwitness.git.shadow import Shadow
from fairwitness.git.worktrees import Worktrees
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.autopilot.agent_calls import AgentCaller
from fairwitness.runs.autopilot.briefs import AutopilotBriefs
from fairwitness.runs.autopilot.commands import CommandHarness
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.execution import NodeExecutor
from fairwitness.runs.autopilot.graph_runner import AutopilotGraphRunner
from fairwitness.runs.autopilot.learnings import Learnings
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.runner import AutopilotRunner
from fairwitness.runs.autopilot.task_graphs import graph_of
from fairwitness.runs.graph.repo_context import RepoContext
from fairwitness.store.artifacts import Store
from fairwitness.verify.subject import VerifyDeps

if TYPE_CHECKING:
    from pathlib import Path

PREFIX = "fairwitness"
"""The prefix of the branches of a run's attempts."""


def autopilot_caps(order: AutopilotOrder, budget: BudgetTable) -> BudgetCaps:
    """Return the limits of the run, a phase and a dispatch: those of the breaker and of the budget settings."""
    none = Caps(tokens=None, money_micros=None, milliseconds=None)
    breaker = order.limits.breaker
    tokens = min(breaker.cost_cap_tokens_total, budget.tokens or breaker.cost_cap_tokens_total)
    money = None if budget.dollars is None else round(budget.dollars * 1_000_000)
    time = None if budget.minutes is None else budget.minutes * 60_000
    return BudgetCaps(
        dispatch=none,
        phase=Caps(tokens=breaker.cost_cap_tokens_per_phase, money_micros=None, milliseconds=None),
        run=Caps(tokens=tokens, money_micros=money, milliseconds=time),
    )


def autopilot_runner_of(
    repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock
) -> AutopilotRunner:
    """Return the runner of an autopilot run."""
    state = state_of(repository)
    log = AutopilotLog(ledger, run_id, clock=clock)
    order = log.order()
    shadow = Shadow.open(state / "git", repository)
    sandbox = runner()
    place = scratch_root(state, sandbox.tier)
    worktrees = Worktrees(repository, shadow, place / "worktrees", prefix=PREFIX)
    identity = read_identity(repository)
    repo = RepoContext(repository, worktrees, Candidates(repository, shadow), state / "locks", identity)
    chosen = {"agents": order.agents, "cassettes": order.cassettes}
    caps = autopilot_caps(order, log.budget())
    maker = DispatchDepsFactory(repository, shadow, ledger, state, sandbox, run_id, chosen, clock, caps=caps)
    parts = _parts(repository, shadow, ledger, state, place, order, clock)
    files = Store(repository.top or state)
    harness = CommandHarness(log, parts, order.commands, order.limits.command_seconds)
    agent_caller = AgentCaller(log, maker.context, maker.deps, worktrees, identity)
    briefs = AutopilotBriefs(log, repository, shadow, Learnings(log, files).text)
    context = AutopilotContext(
        log=log, repo=repo, shadow=shadow, files=files, harness=harness, agent_caller=agent_caller, briefs=briefs
    )

    def graph_desk(number: int) -> AutopilotGraphRunner:
        graph = graph_of(log, number)
        work = NodeExecutor(log, graph, repository, shadow, harness, agent_caller, briefs)
        return AutopilotGraphRunner(repo, log, graph, work, prover(parts, run_id))

    return AutopilotRunner(context, graph_desk)


def _parts(
    repository: Repository,
    shadow: Shadow,
    ledger: Ledger,
    state: "Path",
    place: "Path",
    order: AutopilotOrder,
    clock: Clock,
) -> VerifyDeps:
    return VerifyDeps(
        repository=repository,
        runner=runner(),
        shadow=shadow,
        ledger=ledger,
        state=state,
        scratch=place,
        settings=VerifySettings.model_validate(order.verify),
        digest=order.settings_hash.removeprefix("sha256:"),
        clock=clock,
    )
