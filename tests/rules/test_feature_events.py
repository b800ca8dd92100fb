"""What a decision of a feature run is followed by: events, which always fit, and calls, each with its number."""

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
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
from fairwitness.contracts.common.policy import RunPath
from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.common.vocabulary import Confidence, Severity, Workflow
from fairwitness.contracts.feature.events import Degradation, FeatureRunOutcome
from fairwitness.contracts.feature.facts import OPTIONS, GateChoice, HumanGate, Step
from fairwitness.contracts.feature.state import FeatureState
from fairwitness.rules.feature_events import PlannedCall, Raised, call_of, calls_of, events_of, instance_of, visit_of
from fairwitness.rules.feature_routes import CALLS_OF, GATE_OF, default_choice
from fairwitness.rules.fold_feature import fold_feature
from rules.fold_streams import FEATURE, FEATURE_RUN, Said, stream

QUERY = EvidenceQuery(sql="SELECT 1", values=("run", "task-01", "after"))
STEPS = (None, *Step)


def state_of(*said: Said, mode: str = "interactive") -> FeatureState:
    """A run after these events and its first."""
    began = ("run_started", FEATURE[0][1] | {"mode": mode})
    folded = fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, [began, *said]))
    assert isinstance(folded, FeatureState), folded
    return folded


def started(step: Step) -> Said:
    return "step_started", {"step": step.value}


def finished(step: Step) -> Said:
    return "step_finished", {"step": step.value, "outcome": "advanced"}


def at_step(step: Step | None, mode: str = "interactive") -> FeatureState:
    return state_of(*([] if step is None else [started(step)]), mode=mode)


def called(id_: str, step: Step, instance: str, status: str | None = "DONE") -> list[Said]:
    """A call, and how it ended; None leaves it under way."""
    about = {"dispatch_id": id_, "step": step.value, "agent": "researcher", "instance": instance}
    end = {"dispatch_id": id_, "status": status, "duration_ms": 1, "tokens": 1}
    return [("dispatch_started", about), *([] if status is None else [("dispatch_finished", end)])]


def asked(gate: HumanGate, answer: GateChoice | None) -> list[Said]:
    options = [option.value for option in OPTIONS[gate]]
    about = {"gate_id": gate.value, "selected_option": answer and answer.value, "auto_selected": False, "actor": "ada"}
    return [
        ("approval_requested", {"gate_id": gate.value, "options": options}),
        *([] if answer is None else [("approval_answered", about)]),
    ]


def told(state: FeatureState, decision: Decision, raised: Raised | None = None) -> list[tuple[str, dict[str, Any]]]:
    """Events after `decided`, as they are written."""
    said = [event.plain() for event in events_of(state, decision, 1, raised=raised)]
    assert said[0] == {"type": "decided", "number": 1, "kind": decision.kind, "reason": decision.reason}
    return [(event.pop("type"), event) for event in said[1:]]


def words(state: FeatureState, decision: Decision, raised: Raised | None = None) -> list[str]:
    """The same in short: what happened, and to what."""
    key = {
        "step_started": ("step",),
        "step_finished": ("step", "outcome"),
        "replan_started": ("iteration",),
        "approval_requested": ("gate_id",),
        "approval_answered": ("gate_id", "selected_option"),
        "run_finished": ("outcome",),
        "pushback_recorded": ("step", "concerns", "selected_option"),
        "degraded": ("kind",),
        "path_changed": ("path",),
        "gate_evaluated": ("gate", "open"),
    }
    return [" ".join([kind, *(str(data[name]) for name in key[kind])]) for kind, data in told(state, decision, raised)]


