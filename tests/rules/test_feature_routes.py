"""Routing is total over steps and outcomes, and the whole table is the policy, in sentences."""

from itertools import product

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.completion import FeatureAgent
from fairwitness.contracts.common.decisions import ErrorCause, HaltOutcome
from fairwitness.contracts.feature.events import DispatchStatus
from fairwitness.contracts.feature.facts import OPTIONS, GateChoice, HumanGate, Step
from fairwitness.rules.feature_routes import (
    AGENT_OF,
    CALLS_OF,
    GATE_OF,
    OUTCOME_OF,
    READINGS,
    ROUTES,
    Action,
    Reading,
    RouteOutcome,
    after_plan,
    as_read,
    default_choice,
    reading_of,
)
from rules.build import call


@pytest.mark.req("P2", "P14")
def test_every_step_with_every_outcome_has_a_route() -> None:
    assert set(ROUTES) == set(product(Step, RouteOutcome))
    assert set(AGENT_OF) == set(CALLS_OF) == set(Step)
    assert set(READINGS) == set(product(FeatureAgent, DispatchStatus))
    assert set(OUTCOME_OF) == set(GateChoice)
    assert set(OPTIONS) == set(HumanGate) == set(GATE_OF.values())


@pytest.mark.req("P12")
def test_a_route_says_where_to_or_how_it_ends_and_never_both() -> None:
    for route in ROUTES.values():
        assert (route.to is None) == (route.action in (Action.HALT, Action.FINISH))
        assert (route.halt is not None) == (route.action is Action.HALT)


@pytest.mark.req("P7")
def test_a_blocker_halts_at_every_step() -> None:
    for step in Step:
        assert ROUTES[(step, RouteOutcome.BLOCKER)].halt is HaltOutcome.HALTED


@pytest.mark.req("P12")
def test_done_leads_forward_and_only_a_revision_leads_back() -> None:
    order = list(Step)
    for (step, outcome), route in ROUTES.items():
        if route.to is not None:
            ahead = order.index(route.to) > order.index(step)
            assert ahead == (outcome is not RouteOutcome.NEEDS_REVISION)


@pytest.mark.req("P17")
def test_knowledge_never_blocks() -> None:
    for outcome in (RouteOutcome.DONE, RouteOutcome.ERROR):
        assert ROUTES[(Step.KNOWLEDGE, outcome)].to is Step.EVIDENCE


