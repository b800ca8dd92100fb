"""Questions of a forge run: made from its book whenever somebody looks, and each answered once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.common.approvals import ApprovalMode, ApprovalRequest
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.graph.forge_order import Decider, ForgeTable
from fairwitness.errors import UsageError
from fairwitness.rules.next_forge_move import ForgeMoveKind, next_move
from fairwitness.runs.forge.change_requests import request_of
from fairwitness.runs.forge.plan_files import write_plan
from fairwitness.runs.forge.questions import answer, open_question
from runs.forge.planroom import ADA, RUN, PlanRoom, as_plan, planned


@pytest.fixture
def context(tmp_path: Path) -> Iterator[PlanRoom]:
    made = PlanRoom.make(tmp_path, limits=ForgeTable(plan_rounds=2, change_requests=Decider.PERSON))
    yield made
    made.ledger.close()


def propose(context: PlanRoom, *questions: str) -> None:
    """As the captain does."""
    plan = as_plan(planned(questions=questions))
    write_plan(context.store, context.layout, plan)
    context.log.propose(plan, asked=context.log.course().asked + 1 if questions else None)


def asked(context: PlanRoom) -> ApprovalRequest:
    question = open_question(context.log)
    assert question is not None
    return question


def options(context: PlanRoom) -> list[str]:
    return [option.id for option in asked(context).options]


def say(context: PlanRoom, option: str, said: str | None = None) -> str:
    return answer(context.log, context.store, context.layout, option, said, ADA)


def next_kind(context: PlanRoom) -> ForgeMoveKind:
    order = context.log.order()
    assert order is not None
    return next_move(context.log.course(), order.mode, order.limits).kind


@pytest.mark.req("F9")
def test_nothing_is_asked_while_the_captain_plans(context: PlanRoom) -> None:
    assert open_question(context.log) is None
    with pytest.raises(UsageError, match="has no open question"):
        say(context, "approve")


@pytest.mark.req("F9")
def test_the_captains_questions_are_answered_in_words_and_he_plans_anew(context: PlanRoom) -> None:
    propose(context, "Which currency?", "Which tax?")
    question = asked(context)
    assert (question.gate_id, question.context) == ("interview.1", "Which currency?\nWhich tax?")
    assert options(context) == ["answer", "proceed"]
    with pytest.raises(UsageError, match="answer needs a text"):
        say(context, "answer", "  ")
    with pytest.raises(UsageError, match=r"'approve' is not an answer to interview\.1"):
        say(context, "approve")
    assert say(context, "answer", " Crowns. ") == "interview.1"
    assert context.types()[-2:] == ["captain.message", "plan.returned"]
    assert context.said("captain.message") == {"speaker": "user", "text": "Crowns.", "round": 1}
    assert next_kind(context) is ForgeMoveKind.PLAN
    with pytest.raises(UsageError, match="has no open question"):
        say(context, "answer", "Crowns.")
    propose(context, "And which coins?")
    assert asked(context).gate_id == "interview.2"


@pytest.mark.req("F9")
def test_whoever_leaves_questions_to_the_captain_reviews_the_plan_that_stands(context: PlanRoom) -> None:
    propose(context, "Which currency?")
    assert say(context, "proceed") == "interview.1"
    question = asked(context)
    assert question.gate_id == "plan-review.1"
    assert question.context.splitlines() == [
        "task-001  type 2  small  The part task-001",
        "task-002  type 2  small  The part task-002 (after task-001)",
        "refinery-001  refinery  joins what it waits for (after task-001, task-002)",
        "assumed: the till stays as it is",
        "left open: Which currency?",
    ]
    assert options(context) == ["approve", "return", "abandon"]


@pytest.mark.req("F9")
def test_a_plan_that_is_approved_is_sealed_as_it_stands_in_its_files(context: PlanRoom) -> None:
    propose(context)
    context.path("specs", "api.md").write_text("# Edited\n")
    assert say(context, "approve") == "plan-review.1"
    assert context.log.specs() == {"api": "# Edited\n"}
    assert context.said("plan.approved") == {"actor": ADA}
    assert open_question(context.log) is None


@pytest.mark.req("F9")
def test_a_plan_that_does_not_fit_is_not_approved_and_the_question_stays(context: PlanRoom) -> None:
    propose(context)
    context.path("tasks", "task-001.md").unlink()
    with pytest.raises(UsageError, match=r"dag\.json:\d+:\d+: nodes\[0\]\.id: expected a task document"):
        say(context, "approve")
    assert asked(context).gate_id == "plan-review.1"


@pytest.mark.req("F9")
def test_plans_are_sent_back_as_often_as_the_settings_allow_and_answers_do_not_count(context: PlanRoom) -> None:
    propose(context, "Which currency?")
    say(context, "answer", "Crowns.")
    for number in (2, 3):
        propose(context)
        assert asked(context).gate_id == f"plan-review.{number}"
        with pytest.raises(UsageError, match="return needs a text"):
            say(context, "return")
        assert say(context, "return", "Smaller.") == f"plan-review.{number}"
        assert context.said("plan.returned") == {"actor": ADA, "feedback": "Smaller."}
    propose(context)
    assert options(context) == ["approve", "abandon"]
    with pytest.raises(UsageError, match="'return' is not an answer"):
        say(context, "return", "Smaller.")


@pytest.mark.req("F9", "F10")
def test_a_run_that_is_abandoned_ends_and_keeps_what_it_wrote(context: PlanRoom) -> None:
    propose(context)
    assert say(context, "abandon") == "plan-review.1"
    assert context.said("run.failed") == {"reason": f"abandoned by {ADA}"}
    assert next_kind(context) is ForgeMoveKind.END
    assert open_question(context.log) is None
    assert context.path("dag.json").exists()


@pytest.mark.req("F4")
def test_a_change_request_is_put_to_the_person_where_the_settings_say_so(context: PlanRoom) -> None:
    context.start()
    context.request()
    question = asked(context)
    assert question.gate_id == "cr-001"
    assert question.context.splitlines() == [
        "cr-001 of refinery-001: Clashes",
        "because: it was forgotten",
        "suggested: one more task",
        "affects: task-001",
    ]
    with pytest.raises(UsageError, match="reject needs a text"):
        say(context, "reject")
    assert say(context, "approve") == "cr-001"
    assert request_of(context.log, "cr-001").decided_by == ADA
    assert next_kind(context) is ForgeMoveKind.REPLAN


@pytest.mark.req("F4")
def test_a_change_request_may_be_turned_down(context: PlanRoom) -> None:
    context.start()
    context.request()
    assert say(context, "reject", "Not now.") == "cr-001"
    assert context.said("cr.rejected") == {"crId": "cr-001", "actor": ADA, "reason": "Not now."}
    assert request_of(context.log, "cr-001").status is ChangeRequestStatus.REJECTED
    assert next_kind(context) is ForgeMoveKind.EXECUTE


@pytest.mark.req("F9")
def test_a_long_plan_is_cut_and_counted(context: PlanRoom) -> None:
    plan = as_plan(planned({f"task-{number:03d}": () for number in range(50)}))
    context.log.propose(plan)
    lines = asked(context).context.splitlines()
    assert len(lines) == 42
    assert lines[40] == "and 10 more"


@pytest.mark.req("F9")
def test_a_run_without_a_person_asks_nothing(tmp_path: Path) -> None:
    context = PlanRoom.make(tmp_path, mode=ApprovalMode.AUTONOMOUS)
    propose(context, "Which currency?")
    assert open_question(context.log) is None
    assert context.log.run_id == RUN
    context.ledger.close()
