"""Which agent may start which helper, how deep and how often, and when a subtask may be handed out."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from inline_snapshot import snapshot

from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.contracts.forge.documents import SubtaskStatus
from fairwitness.contracts.graph.forge_order import ForgeTable
from fairwitness.rules.helper_limits import ROLE_OF, spawn_problem, subtask_problem

FORGE_ROLES = (Role.CAPTAIN, Role.THROWAWAY, Role.WORKER, Role.SUB_EXECUTOR, Role.REFINERY)
LIMITS = ForgeTable()


def _problem(who: Role, wanted: str, *, depth: int = 0, started: int = 0) -> str | None:
    return spawn_problem(who, wanted, depth=depth, started=started, most=LIMITS.helpers, deepest=LIMITS.depth)


@pytest.mark.req("F8")
def test_the_whole_table_of_who_may_start_whom() -> None:
    table = {who.value: [role.value for role in Role if _problem(who, role.value) is None] for who in FORGE_ROLES}
    assert table == snapshot(
        {
            "captain": [],
            "worker-1": [],
            "worker-2": ["worker-1"],
            "worker-3": ["worker-1", "worker-2"],
            "refinery": ["worker-1", "worker-2", "worker-3"],
        }
    )


@pytest.mark.req("F8")
def test_the_types_of_agents_are_the_roles_that_may_be_started() -> None:
    assert set(ROLE_OF) == {1, 2, 3}
    assert set(ROLE_OF.values()) == {role for who in FORGE_ROLES for role in POLICIES[who].spawns}


@pytest.mark.req("F8")
def test_nobody_can_be_started_by_his_own_kind_not_even_over_others() -> None:
    """So that chains of helpers come to an end also without a limit."""
    below = {who: POLICIES[who].spawns for who in FORGE_ROLES}
    for who in FORGE_ROLES:
        reached: set[Role] = set()
        waiting = [*below[who]]
        while waiting:
            role = waiting.pop()
            if role not in reached:
                reached.add(role)
                waiting += below[role]
        assert who not in reached


@pytest.mark.req("F8")
@pytest.mark.parametrize(
    ("who", "wanted", "depth", "started", "problem"),
    [
        (Role.WORKER, "worker-1", 0, 0, None),
        (Role.WORKER, "worker-1", 2, 7, None),
        (Role.WORKER, "worker-2", 0, 0, "worker-2 may start worker-1, not worker-2"),
        (Role.SUB_EXECUTOR, "refinery", 0, 0, "worker-3 may start worker-1 or worker-2, not refinery"),
        (Role.THROWAWAY, "worker-1", 0, 0, "worker-1 may start no one, not worker-1"),
        (Role.WORKER, "somebody", 0, 0, "worker-2 may start worker-1, not somebody"),
        (Role.WORKER, "", 0, 0, "worker-2 may start worker-1, not "),
        (Role.REFINERY, "worker-3", 3, 0, "helpers may be started 3 deep, and this one would be deeper"),
        (Role.REFINERY, "worker-3", 0, 8, "no more helpers: 8 of 8 were started"),
        (Role.WORKER, "worker-2", 3, 8, "worker-2 may start worker-1, not worker-2"),
    ],
)
def test_why_a_helper_may_not_be_started(who: Role, wanted: str, depth: int, started: int, problem: str | None) -> None:
    assert _problem(who, wanted, depth=depth, started=started) == problem


@pytest.mark.req("F8", "P12")
@settings(max_examples=200)
@given(
    st.sampled_from(Role),
    st.one_of(st.sampled_from([role.value for role in Role]), st.text(max_size=12)),
    *(st.integers(0, 5) for _ in range(4)),
)
def test_a_helper_is_started_only_within_role_depth_and_number(
    who: Role, wanted: str, depth: int, started: int, most: int, deepest: int
) -> None:
    problem = spawn_problem(who, wanted, depth=depth, started=started, most=most, deepest=deepest)
    is_allowed = wanted in {role.value for role in POLICIES[who].spawns}
    assert (problem is None) == (is_allowed and depth < deepest and started < most)
    assert problem is None or problem


@pytest.mark.req("F8")
def test_the_whole_table_of_when_a_subtask_may_be_handed_out() -> None:
    table = {
        f"{status.value}, after {'nothing' if before is None else before.value}": subtask_problem(
            status, 1, "worker-1", {} if before is None else {"subtask-001": before}
        )
        for status, before in product(SubtaskStatus, (None, *SubtaskStatus))
    }
    assert table == snapshot(
        {
            "pending, after nothing": None,
            "pending, after pending": "it waits for subtask-001",
            "pending, after running": "it waits for subtask-001",
            "pending, after completed": None,
            "pending, after failed": "it waits for subtask-001",
            "running, after nothing": None,
            "running, after pending": "it waits for subtask-001",
            "running, after running": "it waits for subtask-001",
            "running, after completed": None,
            "running, after failed": "it waits for subtask-001",
            "completed, after nothing": "it is completed",
            "completed, after pending": "it is completed",
            "completed, after running": "it is completed",
            "completed, after completed": "it is completed",
            "completed, after failed": "it is completed",
            "failed, after nothing": None,
            "failed, after pending": "it waits for subtask-001",
            "failed, after running": "it waits for subtask-001",
            "failed, after completed": None,
            "failed, after failed": "it waits for subtask-001",
        }
    )


@pytest.mark.req("F8")
@pytest.mark.parametrize(("agent_type", "role"), ROLE_OF.items())
def test_a_subtask_is_for_the_type_of_agent_that_it_names(agent_type: int, role: Role) -> None:
    for wanted in (*(each.value for each in ROLE_OF.values()), "captain"):
        problem = subtask_problem(SubtaskStatus.PENDING, agent_type, wanted, {})
        assert problem == (None if wanted == role.value else f"it is for {role.value}")


@pytest.mark.req("F8")
def test_a_subtask_waits_for_each_that_is_not_completed_and_for_those_nobody_knows() -> None:
    before = {
        "subtask-001": SubtaskStatus.COMPLETED,
        "subtask-002": None,
        "subtask-003": SubtaskStatus.FAILED,
    }
    assert subtask_problem(SubtaskStatus.PENDING, 2, "worker-2", before) == "it waits for subtask-002, subtask-003"