@pytest.mark.req("P2", "P14")
def test_the_whole_routing_table() -> None:
    table = []
    for step in Step:
        for outcome in RouteOutcome:
            route = ROUTES[(step, outcome)]
            end = route.to.value if route.to else (route.halt.value if route.halt else "the end")
            table.append(f"{step.value} {outcome.value}: {route.action.value} {end} ({route.because})")
    assert table == snapshot(
        [
            "step-0 done: advance step-1 (the request was assessed)",
            "step-0 needs_revision: revise step-0 (a person changed the request)",
            "step-0 exhausted: advance step-1 (the request was already changed once; the comment is passed on)",
            "step-0 error: halt error (the step failed and no retry is left)",
            "step-0 blocker: halt halted (a reported blocker is final)",
            "step-0 abandoned: halt abandoned (a person ended the run; its outputs are kept)",
            "step-1 done: advance step-1a (enough researchers are done)",
            "step-1 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-1 exhausted: halt error (internal error: this step cannot end this way)",
            "step-1 error: halt error (too few researchers are done)",
            "step-1 blocker: halt halted (a reported blocker is final)",
            "step-1 abandoned: halt error (internal error: this step cannot end this way)",
            "step-1a done: advance step-2 (the research was accepted)",
            "step-1a needs_revision: revise step-1 (a person asked for more research)",
            "step-1a exhausted: advance step-2 (research was already repeated once; the comment is passed on)",
            "step-1a error: halt error (the step failed and no retry is left)",
            "step-1a blocker: halt halted (a reported blocker is final)",
            "step-1a abandoned: halt abandoned (a person ended the run; its outputs are kept)",
            "step-2 done: advance step-3 (the specification is done)",
            "step-2 needs_revision: revise step-2 (a person changed the request)",
            "step-2 exhausted: advance step-3 (the request was already changed once; the comment is passed on)",
            "step-2 error: halt error (the step failed and no retry is left)",
            "step-2 blocker: halt halted (a reported blocker is final)",
            "step-2 abandoned: halt abandoned (a person ended the run; its outputs are kept)",
            "step-3 done: advance step-3b (the design is done)",
            "step-3 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-3 exhausted: halt error (internal error: this step cannot end this way)",
            "step-3 error: halt error (the step failed and no retry is left)",
            "step-3 blocker: halt halted (a reported blocker is final)",
            "step-3 abandoned: halt error (internal error: this step cannot end this way)",
            "step-3b done: advance step-4 (the reviewers approve the design)",
            "step-3b needs_revision: revise step-3 (the reviewers request changes to the design)",
            "step-3b exhausted: advance step-4 (the design was revised once; open findings bind the planner)",
            "step-3b error: halt error (fewer than three reviewers judged the design)",
            "step-3b blocker: halt halted (a reported blocker is final)",
            "step-3b abandoned: halt error (internal error: this step cannot end this way)",
            "step-4 done: advance step-4a (the plan is done)",
            "step-4 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-4 exhausted: halt error (internal error: this step cannot end this way)",
            "step-4 error: halt error (the step failed and no retry is left)",
            "step-4 blocker: halt halted (a reported blocker is final)",
            "step-4 abandoned: halt error (internal error: this step cannot end this way)",
            "step-4a done: advance step-5 (the plan was approved)",
            "step-4a needs_revision: revise step-4 (a person rejected the plan)",
            "step-4a exhausted: advance step-5 (the plan was already revised once; the comment is passed on)",
            "step-4a error: halt error (the step failed and no retry is left)",
            "step-4a blocker: halt halted (a reported blocker is final)",
            "step-4a abandoned: halt abandoned (a person ended the run; its outputs are kept)",
            "step-5 done: advance step-6 (every implementer is done)",
            "step-5 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-5 exhausted: halt error (internal error: this step cannot end this way)",
            "step-5 error: halt error (the step failed and no retry is left)",
            "step-5 blocker: halt halted (a reported blocker is final)",
            "step-5 abandoned: halt error (internal error: this step cannot end this way)",
            "step-6 done: advance step-7 (every task has its evidence)",
            "step-6 needs_revision: replan step-4 (tasks lack evidence)",
            "step-6 exhausted: advance step-7 (no iteration is left; tasks without evidence were reverted)",
            "step-6 error: halt error (the step failed and no retry is left)",
            "step-6 blocker: halt halted (a reported blocker is final)",
            "step-6 abandoned: halt error (internal error: this step cannot end this way)",
            "step-7 done: advance step-8 (the reviewers approve the code)",
            "step-7 needs_revision: revise step-5 (the reviewers request changes to the code)",
            "step-7 exhausted: advance step-8 (no round is left; open findings are known issues)",
            "step-7 error: halt error (fewer than three reviewers judged the code)",
            "step-7 blocker: halt halted (a reported blocker is final)",
            "step-7 abandoned: halt error (internal error: this step cannot end this way)",
            "step-8 done: advance step-8b (the lessons are recorded)",
            "step-8 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-8 exhausted: halt error (internal error: this step cannot end this way)",
            "step-8 error: advance step-8b (no lessons were recorded; the run continues)",
            "step-8 blocker: halt halted (a reported blocker is final)",
            "step-8 abandoned: halt error (internal error: this step cannot end this way)",
            "step-8b done: advance step-9 (the evidence is bundled)",
            "step-8b needs_revision: halt error (internal error: this step cannot end this way)",
            "step-8b exhausted: halt error (internal error: this step cannot end this way)",
            "step-8b error: advance step-9 (the evidence could not be bundled; the ledger still holds it)",
            "step-8b blocker: halt halted (a reported blocker is final)",
            "step-8b abandoned: halt error (internal error: this step cannot end this way)",
            "step-9 done: finish the end (the work is in one commit)",
            "step-9 needs_revision: halt error (internal error: this step cannot end this way)",
            "step-9 exhausted: halt error (internal error: this step cannot end this way)",
            "step-9 error: halt error (the step failed and no retry is left)",
            "step-9 blocker: halt halted (a reported blocker is final)",
            "step-9 abandoned: halt error (internal error: this step cannot end this way)",
        ]
    )


