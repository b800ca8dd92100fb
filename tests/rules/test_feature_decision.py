"""One decide: every step answered, nothing started while held, and every run ends whatever the world answers."""
# the sentences of the tables stay whole

from collections import Counter
from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.approvals import ApprovalMode
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
from fairwitness.contracts.common.gates import Blocked, Gate
from fairwitness.contracts.common.policy import OnExhausted, Policy, RetryPolicy, ReviewPolicy, VerificationPolicy
from fairwitness.contracts.common.vocabulary import Assessment, Confidence, Severity
from fairwitness.contracts.feature.events import Degradation
from fairwitness.contracts.feature.facts import (
    OPTIONS,
    Approval,
    CanStart,
    FeatureFacts,
    FixFacts,
    GateChoice,
    HumanGate,
    Step,
)
from fairwitness.contracts.feature.review import Perspective, ReviewScope
from fairwitness.rules.confidence import confidence_facts
from fairwitness.rules.feature_decision import decide
from rules.adversary import answers
from rules.build import TREE, A, R, call, facts, failed, nothing, observed, review, row, tally, task, votes

POLICY = Policy()
STRICT = Policy(review=ReviewPolicy(on_exhausted=OnExhausted.ERROR))
ALL = (A, A, A)
REVIEWERS = tuple(perspective.value for perspective in Perspective)


def _decide(step: Step | None, policy: Policy = POLICY, **differs: Any) -> Decision:
    return decide(facts(step=step, **differs), policy)


def _advance(decision: Decision) -> Advance:
    assert isinstance(decision, Advance)
    return decision


def _halt(decision: Decision) -> tuple[HaltOutcome, bool, str]:
    assert isinstance(decision, Halt)
    return decision.outcome, decision.resumable, decision.reason


def test_a_run_begins_with_the_intake() -> None:
    assert _decide(None) == Advance(reason="the run begins", to="step-0", start=("intake",))


@pytest.mark.req("P12", "P14")
@pytest.mark.parametrize(
    ("step", "instance", "to", "start"),
    [
        (Step.SETUP, "intake", "step-1", ("architecture", "impact", "dependencies", "patterns")),
        (Step.SPEC, "spec", "step-3", ("designer",)),
        (Step.DESIGN, "designer", "step-3b", REVIEWERS),
        (Step.PLAN, "planner", "step-4a", ()),
        (Step.KNOWLEDGE, "knowledge-agent", "step-8b", ("evidence-bundle",)),
    ],
)
def test_a_step_with_one_call_starts_waits_retries_and_goes_on(
    step: Step, instance: str, to: str, start: tuple[str, ...]
) -> None:
    begun = _advance(_decide(step))
    assert (begun.to, begun.start) == (step.value, (instance,))
    assert isinstance(_decide(step, calls=(call(instance, None),)), Wait)
    assert isinstance(_decide(step, calls=(call(instance, "TIMEOUT"),)), Retry)
    assert isinstance(_decide(step, calls=(call(instance, "NEEDS_REVISION"),)), Retry)
    done = _advance(_decide(step, calls=(call(instance),)))
    assert (done.to, done.start) == (to, start)
    assert done.degradations == ()


@pytest.mark.req("P2", "P12")
@pytest.mark.parametrize(
    ("step", "instance"),
    [(Step.SETUP, "intake"), (Step.SPEC, "spec"), (Step.DESIGN, "designer"), (Step.PLAN, "planner")],
)
def test_a_call_that_fails_for_good_stops_the_run_resumable(step: Step, instance: str) -> None:
    for last in (
        call(instance, "ERROR", attempts=2),
        call(instance, "NEEDS_REVISION", attempts=2),
        call(instance, "ERROR", ErrorCause.MISSING_INPUT),
    ):
        outcome, resumable, reason = _halt(_decide(step, calls=(last,)))
        cause = last.cause or ErrorCause.SCHEMA_VIOLATION
        assert (outcome, resumable) == (HaltOutcome.ERROR, True)
        assert reason == f"the step failed and no retry is left: {instance} ({cause.value})"


@pytest.mark.req("P17")
def test_knowledge_that_fails_is_noted_and_never_stops_a_run() -> None:
    after = _advance(_decide(Step.KNOWLEDGE, calls=(call("knowledge-agent", "ERROR", attempts=2),)))
    assert (after.to, after.degradations) == ("step-8b", ("knowledge_failed",))


