"""What is tried again and how often: total over causes, bounded in every loop, and the whole table in sentences."""
# the sentences of the tables stay whole

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.decisions import (
    Advance,
    ErrorCause,
    ErrorClass,
    Halt,
    HaltOutcome,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Assessment
from fairwitness.contracts.feature.facts import CallFacts, Step, TaskFacts
from fairwitness.rules.feature_retry import (
    CLASS_OF,
    AfterFailure,
    BoundedLoop,
    after_failed_iteration,
    after_failed_verification,
    bounds,
    is_reverted,
    may_retry,
    retries_inside,
    under_way,
    worth_another_run,
)
from fairwitness.rules.gates import task_gates
from rules.build import OTHER_TREE, TREE, call, failed, nothing, observed, row, task

POLICY = Policy()
FOUR = ("a", "b", "c", "d")


@pytest.mark.req("P12")
def test_every_cause_has_its_class_and_its_budgets() -> None:
    assert set(CLASS_OF) == set(ErrorCause)
    table = []
    for cause in ErrorCause:
        status = "TIMEOUT" if cause is ErrorCause.TIMEOUT else "ERROR"
        again = 0
        while may_retry(call("x", status, cause, attempts=again + 1), POLICY.retry):
            again += 1
        waits = retries_inside(cause, POLICY.retry)
        table.append(f"{cause.value}: {CLASS_OF[cause].value}, calls again {again}, waits inside a call {waits}")
    assert table == snapshot(
        [
            "agent_error: transient, calls again 1, waits inside a call ()",
            "timeout: transient, calls again 1, waits inside a call (1, 2)",
            "network: transient, calls again 1, waits inside a call (1, 2)",
            "tool_unavailable: transient, calls again 1, waits inside a call (1, 2)",
            "rate_limited: transient, calls again 1, waits inside a call (1, 2)",
            "server_error: transient, calls again 1, waits inside a call (1, 2)",
            "database_busy: transient, calls again 1, waits inside a call (1, 2, 4)",
            "sandbox_lost: transient, calls again 1, waits inside a call (1, 2)",
            "schema_violation: transient, calls again 1, waits inside a call ()",
            "missing_input: deterministic, calls again 0, waits inside a call ()",
            "not_found: deterministic, calls again 0, waits inside a call ()",
            "permission_denied: deterministic, calls again 0, waits inside a call ()",
            "security_blocker: security, calls again 0, waits inside a call ()",
            "out_of_scope: scope, calls again 0, waits inside a call ()",
        ]
    )


@pytest.mark.req("P12")
def test_every_loop_has_an_end() -> None:
    ends = bounds(POLICY)
    assert set(ends) == set(BoundedLoop)
    assert [
        f"{loop.value}: {bound.times} {bound.counted}, then {bound.then}" for loop, bound in ends.items()
    ] == snapshot(
        [
            "one agent's call: 1 retries, then the step fails",
            "a tool inside a call: 2 retries, then the call reports it",
            "a busy database: 3 retries, then a transient failure of the call",
            "checks that gave no evidence: 1 retries, then the evidence is missing, the task fails",
            "design, review, design: 1 revisions, then findings bind the planner",
            "implement, verify, replan: 3 iterations, then revert what failed, confidence Low",
            "review, fix, review: 2 rounds, then known issues, confidence Low",
            "an answer that sends work back: 1 times for each option, then go on, and pass on what was said",
        ]
    )
    strict = bounds(Policy(review=ReviewPolicy(on_exhausted=OnExhausted.ERROR)))
    assert strict[BoundedLoop.CODE_REVIEW].then == "the run ends in error"


@pytest.mark.req("P12")
def test_a_call_that_did_not_fail_is_not_retried() -> None:
    assert not may_retry(call("x"), POLICY.retry)
    assert not may_retry(call("x", None), POLICY.retry)


@pytest.mark.req("P12")
def test_the_budgets_are_settings() -> None:
    policy = RetryPolicy(dispatch=0, inside_agent=1, database_busy=5)
    assert not may_retry(call("x", "ERROR"), policy)
    assert retries_inside(ErrorCause.NETWORK, policy) == (1,)
    assert retries_inside(ErrorCause.DATABASE_BUSY, policy) == (1, 2, 4, 8, 16)
    twice = RetryPolicy(dispatch=2)
    assert [may_retry(call("x", "ERROR", attempts=tried), twice) for tried in (1, 2, 3)] == [True, True, False]


def _under_way(*calls: CallFacts, expected: tuple[str, ...] = FOUR, **policy: Any) -> Any:
    return under_way(Step.RESEARCH, expected, calls, Policy(**policy))


@pytest.mark.req("P4", "P12")
def test_calls_are_started_up_to_the_cap_and_the_rest_in_later_waves() -> None:
    assert _under_way() == Advance(reason="4 of 4 calls are not made yet", to="step-1", start=FOUR)
    assert _under_way(max_concurrent=3).start == ("a", "b", "c")
    assert _under_way(call("a", None), call("b", None), max_concurrent=3).start == ("c",)
    full = _under_way(call("b", None), call("a", None), max_concurrent=2)
    assert full == Wait(reason="2 calls are running", waits_for=WaitsFor.CALLS, what=("a", "b"))
    assert _under_way(call("a", None), call("b", None), max_concurrent=1).waits_for is WaitsFor.CALLS
    assert _under_way(call("a"), call("b"), max_concurrent=2).start == ("c", "d")


@pytest.mark.req("P4", "P12")
def test_failed_calls_are_retried_once_after_all_have_returned() -> None:
    two_failed = (call("c", "ERROR"), call("a", "TIMEOUT"), call("b"))
    assert _under_way(*two_failed, call("d", None)).what == ("d",)
    assert _under_way(*two_failed, call("d")) == Retry(
        reason="transient failure, retrying: a, c", step="step-1", what=RetryOf.CALL, instances=("a", "c")
    )
    assert _under_way(*two_failed, call("d"), max_concurrent=1).instances == ("a",)
    spent = (call("c", "ERROR", attempts=2), call("a", "ERROR", ErrorCause.NOT_FOUND), call("b"), call("d"))
    assert _under_way(*spent) is None
    assert _under_way(expected=()) is None


@pytest.mark.req("P12")
def test_a_security_failure_halts_at_once_and_is_not_resumed() -> None:
    calls = (call("b", "ERROR", ErrorCause.SECURITY_BLOCKER), call("a", None))
    both = (call("c", "ERROR", ErrorCause.SECURITY_BLOCKER), *calls)
    assert _under_way(*both).reason == "a security blocker: b, c"
    assert _under_way(*calls) == Halt(reason="a security blocker: b", outcome=HaltOutcome.HALTED, resumable=False)


@pytest.mark.req("P12")
def test_a_failure_out_of_scope_is_final_but_halts_nothing_by_itself() -> None:
    assert _under_way(call("a", "ERROR", ErrorCause.OUT_OF_SCOPE), expected=("a",)) is None


@pytest.mark.req("P9")
def test_the_first_failure_replans_the_second_reverts_and_the_third_goes_on() -> None:
    table = [
        f"{iterations} iterations, revert from {start}: "
        + ", ".join(
            after_failed_iteration(
                iteration, Policy(verification=VerificationPolicy(iterations=iterations, revert_from=start))
            ).value
            for iteration in range(1, iterations + 1)
        )
        for iterations in (1, 2, 3)
        for start in (1, 2, 3)
    ]
    assert table == snapshot(
        [
            "1 iterations, revert from 1: revert, then go on with confidence Low",
            "1 iterations, revert from 2: revert, then go on with confidence Low",
            "1 iterations, revert from 3: revert, then go on with confidence Low",
            "2 iterations, revert from 1: revert, then replan, revert, then go on with confidence Low",
            "2 iterations, revert from 2: replan, revert, then go on with confidence Low",
            "2 iterations, revert from 3: replan, revert, then go on with confidence Low",
            "3 iterations, revert from 1: revert, then replan, revert, then replan, revert, then go on with confidence Low",  # noqa: E501
            "3 iterations, revert from 2: replan, revert, then replan, revert, then go on with confidence Low",
            "3 iterations, revert from 3: replan, replan, revert, then go on with confidence Low",
        ]
    )
    assert {after_failed_iteration(iteration, POLICY) for iteration in (1, 2, 3)} == set(AfterFailure)


def _after(*tasks: TaskFacts, iteration: int) -> Retry | Revert | Replan | None:
    gates = tuple(answer for item in tasks for answer in task_gates(item, POLICY))
    return after_failed_verification(tasks, gates, iteration, POLICY)


def _failing(name: str, iteration: int, *rows: Any, **differs: Any) -> TaskFacts:
    return task(name, failed("tests", round=iteration), *rows, iteration=iteration, **differs)


@pytest.mark.req("P9")
def test_each_failed_iteration_is_answered_in_turn() -> None:
    first = _after(_failing("task-01", 1), _failing("task-02", 1), iteration=1)
    assert isinstance(first, Replan)
    assert (first.iteration, first.tasks, first.reason) == (
        2,
        ("task-01", "task-02"),
        "tasks lack evidence: task-01, task-02",
    )
    assert len(first.gates) == 4
    second = _after(_failing("task-01", 2), _failing("task-02", 2), iteration=2)
    assert isinstance(second, Revert)
    assert (second.iteration, second.tasks, second.then) == (2, ("task-01", "task-02"), "replan")
    assert second.reason == "failed in iteration 2: task-01, task-02"
    assert len(second.gates) == 4
    undone = observed("revert-task-01", False, round=2)
    half = _after(_failing("task-01", 2, undone), _failing("task-02", 2), iteration=2)
    assert isinstance(half, Revert)
    assert half.tasks == ("task-02",)
    third = _after(_failing("task-01", 2, undone), iteration=2)
    assert isinstance(third, Replan)
    assert (third.iteration, third.by) == (3, None)
    last = _after(_failing("task-01", 3), iteration=3)
    assert isinstance(last, Revert)
    assert last.then == "go-on"
    assert _after(_failing("task-01", 3, observed("revert-task-01", False, round=3)), iteration=3) is None


@pytest.mark.req("P9")
def test_a_failed_check_goes_back_to_the_implementer_and_everything_else_to_the_planner() -> None:
    failing, waiting = _failing("task-01", 1), task("task-02", ready=False)
    cases = {
        "a check fails": (failing,),
        "a check fails and another task waits for it": (failing, waiting),
        "a task only waits": (waiting,),
        "a change is too large": (task("task-01", failed("scope")),),
        "a check broke out": (task("task-01", failed("tests", assessment=Assessment.VIOLATION)),),
        "one of two has no failing check": (failing, task("task-02", failed("scope"))),
    }

    def who(tasks: tuple[TaskFacts, ...], **policy: int) -> str:
        chosen = Policy(verification=VerificationPolicy(**policy))
        after = after_failed_verification(tasks, (), 1, chosen)
        return (after.by or "planner") if isinstance(after, Replan) else type(after).__name__

    assert {name: who(tasks) for name, tasks in cases.items()} == snapshot(
        {
            "a check fails": "implementer",
            "a check fails and another task waits for it": "implementer",
            "a task only waits": "planner",
            "a change is too large": "planner",
            "a check broke out": "planner",
            "one of two has no failing check": "planner",
        }
    )
    assert who((failing,), self_fixes=0) == "planner"
    assert who((failing,), iterations=2) == "planner"  # the last iteration has a new plan


@pytest.mark.req("P9")
def test_a_task_that_never_began_has_nothing_to_put_back() -> None:
    waiting = task("task-02", iteration=2, ready=False, check_runs=0)
    assert isinstance(_after(waiting, iteration=2), Replan)
    assert not worth_another_run(waiting, POLICY)


@pytest.mark.req("P9", "P12")
def test_only_evidence_that_the_world_lost_is_asked_for_again_and_only_once() -> None:
    lost = task("task-01", nothing("tests", Assessment.LOST), row("lint"))
    again = _after(lost, _failing("task-02", 1), iteration=1)
    assert isinstance(again, Retry)
    assert (again.step, again.what, again.instances) == ("step-6", RetryOf.CHECKS, ("task-01",))
    assert again.reason == "checks gave no evidence"
    assert len(again.gates) == 4
    assert worth_another_run(task("task-01", nothing("tests", Assessment.TIMEOUT)), POLICY)
    assert worth_another_run(task("task-01", row("tests", sandbox=SandboxTier.NONE)), POLICY)
    assert worth_another_run(task("task-01", row("tests", tree=OTHER_TREE), tree=TREE), POLICY)
    assert worth_another_run(task("task-01", row("tests"), check_runs=0), POLICY)
    assert not worth_another_run(task("task-01", row("tests")), POLICY)
    assert not worth_another_run(lost.model_copy(update={"check_runs": 2}), POLICY)
    assert worth_another_run(lost.model_copy(update={"check_runs": 2}), Policy(retry=RetryPolicy(checks=2)))
    assert not worth_another_run(task("task-01", nothing("tests", Assessment.VIOLATION)), POLICY)
    assert not worth_another_run(task("task-01", nothing("tests", Assessment.LOST), failed("lint")), POLICY)
    assert not worth_another_run(task("task-01", failed("lint"), check_runs=0), POLICY)


@pytest.mark.req("P9")
def test_a_revert_is_known_by_its_own_row() -> None:
    assert is_reverted(task("task-01", observed("revert-task-01", False)))
    assert not is_reverted(task("task-01", observed("revert-task-02", False)))
    assert not is_reverted(task("task-01", observed("revert-task-01", True)))
    assert not is_reverted(task("task-01", failed("tests")))
    assert not is_reverted(task("task-01", observed("revert-task-01", False), iteration=2))


CALLS = st.lists(
    st.builds(
        call,
        st.sampled_from(FOUR),
        st.sampled_from(["DONE", "ERROR", "TIMEOUT", None]),
        attempts=st.integers(1, 3),
    ),
    unique_by=lambda item: item.instance,
    max_size=4,
)


@pytest.mark.req("P12", "P14")
@settings(max_examples=200)
@given(CALLS, st.integers(1, 5))
def test_no_more_than_the_cap_runs_and_the_order_of_calls_does_not_matter(calls: list[CallFacts], cap: int) -> None:
    decision = _under_way(*calls, max_concurrent=cap)
    assert decision == _under_way(*reversed(calls), max_concurrent=cap)
    running = sum(item.status is None for item in calls)
    if isinstance(decision, Advance):
        assert running + len(decision.start) <= cap
    if isinstance(decision, Retry):
        assert running == 0
        assert len(decision.instances) <= cap
    if decision is None:
        assert all(item.status is not None for item in calls)
        assert {item.instance for item in calls} == set(FOUR)


def test_the_classes_are_the_four_of_the_rules() -> None:
    assert set(CLASS_OF.values()) == set(ErrorClass)
