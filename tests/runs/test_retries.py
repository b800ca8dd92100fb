"""The same failure of an agent is repeated equally often in all three workflows, as the run's retry policy says."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from fairwitness.contracts.agents.dispatch import Stop
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.git.identity import FALLBACK
from fairwitness.git.repository import Repository
from fairwitness.git.worktrees import Worktrees
from fairwitness.runs.dispatch import DispatchDeps, DispatchPosition
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from runs.autopilot.site import Site, plan
from runs.dispatch.world import RUN, Scripted, World, brief
from runs.forge.workshop import Workshop

NODE = "task-002"
TASK = "task-5-01"
RETRIED = frozenset(
    {
        ErrorCause.AGENT_ERROR,
        ErrorCause.TIMEOUT,
        ErrorCause.NETWORK,
        ErrorCause.TOOL_UNAVAILABLE,
        ErrorCause.RATE_LIMITED,
        ErrorCause.SERVER_ERROR,
        ErrorCause.DATABASE_BUSY,
        ErrorCause.SANDBOX_LOST,
        ErrorCause.SCHEMA_VIOLATION,
    }
)
PROBLEM = "the line is down"
TOLD = "Why the call before this one failed"


def _prompts_in_feature(root: Path, agent: Scripted, retry: RetryPolicy) -> None:
    world = World.make(root)
    repository = Repository.open(world.person.folder)

    def deps(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
        return world.deps(agent)

    worktrees = Worktrees(repository, world.shadow, root / "readers")
    caller = AgentCaller(world.context(), deps, ReadOnlyWorktrees(worktrees, RUN, FALLBACK), retry)
    position = DispatchPosition("step-5", task="task-01", attempt=1)
    asyncio.run(caller.ask_in(brief(), position, world.folder, repository.commit("HEAD")))
    world.ledger.close()


def _prompts_in_forge(root: Path, agent: Scripted, retry: RetryPolicy) -> None:
    shop = Workshop.make(root, retry=retry)
    shop.others[f"{NODE}-1"] = agent
    assert not shop.work(NODE).done
    shop.ledger.close()


def _prompts_in_autopilot(root: Path, agent: Scripted, retry: RetryPolicy) -> None:
    site = Site.make(root, retry=retry)
    asked = site.briefs.executor(TASK, 1, plan().tasks[0], (), ())
    site.others[asked.instance] = agent
    position = DispatchPosition("execute", phase="5", task=TASK, attempt=1)
    asyncio.run(site.agent_caller.ask_in(asked, position, site.folder(TASK), site.base))
    site.ledger.close()


WORKFLOWS: dict[str, Callable[[Path, Scripted, RetryPolicy], None]] = {
    "feature": _prompts_in_feature,
    "forge": _prompts_in_forge,
    "autopilot": _prompts_in_autopilot,
}


@pytest.mark.req("P12")
@pytest.mark.parametrize("cause", ErrorCause)
def test_the_same_cause_is_retried_alike_in_every_workflow(tmp_path: Path, own_home: None, cause: ErrorCause) -> None:
    for workflow, prompts_in in WORKFLOWS.items():
        agent = Scripted("", stop=Stop.FAILED, cause=cause, error=PROBLEM)
        prompts_in(tmp_path / workflow, agent, RetryPolicy())
        assert len(agent.asked) == (2 if cause in RETRIED else 1), workflow


@pytest.mark.req("P12")
@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_a_retry_is_told_why_the_try_before_failed_and_the_policy_limits_them(
    tmp_path: Path, own_home: None, workflow: str
) -> None:
    agent = Scripted("", stop=Stop.FAILED, cause=ErrorCause.NETWORK, error=PROBLEM)
    WORKFLOWS[workflow](tmp_path, agent, RetryPolicy(dispatch=3))
    assert [(TOLD in prompt, PROBLEM in prompt) for prompt in agent.asked] == [(False, False), *[(True, True)] * 3]
    never = Scripted("", stop=Stop.FAILED, cause=ErrorCause.NETWORK)
    WORKFLOWS[workflow](tmp_path / "never", never, RetryPolicy(dispatch=0))
    assert len(never.asked) == 1


@pytest.mark.req("P12", "P9")
@pytest.mark.parametrize(
    ("workflow", "path"),
    [("feature", "agent_output"), ("forge", "walkthrough"), ("autopilot", "tasks_completed")],
)
def test_after_an_invalid_answer_the_next_dispatch_names_each_violation_at_its_path(
    tmp_path: Path, own_home: None, workflow: str, path: str
) -> None:
    agent = Scripted('```json\n{"mood": "hopeful", "evidence": [{}, {}, {}]}\n```\n')
    WORKFLOWS[workflow](tmp_path, agent, RetryPolicy(dispatch=1))
    first, repair, second, _ = agent.asked
    violations = [line.removeprefix("- ") for line in repair.splitlines() if line.startswith("- ")]
    assert any(line.startswith(f"{path}:") for line in violations), repair
    assert TOLD not in first
    told = second.split(TOLD)[1]
    assert [line for line in violations if line not in told] == []