@pytest.mark.req("P4", "P17")
def test_two_of_four_researchers_are_enough_and_fewer_are_not() -> None:
    def after(done: int, policy: Policy = POLICY) -> Decision:
        foci = ("architecture", "impact", "dependencies", "patterns")
        calls = [call(focus, "DONE" if index < done else "ERROR", attempts=2) for index, focus in enumerate(foci)]
        return _decide(Step.RESEARCH, policy, calls=tuple(calls))

    all_done = _advance(after(4))
    assert (all_done.to, all_done.degradations, all_done.reason) == (
        "step-1a",
        (),
        "enough researchers are done: 4 of 4",
    )
    two = _advance(after(2))
    assert (two.to, two.degradations) == ("step-1a", ("fewer_researchers",))
    assert _advance(after(3)).degradations == ("fewer_researchers",)
    assert _halt(after(1)) == (HaltOutcome.ERROR, True, "too few researchers are done: 1 of 4")
    assert isinstance(after(2, Policy(researchers=3)), Halt)
    strangers = tuple(call(f"x{index}") for index in range(3))
    foci = tuple(call(focus, "ERROR", attempts=2) for focus in ("architecture", "impact", "dependencies", "patterns"))
    assert isinstance(_decide(Step.RESEARCH, calls=(*foci, *strangers)), Halt)


@pytest.mark.req("P4")
def test_a_researcher_is_retried_once_when_all_have_returned() -> None:
    foci = ("architecture", "impact", "dependencies")
    calls = (*(call(focus) for focus in foci), call("patterns", "ERROR"))
    decision = _decide(Step.RESEARCH, calls=calls)
    assert isinstance(decision, Retry)
    assert (decision.what, decision.instances) == (RetryOf.CALL, ("patterns",))


@pytest.mark.req("P5")
@pytest.mark.parametrize("step", [Step.SETUP, Step.SPEC])
@pytest.mark.parametrize("mode", ApprovalMode)
def test_a_blocker_concern_halts_in_both_modes(step: Step, mode: ApprovalMode) -> None:
    instance = "intake" if step is Step.SETUP else "spec"
    outcome, resumable, reason = _halt(_decide(step, mode=mode, calls=(call(instance),), concerns=Severity.BLOCKER))
    assert (outcome, resumable) == (HaltOutcome.HALTED, False)
    assert reason == "a reported blocker is final: the request cannot be met in its current form"


@pytest.mark.req("P5")
def test_an_autonomous_run_selects_the_default_and_says_so() -> None:
    table = []
    known: dict[Step, dict[str, Any]] = {
        Step.SETUP: {"calls": (call("intake"),), "concerns": Severity.CRITICAL},
        Step.RESEARCH_GATE: {},
        Step.SPEC: {"calls": (call("spec"),), "concerns": Severity.MINOR},
        Step.PLAN_GATE: {},
    }
    for step, extra in known.items():
        decision = _advance(_decide(step, **extra))
        table.append(f"{step.value}: {decision.auto_selected}, then {decision.to} ({decision.reason})")
    assert table == snapshot(
        [
            "step-0: proceed, then step-1 (the request was assessed: no approval is required)",
            "step-1a: proceed, then step-2 (the research was accepted: no approval is required)",
            "step-2: proceed, then step-3 (the specification is done: no approval is required)",
            "step-4a: approve, then step-5 (the plan was approved: no approval is required)",
        ]
    )
    assert _advance(_decide(Step.SETUP, calls=(call("intake"),))).auto_selected is None


def _at(
    gate: HumanGate, selected: GateChoice | None = None, *spent: GateChoice, asked: bool = True, **policy: Any
) -> Decision:
    step = {
        HumanGate.REQUEST_PUSHBACK: Step.SETUP,
        HumanGate.RESEARCH: Step.RESEARCH_GATE,
        HumanGate.SPEC_PUSHBACK: Step.SPEC,
        HumanGate.PLAN: Step.PLAN_GATE,
    }[gate]
    calls = {Step.SETUP: (call("intake"),), Step.SPEC: (call("spec"),)}.get(step, ())
    return _decide(
        step,
        Policy(**policy),
        mode=ApprovalMode.INTERACTIVE,
        calls=calls,
        concerns=Severity.MAJOR,
        approval=Approval(gate=gate, asked=asked, selected=selected, spent=spent),
    )


@pytest.mark.req("P5")
def test_a_person_is_asked_waited_for_and_asked_the_same_again() -> None:
    asked = _at(HumanGate.RESEARCH, asked=False)
    assert asked == AskHuman(
        reason="a person decides here",
        gate_id="gate-post-research",
        step="step-1a",
        options=("proceed", "expand", "abort", "other"),
        default="proceed",
    )
    fresh = _decide(Step.RESEARCH_GATE, mode=ApprovalMode.INTERACTIVE)
    assert fresh == asked
    other = Approval(gate=HumanGate.PLAN, asked=True, selected=GateChoice.APPROVE, spent=(GateChoice.EXPAND,))
    assert _decide(Step.RESEARCH_GATE, mode=ApprovalMode.INTERACTIVE, approval=other) == asked
    assert _at(HumanGate.RESEARCH) == Wait(
        reason="a person has not answered yet", waits_for=WaitsFor.PERSON, what=("gate-post-research",)
    )