def every_decision() -> list[Decision]:
    gates = (
        Open(gate=Gate.BASELINE_EXISTS, evidence=(1,), count=1, threshold=1, query=QUERY),
        Blocked(gate=Gate.NO_BLOCKER, missing=("x",), because="y", count=0, threshold=1, query=QUERY),
    )
    return [
        Advance(reason="on", gates=gates, to="step-2", start=("spec",), degradations=("fewer_researchers",)),
        Advance(reason="on", to="step-2", auto_selected="proceed"),
        Advance(reason="red", to="step-7", path=RunPath.FULL),
        Retry(reason="again", step="step-1", what=RetryOf.CALL, instances=("impact",)),
        Revise(reason="back", gates=gates, to="step-1", round=2),
        Replan(reason="anew", iteration=2, tasks=("task-01",)),
        Revert(reason="out", iteration=2, tasks=("task-01",), then="replan"),
        AskHuman(reason="?", gate_id="gate-post-research", step="step-1a", options=("proceed", "abort"), default="a"),
        Wait(reason="...", waits_for=WaitsFor.PERSON, what=("gate-post-research",)),
        *(Halt(reason="no", outcome=outcome, resumable=True) for outcome in HaltOutcome),
        *(Finish(reason="end", outcome=outcome, confidence=Confidence.HIGH) for outcome in FinishOutcome),
    ]


@pytest.mark.req("P14")
@pytest.mark.parametrize("mode", ["interactive", "autonomous"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("decision", every_decision(), ids=lambda decision: decision.kind)
def test_whatever_is_decided_wherever_its_events_follow_on_what_was_told(
    decision: Decision, step: Step | None, mode: str
) -> None:
    """Total: for every kind of decision in every step there are events, and the run can be folded on with them."""
    before = at_step(step, mode)
    if isinstance(decision, Advance) and decision.auto_selected is not None:
        gate = GATE_OF.get(Step.SETUP if step is None else step, HumanGate.RESEARCH)
        decision = decision.model_copy(update={"auto_selected": default_choice(gate).value})
    for raised in (None, Raised(0, None), Raised(2, Severity.MAJOR)):
        said: list[Said] = [
            (event.type, {key: value for key, value in event.plain().items() if key != "type"})  # type: ignore[attr-defined]  # every event has a type
            for event in events_of(before, decision, 1, raised=raised)
        ]
        after = fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, said, first=before.seq + 1), onto=before)
        assert isinstance(after, FeatureState), after
        assert after.decisions == 1
        assert calls_of(before, decision) == calls_of(before, decision)


def test_every_kind_of_decision_is_looked_at_above() -> None:
    assert {type(decision) for decision in every_decision()} == set(get_args(get_args(Decision)[0]))


