"""Decisions are a closed union with a reason each; no policy is too loose; facts do not contradict themselves."""

from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
    ErrorCause,
    Finish,
    FinishOutcome,
    Halt,
    HaltOutcome,
    Replan,
    Retry,
    RetryOf,
    Revert,
    Revise,
    Wait,
    WaitsFor,
)
from fairwitness.contracts.common.evidence import EvidenceQuery
from fairwitness.contracts.common.gates import Blocked, Gate, Open
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Confidence
from fairwitness.contracts.feature.events import DispatchStatus, FeatureRunOutcome
from fairwitness.contracts.feature.facts import Approval, CallFacts, CanStart, GateChoice, HumanGate
from rules.build import facts

QUERY = EvidenceQuery(sql="SELECT count(*) FROM anvil_checks WHERE run_id = ?", values=("run", 1, None))
GATES = (
    Open(gate=Gate.BASELINE_EXISTS, evidence=(1,), count=1, threshold=1, query=QUERY),
    Blocked(gate=Gate.VERIFICATION_SUFFICIENT, missing=("tests",), because="failed", count=1, threshold=2, query=QUERY),
)
EXAMPLES: tuple[Decision, ...] = (
    Advance(reason="r", gates=GATES, to="step-5", start=("task-01",), known_issues=("x",), auto_selected="approve"),
    Retry(reason="r", step="step-1", what=RetryOf.CALL, instances=("impact",)),
    Revise(reason="r", to="step-3", round=2, findings=("f",)),
    Replan(reason="r", iteration=2, tasks=("task-01",)),
    Revert(reason="r", iteration=2, tasks=("task-01",), then="replan"),
    AskHuman(reason="r", gate_id="gate-post-planning", step="step-4a", options=("approve", "abort"), default="approve"),
    Wait(reason="r", waits_for=WaitsFor.PERSON, what=("gate-post-planning",)),
    Halt(reason="r", outcome=HaltOutcome.HALTED, resumable=False),
    Finish(reason="r", outcome=FinishOutcome.COMMITTED, confidence=Confidence.HIGH),
)
ADAPTER: TypeAdapter[Decision] = TypeAdapter(Decision)


@pytest.mark.req("P14")
def test_there_are_nine_kinds_and_each_comes_back_by_its_kind() -> None:
    assert {type(example) for example in EXAMPLES} == set(get_args(get_args(Decision)[0]))
    assert len({example.kind for example in EXAMPLES}) == 9
    for example in EXAMPLES:
        assert ADAPTER.validate_python(example.plain()) == example
        assert ADAPTER.validate_json(ADAPTER.dump_json(example)) == example


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_a_decision_without_a_reason_or_with_a_word_too_many_is_refused(example: Decision) -> None:
    for change in ({"reason": " "}, {"reason": None}, {"verdict": "yes"}, {"kind": "perhaps"}):
        with pytest.raises(ValidationError):
            ADAPTER.validate_python(example.plain() | change)


