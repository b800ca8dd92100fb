"""The light path is a table: it has fewer steps and one reviewer, the same gates, and no 🔴 file stays on it."""

from itertools import product
from typing import Any

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.decisions import Advance, Decision, Finish, FinishOutcome, Halt, HaltOutcome, Retry
from fairwitness.contracts.common.decisions import Revise as Revised
from fairwitness.contracts.common.policy import PathChoice, Policy, ReviewPolicy, RiskRule, RunPath
from fairwitness.contracts.common.vocabulary import Confidence, Risk, Size, Workflow
from fairwitness.contracts.feature.facts import ChangedFile, ChangeKind, FixFacts, Step, TaskFacts
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.contracts.feature.state import FeatureState, LeftPath
from fairwitness.rules.confidence import APPROVALS_AT_MOST
from fairwitness.rules.feature_decision import decide
from fairwitness.rules.feature_paths import (
    BEGINS_ON,
    REJOINS_AT,
    REVIEWERS_OF,
    STEPS_OF,
    calls_on,
    path_of_review,
    route_on,
    skipped_steps,
)
from fairwitness.rules.feature_routes import CALLS_OF, ROUTES, RouteOutcome
from fairwitness.rules.fold_feature import fold_feature
from rules.build import A, B, R, call, facts, failed, nothing, observed, review, reviewer, row, task, votes
from rules.fold_streams import FEATURE, FEATURE_RUN, stream

LIGHT = Policy(path=PathChoice.LIGHT)
AUTO = Policy(path=PathChoice.AUTO)
ONLY = Perspective.PRAGMATIC
PROVING = {Step.IMPLEMENT, Step.VERIFY, Step.CODE_REVIEW, Step.EVIDENCE, Step.COMMIT}


def _light(step: Step | None, policy: Policy = LIGHT, **differs: Any) -> Decision:
    return decide(facts(path=RunPath.LIGHT, step=step, **differs), policy)


def _advance(decision: Decision) -> Advance:
    assert isinstance(decision, Advance), decision
    return decision


def _planned(*paths: str, **differs: Any) -> TaskFacts:
    return task(**{"planned": paths, "after": facts_of_nothing(), **differs})


def facts_of_nothing() -> Any:
    """Rows of a task that was not begun."""
    return task().baseline.model_copy(update={"rows": ()})


def _after_plan(*tasks: TaskFacts, policy: Policy = LIGHT) -> Advance:
    return _advance(_light(Step.PLAN, policy, calls=(call("planner"),), tasks=tasks))


# --- the table


@pytest.mark.req("P2")
def test_every_path_has_its_steps_reviewers_and_setting() -> None:
    assert set(STEPS_OF) == set(REVIEWERS_OF) == set(RunPath)
    assert set(BEGINS_ON) == set(PathChoice)
    for path in RunPath:
        assert set(STEPS_OF[path]) >= PROVING, "no path leaves out a step that proves, reviews or commits"
        assert list(STEPS_OF[path]) == [step for step in Step if step in STEPS_OF[path]]
        assert REVIEWERS_OF[path]
    for step, again in REJOINS_AT.items():
        assert step in STEPS_OF[RunPath.LIGHT]
        assert again in STEPS_OF[RunPath.FULL]
    counts = {len(panel) for panel in REVIEWERS_OF.values()}
    assert set(APPROVALS_AT_MOST) == {(approve, count) for count in counts for approve in range(count + 1)}


def test_the_full_path_is_the_routing_table_itself() -> None:
    for step, outcome in product(Step, RouteOutcome):
        assert route_on(RunPath.FULL, step, outcome) == ROUTES[(step, outcome)]
        assert calls_on(RunPath.FULL, step) == CALLS_OF[step]


def test_a_route_of_the_light_path_leads_to_a_step_of_the_light_path() -> None:
    for step, outcome in product(STEPS_OF[RunPath.LIGHT], RouteOutcome):
        route = route_on(RunPath.LIGHT, step, outcome)
        assert route.to is None or route.to in STEPS_OF[RunPath.LIGHT]
        assert route.action is ROUTES[(step, outcome)].action