MOVES: list[tuple[str, FeatureState, Decision, Raised | None, list[str]]] = [
    (
        "the first step begins",
        at_step(None),
        Advance(reason="begins", to="step-0", start=("intake",)),
        None,
        ["step_started step-0"],
    ),
    (
        "a step goes on with its calls",
        at_step(Step.RESEARCH),
        Advance(reason="more", to="step-1", start=("impact",)),
        None,
        [],
    ),
    (
        "less than was wanted is told once",
        state_of(started(Step.RESEARCH), ("degraded", {"kind": "single_model", "detail": "one"})),
        Advance(reason="on", to="step-1a", degradations=("single_model", "fewer_researchers")),
        None,
        ["degraded fewer_researchers", "step_finished step-1 advanced", "step_started step-1a"],
    ),
    (
        "silence is on record",
        at_step(Step.SETUP),
        Advance(reason="on", to="step-1"),
        Raised(0, None),
        ["pushback_recorded step-0 0 proceed", "step_finished step-0 advanced", "step_started step-1"],
    ),
    (
        "no answer was heard, so nothing was said",
        at_step(Step.SETUP),
        Advance(reason="on", to="step-1"),
        None,
        ["step_finished step-0 advanced", "step_started step-1"],
    ),
    (
        "concerns of another step belong to no gate here",
        at_step(Step.DESIGN),
        Advance(reason="on", to="step-3b"),
        Raised(1, Severity.MINOR),
        ["step_finished step-3 advanced", "step_started step-3b"],
    ),
    (
        "a person changed the request",
        state_of(started(Step.SPEC), *asked(HumanGate.SPEC_PUSHBACK, GateChoice.MODIFY)),
        Revise(reason="back", to="step-2", round=2),
        Raised(1, Severity.MAJOR),
        ["pushback_recorded step-2 1 modify", "step_finished step-2 revised", "step_started step-2"],
    ),
    (
        "what was answered in an earlier visit is not said again",
        state_of(
            started(Step.SPEC),
            *asked(HumanGate.SPEC_PUSHBACK, GateChoice.MODIFY),
            finished(Step.SPEC),
            started(Step.SPEC),
        ),
        Advance(reason="on", to="step-3"),
        Raised(0, None),
        ["pushback_recorded step-2 0 proceed", "step_finished step-2 advanced", "step_started step-3"],
    ),
    (
        "nobody is asked about the research",
        at_step(Step.RESEARCH_GATE, "autonomous"),
        Advance(reason="on", to="step-2", auto_selected="proceed"),
        None,
        [
            "approval_requested gate-post-research",
            "approval_answered gate-post-research proceed",
            "step_finished step-1a advanced",
            "step_started step-2",
        ],
    ),
    (
        "nobody is asked about the plan",
        at_step(Step.PLAN_GATE, "autonomous"),
        Advance(reason="on", to="step-5", auto_selected="approve"),
        None,
        [
            "approval_requested gate-post-planning",
            "approval_answered gate-post-planning approve",
            "step_finished step-4a advanced",
            "step_started step-5",
        ],
    ),
    (
        "a person was asked about the plan",
        state_of(started(Step.PLAN_GATE), *asked(HumanGate.PLAN, GateChoice.APPROVE)),
        Advance(reason="on", to="step-5"),
        None,
        ["step_finished step-4a advanced", "step_started step-5"],
    ),
    (
        "a run leaves the light path",
        at_step(Step.VERIFY),
        Advance(reason="red", to="step-7", path=RunPath.FULL),
        None,
        ["path_changed full", "step_finished step-6 advanced", "step_started step-7"],
    ),
    (
        "failing tasks are planned anew",
        at_step(Step.VERIFY),
        Replan(reason="anew", iteration=2, tasks=("task-01",)),
        None,
        ["step_finished step-6 revised", "replan_started 2", "step_started step-4"],
    ),
    (
        "a question is put",
        at_step(Step.RESEARCH_GATE),
        AskHuman(reason="?", gate_id="gate-post-research", step="step-1a", options=("proceed", "abort"), default="x"),
        None,
        ["approval_requested gate-post-research"],
    ),
    (
        "a run that is stopped says what failed",
        at_step(Step.DESIGN),
        Halt(reason="no", outcome=HaltOutcome.HALTED, resumable=False),
        None,
        ["step_finished step-3 failed", "run_finished halted"],
    ),
    (
        "a person gave the request up",
        state_of(started(Step.SETUP), *asked(HumanGate.REQUEST_PUSHBACK, GateChoice.ABANDON)),
        Halt(reason="no", outcome=HaltOutcome.ABANDONED, resumable=False),
        Raised(1, Severity.MAJOR),
        ["pushback_recorded step-0 1 abandon", "step_finished step-0 failed", "run_finished abandoned"],
    ),
    (
        "a blocker is no answer",
        at_step(Step.SETUP),
        Halt(reason="no", outcome=HaltOutcome.HALTED, resumable=False),
        Raised(1, Severity.BLOCKER),
        ["step_finished step-0 failed", "run_finished halted"],
    ),
    (
        "a run that never began is stopped, too",
        at_step(None),
        Halt(reason="no", outcome=HaltOutcome.OUT_OF_BUDGET, resumable=True),
        None,
        ["run_finished out_of_budget"],
    ),
    (
        "a run comes to its end",
        at_step(Step.COMMIT),
        Finish(reason="end", outcome=FinishOutcome.COMMITTED, confidence=Confidence.HIGH),
        None,
        ["step_finished step-9 advanced", "run_finished committed"],
    ),
]


@pytest.mark.req("P14")
@pytest.mark.parametrize(("state", "decision", "raised", "said"), [row[1:] for row in MOVES], ids=[r[0] for r in MOVES])
def test_each_decision_is_told_by_these_events(
    state: FeatureState, decision: Decision, raised: Raised | None, said: list[str]
) -> None:
    assert words(state, decision, raised) == said


