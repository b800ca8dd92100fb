"""Questions of a forge run: made from its book whenever somebody looks, and each answered once."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.common.approvals import ApprovalMode, ApprovalRequest
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.graph.forge import Decider, ForgeTable
from fairwitness.errors import UsageError
from fairwitness.rules.forge_course import MoveKind, next_move
from fairwitness.runs.forge.plan_files import write_plan
from fairwitness.runs.forge.questions import answer, open_question
from fairwitness.runs.forge.standings import request_of
from runs.forge.planroom import ADA, RUN, PlanRoom, as_plan, planned


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PlanRoom]:
    made = PlanRoom.make(tmp_path, limits=ForgeTable(plan_rounds=2, change_requests=Decider.PERSON))
    yield made
    made.ledger.close()


def propose(room: PlanRoom, *questions: str) -> None:
    """As the captain does."""
    plan = as_plan(planned(questions=questions))
    write_plan(room.store, room.layout, plan)
    room.book.propose(plan, asked=room.book.course().asked + 1 if questions else None)


def asked(room: PlanRoom) -> ApprovalRequest:
    question = open_question(room.book)
    assert question is not None
    return question


def options(room: PlanRoom) -> list[str]:
    return [option.id for option in asked(room).options]


def say(room: PlanRoom, option: str, said: str | None = None) -> str:
    return answer(room.book, room.store, room.layout, option, said, ADA)


def next_kind(room: PlanRoom) -> MoveKind:
    order = room.book.order()
    assert order is not None
    return next_move(room.book.course(), order.mode, order.limits).kind


@pytest.mark.req("F9")
def test_nothing_is_asked_while_the_captain_plans(room: PlanRoom) -> None:
    assert open_question(room.book) is None
    with pytest.raises(UsageError, match="asks nothing"):
        say(room, "approve")


@pytest.mark.req("F9")
def test_the_captains_questions_are_answered_in_words_and_he_plans_anew(room: PlanRoom) -> None:
    propose(room, "Which currency?", "Which tax?")
    question = asked(room)
    assert (question.gate_id, question.context) == ("interview.1", "Which currency?\nWhich tax?")
    assert options(room) == ["answer", "proceed"]
    with pytest.raises(UsageError, match="answer needs a word of yours"):
        say(room, "answer", "  ")
    with pytest.raises(UsageError, match=r"'approve' is no answer to interview\.1"):
        say(room, "approve")
    assert say(room, "answer", " Crowns. ") == "interview.1"
    assert room.types()[-2:] == ["captain.message", "plan.returned"]
    assert room.said("captain.message") == {"speaker": "user", "text": "Crowns.", "round": 1}
    assert next_kind(room) is MoveKind.PLAN
    with pytest.raises(UsageError, match="asks nothing"):
        say(room, "answer", "Crowns.")
    propose(room, "And which coins?")
    assert asked(room).gate_id == "interview.2"


@pytest.mark.req("F9")
def test_whoever_leaves_questions_to_the_captain_reviews_the_plan_that_stands(room: PlanRoom) -> None:
    propose(room, "Which currency?")
    assert say(room, "proceed") == "interview.1"
    question = asked(room)
    assert question.gate_id == "plan-review.1"
    assert question.context.splitlines() == [
        "task-001  type 2  small  The part task-001",
        "task-002  type 2  small  The part task-002 (after task-001)",
        "refinery-001  refinery  joins what it waits for (after task-001, task-002)",
        "assumed: the till stays as it is",
        "left open: Which currency?",
    ]
    assert options(room) == ["approve", "return", "abandon"]


@pytest.mark.req("F9")
def test_a_plan_that_is_approved_is_sealed_as_it_stands_in_its_files(room: PlanRoom) -> None:
    propose(room)
    room.path("specs", "api.md").write_text("# Edited\n")
    assert say(room, "approve") == "plan-review.1"
    assert room.book.specs() == {"api": "# Edited\n"}
    assert room.said("plan.approved") == {"actor": ADA}
    assert open_question(room.book) is None


@pytest.mark.req("F9")
def test_a_plan_that_does_not_fit_is_not_approved_and_the_question_stays(room: PlanRoom) -> None:
    propose(room)
    room.path("tasks", "task-001.md").unlink()
    with pytest.raises(UsageError, match=r"dag\.json:\d+:\d+: nodes\[0\]\.id: expected a task document"):
        say(room, "approve")
    assert asked(room).gate_id == "plan-review.1"


@pytest.mark.req("F9")
def test_plans_are_sent_back_as_often_as_the_settings_allow_and_answers_do_not_count(room: PlanRoom) -> None:
    propose(room, "Which currency?")
    say(room, "answer", "Crowns.")
    for number in (2, 3):
        propose(room)
        assert asked(room).gate_id == f"plan-review.{number}"
        with pytest.raises(UsageError, match="return needs a word"):
            say(room, "return")
        assert say(room, "return", "Smaller.") == f"plan-review.{number}"
        assert room.said("plan.returned") == {"actor": ADA, "feedback": "Smaller."}
    propose(room)
    assert options(room) == ["approve", "abandon"]
    with pytest.raises(UsageError, match="'return' is no answer"):
        say(room, "return", "Smaller.")


@pytest.mark.req("F9", "F10")
def test_a_run_that_is_abandoned_ends_and_keeps_what_it_wrote(room: PlanRoom) -> None:
    propose(room)
    assert say(room, "abandon") == "plan-review.1"
    assert room.said("run.failed") == {"reason": f"abandoned by {ADA}"}
    assert next_kind(room) is MoveKind.END
    assert open_question(room.book) is None
    assert room.path("dag.json").exists()


@pytest.mark.req("F4")
def test_a_change_request_is_put_to_the_person_where_the_settings_say_so(room: PlanRoom) -> None:
    room.start()
    room.request()
    question = asked(room)
    assert question.gate_id == "cr-001"
    assert question.context.splitlines() == [
        "cr-001 of refinery-001: Clashes",
        "because: it was forgotten",
        "suggested: one more task",
        "affects: task-001",
    ]
    with pytest.raises(UsageError, match="reject needs a word"):
        say(room, "reject")
    assert say(room, "approve") == "cr-001"
    assert request_of(room.book, "cr-001").decided_by == ADA
    assert next_kind(room) is MoveKind.REPLAN


@pytest.mark.req("F4")
def test_a_change_request_may_be_turned_down(room: PlanRoom) -> None:
    room.start()
    room.request()
    assert say(room, "reject", "Not now.") == "cr-001"
    assert room.said("cr.rejected") == {"crId": "cr-001", "actor": ADA, "reason": "Not now."}
    assert request_of(room.book, "cr-001").status is ChangeRequestStatus.REJECTED
    assert next_kind(room) is MoveKind.EXECUTE


@pytest.mark.req("F9")
def test_a_long_plan_is_cut_and_counted(room: PlanRoom) -> None:
    plan = as_plan(planned({f"task-{number:03d}": () for number in range(50)}))
    room.book.propose(plan)
    lines = asked(room).context.splitlines()
    assert len(lines) == 42
    assert lines[40] == "and 10 more"


@pytest.mark.req("F9")
def test_a_run_without_a_person_asks_nothing(tmp_path: Path) -> None:
    room = PlanRoom.make(tmp_path, mode=ApprovalMode.AUTONOMOUS)
    propose(room, "Which currency?")
    assert open_question(room.book) is None
    assert room.book.run_id == RUN
    room.ledger.close()
