"""What a run asked for more often than the rules allow, counted from its events and from nothing that it decided."""

from collections import Counter
from collections.abc import Iterator

from fairwitness.contracts.feature.facts import GateChoice
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.rules.feature_retry import BoundedLoop, bounds
from fairwitness.rules.feature_routes import OUTCOME_OF, RouteOutcome
from fairwitness.runs.feature.context import FeatureContext


def beyond_bounds(context: FeatureContext) -> list[str]:
    """Every loop that went round too often."""
    allowed = {loop: bound.times for loop, bound in bounds(context.order.policy).items()}
    state = context.state()
    rounds = {name: step.runs for name, step in state.steps.items()}
    iterations = max((replan.iteration for replan in state.replans), default=1)
    over = [
        (BoundedLoop.DESIGN_REVISION, rounds.get("step-3b", 0), allowed[BoundedLoop.DESIGN_REVISION] + 1),
        (BoundedLoop.CODE_REVIEW, rounds.get("step-7", 0), allowed[BoundedLoop.CODE_REVIEW]),
        (BoundedLoop.REPLAN, iterations, allowed[BoundedLoop.REPLAN]),
    ]
    found = [f"{loop.value}: {times} of {most}" for loop, times, most in over if times > most]
    found += [
        f"{BoundedLoop.CALL.value}: {call} {tries} times"
        for call, tries in _tries(state)
        if tries > allowed[BoundedLoop.CALL] + 1
    ]
    found += [
        f"{BoundedLoop.HUMAN.value}: {told}"
        for told, times in _sent_back(context)
        if times > allowed[BoundedLoop.HUMAN]
    ]
    return found


def _tries(state: FeatureState) -> Iterator[tuple[str, int]]:
    """How often each call was made in one life of the run."""
    calls = Counter(
        (dispatch.step, dispatch.attempt or dispatch.visit, dispatch.instance, dispatch.life)
        for dispatch in state.dispatches.values()
    )
    for (step, visit, instance, life), tries in calls.items():
        yield f"{step} {visit} {instance} in life {life}", tries


def _sent_back(context: FeatureContext) -> Iterator[tuple[str, int]]:
    """How often an answer really sent the work back: the decision after it says so."""
    answers: Counter[str] = Counter()
    last: tuple[str, str] | None = None
    for event in context.ledger.events(context.run_id):
        if event.type == "approval_answered":
            last = (event.data["gate_id"], event.data["selected_option"])
        elif event.type == "decided" and last is not None:
            is_back = OUTCOME_OF[GateChoice(last[1])] is RouteOutcome.NEEDS_REVISION and event.data["kind"] == "revise"
            answers[f"{last[0]} {last[1]}"] += is_back
            last = None
    yield from answers.items()