def test_the_light_path_in_sentences() -> None:
    told = []
    step: Step | None = Step.SETUP
    while step is not None:
        calls = ", ".join(calls_on(RunPath.LIGHT, step)) or "no call of its own"
        route = route_on(RunPath.LIGHT, step, RouteOutcome.DONE)
        told.append(f"{step.name.lower()}: {calls}; then {route.to.name.lower() if route.to else route.action.value}")
        step = route.to
    assert told == snapshot(
        [
            "setup: intake; then plan",
            "plan: planner; then plan_gate",
            "plan_gate: no call of its own; then implement",
            "implement: no call of its own; then verify",
            "verify: no call of its own; then code_review",
            "code_review: pragmatic-verifier; then evidence",
            "evidence: evidence-bundle; then commit",
            "commit: commit; then finish",
        ]
    )
    assert [step.name.lower() for step in skipped_steps(RunPath.LIGHT, ())] == snapshot(
        ["research", "research_gate", "spec", "design", "design_review", "knowledge"]
    )
    assert skipped_steps(RunPath.FULL, ()) == ()
    assert Step.RESEARCH not in skipped_steps(RunPath.LIGHT, ["step-1"])


# --- a run on it


@pytest.mark.req("P2", "P12")
def test_a_light_run_goes_from_the_request_to_the_plan_and_from_the_review_to_the_evidence() -> None:
    begun = _advance(_light(None))
    assert (begun.to, begun.start, begun.path) == ("step-0", ("intake",), None)
    planning = _advance(_light(Step.SETUP, calls=(call("intake"),)))
    assert (planning.to, planning.start) == ("step-4", ("planner",))
    assert _after_plan(_planned("till/money.py")).to == "step-4a"
    reviewing = _advance(_light(Step.VERIFY, calls=(call("task-01"),), tasks=(task(),)))
    assert (reviewing.to, reviewing.start, reviewing.round, reviewing.path) == ("step-7", (ONLY.value,), 1, None)
    done = _advance(_light(Step.CODE_REVIEW, code_review=_review(A, A, A)))
    assert (done.to, done.start) == ("step-8b", ("evidence-bundle",))


@pytest.mark.req("P2", "P4", "P12")
@pytest.mark.parametrize("step", [Step.IMPLEMENT, Step.VERIFY])
@pytest.mark.parametrize(
    "broken",
    [
        task("task-01", failed("tests"), row("lint"), row("syntax-check")),
        task("task-01", nothing("tests", None), row("lint"), row("syntax-check")),
        task("task-01", row("lint")),
        task("task-01", required=("ac-1",)),
        task(baseline=facts_of_nothing()),
        task(ready=False),
        task(check_runs=0, baseline_runs=0, after=facts_of_nothing(), baseline=facts_of_nothing()),
    ],
    ids=["failed", "no evidence", "too few", "no criterion", "no baseline", "not ready", "nothing ran"],
)
@pytest.mark.parametrize("iteration", [1, 2, 3])
def test_what_lacks_evidence_is_decided_as_on_the_full_path(step: Step, broken: TaskFacts, iteration: int) -> None:
    differs: dict[str, Any] = {
        "step": step,
        "calls": (call("task-01"),),
        "tasks": (broken.model_copy(update={"iteration": iteration}),),
        "iteration": iteration,
    }
    light = decide(facts(path=RunPath.LIGHT, **differs), LIGHT)
    full = decide(facts(**differs), Policy())
    if isinstance(full, Advance) and full.to == Step.CODE_REVIEW.value:
        assert light == full.model_copy(update={"start": (ONLY.value,)})  # exhausted: known issues, low confidence
    else:
        assert light == full


# --- who leaves it


RED = "src/auth/login.py"
ENOUGH = (*(row(name) for name in ("syntax-check", "lint", "tests")), observed("readiness-secrets", True))
"""Rows that are enough for a red change."""


@pytest.mark.req("P2", "P7")
@pytest.mark.parametrize("policy", [LIGHT, AUTO])
def test_a_plan_with_a_red_file_continues_with_the_research(policy: Policy) -> None:
    for tasks, named in (
        ((_planned("till/money.py", RED),), RED),  # whatever colour its planner gave it
        ((_planned("till/money.py", risk=Risk.RED, size=Size.LARGE),), "task-01"),
        ((_planned("till/money.py"), _planned(RED, task="task-02")), RED),
    ):
        left = _after_plan(*tasks, policy=policy)
        assert (left.to, left.path) == ("step-1", RunPath.FULL)
        assert left.start == CALLS_OF[Step.RESEARCH]
        assert left.reason == f"the run leaves the light path: 🔴 {named}"


def test_the_colours_of_the_settings_decide_too() -> None:
    mine = Policy(path=PathChoice.LIGHT, risk=(RiskRule(pattern="till/money.py", risk=Risk.RED),))
    assert _after_plan(_planned("till/money.py"), policy=mine).path is RunPath.FULL
    calm = Policy(path=PathChoice.LIGHT, risk=(RiskRule(pattern="src/auth/**", risk=Risk.YELLOW),))
    assert _after_plan(_planned(RED), policy=calm).to == "step-4a"


