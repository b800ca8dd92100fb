"""What one event makes of a node: each of the seven states has its own consequences, and nothing illegal happens."""

from itertools import product

import pytest
from inline_snapshot import snapshot

from fairwitness.contracts.common.problems import Problem
from fairwitness.contracts.forge.dag import NodeState
from fairwitness.contracts.forge.events import NodeChanged, TaskReopened
from fairwitness.contracts.forge.status import NodeStatus
from fairwitness.rules.dag import TRANSITIONS, TransitionKind, is_exhausted, node_after, reopened

NOW = "2026-02-26T14:30:00Z"
S = NodeState


def _node(state: NodeState, *, attempt: int = 1, most: int = 3) -> NodeStatus:
    return NodeStatus(
        taskId="t1",
        status=state,
        currentAttempt=attempt,
        maxAttempts=most,
        assignedAgent="type 2",
        startedAt="2026-02-26T14:00:00Z",
        lastError="an earlier one",
    )


def _event(before: NodeState, after: NodeState, attempt: int | None = None, reason: str | None = None) -> NodeChanged:
    return NodeChanged(
        nodeId="t1", previousStatus=before, newStatus=after, timestamp=NOW, attemptId=attempt, reason=reason
    )


@pytest.mark.req("F3")
@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("attempt", [1, 3])
def test_every_event_on_every_node_moves_it_or_says_why_not(state: NodeState, attempt: int) -> None:
    node = _node(state, attempt=attempt)
    for said, after in product(S, S):
        result = node_after(node, _event(said, after))
        is_last = after is S.PENDING and attempt == 3
        if state is after:
            assert result is node
        elif said is state and TRANSITIONS[state, after] is TransitionKind.LEGAL and not is_last:
            assert isinstance(result, NodeStatus)
            assert result.status is after
            assert result.currentAttempt == attempt + (after is S.PENDING)
        else:
            assert isinstance(result, Problem)


@pytest.mark.req("F3")
def test_each_state_has_its_consequences_for_what_is_known_of_a_node() -> None:
    ways = [
        (S.PENDING, S.RUNNING),
        (S.RUNNING, S.DONE),
        (S.DONE, S.MERGE_READY),
        (S.MERGE_READY, S.MERGED),
        (S.RUNNING, S.FAILED),
        (S.RUNNING, S.STALE),
        (S.FAILED, S.PENDING),
        (S.STALE, S.PENDING),
    ]
    assert {after for _, after in ways} == set(S)
    told = {}
    for before, after in ways:
        node = _node(before)
        result = node_after(node, _event(before, after, reason="it broke"))
        assert isinstance(result, NodeStatus)
        told[f"{before} to {after}"] = {
            name: value
            for name in sorted(NodeStatus.model_fields)
            if name != "status" and (value := getattr(result, name)) != getattr(node, name)
        }
    assert told == snapshot(
        {
            "PENDING to RUNNING": {"startedAt": "2026-02-26T14:30:00Z"},
            "RUNNING to DONE": {},
            "DONE to MERGE_READY": {},
            "MERGE_READY to MERGED": {"completedAt": "2026-02-26T14:30:00Z"},
            "RUNNING to FAILED": {"lastError": "it broke"},
            "RUNNING to STALE": {"lastError": "it broke"},
            "FAILED to PENDING": {"assignedAgent": None, "currentAttempt": 2, "startedAt": None},
            "STALE to PENDING": {"assignedAgent": None, "currentAttempt": 2, "startedAt": None},
        }
    )


def test_a_failure_without_a_reason_keeps_the_one_that_is_known() -> None:
    result = node_after(_node(S.RUNNING), _event(S.RUNNING, S.FAILED))
    assert isinstance(result, NodeStatus)
    assert result.lastError == "an earlier one"


@pytest.mark.req("F3")
@pytest.mark.parametrize(
    ("state", "event", "problem"),
    [
        (S.RUNNING, _event(S.PENDING, S.DONE), (("previousStatus",), "RUNNING", "PENDING")),
        (S.PENDING, _event(S.PENDING, S.MERGED), (("newStatus",), "RUNNING", "PENDING → MERGED")),
        (S.MERGED, _event(S.MERGED, S.PENDING), (("newStatus",), "no change any more", "MERGED → PENDING")),
        (S.PENDING, _event(S.PENDING, S.RUNNING, 2), (("attemptId",), "attempt 1", "2")),
        (S.FAILED, _event(S.FAILED, S.PENDING, 1), (("attemptId",), "attempt 2", "1")),
    ],
)
def test_what_cannot_happen_is_told_where_and_why(
    state: NodeState, event: NodeChanged, problem: tuple[tuple[str, ...], str, str]
) -> None:
    result = node_after(_node(state), event)
    assert isinstance(result, Problem)
    assert (result.where, result.expected, result.found) == problem


@pytest.mark.req("F10", "P12")
def test_a_node_without_an_attempt_left_does_not_come_back() -> None:
    result = node_after(_node(S.FAILED, attempt=3), _event(S.FAILED, S.PENDING))
    assert isinstance(result, Problem)
    assert result.expected == "at most 3 attempts"


@pytest.mark.req("F10")
@pytest.mark.parametrize("state", list(S))
@pytest.mark.parametrize("attempt", [1, 2, 3])
def test_more_attempts_are_for_a_node_that_has_none_left_and_change_nothing_else(
    state: NodeState, attempt: int
) -> None:
    node = _node(state, attempt=attempt)
    for most in range(1, 6):
        result = reopened(node, TaskReopened(nodeId="t1", maxAttempts=most, actor="ada"))
        if state in (S.FAILED, S.STALE) and attempt == 3 and most > 3:
            assert isinstance(result, NodeStatus)
            assert result == node.model_copy(update={"maxAttempts": most})
            assert not is_exhausted(result)
            back = node_after(result, _event(state, S.PENDING, 4))
            assert isinstance(back, NodeStatus)
            assert (back.currentAttempt, back.maxAttempts) == (4, most)
        else:
            assert isinstance(result, Problem)
            assert (result.where, result.found) == (("maxAttempts",), f"{state.value}, {most}")