@pytest.mark.req("P5")
def test_an_option_that_sent_work_back_is_not_offered_again() -> None:
    asked = _at(HumanGate.RESEARCH, None, GateChoice.EXPAND, asked=False)
    assert isinstance(asked, AskHuman)
    assert asked.options == ("proceed", "abort", "other")
    plan = _at(HumanGate.PLAN, None, GateChoice.REVISE, asked=False)
    assert isinstance(plan, AskHuman)
    assert (plan.options, plan.default) == (("approve", "abort"), "approve")
    never = _at(HumanGate.REQUEST_PUSHBACK, asked=False, human_loops=0)
    assert isinstance(never, AskHuman)
    assert never.options == ("proceed", "abandon")


@pytest.mark.req("P5", "P12")
def test_every_answer_at_every_gate_the_first_and_the_second_time() -> None:
    table = []
    for gate, options in OPTIONS.items():
        for choice in options:
            for spent in ((), (choice,)):
                decision = _at(gate, choice, *spent)
                match decision:
                    case Advance():
                        told = f"go to {decision.to}"
                    case Revise():
                        told = f"back to {decision.to}, round {decision.round}"
                    case _:
                        told = decision.kind
                again = " again" if spent else ""
                table.append(f"{gate.value} {choice.value}{again}: {told} ({decision.reason})")
    assert table == snapshot(
        [
            "gate-pushback-request proceed: go to step-1 (the request was assessed: a person chose proceed)",
            "gate-pushback-request proceed again: go to step-1 (the request was assessed: a person chose proceed)",
            "gate-pushback-request modify: back to step-0, round 2 (a person changed the request: a person chose modify)",  # noqa: E501
            "gate-pushback-request modify again: go to step-1 (the request was already changed once; the comment is passed on: a person chose modify)",  # noqa: E501
            "gate-pushback-request abandon: halt (a person ended the run; its outputs are kept: a person chose abandon)",  # noqa: E501
            "gate-pushback-request abandon again: halt (a person ended the run; its outputs are kept: a person chose abandon)",  # noqa: E501
            "gate-pushback-request other: back to step-0, round 2 (a person changed the request: a person chose other)",
            "gate-pushback-request other again: go to step-1 (the request was already changed once; the comment is passed on: a person chose other)",  # noqa: E501
            "gate-post-research proceed: go to step-2 (the research was accepted: a person chose proceed)",
            "gate-post-research proceed again: go to step-2 (the research was accepted: a person chose proceed)",
            "gate-post-research expand: back to step-1, round 2 (a person asked for more research: a person chose expand)",  # noqa: E501
            "gate-post-research expand again: go to step-2 (research was already repeated once; the comment is passed on: a person chose expand)",  # noqa: E501
            "gate-post-research abort: halt (a person ended the run; its outputs are kept: a person chose abort)",
            "gate-post-research abort again: halt (a person ended the run; its outputs are kept: a person chose abort)",
            "gate-post-research other: back to step-1, round 2 (a person asked for more research: a person chose other)",  # noqa: E501
            "gate-post-research other again: go to step-2 (research was already repeated once; the comment is passed on: a person chose other)",  # noqa: E501
            "gate-pushback-spec proceed: go to step-3 (the specification is done: a person chose proceed)",
            "gate-pushback-spec proceed again: go to step-3 (the specification is done: a person chose proceed)",
            "gate-pushback-spec modify: back to step-2, round 2 (a person changed the request: a person chose modify)",
            "gate-pushback-spec modify again: go to step-3 (the request was already changed once; the comment is passed on: a person chose modify)",  # noqa: E501
            "gate-pushback-spec abandon: halt (a person ended the run; its outputs are kept: a person chose abandon)",
            "gate-pushback-spec abandon again: halt (a person ended the run; its outputs are kept: a person chose abandon)",  # noqa: E501
            "gate-pushback-spec other: back to step-2, round 2 (a person changed the request: a person chose other)",
            "gate-pushback-spec other again: go to step-3 (the request was already changed once; the comment is passed on: a person chose other)",  # noqa: E501
            "gate-post-planning approve: go to step-5 (the plan was approved: a person chose approve)",
            "gate-post-planning approve again: go to step-5 (the plan was approved: a person chose approve)",
            "gate-post-planning revise: back to step-4, round 2 (a person rejected the plan: a person chose revise)",
            "gate-post-planning revise again: go to step-5 (the plan was already revised once; the comment is passed on: a person chose revise)",  # noqa: E501
            "gate-post-planning abort: halt (a person ended the run; its outputs are kept: a person chose abort)",
            "gate-post-planning abort again: halt (a person ended the run; its outputs are kept: a person chose abort)",
        ]
    )
    third = _at(HumanGate.RESEARCH, GateChoice.OTHER, GateChoice.EXPAND)
    assert isinstance(third, Revise)
    assert third.round == 3
    outcome, resumable, _ = _halt(_at(HumanGate.PLAN, GateChoice.ABORT))
    assert (outcome, resumable) == (HaltOutcome.ABANDONED, False)


