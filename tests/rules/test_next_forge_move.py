"""Where a forge run stands and what it does next: the whole table, and any history that follows it."""

from itertools import product
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.approvals import ApprovalMode
from fairwitness.contracts.common.vocabulary import Workflow
from fairwitness.contracts.forge.dag import Dag
from fairwitness.contracts.forge.documents import ChangeRequestStatus
from fairwitness.contracts.forge.events import FORGE_EVENT_TYPES
from fairwitness.contracts.forge.status import ForgeRunStatus
from fairwitness.contracts.graph.forge_order import Decider, ForgeTable
from fairwitness.rules.fold_forge import ForgeState, fold_forge
from fairwitness.rules.next_forge_move import (
    INTERVIEW,
    REVIEW,
    ForgeMove,
    ForgeMoveKind,
    ForgeProgress,
    RequestProgress,
    forge_progress,
    next_move,
)
from rules.fold_streams import DAG, FORGE, FORGE_RUN, REOPENED, Said, node_merged, stream

C = ChangeRequestStatus
RUNNING = ForgeProgress(proposals=1, is_proposed=True, is_approved=True, is_started=True)
PLANNING: dict[str, ForgeProgress] = {
    "nothing yet": ForgeProgress(),
    "a plan with questions": ForgeProgress(proposals=1, is_proposed=True, asked=1),
    "the questions answered": ForgeProgress(proposals=1, asked=1, answered=1, returned=1),
    "a plan": ForgeProgress(proposals=2, is_proposed=True, asked=1, answered=1, returned=1),
    "a plan sent back": ForgeProgress(proposals=2, asked=1, answered=1, returned=2),
    "a plan approved": ForgeProgress(proposals=1, is_proposed=True, is_approved=True),
    "started": RUNNING,
    "over": RUNNING._replace(is_over=True),
}


def _limits(decider: Decider = Decider.CAPTAIN) -> ForgeTable:
    return ForgeTable(change_requests=decider)


def _words(move: ForgeMove) -> str:
    return " ".join([move.kind.value, *(part for part in (move.gate, move.request) if part)])


def _asking(*statuses: ChangeRequestStatus) -> ForgeProgress:
    requests = {f"cr-{number:03}": RequestProgress(status, "r1") for number, status in enumerate(statuses, 1)}
    return RUNNING._replace(requests=requests)


@pytest.mark.req("F9")
def test_the_whole_table_of_what_comes_next_while_a_run_is_planned() -> None:
    table = {
        name: [_words(next_move(course, mode, _limits())) for mode in ApprovalMode] for name, course in PLANNING.items()
    }
    assert [mode.value for mode in ApprovalMode] == ["interactive", "autonomous"]
    assert table == snapshot(
        {
            "nothing yet": ["plan", "plan"],
            "a plan with questions": ["wait interview.1", "seal"],
            "the questions answered": ["plan", "plan"],
            "a plan": ["wait plan-review.2", "seal"],
            "a plan sent back": ["plan", "plan"],
            "a plan approved": ["start", "start"],
            "started": ["execute", "execute"],
            "over": ["end", "end"],
        }
    )


@pytest.mark.req("F4")
def test_the_whole_table_of_what_comes_next_when_a_larger_plan_is_asked_for() -> None:
    table = {
        f"{one.value}, {other.value}": [
            _words(next_move(_asking(one, other), ApprovalMode.INTERACTIVE, _limits(decider))) for decider in Decider
        ]
        for one, other in product(C, C)
    }
    assert [decider.value for decider in Decider] == ["captain", "person"]
    assert table == snapshot(
        {
            "pending, pending": ["replan cr-001", "wait cr-001 cr-001"],
            "pending, approved": ["replan cr-001", "wait cr-001 cr-001"],
            "pending, rejected": ["replan cr-001", "wait cr-001 cr-001"],
            "pending, applied": ["replan cr-001", "wait cr-001 cr-001"],
            "approved, pending": ["replan cr-001", "replan cr-001"],
            "approved, approved": ["replan cr-001", "replan cr-001"],
            "approved, rejected": ["replan cr-001", "replan cr-001"],
            "approved, applied": ["replan cr-001", "replan cr-001"],
            "rejected, pending": ["replan cr-002", "wait cr-002 cr-002"],
            "rejected, approved": ["replan cr-002", "replan cr-002"],
            "rejected, rejected": ["execute", "execute"],
            "rejected, applied": ["execute", "execute"],
            "applied, pending": ["replan cr-002", "wait cr-002 cr-002"],
            "applied, approved": ["replan cr-002", "replan cr-002"],
            "applied, rejected": ["execute", "execute"],
            "applied, applied": ["execute", "execute"],
        }
    )


