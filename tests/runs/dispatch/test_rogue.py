"""A real agent process that does as it likes, in the real sandbox: what the walls let through, the audit catches."""

import asyncio
import json
from typing import Any

import pytest

from fairwitness.agents.backends.acp.backend import AcpBackend
from fairwitness.agents.roles import ROLES
from fairwitness.app.assembly.backends import runner
from fairwitness.contracts.agents.dispatch import Layer, OutcomeStatus, UsageSource
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.tools import Role
from fairwitness.runs.dispatch import DispatchDeps, Dispatched, DispatchPosition, dispatch
from fairwitness.runs.dispatch.events import NoEvents
from fairwitness.testing.scripted_agent import scripted_profile
from runs.dispatch.world import INTAKE, REPORT, NoModels, World, brief
from sandbox.kit import require

pytestmark = pytest.mark.req("X3")


def played(world: World, variant: str, role: Role, answer: dict[str, Any], **env: str) -> Dispatched:
    """A dispatch of the scripted agent."""
    require("ns")
    backend = AcpBackend(scripted_profile(variant, env={"SCRIPTED_ANSWER": json.dumps(answer), **env}))
    deps = DispatchDeps(
        backend=backend,
        probe=backend.probe(),
        models=NoModels(),
        runner=runner(SandboxTier.NAMESPACES),
        worktree=world.folder,
        base_tree=world.base_tree,
    )
    spec = ROLES[role].model_copy(update={"timeout_s": 60.0})
    return asyncio.run(
        dispatch(world.context(recorder=NoEvents()), spec, brief(role), DispatchPosition("step-5"), deps)
    )


def test_a_builder_that_writes_within_its_scope_by_itself_is_fine(world: World) -> None:
    done = played(world, "unasked", Role.IMPLEMENTER, REPORT, SCRIPTED_WRITE="src/new.py")
    assert done.outcome.status is OutcomeStatus.OK, done.outcome
    assert [(each.path, each.allowed) for each in done.changed] == [("src/new.py", True)]
    assert done.outcome.usage.source is UsageSource.AGENT


def test_a_builder_that_leaves_its_scope_is_void_though_its_answer_was_good(world: World) -> None:
    done = played(world, "unasked", Role.IMPLEMENTER, REPORT, SCRIPTED_WRITE="ci.yml")
    assert (done.outcome.status, done.outcome.cause) == (OutcomeStatus.REFUSED, ErrorCause.OUT_OF_SCOPE)
    assert [(each.layer, each.target) for each in done.outcome.denials if each.layer is Layer.AUDIT] == [
        (Layer.AUDIT, "ci.yml")
    ]
    assert (world.folder / "ci.yml").exists()


def test_a_reader_that_writes_unasked_changes_nothing(world: World) -> None:
    before = (world.folder / "src/shop.py").read_bytes()
    done = played(world, "unasked", Role.INTAKE, INTAKE, SCRIPTED_WRITE="src/shop.py")
    assert (world.folder / "src/shop.py").read_bytes() == before
    assert (done.outcome.status, done.changed) == (OutcomeStatus.OK, ())


@pytest.mark.parametrize(("role", "answer"), [(Role.INTAKE, INTAKE), (Role.IMPLEMENTER, REPORT)])
def test_an_agent_that_goes_round_us_in_every_way_never_ends_well_with_a_foreign_change(
    world: World, role: Role, answer: dict[str, Any]
) -> None:
    pointer = (world.folder / ".git").read_bytes()
    done = played(world, "rogue", role, answer)
    assert (world.folder / ".git").read_bytes() == pointer
    foreign = [each.path for each in done.changed if not each.allowed]
    assert bool(foreign) is (done.outcome.status is OutcomeStatus.REFUSED)
    if role is Role.INTAKE:
        assert done.changed == ()