@pytest.mark.req("P7")
def test_a_design_goes_through_review_back_to_design_and_into_its_second_round() -> None:
    begun = _advance(_decide(Step.DESIGN_REVIEW))
    assert (begun.to, begun.start, begun.round) == ("step-3b", REVIEWERS, 1)
    assert begun.reason == "the design review begins"
    wanted = review(*votes((A, R, A), (A, R, A), ALL, scope=ReviewScope.DESIGN), scope=ReviewScope.DESIGN)
    back = _decide(Step.DESIGN_REVIEW, design_review=wanted)
    assert isinstance(back, Revise)
    assert back.to == "step-3"
    again = _advance(_decide(Step.DESIGN, calls=(call("designer"),), design_review=wanted))
    assert (again.to, again.round, again.start) == ("step-3b", 2, REVIEWERS)
    approved = review(*votes(ALL, ALL, ALL, scope=ReviewScope.DESIGN), scope=ReviewScope.DESIGN)
    go = _advance(_decide(Step.DESIGN_REVIEW, design_review=approved))
    assert (go.to, go.start, go.round) == ("step-4", ("planner",), None)
    done = _advance(_decide(Step.DESIGN, calls=(call("designer"),)))
    assert done.reason == "the design is done"
    nobody = review(scope=ReviewScope.DESIGN, reviewers=())
    assert _advance(_decide(Step.DESIGN_REVIEW, Policy(max_concurrent=2), design_review=nobody)).start == REVIEWERS[:2]


@pytest.mark.req("P9")
def test_a_plan_that_replaces_failing_tasks_goes_straight_back_to_work() -> None:
    for status in ("DONE", "NEEDS_REVISION"):
        replanned = _decide(Step.PLAN, iteration=2, calls=(call("planner", status),))
        assert _advance(replanned).to == "step-5"


@pytest.mark.req("P9", "P12")
def test_implementers_run_for_the_tasks_that_are_ready_in_this_iteration() -> None:
    tasks = (task("task-03"), task("task-01"), task("task-02", ready=False), task("task-04", iteration=2))
    begun = _advance(_decide(Step.IMPLEMENT, tasks=tasks))
    assert (begun.to, begun.start) == ("step-5", ("task-01", "task-03"))
    done = (call("task-01"), call("task-03"))
    go = _advance(_decide(Step.IMPLEMENT, tasks=tasks, calls=done))
    assert go.to == "step-6"
    assert [answer.gate for answer in go.gates] == [Gate.BASELINE_EXISTS, Gate.BASELINE_EXISTS]
    broken = (call("task-01"), call("task-03", "NEEDS_REVISION", attempts=2))
    assert _halt(_decide(Step.IMPLEMENT, tasks=tasks, calls=broken))[2] == (
        "the step failed and no retry is left: task-03 (schema_violation)"
    )
    both = (call("task-03", "ERROR", attempts=2), call("task-01", "ERROR", ErrorCause.NOT_FOUND))
    assert _halt(_decide(Step.IMPLEMENT, tasks=tasks, calls=both))[2] == (
        "the step failed and no retry is left: task-01 (not_found), task-03 (agent_error)"
    )
    assert _halt(_decide(Step.IMPLEMENT))[2] == "the step failed and no retry is left: the plan has no task"


@pytest.mark.req("P9")
def test_without_a_baseline_nothing_is_verified() -> None:
    bare = task("task-01", baseline=tally(), baseline_runs=1)
    other = task("task-02")
    calls = (call("task-01"), call("task-02"))
    again = _decide(Step.IMPLEMENT, tasks=(bare, other), calls=calls)
    assert isinstance(again, Retry)
    assert (again.step, again.what, again.instances) == ("step-5", RetryOf.BASELINE, ("task-01",))
    assert again.reason == "the checks have not run before the change yet"
    assert len(again.gates) == 2
    spent = bare.model_copy(update={"baseline_runs": 2})
    neither = task("task-02", baseline=tally())
    decision = _decide(Step.IMPLEMENT, tasks=(spent, neither), calls=calls)
    assert _halt(decision) == (
        HaltOutcome.ERROR,
        True,
        "the step failed and no retry is left: no baseline: task-01, task-02",
    )
    assert len(decision.gates) == 2