@pytest.mark.req("P11")
def test_only_a_commit_that_was_made_stands_in_the_end_of_a_run() -> None:
    landed = ("committed", {"commit": "abc1234", "rollback_command": "git reset"})
    state = state_of(started(Step.COMMIT), landed)
    for outcome, commit in ((FinishOutcome.COMMITTED, "abc1234"), (FinishOutcome.LOW_CONFIDENCE, None)):
        (_, _), (_, end) = told(state, Finish(reason="end", outcome=outcome, confidence=Confidence.LOW))
        assert (end.get("commit"), end["confidence"]) == (commit, "Low")


@pytest.mark.req("P3")
@pytest.mark.parametrize("mode", ["interactive", "autonomous"])
def test_a_pushback_says_whether_anybody_was_asked(mode: str) -> None:
    auto = "proceed" if mode == "autonomous" else None
    advance = Advance(reason="on", to="step-1", auto_selected=auto)
    (_, said), *_ = told(at_step(Step.SETUP, mode), advance, Raised(1, Severity.MAJOR))
    assert said["auto_selected"] is (mode == "autonomous")
    assert (said["worst"], said["selected_option"]) == ("Major", "proceed")
    answered = state_of(started(Step.SETUP), *asked(HumanGate.REQUEST_PUSHBACK, GateChoice.OTHER), mode=mode)
    (_, said), *_ = told(answered, Revise(reason="back", to="step-0", round=2), Raised(1, Severity.MAJOR))
    assert (said["auto_selected"], said["selected_option"]) == (False, "other")


@pytest.mark.req("P9")
def test_gates_are_told_with_what_they_asked_about_and_what_they_lacked() -> None:
    open_ = Open(gate=Gate.BASELINE_EXISTS, evidence=(1, 2), count=2, threshold=1, query=QUERY)
    shut = Blocked(
        gate=Gate.VERIFICATION_SUFFICIENT,
        missing=("tests", "ac-1"),
        because="too few",
        count=1,
        threshold=2,
        query=EvidenceQuery(sql="SELECT 1", values=("run", None)),
    )
    alone = shut.model_copy(update={"query": EvidenceQuery(sql="SELECT 1", values=())})
    decision = Wait(reason="...", gates=(open_, shut, alone), waits_for=WaitsFor.CHECKS, what=("x",))
    said = [data for _, data in told(at_step(Step.VERIFY), decision)]
    assert [(each["gate"], each["open"], each["count"], each["threshold"], each["missing"]) for each in said] == [
        ("EG-1.task-01", True, 2, 1, []),
        ("EG-2", False, 1, 2, ["tests", "ac-1"]),
        ("EG-2", False, 1, 2, ["tests", "ac-1"]),
    ]


def test_reasons_that_are_too_long_for_a_line_are_cut() -> None:
    long = Halt(reason="x" * 5000, outcome=HaltOutcome.ERROR, resumable=True)
    (_, step), (_, run) = told(at_step(Step.PLAN), long)
    assert (len(step["reason"]), len(run["reason"])) == (1000, 5000)


def test_halting_and_finishing_can_say_every_end_of_a_run() -> None:
    ends = {FeatureRunOutcome(outcome.value) for outcome in (*HaltOutcome, *FinishOutcome)}
    assert ends == set(FeatureRunOutcome)
    assert all(Degradation(each.value) is each for each in Degradation)


def test_a_step_that_failed_and_is_gone_on_with_is_not_ended_twice() -> None:
    """A resumed run stands in the step that stopped it, and that one was told as failed."""
    halt = Halt(reason="no", outcome=HaltOutcome.ERROR, resumable=True)
    state = at_step(Step.DESIGN)
    said = told(state, halt)
    resumed = fold_feature(
        stream(Workflow.FEATURE, FEATURE_RUN, [*said, ("run_resumed", {"from_step": "step-3"})], first=state.seq + 1),
        onto=state,
    )
    assert isinstance(resumed, FeatureState)
    for decision in (Advance(reason="on", to="step-3b"), halt, Revise(reason="back", to="step-2", round=2)):
        more = told(resumed, decision)
        after = fold_feature(stream(Workflow.FEATURE, FEATURE_RUN, more, first=resumed.seq + 1), onto=resumed)
        assert not isinstance(after, Problem), after