def test_auto_leaves_it_with_a_second_task_and_who_asked_for_it_does_not() -> None:
    two = (_planned("till/money.py"), _planned("till/basket.py", task="task-02"))
    assert _after_plan(*two, policy=LIGHT).to == "step-4a"
    left = _after_plan(*two, policy=AUTO)
    assert (left.to, left.reason) == ("step-1", "the run leaves the light path: the plan has 2 tasks")
    proven = tuple(each.model_copy(update={"after": task().after}) for each in two)
    calls = (call("task-01"), call("task-02"))
    assert _advance(_light(Step.VERIFY, AUTO, calls=calls, tasks=proven)).path is None, "only the plan is counted"


def test_a_plan_that_replaces_a_failed_one_is_looked_at_as_well() -> None:
    again = _light(Step.PLAN, calls=(call("planner"),), tasks=(_planned(RED, iteration=2),), iteration=2)
    assert (_advance(again).to, _advance(again).path) == ("step-1", RunPath.FULL)


@pytest.mark.req("P7")
def test_a_change_that_turns_out_red_is_reviewed_by_three() -> None:
    deleted = ChangedFile(path="till/money.py", change=ChangeKind.DELETED)
    red = task("task-01", *ENOUGH, files=(deleted,))
    left = _advance(_light(Step.VERIFY, calls=(call("task-01"),), tasks=(red,)))
    assert (left.to, left.path, left.start) == ("step-7", RunPath.FULL, tuple(each.value for each in Perspective))
    assert [gate.gate.value for gate in left.gates] == ["EG-1", "EG-2"]


@pytest.mark.req("P7", "P9")
def test_a_red_change_of_which_nothing_is_merged_is_reviewed_by_nobody() -> None:
    deleted = ChangedFile(path="till/money.py", change=ChangeKind.DELETED)
    rows = (failed("tests", round=3), observed("revert-task-01", False, round=3))
    gone = task("task-01", *rows, iteration=3, files=(deleted,))
    differs: dict[str, Any] = {"step": Step.VERIFY, "calls": (call("task-01"),), "tasks": (gone,), "iteration": 3}
    light = _advance(decide(facts(path=RunPath.LIGHT, **differs), LIGHT))
    assert light == decide(facts(**differs), Policy())
    assert (light.to, light.start, light.path) == ("step-8b", ("evidence-bundle",), None)
    assert "nothing is merged" in light.reason
    kept = differs | {"tasks": (gone, task("task-02", iteration=3)), "calls": (call("task-01"), call("task-02"))}
    assert _advance(decide(facts(path=RunPath.LIGHT, **kept), LIGHT)).path is RunPath.FULL, "the rest is reviewed"


@pytest.mark.req("P7")
def test_a_fix_that_turns_out_red_is_reviewed_by_three() -> None:
    def after(path: str) -> Advance:
        fixed = task("task-00", *ENOUGH, files=(ChangedFile(path=path, change=ChangeKind.ADDED),))
        fix = FixFacts(call=call("task-00"), checks=fixed)
        return _advance(_light(Step.IMPLEMENT, code_review=_review(A, A, R), fix=fix, tasks=(task(),)))

    stays, leaves = after("till/other.py"), after(RED)
    assert (stays.to, stays.path, stays.start, stays.round) == ("step-7", None, (ONLY.value,), 2)
    assert (leaves.to, leaves.path, leaves.round) == ("step-7", RunPath.FULL, 2)
    assert leaves.start == tuple(each.value for each in Perspective)


def test_a_run_on_the_full_path_never_leaves_it() -> None:
    gone = decide(facts(step=Step.PLAN, calls=(call("planner"),), tasks=(_planned(RED),)), Policy())
    assert (_advance(gone).to, _advance(gone).path) == ("step-4a", None)


# --- one reviewer


def _review(*said: Any, round: int = 1, calls: tuple[Any, ...] | None = None) -> Any:
    rows = reviewer(ONLY, *said, round=round) if said else []
    return review(*rows, round=round, path=RunPath.LIGHT, reviewers=(call(ONLY.value),) if calls is None else calls)