@pytest.mark.req("P9")
def test_all_evidence_leads_to_the_review_and_what_could_not_be_run_is_noted() -> None:
    calls = (call("task-01"), call("task-02", "NEEDS_REVISION"))
    good = _advance(_decide(Step.VERIFY, tasks=(task("task-02"), task("task-01")), calls=calls))
    assert (good.to, good.start, good.round, good.degradations) == ("step-7", REVIEWERS, 1, ())
    assert [answer.gate for answer in good.gates] == [Gate.BASELINE_EXISTS, Gate.VERIFICATION_SUFFICIENT] * 2
    tier3 = task("task-01", row("lint"), row("syntax-check"), observed("tier3-infeasible", True))
    noted = _advance(_decide(Step.VERIFY, tasks=(tier3,), calls=calls[:1]))
    assert (noted.to, noted.degradations) == ("step-7", ("tier3_infeasible",))
    assert isinstance(_decide(Step.VERIFY, tasks=(task(),), calls=(call("task-01", None),)), Wait)
    assert _halt(_decide(Step.VERIFY, tasks=(task(),), calls=(call("task-01", "ERROR", attempts=2),)))[2] == (
        "the step failed and no retry is left: task-01 (agent_error)"
    )
    assert _halt(_decide(Step.VERIFY))[2] == "the step failed and no retry is left: there is no task to verify"


@pytest.mark.req("P9")
def test_the_verifiers_word_does_not_outweigh_the_ledger() -> None:
    bad = task("task-01", failed("tests"), row("lint"), row("build"))
    decision = _decide(Step.VERIFY, tasks=(bad,), calls=(call("task-01"),))
    assert isinstance(decision, Replan)
    assert isinstance(decision.gates[1], Blocked)


@pytest.mark.req("P9", "P12")
def test_the_three_iterations_of_a_task_that_never_passes() -> None:
    def after(iteration: int, *more: Any) -> Decision:
        bad = task("task-01", failed("tests", round=iteration), *more, iteration=iteration)
        return _decide(
            Step.VERIFY, iteration=iteration, tasks=(bad, task("task-02")), calls=(call("task-01"), call("task-02"))
        )

    first = after(1)
    assert isinstance(first, Replan)
    assert (first.iteration, first.tasks) == (2, ("task-01",))
    second = after(2)
    assert isinstance(second, Revert)
    assert second.then == "replan"
    assert isinstance(after(2, observed("revert-task-01", False, round=2)), Replan)
    third = after(3)
    assert isinstance(third, Revert)
    assert third.then == "go-on"
    last = _advance(after(3, observed("revert-task-01", False, round=3)))
    assert (last.to, last.degradations, last.known_issues) == (
        "step-7",
        ("replan_exhausted",),
        ("task-01: without enough evidence",),
    )
    assert last.reason == "no iteration is left; tasks without evidence were reverted: task-01"
    assert (last.start, len(last.gates)) == (REVIEWERS, 4)


@pytest.mark.req("P9")
def test_a_task_that_waits_for_a_failing_one_fails_with_it() -> None:
    bad = task("task-01", failed("tests"))
    behind = task("task-02", ready=False)
    decision = _decide(Step.VERIFY, tasks=(behind, bad), calls=(call("task-01"),))
    assert isinstance(decision, Replan)
    assert decision.tasks == ("task-01", "task-02")


@pytest.mark.req("P9", "P12")
def test_evidence_the_world_lost_is_asked_for_once_more() -> None:
    lost = task("task-01", nothing("tests", Assessment.LOST), row("lint"))
    again = _decide(Step.VERIFY, tasks=(lost,), calls=(call("task-01"),))
    assert isinstance(again, Retry)
    assert again.what is RetryOf.CHECKS
    spent = lost.model_copy(update={"check_runs": 2})
    assert isinstance(_decide(Step.VERIFY, tasks=(spent,), calls=(call("task-01"),)), Replan)


WANTED = review(*votes((A, R, A), (A, A, R), ALL))


@pytest.mark.req("P7")
def test_a_code_review_begins_goes_back_and_ends() -> None:
    begun = _advance(_decide(Step.CODE_REVIEW))
    assert (begun.to, begun.start, begun.round) == ("step-7", REVIEWERS, 1)
    assert begun.reason == "the code review begins"
    for step in (Step.CODE_REVIEW, Step.IMPLEMENT, Step.VERIFY):
        back = _decide(step, code_review=WANTED)
        assert isinstance(back, Revise)
        assert (back.to, back.round) == ("step-5", 2)
    done = _advance(_decide(Step.CODE_REVIEW, code_review=review(*votes(ALL, ALL, ALL))))
    assert (done.to, done.start) == ("step-8", ("knowledge-agent",))