courses = st.builds(
    ForgeProgress,
    proposals=st.integers(0, 3),
    is_proposed=st.booleans(),
    is_approved=st.booleans(),
    is_started=st.booleans(),
    is_over=st.booleans(),
    asked=st.integers(0, 3),
    answered=st.integers(0, 3),
    returned=st.integers(0, 3),
    requests=st.dictionaries(
        st.sampled_from(["cr-001", "cr-002", "cr-003"]),
        st.builds(RequestProgress, st.sampled_from(C), st.just("r1"), st.integers(0, 2)),
    ),
)


@pytest.mark.req("F9", "F4")
@settings(max_examples=300)
@given(courses, st.sampled_from(ApprovalMode), st.sampled_from(Decider))
def test_every_course_has_a_next_move_that_no_person_and_no_request_is_passed_over_by(
    course: ForgeProgress, mode: ApprovalMode, decider: Decider
) -> None:
    move = next_move(course, mode, _limits(decider))
    assert (move.kind is ForgeMoveKind.WAIT) == (move.gate is not None)
    if move.kind is ForgeMoveKind.EXECUTE:
        assert not course.active()
        assert course.is_approved
    if move.kind is ForgeMoveKind.SEAL:
        assert mode is ApprovalMode.AUTONOMOUS
    if mode is ApprovalMode.AUTONOMOUS and decider is Decider.CAPTAIN:
        assert move.kind is not ForgeMoveKind.WAIT
    if move.kind is ForgeMoveKind.START:
        assert course.is_approved
    if move.request is not None:
        assert move.request == course.active()[0]
    if move.kind is ForgeMoveKind.REPLAN and decider is Decider.PERSON:
        assert move.request is not None
        assert course.requests[move.request].status is C.APPROVED


def _course(*said: Said) -> ForgeProgress:
    return forge_progress(stream(Workflow.FORGE, FORGE_RUN, list(said)))


@pytest.mark.req("F9", "F4")
def test_a_whole_run_event_by_event() -> None:
    told: list[str] = []
    for length in range(1, len(FORGE) + 1):
        move = _words(next_move(_course(*FORGE[:length]), ApprovalMode.INTERACTIVE, _limits()))
        if not told or not told[-1].endswith(f": {move}"):
            told.append(f"{FORGE[length - 1][0]}: {move}")
    assert told == snapshot(
        [
            "run.created: plan",
            "plan.proposed: wait plan-review.1",
            "plan.returned: plan",
            "plan.proposed: wait plan-review.2",
            "plan.approved: start",
            "run.started: execute",
            "cr.emitted: replan cr-001",
            "overlay.applied: execute",
            "run.completed: end",
        ]
    )
    assert _course(*FORGE).requests == {
        "cr-001": RequestProgress(C.APPLIED, "refinery-001", refused=1),
        "cr-002": RequestProgress(C.REJECTED, "refinery-001"),
    }


@pytest.mark.req("F10")
def test_a_run_that_failed_has_ended_until_it_is_resumed() -> None:
    kinds = [
        next_move(_course(*REOPENED[:length]), ApprovalMode.AUTONOMOUS, _limits()).kind
        for length in range(1, len(REOPENED) + 1)
    ]
    said = [kind for kind, _ in REOPENED]
    failed, resumed = said.index("run.failed"), said.index("run.resumed")
    assert set(kinds[failed:resumed]) == {ForgeMoveKind.END}
    assert kinds[resumed] is not ForgeMoveKind.END


@pytest.mark.req("F9")
def test_a_plan_that_a_person_edits_is_still_the_same_proposal() -> None:
    proposed: Said = ("plan.proposed", {"tasks": 1, "refineries": 0})
    assert _course(FORGE[0], proposed, proposed).proposals == 1