@pytest.mark.req("P7")
def test_one_reviewer_is_never_outvoted() -> None:
    def after(*said: Any, round: int = 1, policy: Policy = LIGHT, calls: tuple[Any, ...] | None = None) -> Decision:
        return _light(Step.CODE_REVIEW, policy, code_review=_review(*said, round=round, calls=calls))

    approved = _advance(after(A, A, A))
    assert [(gate.gate.value, gate.count, gate.threshold) for gate in approved.gates] == snapshot(
        [("EG-4", 0, 0), ("EG-3", 1, 1), ("EG-5", 1, 1), ("EG-6", 1, 1)]
    )
    assert (
        _advance(after(A, A, A, policy=LIGHT.model_copy(update={"review": ReviewPolicy(approvals=3)}))).to == "step-8b"
    )
    for said in ((R, A, A), (A, R, A), (A, A, R)):
        sent_back = after(*said)
        assert isinstance(sent_back, Revised)
        assert (sent_back.to, sent_back.round) == ("step-5", 2)
        left = _advance(after(*said, round=2))
        assert (left.to, left.degradations) == ("step-8b", ("review_exhausted",))
    blocked = after(A, B, A)
    assert isinstance(blocked, Halt)
    assert (blocked.outcome, blocked.resumable) == (HaltOutcome.HALTED, False)
    assert isinstance(after(), Retry)
    for gone in (call(ONLY.value, attempts=2), call(ONLY.value, "ERROR", attempts=2)):
        ended = after(calls=(gone,))
        assert isinstance(ended, Halt)
        assert ended.reason == f"the reviewer did not judge the code: {ONLY.value}"
    begun = _advance(after(calls=()))
    assert begun.start == (ONLY.value,)


@pytest.mark.req("P7")
def test_rows_of_others_approve_nothing_and_their_blocker_counts() -> None:
    others = list(votes((A, A, A), (A, A, A), None))
    lacking = _light(Step.CODE_REVIEW, code_review=_review().model_copy(update={"tally": review(*others).tally}))
    assert isinstance(lacking, Retry)
    loud = [*reviewer(ONLY, A, A, A), *votes((B, A, A), None, None)]
    halted = _light(Step.CODE_REVIEW, code_review=_review().model_copy(update={"tally": review(*loud).tally}))
    assert isinstance(halted, Halt)


@pytest.mark.req("P11")
def test_a_light_run_is_committed_with_medium_confidence_and_never_with_high() -> None:
    proven: dict[str, Any] = {"tasks": (task(),), "whole": task("whole")}
    bundled = _light(Step.EVIDENCE, calls=(call("evidence-bundle"),), code_review=_review(A, A, A), **proven)
    assert _advance(bundled).reason == "the evidence is bundled: confidence Medium"
    done = _light(Step.COMMIT, calls=(call("commit"),), code_review=_review(A, A, A), **proven)
    assert isinstance(done, Finish)
    assert (done.outcome, done.confidence) == (FinishOutcome.COMMITTED, Confidence.MEDIUM)
    for differs in (
        {"code_review": _review(A, A, R, round=2), **proven},
        {"code_review": None, **proven},
        {"code_review": _review(A, A, A), **proven, "whole": task("whole", failed("tests"), row("lint"))},
        {"code_review": _review(A, A, A), **proven, "whole": None},
    ):
        ended = _light(Step.EVIDENCE, calls=(call("evidence-bundle"),), **differs)
        assert isinstance(ended, Finish)
        assert (ended.outcome, ended.confidence) == (FinishOutcome.LOW_CONFIDENCE, Confidence.LOW)


# --- its state


def _folded(*more: tuple[str, dict[str, Any]], path: str | None = "light") -> FeatureState:
    kind, data = FEATURE[0]
    began = (kind, {**data, "path": path} if path else data)
    state = fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, [began, *more]))
    assert isinstance(state, FeatureState)
    return state


def test_the_path_is_folded_from_the_events() -> None:
    left = ("path_changed", {"path": "full", "reason": "🔴 src/auth.py"})
    reviewed = ("step_started", {"step": "step-7"})
    assert _folded(path=None).path is RunPath.FULL
    assert _folded().path is RunPath.LIGHT
    early, late = _folded(left), _folded(reviewed, left)
    assert early.path is late.path is RunPath.FULL
    assert early.left_path == LeftPath(reason="🔴 src/auth.py", code_reviews=0)
    assert late.left_path == LeftPath(reason="🔴 src/auth.py", code_reviews=1)


def test_a_round_is_judged_by_the_path_on_which_it_was_made() -> None:
    left = ("path_changed", {"path": "full", "reason": "red"})
    reviewed = ("step_started", {"step": "step-7"})

    def paths(state: FeatureState) -> str:
        rounds = product(ReviewScope, (1, 2))
        return ", ".join(path_of_review(state, scope, number).value for scope, number in rounds)

    assert paths(_folded(path=None)) == "full, full, full, full"
    assert paths(_folded()) == "full, full, light, light"
    assert paths(_folded(left)) == "full, full, full, full"
    assert paths(_folded(reviewed, left)) == "full, full, light, full"