def _fixed(fix: FixFacts, policy: Policy = POLICY) -> Decision:
    return _decide(Step.CODE_REVIEW, policy, code_review=WANTED, fix=fix)


@pytest.mark.req("P7")
def test_a_fix_reaches_the_second_round_only_with_its_own_evidence() -> None:
    assert isinstance(_fixed(FixFacts(call=call("fix", None), checks=None)), Wait)
    assert isinstance(_fixed(FixFacts(call=call("fix", "ERROR"), checks=None)), Retry)
    assert isinstance(_fixed(FixFacts(call=call("fix", "NEEDS_REVISION"), checks=None)), Retry)
    checking = _fixed(FixFacts(call=call("fix"), checks=None))
    assert checking == Wait(reason="the fix is being checked", waits_for=WaitsFor.CHECKS, what=("fix",))
    good = _advance(_fixed(FixFacts(call=call("fix"), checks=task("fix"))))
    assert (good.to, good.round, good.start) == ("step-7", 2, REVIEWERS)
    assert good.reason == "the fix has its evidence on the merged tree"
    assert [answer.gate for answer in good.gates] == [Gate.BASELINE_EXISTS, Gate.VERIFICATION_SUFFICIENT]
    lost = task("fix", nothing("tests", Assessment.TIMEOUT), row("lint"))
    again = _fixed(FixFacts(call=call("fix"), checks=lost))
    assert isinstance(again, Retry)
    assert (again.what, again.instances, len(again.gates)) == (RetryOf.CHECKS, ("fix",), 2)


@pytest.mark.req("P7")
@pytest.mark.parametrize(
    "fix",
    [
        FixFacts(call=call("fix"), checks=task("fix", failed("tests"), row("lint"), row("build"))),
        FixFacts(call=call("fix", "ERROR", attempts=2), checks=None),
        FixFacts(call=call("fix", "ERROR", attempts=2), checks=task("fix")),
    ],
)
def test_a_fix_without_evidence_is_dropped_and_its_findings_stay_known_issues(fix: FixFacts) -> None:
    dropped = _advance(_fixed(fix))
    assert (dropped.to, dropped.degradations, dropped.start) == ("step-8", ("review_exhausted",), ("knowledge-agent",))
    assert dropped.known_issues == (
        "security-sentinel: architecture (Major)",
        "architecture-guardian: correctness (Major)",
    )
    assert dropped.reason.endswith("the fix was dropped")
    assert _halt(_fixed(fix, STRICT))[0] is HaltOutcome.ERROR


@pytest.mark.req("P9")
def test_the_thresholds_of_the_policy_are_asked_everywhere() -> None:
    demanding = Policy(verification=VerificationPolicy(standard_checks=4))
    failing = _decide(Step.VERIFY, demanding, tasks=(task(),), calls=(call("task-01"),))
    assert isinstance(failing, Replan)
    assert [answer.threshold for answer in failing.gates] == [1, 4]
    lost = task("fix", nothing("tests", Assessment.LOST), row("lint"))
    again = _fixed(FixFacts(call=call("fix"), checks=lost), demanding)
    assert [answer.threshold for answer in again.gates] == [1, 4]
    assert _advance(_fixed(FixFacts(call=call("fix"), checks=task("fix")), demanding)).to == "step-8"
    assert isinstance(_decide(Step.EVIDENCE, demanding, **END, calls=(call("evidence-bundle"),)), Finish)
    assert isinstance(_decide(Step.COMMIT, demanding, **END), Finish)


@pytest.mark.req("P9")
def test_every_task_that_was_put_back_is_named() -> None:
    tasks = tuple(
        task(name, failed("tests", round=3), observed(f"revert-{name}", False, round=3), iteration=3)
        for name in ("task-02", "task-01")
    )
    last = _advance(_decide(Step.VERIFY, iteration=3, tasks=tasks, calls=(call("task-01"), call("task-02"))))
    assert last.reason == (
        "no iteration is left; tasks without evidence were reverted: task-01, task-02; nothing is merged, so there is"
        " nothing to review"
    )
    assert (last.to, last.start) == (Step.EVIDENCE.value, ("evidence-bundle",))
    assert last.known_issues == ("task-01: without enough evidence", "task-02: without enough evidence")


@pytest.mark.req("P7", "P9")
def test_what_was_merged_is_reviewed_though_another_task_failed() -> None:
    bad = task("task-01", failed("tests", round=3), observed("revert-task-01", False, round=3), iteration=3)
    good = task("task-02", iteration=3)
    last = _advance(_decide(Step.VERIFY, iteration=3, tasks=(bad, good), calls=(call("task-01"), call("task-02"))))
    assert (last.to, len(last.start)) == (Step.CODE_REVIEW.value, len(Perspective))