@pytest.mark.req("F9")
def test_questions_that_went_back_with_their_plan_are_not_asked_again() -> None:
    proposed: Said = ("plan.proposed", {"tasks": 1, "refineries": 0})
    asked: Said = ("captain.message", {"speaker": "captain", "text": "which shop?", "round": 1})
    returned: Said = ("plan.returned", {"actor": "ada", "feedback": "smaller"})
    course = _course(FORGE[0], proposed, asked, returned, proposed)
    assert next_move(course, ApprovalMode.INTERACTIVE, _limits()).gate == f"{REVIEW}.2"


@pytest.mark.req("F9")
def test_what_is_said_outside_the_interview_asks_nothing() -> None:
    assert _course(("captain.message", {"speaker": "captain", "text": "hello"})) == ForgeProgress()


@pytest.mark.req("F4")
@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("cr.approved", {"actor": "ada"}),
        ("cr.rejected", {"actor": "ada", "reason": "no"}),
        ("overlay.applied", {"addedNodes": [], "addedEdges": 1}),
        ("overlay.refused", {"problems": ["a ring"]}),
    ],
)
def test_an_answer_that_nobody_had_asked_for_is_no_request(kind: str, data: dict[str, Any]) -> None:
    assert _course((kind, {"crId": "cr-009", **data})) == ForgeProgress()


@pytest.mark.req("F6")
def test_what_a_run_does_not_go_by_changes_nothing() -> None:
    heeded = {
        *("captain.message", "plan.proposed", "plan.approved", "plan.returned"),
        *("run.started", "run.completed", "run.failed", "run.resumed"),
        *("cr.emitted", "cr.approved", "cr.rejected", "overlay.applied", "overlay.refused"),
    }
    for kind in set(FORGE_EVENT_TYPES) - heeded:
        assert _course((kind, {"whatever": "it says"})) == ForgeProgress()
    assert heeded < set(FORGE_EVENT_TYPES)


