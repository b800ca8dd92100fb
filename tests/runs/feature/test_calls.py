"""Calls of a decision: asked side by side, adopted where they ended, and a failure of the machine is told as itself."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairwitness.contracts.common.policy import RetryPolicy
from fairwitness.contracts.common.tools import Role
from fairwitness.contracts.feature.facts import Step
from fairwitness.errors import NotReady
from fairwitness.git.identity import read_identity
from fairwitness.git.worktrees import Worktrees
from fairwitness.rules.feature_events import PlannedCall
from fairwitness.rules.feature_routes import CALLS_OF
from fairwitness.runs.dispatch.model import DispatchDeps
from fairwitness.runs.feature.actions import AgentCall, call_all
from fairwitness.runs.feature.briefs import FeatureBriefs
from fairwitness.runs.feature.call_briefs import brief_of
from fairwitness.runs.feature.decisions import take_decision
from fairwitness.runs.shared.agent_calls import AgentCaller
from fairwitness.runs.shared.read_only_worktrees import ReadOnlyWorktrees
from support.paper.run import Ground, PaperRun
from support.paper.script import Ending, How, Script, error


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground.lay(tmp_path_factory.mktemp("ground"))


@pytest.fixture
def run(ground: Ground, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PaperRun]:
    made = PaperRun(ground, tmp_path / "run", getattr(request, "param", Script()))
    take_decision(made.context, 0)
    yield made
    made.close()


def _asks(run: PaperRun, step: Step = Step.RESEARCH, number: int = 1) -> list[AgentCall]:
    context = run.context
    base = context.order.base_commit
    calls = [PlannedCall(f"{step.value}-1-{name}-{number}", step, 1, name, number) for name in CALLS_OF[step]]
    return [AgentCall(call, brief_of(context, FeatureBriefs(context), call, base), base) for call in calls]


def _dispatched(run: PaperRun) -> list[str]:
    return [
        event.data["dispatch_id"]
        for event in run.context.ledger.events(run.context.run_id)
        if event.type == "dispatch_started"
    ]


@pytest.mark.req("P4", "P16")
def test_calls_that_ended_are_adopted_and_only_the_others_are_made(run: PaperRun) -> None:
    asks = _asks(run)
    asyncio.run(call_all(run.context, run._caller, asks[:2]))
    assert len(_dispatched(run)) == 2
    asyncio.run(call_all(run.context, run._caller, asks))
    assert _dispatched(run) == [ask.call.dispatch_id for ask in asks]
    assert {path for path in run.context.state().artifacts if "/research/" in path} == {
        run.context.layout.research(name) for name in CALLS_OF[Step.RESEARCH]
    }
    head = run.context.ledger.head(run.context.run_id)
    asyncio.run(call_all(run.context, run._caller, asks))
    assert run.context.ledger.head(run.context.run_id) == head


@pytest.mark.req("P12")
@pytest.mark.parametrize(
    "run",
    [Script(calls={"step-1-1-impact-1": error()}), Script(calls={"step-1-1-impact-1": Ending(How.OVER_BUDGET)})],
    indirect=True,
)
def test_a_call_that_brought_nothing_leaves_no_document(run: PaperRun) -> None:
    asyncio.run(call_all(run.context, run._caller, _asks(run)[1:2]))
    assert not [path for path in run.context.state().artifacts if "/research/" in path]
    assert not run.context.ledger.observations(run.context.run_id, "stored")


@pytest.mark.req("P16")
def test_what_the_machine_lacks_is_told_as_itself_and_nothing_is_taken_for_an_answer(
    run: PaperRun, tmp_path: Path
) -> None:
    def no_means(role: Role, instance: str, folder: Path, base: str) -> DispatchDeps:
        raise NotReady(f"there is no agent for {instance}", next_step="install one")

    context = run.context
    worktrees = Worktrees(context.repository, context.shadow, tmp_path / "worktrees", prefix="fairwitness")
    readers = ReadOnlyWorktrees(worktrees, context.run_id, read_identity(context.repository))
    caller = AgentCaller(run._caller.context, no_means, readers, RetryPolicy())
    with pytest.raises(NotReady, match="there is no agent for researcher-"):
        asyncio.run(call_all(context, caller, _asks(run)))
    assert _dispatched(run) == []
    assert not context.ledger.observations(context.run_id, "stored")