@pytest.mark.req("P7")
def test_a_fix_that_changes_nothing_settles_no_finding_though_every_check_passes() -> None:
    found = review(*votes((A, A, R), (A, A, R), ALL))
    empty = FixFacts(call=call("fix"), checks=task("fix", tree=TREE))
    after = _advance(_decide(Step.IMPLEMENT, code_review=found, fix=empty))
    assert (after.to, after.degradations) == (Step.KNOWLEDGE.value, (Degradation.REVIEW_EXHAUSTED.value,))
    assert after.reason.endswith("the fix changed nothing, its findings stay open")
    assert len(after.known_issues) == 2


END: dict[str, Any] = {
    "tasks": (task(),),
    "whole": task("whole"),
    "code_review": review(*votes(ALL, ALL, ALL)),
}
MEDIUM = END | {"code_review": review(*votes(ALL, ALL, (A, R, A)))}
LOW = END | {"whole": None}


@pytest.mark.req("P11")
def test_only_what_the_evidence_supports_is_committed() -> None:
    bundled: dict[str, Any] = {"calls": (call("evidence-bundle"),)}
    high = _advance(_decide(Step.EVIDENCE, **END, **bundled))
    assert (high.to, high.start, high.reason) == ("step-9", ("commit",), "the evidence is bundled: confidence High")
    assert _advance(_decide(Step.EVIDENCE, **MEDIUM, **bundled)).reason.endswith("confidence Medium")
    low = _decide(Step.EVIDENCE, **LOW, **bundled)
    assert low == Finish(
        reason="nothing is committed: at most Low: the tree to be committed has not passed its checks",
        outcome=FinishOutcome.LOW_CONFIDENCE,
        confidence=Confidence.LOW,
    )
    unbundled = _advance(_decide(Step.EVIDENCE, **END, calls=(call("evidence-bundle", "ERROR", attempts=2),)))
    assert (unbundled.to, unbundled.reason) == (
        "step-9",
        "the evidence could not be bundled; the ledger still holds it: confidence High",
    )
    assert _advance(_decide(Step.EVIDENCE, **END)).start == ("evidence-bundle",)
    lower = _decide(Step.EVIDENCE, **(LOW | {"code_review": None}), **bundled)
    assert lower.reason == (
        "nothing is committed: at most Low: the tree to be committed has not passed its checks; "
        "at most Low: the code was not reviewed"
    )
    exhausted = END | {"degradations": (Degradation.REPLAN_EXHAUSTED,)}
    assert isinstance(_decide(Step.EVIDENCE, **exhausted, **bundled), Finish)


@pytest.mark.req("P11")
def test_a_commit_is_made_once_and_ends_the_run() -> None:
    assert _advance(_decide(Step.COMMIT, **END)).start == ("commit",)
    assert isinstance(_decide(Step.COMMIT, **END, calls=(call("commit", "ERROR"),)), Retry)
    assert _halt(_decide(Step.COMMIT, **END, calls=(call("commit", "ERROR", attempts=2),)))[0] is HaltOutcome.ERROR
    assert _decide(Step.COMMIT, **MEDIUM, calls=(call("commit"),)) == Finish(
        reason="the work is in one commit", outcome=FinishOutcome.COMMITTED, confidence=Confidence.MEDIUM
    )
    low = _decide(Step.COMMIT, **LOW)
    assert isinstance(low, Finish)
    assert low.outcome is FinishOutcome.LOW_CONFIDENCE
    assert isinstance(_decide(Step.COMMIT, **LOW, calls=(call("commit", None),)), Wait)


HELD: dict[str, Any] = {"can_start": CanStart.NOT_NOW, "held_by": "the breaker"}
STOPPED: dict[str, Any] = {"can_start": CanStart.NEVER, "held_by": "the token cap"}


@pytest.mark.req("P12")
def test_a_hold_starts_nothing_and_keeps_the_gates_behind_it() -> None:
    good: dict[str, Any] = {"tasks": (task(),), "calls": (call("task-01"),)}
    held = _decide(Step.VERIFY, **good, **HELD)
    assert isinstance(held, Wait)
    assert (held.waits_for, held.what, held.reason) == (WaitsFor.PERMISSION, ("the breaker",), "held by the breaker")
    assert len(held.gates) == 2
    stopped = _decide(Step.VERIFY, **good, **STOPPED)
    assert _halt(stopped) == (HaltOutcome.OUT_OF_BUDGET, True, "stopped by the token cap")
    assert len(stopped.gates) == 2


