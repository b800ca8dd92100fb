"""A decision is taken once: with its facts, its events and its calls in one record, under a number of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.decisions import (
    Advance,
    AskHuman,
    Decision,
    ErrorCause,
    Halt,
    HaltOutcome,
    Retry,
    Wait,
)
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.events import ApprovalAnswered, DispatchStatus, FeatureRunResumed
from fairwitness.contracts.feature.facts import GateChoice, HumanGate, Step
from fairwitness.rules.feature_decision import decide
from fairwitness.rules.feature_routes import CALLS_OF
from fairwitness.runs.feature.context import FeatureContext
from fairwitness.runs.feature.decisions import DECISION, TakenDecision, answered, facts_behind, read, take_decision
from runs.feature.contexts import context as made
from runs.feature.git_runs import dies, points
from runs.feature.run_events import ask, call, reopened
from support import demo_feature as demo


@pytest.fixture
def context(tmp_path: Path) -> Iterator[FeatureContext]:
    made_ = made(tmp_path)
    yield made_
    made_.ledger.close()


def _types(context: FeatureContext) -> list[str]:
    return [event.type for event in context.ledger.events(context.run_id)]


def _weigh(context: FeatureContext, taken: TakenDecision, status: DispatchStatus = DispatchStatus.DONE) -> None:
    """The intake's call, as it was planned."""
    (planned,) = taken.calls
    failed = status is not DispatchStatus.DONE
    call(
        context,
        planned.dispatch_id,
        Step.SETUP,
        Role.ORCHESTRATOR,
        "intake",
        status=status,
        cause=ErrorCause.AGENT_ERROR if failed else None,
        answer=None if failed else {**demo.INTAKE.answer, "concerns": []},
    )


def _research(context: FeatureContext, taken: TakenDecision) -> None:
    for planned in taken.calls:
        call(context, planned.dispatch_id, Step.RESEARCH, Role.RESEARCHER, f"researcher-{planned.instance}")


def _approvals(context: FeatureContext) -> list[tuple[object, ...]]:
    sql = "SELECT gate_id, selected_option, auto_selected, actor FROM approvals ORDER BY id"
    return [tuple(row) for row in context.ledger.database.read(sql)]


@pytest.mark.req("P14", "P16")
def test_a_decision_that_is_asked_for_again_is_the_same_and_is_told_once(context: FeatureContext) -> None:
    first = take_decision(context, 0)
    assert isinstance(first.decision, Advance)
    assert [each.dispatch_id for each in first.calls] == ["step-0-1-intake-1"]
    told = _types(context)
    assert told == ["run_started", "decided", "step_started"]
    assert take_decision(context, 0) == first
    _weigh(context, first)
    assert take_decision(context, 0) == first, "also when the facts have changed since"
    assert _types(context) == [*told, "dispatch_started", "dispatch_finished"]


@pytest.mark.req("P14")
def test_another_process_finds_the_same_decision(context: FeatureContext, tmp_path: Path) -> None:
    first = take_decision(context, 0)
    other = reopened(tmp_path)
    assert take_decision(other, 0) == first
    other.ledger.close()


@pytest.mark.req("P14", "P16")
def test_whoever_takes_the_facts_of_a_decision_comes_to_the_same(context: FeatureContext) -> None:
    number = 0
    for work in (_weigh, _research, None, None):
        taken = take_decision(context, number)
        number = taken.number
        if work is not None:
            work(context, taken)
    rows = context.ledger.observations(context.run_id, DECISION)
    assert [row.subject for row in rows] == [read(row).kind for row in rows]
    for row in rows:
        assert decide(facts_behind(row), context.order.policy) == read(row)


@pytest.mark.req("P14")
def test_decisions_are_numbered_one_by_one_as_their_events_say(context: FeatureContext) -> None:
    numbers: list[int] = []
    for _ in range(2):
        taken = take_decision(context, numbers[-1] if numbers else 0)
        numbers.append(taken.number)
        _weigh(context, taken) if taken.number == 1 else None
    assert numbers == [1, 2]
    assert context.state().decisions == 2