@pytest.mark.parametrize(
    ("example", "change"),
    [
        (1, {"instances": ()}),
        (2, {"round": 0}),
        (3, {"tasks": ()}),
        (4, {"tasks": ()}),
        (4, {"then": "hope"}),
        (5, {"options": ("approve",)}),
        (6, {"what": ()}),
        (7, {"resumable": "no"}),
    ],
)
def test_a_decision_that_says_nothing_is_refused(example: int, change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(EXAMPLES[example].plain() | change)


def test_every_end_of_a_run_is_the_end_of_a_decision() -> None:
    assert {word.value for word in FeatureRunOutcome} == {word.value for word in (*HaltOutcome, *FinishOutcome)}


@pytest.mark.req("P12")
def test_the_defaults_are_the_numbers_of_the_seeds() -> None:
    policy = Policy()
    assert (policy.retry.dispatch, policy.retry.inside_agent, policy.retry.database_busy) == (1, 2, 3)
    assert (policy.review.approvals, policy.review.design_revisions, policy.review.code_rounds) == (2, 1, 2)
    assert policy.review.on_exhausted is OnExhausted.LOW_CONFIDENCE
    assert (policy.verification.standard_checks, policy.verification.large_checks) == (2, 3)
    assert (policy.verification.iterations, policy.verification.revert_from, policy.verification.self_fixes) == (
        3,
        2,
        2,
    )
    assert (policy.researchers, policy.max_concurrent, policy.human_loops, policy.risk) == (2, 4, 1, ())


@pytest.mark.req("P12")
@pytest.mark.parametrize(
    ("shape", "change"),
    [
        (RetryPolicy, {"dispatch": 4}),
        (RetryPolicy, {"dispatch": -1}),
        (ReviewPolicy, {"approvals": 1}),
        (ReviewPolicy, {"design_revisions": 2}),
        (ReviewPolicy, {"code_rounds": 3}),
        (ReviewPolicy, {"on_exhausted": "approve"}),
        (VerificationPolicy, {"standard_checks": 1}),
        (VerificationPolicy, {"large_checks": 2}),
        (VerificationPolicy, {"iterations": 4}),
        (VerificationPolicy, {"iterations": True}),
        (Policy, {"researchers": 1}),
        (Policy, {"max_concurrent": 0}),
        (Policy, {"human_loops": 2}),
        (Policy, {"skip_gates": True}),
    ],
)
def test_no_setting_asks_for_less_evidence_or_for_a_loop_without_end(shape: type[Any], change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        shape(**change)


def test_a_policy_is_a_value() -> None:
    with pytest.raises(ValidationError):
        Policy().max_concurrent = 9  # type: ignore[misc]  # that it is frozen is the point


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    ("status", "cause", "fits"),
    [
        (None, None, True),
        (DispatchStatus.DONE, None, True),
        (DispatchStatus.NEEDS_REVISION, None, True),
        (DispatchStatus.ERROR, ErrorCause.NETWORK, True),
        (DispatchStatus.TIMEOUT, ErrorCause.TIMEOUT, True),
        (None, ErrorCause.NETWORK, False),
        (DispatchStatus.DONE, ErrorCause.NETWORK, False),
        (DispatchStatus.ERROR, None, False),
        (DispatchStatus.ERROR, ErrorCause.TIMEOUT, False),
        (DispatchStatus.TIMEOUT, ErrorCause.NETWORK, False),
        (DispatchStatus.TIMEOUT, None, False),
    ],
)
def test_a_call_has_a_cause_exactly_when_it_failed(
    status: DispatchStatus | None, cause: ErrorCause | None, fits: bool
) -> None:
    if fits:
        assert CallFacts(instance="x", attempts=1, status=status, cause=cause).cause is cause
    else:
        with pytest.raises(ValidationError, match="cause"):
            CallFacts(instance="x", attempts=1, status=status, cause=cause)


@pytest.mark.req("P5")
def test_an_answer_fits_its_question() -> None:
    assert Approval(gate=HumanGate.PLAN, asked=True, selected=GateChoice.REVISE, spent=()).selected is GateChoice.REVISE
    with pytest.raises(ValidationError, match="nobody was asked"):
        Approval(gate=HumanGate.PLAN, asked=False, selected=GateChoice.APPROVE, spent=())
    with pytest.raises(ValidationError, match="an option of gate-post-planning"):
        Approval(gate=HumanGate.PLAN, asked=True, selected=GateChoice.EXPAND, spent=())


def test_a_hold_names_itself() -> None:
    with pytest.raises(ValidationError, match="exactly when nothing may start"):
        facts(can_start=CanStart.NEVER)
    with pytest.raises(ValidationError, match="exactly when nothing may start"):
        facts(held_by="the breaker")
    assert facts(can_start=CanStart.NOT_NOW, held_by="the breaker").held_by == "the breaker"