@pytest.mark.parametrize("step", Step)
def test_a_call_has_one_name_in_its_step_and_one_for_its_role(step: Step) -> None:
    for name in CALLS_OF[step]:
        instance = instance_of(step, name)
        state = state_of(started(step), *called("d", step, instance))
        assert call_of(state.dispatches["d"]) == name


def test_a_visit_is_counted_from_the_step_at_hand() -> None:
    assert visit_of(at_step(None)) == 0
    assert visit_of(at_step(Step.SPEC)) == 1
    assert visit_of(state_of(started(Step.SPEC), finished(Step.SPEC), started(Step.SPEC))) == 2
    assert visit_of(state_of(started(Step.SPEC), finished(Step.SPEC))) == 0


@pytest.mark.req("P14")
def test_a_step_that_is_entered_makes_its_calls_under_its_next_visit() -> None:
    decision = Advance(reason="on", to="step-1", start=("architecture", "impact"))
    first = calls_of(at_step(Step.SETUP), decision)
    assert first == (
        PlannedCall("step-1-1-researcher-architecture-1", Step.RESEARCH, 1, "architecture", 1),
        PlannedCall("step-1-1-researcher-impact-1", Step.RESEARCH, 1, "impact", 1),
    )
    again = state_of(started(Step.RESEARCH), finished(Step.RESEARCH), started(Step.RESEARCH_GATE))
    assert [call.visit for call in calls_of(again, decision)] == [2, 2]
    here = state_of(started(Step.RESEARCH))
    assert [call.visit for call in calls_of(here, decision)] == [1, 1]


@pytest.mark.req("P12")
def test_tries_are_counted_by_what_ended_in_this_visit_and_nothing_else() -> None:
    retry = Retry(reason="again", step="step-2", what=RetryOf.CALL, instances=("spec",))
    ended_once = called("step-2-1-spec-1", Step.SPEC, "spec", "ERROR")
    (second,) = calls_of(state_of(started(Step.SPEC), *ended_once), retry)
    assert (second.dispatch_id, second.number) == ("step-2-1-spec-2", 2)
    under_way = called("step-2-1-spec-2", Step.SPEC, "spec", None)
    (same,) = calls_of(state_of(started(Step.SPEC), *ended_once, *under_way), retry)
    assert same == second, "one that never ended is made again under its own id"
    (visited,) = calls_of(state_of(started(Step.SPEC), *ended_once, finished(Step.SPEC), started(Step.SPEC)), retry)
    assert (visited.dispatch_id, visited.number) == ("step-2-2-spec-1", 1)
    (other,) = calls_of(state_of(started(Step.SPEC), *called("other", Step.SPEC, "else", "ERROR")), retry)
    assert other.number == 1


@pytest.mark.parametrize("what", [each for each in RetryOf if each is not RetryOf.CALL])
def test_checks_that_are_run_again_call_nobody(what: RetryOf) -> None:
    assert calls_of(at_step(Step.VERIFY), Retry(reason="x", step="step-6", what=what, instances=("task-01",))) == ()


@settings(deadline=None)
@given(
    visits=st.lists(st.lists(st.sampled_from(["DONE", "ERROR", "TIMEOUT", None]), max_size=4), min_size=1, max_size=4),
    name=st.sampled_from(CALLS_OF[Step.RESEARCH]),
)
def test_no_call_is_ever_given_the_id_of_one_that_ended(visits: list[list[str | None]], name: str) -> None:
    said: list[Said] = []
    retry = Retry(reason="again", step="step-1", what=RetryOf.CALL, instances=(name,))
    used: set[str] = set()
    for number, tries in enumerate(visits, start=1):
        said += [started(Step.RESEARCH)]
        for status in tries:
            (call,) = calls_of(state_of(*said), retry)
            assert call.dispatch_id not in used
            assert call.visit == number
            said += called(call.dispatch_id, Step.RESEARCH, instance_of(Step.RESEARCH, name), status)
            if status is not None:
                used.add(call.dispatch_id)
        (call,) = calls_of(state_of(*said), retry)
        assert call.number == 1 + sum(status is not None for status in tries)
        said += [finished(Step.RESEARCH)]


def test_every_gate_of_a_person_has_its_step() -> None:
    assert set(GATE_OF.values()) == set(HumanGate)