@pytest.mark.req("P16")
def test_a_decision_that_was_killed_between_record_and_return_is_found(tmp_path: Path) -> None:
    def begin(name: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        made(folder).ledger.close()
        return folder

    def decide_in(folder: Path) -> None:
        take_decision(reopened(folder), 0)

    first = begin("first")
    passed = points(lambda: decide_in(first), tmp_path / "log", of=("feature.",))
    assert "feature.decided" in passed
    for number, point in enumerate(passed):
        folder = begin(str(number))
        assert dies(lambda folder=folder: decide_in(folder), at=point), point  # type: ignore[misc]  # a default binds the loop's value
        context = reopened(folder)
        assert take_decision(context, 0).number == 1
        assert _types(context) == ["run_started", "decided", "step_started"]
        context.ledger.close()


def _halted(context: FeatureContext) -> TakenDecision:
    """The intake fails twice, which is for good."""
    first = take_decision(context, 0)
    _weigh(context, first, DispatchStatus.ERROR)
    again = take_decision(context, 1)
    assert isinstance(again.decision, Retry)
    assert [each.dispatch_id for each in again.calls] == ["step-0-1-intake-2"]
    _weigh(context, again, DispatchStatus.ERROR)
    end = take_decision(context, 2)
    assert isinstance(end.decision, Halt)
    assert (end.decision.outcome, end.number) == (HaltOutcome.ERROR, 3)
    return end


@pytest.mark.req("P16")
def test_an_end_stands_until_the_run_is_resumed_and_numbers_count_on(context: FeatureContext) -> None:
    end = _halted(context)
    assert take_decision(context, 2) == end
    assert _types(context)[-3:] == ["decided", "step_finished", "run_finished"]
    context.write_event(FeatureRunResumed(from_step=Step.SETUP.value))
    on = take_decision(context, 2)
    assert on.number == 4
    assert isinstance(on.decision, Advance)
    assert [each.dispatch_id for each in on.calls] == ["step-0-1-intake-3"], "no id is used twice"
    assert take_decision(context, 2) == on == take_decision(context, 3)
    _weigh(context, on)
    further = take_decision(context, 4)
    assert isinstance(further.decision, Advance)
    assert (further.number, further.decision.to) == (5, Step.RESEARCH.value)
    assert context.state().current_step == Step.RESEARCH.value


@pytest.mark.req("P16")
def test_a_run_may_be_resumed_more_than_once(context: FeatureContext) -> None:
    _halted(context)
    number = 3
    for life in (1, 2):
        context.write_event(FeatureRunResumed(from_step=Step.SETUP.value))
        for _ in range(2):
            taken = take_decision(context, number)
            number = taken.number
            _weigh(context, taken, DispatchStatus.ERROR)
        end = take_decision(context, number)
        assert isinstance(end.decision, Halt)
        assert end.number == number + 1
        number = end.number
        assert context.state().resumed == life
    assert context.state().decisions == number


def _to_the_first_gate(context: FeatureContext) -> Decision:
    first = take_decision(context, 0)
    _weigh(context, first)
    second = take_decision(context, 1)
    assert len(second.calls) == len(CALLS_OF[Step.RESEARCH])
    _research(context, second)
    third = take_decision(context, 2)
    assert isinstance(third.decision, Advance)
    assert third.decision.to == Step.RESEARCH_GATE.value
    return take_decision(context, 3).decision


@pytest.mark.req("P5")
def test_where_nobody_is_asked_the_answer_is_a_row_all_the_same(context: FeatureContext) -> None:
    decision = _to_the_first_gate(context)
    assert isinstance(decision, Advance)
    assert decision.to == Step.SPEC.value
    assert _approvals(context) == [("gate-post-research", "proceed", 1, "pipeline")]
    take_decision(context, 3)
    assert len(_approvals(context)) == 1


@pytest.mark.req("P5")
def test_a_person_is_asked_once_and_waited_for(tmp_path: Path) -> None:
    context = made(tmp_path, mode=ApprovalMode.INTERACTIVE)
    assert isinstance(_to_the_first_gate(context), AskHuman)
    assert isinstance(take_decision(context, 4).decision, Wait)
    assert _types(context).count("approval_requested") == 1
    assert take_decision(context, 4) == take_decision(context, 4)
    event = ApprovalAnswered(
        gate_id=HumanGate.RESEARCH.value, selected_option=GateChoice.PROCEED.value, auto_selected=False, actor="ada"
    )
    row = answered(context, event, context.now(), said="Go on.")
    assert (row.mode, row.selected_option, row.actor, row.user_response_raw) == (
        ApprovalMode.INTERACTIVE,
        "proceed",
        "ada",
        "Go on.",
    )
    context.write_event(event)
    on = take_decision(context, 5)
    assert isinstance(on.decision, Advance)
    assert (on.number, on.decision.to) == (6, Step.SPEC.value)
    context.ledger.close()


@pytest.mark.req("P5")
@pytest.mark.parametrize("choice", [GateChoice.EXPAND, GateChoice.OTHER])
def test_work_is_sent_back_once_for_each_option_and_its_calls_are_new(tmp_path: Path, choice: GateChoice) -> None:
    context = made(tmp_path, mode=ApprovalMode.INTERACTIVE)
    _to_the_first_gate(context)
    context.write_event(
        ApprovalAnswered(
            gate_id=HumanGate.RESEARCH.value, selected_option=choice.value, auto_selected=False, actor="ada"
        )
    )
    back = take_decision(context, 4)
    assert back.decision.kind == "revise"
    again = take_decision(context, 5)
    assert {each.visit for each in again.calls} == {2}
    assert all(each.dispatch_id.startswith("step-1-2-researcher-") for each in again.calls)
    _research(context, again)
    take_decision(context, 6)
    asked = take_decision(context, 7).decision
    assert isinstance(asked, AskHuman)
    assert choice.value not in asked.options
    ask(context, HumanGate.PLAN)  # another gate's question says nothing here
    assert isinstance(take_decision(context, 8).decision, Wait)
    context.ledger.close()
