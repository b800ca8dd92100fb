"""The result of an agent's work on a node."""

from collections.abc import Callable

from fairwitness.contracts.agents.dispatch import OutcomeStatus
from fairwitness.contracts.graph.orders import Worked
from fairwitness.runs.dispatch import Dispatched

STEP = "execute"
EVERYTHING = ("**",)


def worked(done: Dispatched, unfinished: Callable[[Dispatched], str | None], summary: str | None = None) -> Worked:
    """Return the result of an agent's work. `unfinished` returns why the answer itself says that the work is not
    done."""
    outcome = done.outcome
    changed = tuple(each.path for each in done.changed)
    problem = outcome.problems[0] if outcome.problems else outcome.status.value
    if outcome.status is OutcomeStatus.OVER_BUDGET:
        return Worked(done=False, changed=changed, reason=problem, halt=f"the budget is used up: {problem}")
    if outcome.status is not OutcomeStatus.OK or outcome.answer is None:
        return Worked(done=False, changed=changed, reason=f"{outcome.status.value}: {problem}")
    reason = unfinished(done)
    if reason is not None:
        return Worked(done=False, changed=changed, reason=reason)
    return Worked(done=True, changed=changed, summary=summary)
