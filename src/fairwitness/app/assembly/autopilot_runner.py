"""Assembles the runner of an autopilot run from its recorded order."""

from fairwitness.app.assembly.parts import RunParts, caps_of
from fairwitness.contracts.autopilot.order import AutopilotOrder
from fairwitness.contracts.common.budgets import BudgetCaps, BudgetTable, Caps
from fairwitness.git.repository import Repository
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.ledger.ledger import Ledger
from fairwitness.runs.autopilot.briefs import AutopilotBriefs
from fairwitness.runs.autopilot.commands import CommandHarness
from fairwitness.runs.autopilot.context import AutopilotContext
from fairwitness.runs.autopilot.execution import NodeExecutor
from fairwitness.runs.autopilot.graph_runner import AutopilotGraphRunner
from fairwitness.runs.autopilot.learnings import Learnings
from fairwitness.runs.autopilot.log import AutopilotLog
from fairwitness.runs.autopilot.runner import AutopilotRunner
from fairwitness.runs.autopilot.task_graphs import graph_of


def autopilot_caps(order: AutopilotOrder, budget: BudgetTable) -> BudgetCaps:
    """Return the limits of the run, a phase and a dispatch: those of the breaker and of the budget settings."""
    breaker = order.limits.breaker
    tokens = min(breaker.cost_cap_tokens_total, budget.tokens or breaker.cost_cap_tokens_total)
    phase = Caps(tokens=breaker.cost_cap_tokens_per_phase, money_micros=None, milliseconds=None)
    return caps_of(budget.model_copy(update={"tokens": tokens}), phase)


def autopilot_runner_of(
    repository: Repository, ledger: Ledger, run_id: str, *, clock: Clock = system_clock
) -> AutopilotRunner:
    """Return the runner of an autopilot run."""
    log = AutopilotLog(ledger, run_id, clock=clock)
    order = log.order()
    caps = autopilot_caps(order, log.budget())
    lines = {kind.value: line for kind, line in order.commands.items() if line is not None}
    parts = RunParts(repository, ledger, run_id, order, order.retry, caps=caps, lines=lines, clock=clock)
    return autopilot_runner(log, parts)


def autopilot_runner(log: AutopilotLog, parts: RunParts) -> AutopilotRunner:
    """Return the runner of an autopilot run that consists of these parts."""
    order, repository, shadow = log.order(), parts.repo.repository, parts.shadow
    harness = CommandHarness(log, parts.verify, order.commands, order.limits.command_seconds)
    briefs = AutopilotBriefs(log, repository, shadow, Learnings(log, parts.files).text)
    context = AutopilotContext(
        log=log,
        repo=parts.repo,
        shadow=shadow,
        files=parts.files,
        harness=harness,
        agent_caller=parts.caller,
        briefs=briefs,
    )

    def graph_runner(number: int) -> AutopilotGraphRunner:
        graph = graph_of(log, number)
        work = NodeExecutor(log, graph, repository, shadow, harness, parts.caller, briefs)
        return AutopilotGraphRunner(parts.repo, log, graph, work, parts.prove)

    return AutopilotRunner(context, graph_runner)
