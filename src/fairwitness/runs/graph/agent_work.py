"""The result of an agent's work on a node."""

from collections.abc import Callable

from fairwitness.contracts.agents.dispatch import DispatchOutcome, OutcomeStatus
from fairwitness.contracts.common.budgets import BudgetHalt
from fairwitness.contracts.graph.orders import Worked
from fairwitness.runs.dispatch import Dispatched

STEP = "execute"
EVERYTHING = ("**",)
USED_UP = "the budget is used up"


def budget_halt(outcome: DispatchOutcome) -> BudgetHalt:
    """Return the halt after a call that the budget prevented or cut off."""
    problem = outcome.problems[0] if outcome.problems else outcome.status.value
    return BudgetHalt(reason=f"{USED_UP}: {problem}", refused=outcome.refused)


def worked(done: Dispatched, unfinished: Callable[[Dispatched], str | None], summary: str | None = None) -> Worked:
    """Return the result of an agent's work. `unfinished` returns why the answer itself says that the work is not
    done."""
    outcome = done.outcome
    changed = tuple(each.path for each in done.changed)
    problem = outcome.problems[0] if outcome.problems else outcome.status.value
    if outcome.status is OutcomeStatus.OVER_BUDGET:
        return Worked(done=False, changed=changed, reason=problem, halt=budget_halt(outcome))
    if outcome.status is not OutcomeStatus.OK or outcome.answer is None:
        return Worked(done=False, changed=changed, reason=f"{outcome.status.value}: {problem}")
    reason = unfinished(done)
    if reason is not None:
        return Worked(done=False, changed=changed, reason=reason)
    return Worked(done=True, changed=changed, summary=summary)
