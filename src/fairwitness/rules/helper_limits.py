"""Limits on helper agents: the role must allow them, and depth and number are bounded."""

from collections.abc import Mapping

from fairwitness.contracts.common.tools import POLICIES, Role
from fairwitness.contracts.forge.documents import SubtaskStatus

ROLE_OF: Mapping[int, Role] = {1: Role.THROWAWAY, 2: Role.WORKER, 3: Role.SUB_EXECUTOR}
"""The role of each type of agent."""


def spawn_problem(who: Role, wanted: str, *, depth: int, started: int, most: int, deepest: int) -> str | None:
    """Return why a helper may not be started, or None. `depth` is that of the requesting agent: 0 for the agent of a
    node.

    >>> spawn_problem(Role.WORKER, "worker-3", depth=0, started=0, most=8, deepest=3)
    'worker-2 may start worker-1, not worker-3'
    """
    allowed = sorted(role.value for role in POLICIES[who].spawns)
    if wanted not in allowed:
        return f"{who.value} may start {' or '.join(allowed) or 'no one'}, not {wanted}"
    if depth >= deepest:
        return f"helpers may be started {deepest} deep, and this one would be deeper"
    if started >= most:
        return f"no more helpers: {started} of {most} were started"
    return None


def subtask_problem(
    status: SubtaskStatus, agent_type: int, wanted: str, waits_for: Mapping[str, SubtaskStatus | None]
) -> str | None:
    """Return why a subtask may not start now, or None; `waits_for` holds the states of its dependencies, None if
    unknown.

    >>> subtask_problem(SubtaskStatus.PENDING, 1, "worker-1", {"subtask-001": SubtaskStatus.RUNNING})
    'it waits for subtask-001'
    """
    if ROLE_OF[agent_type].value != wanted:
        return f"it is for {ROLE_OF[agent_type].value}"
    if status is SubtaskStatus.COMPLETED:
        return "it is completed"
    open_ones = [name for name, state in waits_for.items() if state is not SubtaskStatus.COMPLETED]
    return f"it waits for {', '.join(open_ones)}" if open_ones else None
