"""The paths of a feature run: which steps each has, who reviews its code, and when a run leaves the light path.

No path leaves out a check or an evidence gate of the code.
"""

from collections.abc import Iterable, Iterator, Mapping

from fairwitness.contracts.common.policy import PathChoice, Policy, RunPath
from fairwitness.contracts.common.vocabulary import Risk
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind, FeatureFacts, Step, TaskFacts
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.rules.feature_routes import CALLS_OF, ROUTES, Action, RouteOutcome, StepRoute
from fairwitness.rules.risk import colour_of

STEPS_OF: Mapping[RunPath, tuple[Step, ...]] = {
    RunPath.FULL: tuple(Step),
    RunPath.LIGHT: (
        Step.SETUP,
        Step.PLAN,
        Step.PLAN_GATE,
        Step.IMPLEMENT,
        Step.VERIFY,
        Step.CODE_REVIEW,
        Step.EVIDENCE,
        Step.COMMIT,
    ),
}
"""The steps of each path; a step that a path lacks is passed as if it were done."""

REVIEWERS_OF: Mapping[RunPath, tuple[Perspective, ...]] = {
    RunPath.FULL: tuple(Perspective),
    RunPath.LIGHT: (Perspective.PRAGMATIC,),
}
"""Who reviews on each path; every reviewer judges all categories."""

BEGINS_ON: Mapping[PathChoice, RunPath] = {
    PathChoice.FULL: RunPath.FULL,
    PathChoice.LIGHT: RunPath.LIGHT,
    PathChoice.AUTO: RunPath.LIGHT,
}
"""The path on which a run begins, by the setting."""

REJOINS_AT: Mapping[Step, Step] = {
    Step.PLAN: Step.RESEARCH,
    Step.VERIFY: Step.CODE_REVIEW,
    Step.CODE_REVIEW: Step.CODE_REVIEW,
}
"""The steps after which a run may leave the light path, and the step with which it continues on the full one.

It leaves the code review only after a fix, for another round.
"""

TASKS_OF_AUTO = 1
"""The most tasks of a plan that `auto` leaves on the light path."""

_REVIEWER_FAILED = "the reviewer did not judge the code"


def route_on(path: RunPath, step: Step, outcome: RouteOutcome) -> StepRoute:
    """Return the row of the routing table on a path: steps that the path lacks are passed.

    >>> route_on(RunPath.LIGHT, Step.SETUP, RouteOutcome.DONE).to.value
    'step-4'
    """
    route = ROUTES[(step, outcome)]
    if path is RunPath.LIGHT and (step, outcome) == (Step.CODE_REVIEW, RouteOutcome.ERROR):
        return route._replace(because=_REVIEWER_FAILED)
    while route.action is Action.ADVANCE and route.to not in STEPS_OF[path]:
        assert route.to is not None
        route = route._replace(to=ROUTES[(route.to, RouteOutcome.DONE)].to)
    return route


def calls_on(path: RunPath, step: Step) -> tuple[str, ...]:
    """Return the calls of a step on a path.

    >>> calls_on(RunPath.LIGHT, Step.CODE_REVIEW)
    ('pragmatic-verifier',)
    """
    if step is Step.CODE_REVIEW:
        return tuple(perspective.value for perspective in REVIEWERS_OF[path])
    return CALLS_OF[step]


def why_left(facts: FeatureFacts, step: Step, policy: Policy) -> str | None:
    """Return why a run leaves the light path after a step; None if it stays, or is not on it."""
    if facts.path is not RunPath.LIGHT or step not in REJOINS_AT:
        return None
    fixed = facts.fix.checks if facts.fix is not None else None
    changes = (*facts.tasks, *(() if fixed is None else (fixed,)))
    red = sorted(dict.fromkeys(name for task in changes for name in _red(task, policy)))
    if red:
        return f"{Risk.RED.value} {', '.join(red)}"
    if step is Step.PLAN and policy.path is PathChoice.AUTO and len(facts.tasks) > TASKS_OF_AUTO:
        return f"the plan has {len(facts.tasks)} tasks"
    return None


def _red(task: TaskFacts, policy: Policy) -> Iterator[str]:
    """Yield the red files of a task, planned or changed; its name if only its planner calls it red."""
    planned = (ChangedFile(path=path, change=ChangeKind.MODIFIED) for path in task.planned)
    files = [file.path for file in (*planned, *task.files) if colour_of(file, policy) is Risk.RED]
    yield from files
    if task.risk is Risk.RED and not files:
        yield task.task


def path_of_review(state: FeatureState, scope: ReviewScope, round: int) -> RunPath:
    """Return the path on which a round of a review was made; only code is reviewed on the light path."""
    on_light = 0 if state.left_path is None else state.left_path.code_reviews
    if scope is ReviewScope.CODE and (state.path is RunPath.LIGHT or round <= on_light):
        return RunPath.LIGHT
    return RunPath.FULL


def skipped_steps(path: RunPath, visited: Iterable[str]) -> tuple[Step, ...]:
    """Return the steps that a run on this path skips; a step that it visited is not one of them."""
    return tuple(step for step in Step if step not in STEPS_OF[path] and step.value not in set(visited))