@pytest.mark.req("P2")
def test_who_may_return_what() -> None:
    table = [
        f"{agent.value}: {', '.join(f'{status.value} {READINGS[(agent, status)].value}' for status in DispatchStatus)}"
        for agent in FeatureAgent
    ]
    assert table == snapshot(
        [
            "orchestrator: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "researcher: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "spec: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "designer: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "adversarial-reviewer: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "planner: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "implementer: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
            "verifier: DONE evidence decides, NEEDS_REVISION evidence decides, ERROR failed, TIMEOUT failed",
            "knowledge-agent: DONE done, NEEDS_REVISION violation, ERROR failed, TIMEOUT failed",
        ]
    )


@pytest.mark.req("P2")
def test_a_planner_may_ask_for_revision_only_while_it_replans_and_then_it_is_done() -> None:
    revise = DispatchStatus.NEEDS_REVISION
    assert reading_of(FeatureAgent.PLANNER, revise, replanning=True) is Reading.DONE
    assert reading_of(FeatureAgent.PLANNER, revise, replanning=False) is Reading.VIOLATION
    assert reading_of(FeatureAgent.DESIGNER, revise, replanning=True) is Reading.VIOLATION
    assert reading_of(FeatureAgent.PLANNER, DispatchStatus.ERROR, replanning=True) is Reading.FAILED
    assert reading_of(FeatureAgent.PLANNER, DispatchStatus.DONE, replanning=True) is Reading.DONE


@pytest.mark.req("P2")
def test_a_status_its_agent_may_not_return_is_a_broken_contract() -> None:
    asked = call("security-sentinel", "NEEDS_REVISION")
    broken = as_read(FeatureAgent.REVIEWER, asked, replanning=False)
    assert (broken.status, broken.cause) == (DispatchStatus.ERROR, ErrorCause.SCHEMA_VIOLATION)
    assert as_read(FeatureAgent.VERIFIER, asked, replanning=False) == asked
    running = call("planner", None)
    assert as_read(FeatureAgent.PLANNER, running, replanning=False) == running
    assert as_read(FeatureAgent.PLANNER, call("planner", "NEEDS_REVISION"), replanning=True).cause is None


@pytest.mark.req("P5")
def test_the_gates_their_options_and_what_each_leads_to() -> None:
    table = []
    for step, gate in GATE_OF.items():
        for choice in OPTIONS[gate]:
            route = ROUTES[(step, OUTCOME_OF[choice])]
            default = " by default" if choice is default_choice(gate) else ""
            end = route.to.value if route.to else "the end"
            table.append(f"{gate.value} {choice.value}{default}: {route.action.value} {end}")
    assert table == snapshot(
        [
            "gate-pushback-request proceed by default: advance step-1",
            "gate-pushback-request modify: revise step-0",
            "gate-pushback-request abandon: halt the end",
            "gate-pushback-request other: revise step-0",
            "gate-post-research proceed by default: advance step-2",
            "gate-post-research expand: revise step-1",
            "gate-post-research abort: halt the end",
            "gate-post-research other: revise step-1",
            "gate-pushback-spec proceed by default: advance step-3",
            "gate-pushback-spec modify: revise step-2",
            "gate-pushback-spec abandon: halt the end",
            "gate-pushback-spec other: revise step-2",
            "gate-post-planning approve by default: advance step-5",
            "gate-post-planning revise: revise step-4",
            "gate-post-planning abort: halt the end",
        ]
    )


@pytest.mark.req("P5", "P9")
def test_only_a_first_plan_is_shown_to_a_person() -> None:
    assert after_plan(replanning=False) is Step.PLAN_GATE
    assert after_plan(replanning=True) is Step.IMPLEMENT


@pytest.mark.req("P4", "P7")
def test_the_calls_of_every_step() -> None:
    assert {step.value: CALLS_OF[step] for step in Step if CALLS_OF[step]} == snapshot(
        {
            "step-0": ("intake",),
            "step-1": ("architecture", "impact", "dependencies", "patterns"),
            "step-2": ("spec",),
            "step-3": ("designer",),
            "step-3b": ("security-sentinel", "architecture-guardian", "pragmatic-verifier"),
            "step-4": ("planner",),
            "step-7": ("security-sentinel", "architecture-guardian", "pragmatic-verifier"),
            "step-8": ("knowledge-agent",),
            "step-8b": ("evidence-bundle",),
            "step-9": ("commit",),
        }
    )