class Story:
    """A run whose captain, people and refineries do what they like, but only what the next move leaves to them."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.mode = chance.choice(list(ApprovalMode))
        self.limits = _limits(chance.choice(list(Decider)))
        self.dag = DAG
        self.said: list[Said] = [FORGE[0]]
        self.moves: list[ForgeMove] = []
        self.pending = [node.id for node in DAG.nodes]

    def course(self) -> ForgeProgress:
        return _course(*self.said)

    def turn(self) -> bool:
        """One move, and what somebody makes of it; False at the end."""
        move = next_move(self.course(), self.mode, self.limits)
        self.moves.append(move)
        match move.kind:
            case ForgeMoveKind.PLAN:
                self.said += self._planned()
            case ForgeMoveKind.WAIT:
                assert move.gate is not None
                self.said += self._answered(move.gate)
            case ForgeMoveKind.SEAL:
                self.said.append(("plan.approved", {"actor": "fairwitness"}))
            case ForgeMoveKind.START:
                self.said.append(("run.started", {}))
            case ForgeMoveKind.EXECUTE:
                self.said += self._executed()
            case ForgeMoveKind.REPLAN:
                assert move.request is not None
                self.said += self._replanned(move.request)
            case ForgeMoveKind.END:
                if self.said[-1][0] == "run.failed" and self.chance.random() < 0.5:
                    self.said.append(("run.resumed", {}))
                    return True
                return False
        return True

    def _planned(self) -> list[Said]:
        if self.chance.random() < 0.1:
            return [("run.failed", {"reason": "no plan"})]
        proposed: Said = ("plan.proposed", {"tasks": 2, "refineries": 1})
        asked = self.course().asked + 1
        if self.chance.random() < 0.5:
            return [proposed]
        return [proposed, ("captain.message", {"speaker": "captain", "text": "which?", "round": asked})]

    def _answered(self, gate: str) -> list[Said]:
        kind, _, number = gate.partition(".")
        returned: Said = ("plan.returned", {"actor": "ada", "feedback": "so"})
        approved: list[Said] = [("plan.approved", {"actor": "ada"})]
        if self.chance.random() < 0.3:
            approved = [("plan.proposed", {"tasks": 2, "refineries": 1}), *approved]
        if kind == INTERVIEW:
            told: Said = ("captain.message", {"speaker": "user", "text": "this", "round": int(number)})
            return self.chance.choice([[told, returned], [returned], approved])
        if kind == REVIEW:
            return self.chance.choice([[returned], approved])
        return self._decided(gate)

    def _decided(self, request: str) -> list[Said]:
        rejected: Said = ("cr.rejected", {"crId": request, "actor": "ada", "reason": "no"})
        return self.chance.choice([[rejected], [("cr.approved", {"crId": request, "actor": "ada"})]])

    def _executed(self) -> list[Said]:
        """What the executor makes of it: a request, or its end."""
        done: list[Said] = []
        while self.pending and self.chance.random() < 0.5:
            done += node_merged(self.pending.pop(0))
        if self.chance.random() < 0.4:
            request = f"cr-{len(self.course().requests) + 1:03}"
            return [*done, ("cr.emitted", {"crId": request, "emittedBy": "r1", "affectedTasks": []})]
        if self.chance.random() < 0.3:
            return [*done, ("run.failed", {"reason": "no attempt left"})]
        for name in self.pending:
            done += node_merged(name)
        self.pending = []
        return [*done, ("run.completed", {})]

    def _replanned(self, request: str) -> list[Said]:
        known = self.course().requests[request]
        approved: list[Said] = []
        if known.status is C.PENDING:
            if self.chance.random() < 0.3:
                return [("cr.rejected", {"crId": request, "actor": "captain", "reason": "no"})]
            approved = [("cr.approved", {"crId": request, "actor": "captain"})]
        if self.chance.random() < 0.3:
            refused: Said = ("overlay.refused", {"crId": request, "problems": ["a ring"]})
            return [*approved, refused, ("cr.rejected", {"crId": request, "actor": "fairwitness", "reason": "a ring"})]
        added = [f"added-{len(self.said)}"]
        self.pending += added
        return [*approved, ("overlay.applied", {"crId": request, "addedNodes": added, "addedEdges": 0})]


STANDS: dict[ForgeMoveKind, tuple[ForgeRunStatus, ...]] = {
    ForgeMoveKind.PLAN: (ForgeRunStatus.PLANNING,),
    ForgeMoveKind.SEAL: (ForgeRunStatus.PLAN_REVIEW,),
    ForgeMoveKind.START: (ForgeRunStatus.PLAN_REVIEW,),
    ForgeMoveKind.EXECUTE: (ForgeRunStatus.EXECUTING,),
    ForgeMoveKind.REPLAN: (ForgeRunStatus.EXECUTING,),
    ForgeMoveKind.WAIT: (ForgeRunStatus.PLAN_REVIEW, ForgeRunStatus.EXECUTING),
    ForgeMoveKind.END: (ForgeRunStatus.COMPLETED, ForgeRunStatus.FAILED),
}
"""What the status files say when a move is next."""


def _status(said: list[Said], dag: Dag) -> ForgeState:
    state = fold_forge(stream(Workflow.FORGE, FORGE_RUN, said), dag)
    assert isinstance(state, ForgeState), state
    return state


@pytest.mark.req("F9", "F4", "F6", "F10")
@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_whatever_captain_people_and_refineries_do_a_run_goes_by_its_status_files_and_asks_nothing_twice(
    chance: Random,
) -> None:
    story = Story(chance)
    for _ in range(40):
        state = _status(story.said, story.dag)
        goes_on = story.turn()
        move = story.moves[-1]
        assert state.run.status in STANDS[move.kind]
        assert set(state.run.activeCRs) == set(_course(*story.said[: state.run.lastEventSeq]).active())
        if not goes_on:
            break
    gates = [move.gate for move in story.moves if move.gate is not None]
    assert len(gates) == len(set(gates))
    if story.mode is ApprovalMode.INTERACTIVE:
        assert ForgeMoveKind.SEAL not in {move.kind for move in story.moves}


@pytest.mark.req("F6")
@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_going_on_from_any_point_is_going_from_the_beginning(chance: Random) -> None:
    story = Story(chance)
    for _ in range(20):
        if not story.turn():
            break
    events = stream(Workflow.FORGE, FORGE_RUN, story.said)
    middle = chance.randint(0, len(events))
    earlier = forge_progress(events[:middle])
    kept = (earlier, dict(earlier.requests))
    assert forge_progress(events[middle:], earlier) == forge_progress(events)
    assert (earlier, dict(earlier.requests)) == kept


def test_stories_reach_every_move() -> None:
    seen = set()
    for seed in range(60):
        story = Story(Random(seed))
        for _ in range(40):
            if not story.turn():
                break
        seen |= {move.kind for move in story.moves}
    assert seen == set(ForgeMoveKind)