@pytest.mark.req("P12", "P17")
def test_a_spent_budget_costs_the_knowledge_step_but_not_the_work() -> None:
    approved: dict[str, Any] = {"code_review": review(*votes(ALL, ALL, ALL))}
    for step, calls in (
        (Step.CODE_REVIEW, ()),
        (Step.KNOWLEDGE, ()),
        (Step.KNOWLEDGE, (call("knowledge-agent", "ERROR"),)),
    ):
        skipped = _advance(_decide(step, **approved, calls=calls, **STOPPED))
        assert (skipped.to, skipped.degradations) == ("step-8b", ("knowledge_failed",))
        assert isinstance(_decide(step, **approved, calls=calls, **HELD), Wait)
    assert _advance(_decide(Step.EVIDENCE, **END, calls=(call("evidence-bundle"),), **STOPPED)).to == "step-9"
    running = _decide(Step.KNOWLEDGE, calls=(call("knowledge-agent", None),), **STOPPED)
    assert isinstance(running, Wait)
    assert running.waits_for is WaitsFor.CALLS


@pytest.mark.req("P14")
def test_the_order_of_facts_does_not_matter() -> None:
    tasks = (task("task-01", failed("tests")), task("task-02"), task("task-03", row("lint")))
    calls = tuple(call(name) for name in ("task-01", "task-02", "task-03"))
    decisions = {
        _decide(Step.VERIFY, tasks=order, calls=mixed) for order in permutations(tasks) for mixed in permutations(calls)
    }
    assert len(decisions) == 1
    foci = [call("architecture"), call("impact", "ERROR"), call("dependencies", "TIMEOUT"), call("patterns")]
    assert len({_decide(Step.RESEARCH, calls=order) for order in permutations(foci)}) == 1


class Explored:
    """Every state an adversary can lead a run into, with the longest way from each to its end."""

    def __init__(self, start: FeatureFacts, policy: Policy) -> None:
        self.decisions: dict[FeatureFacts, Decision] = {}
        self.longest: dict[FeatureFacts, int] = {}
        self.ends: Counter[str] = Counter()
        follow: list[tuple[FeatureFacts, Iterator[FeatureFacts]]] = []
        on_the_way: set[FeatureFacts] = set()

        def meet(state: FeatureFacts) -> None:
            decision = decide(state, policy)
            self.decisions[state] = decision
            self.longest[state] = 0
            if isinstance(decision, Halt | Finish):
                self.ends[f"{decision.kind} {decision.outcome.value}"] += 1
            on_the_way.add(state)
            follow.append((state, answers(state, decision)))

        meet(start)
        while follow:
            state, worlds = follow[-1]
            world = next(worlds, None)
            if world is None:
                follow.pop()
                on_the_way.discard(state)
                if follow:
                    before = follow[-1][0]
                    self.longest[before] = max(self.longest[before], self.longest[state] + 1)
            elif world in on_the_way:
                raise AssertionError(f"a run that goes round for ever: {self.decisions[world]}")
            elif world in self.longest:
                self.longest[state] = max(self.longest[state], self.longest[world] + 1)
            else:
                meet(world)


@pytest.mark.req("P12", "P14")
@pytest.mark.parametrize("mode", ApprovalMode)
@pytest.mark.parametrize("policy", [POLICY, STRICT, Policy(retry=RetryPolicy(dispatch=0, checks=0), human_loops=0)])
def test_whatever_the_world_answers_a_run_ends(mode: ApprovalMode, policy: Policy) -> None:
    start = facts(mode=mode)
    explored = Explored(start, policy)
    assert explored.longest[start] < 200
    assert {"finish committed", "finish low_confidence", "halt error", "halt halted"} <= set(explored.ends)
    assert ("halt abandoned" in explored.ends) == (mode is ApprovalMode.INTERACTIVE)
    for state, decision in explored.decisions.items():
        match decision:
            case Revise():
                assert decision.round <= 3
            case Replan() | Revert():
                assert decision.iteration <= 3
            case Finish(outcome=FinishOutcome.COMMITTED):
                known = confidence_facts(state, policy)
                assert known.whole_verified
                assert known.unverified == ()
                assert known.approvals is not None
                assert known.approvals >= 2
            case _:
                pass
        assert decide(state, policy) == decision


@pytest.mark.req("P12")
def test_a_run_that_is_held_starts_nothing_in_any_state() -> None:
    explored = Explored(facts(mode=ApprovalMode.INTERACTIVE), POLICY)
    for state in explored.decisions:
        for hold in (HELD, STOPPED):
            decision = decide(state.model_copy(update=hold), POLICY)
            assert not isinstance(decision, Retry | Revise | Replan | Revert)
            if isinstance(decision, Advance):
                assert decision.to in ("step-1a", "step-4a", "step-8b", "step-9")
