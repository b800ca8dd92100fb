"""The one way out of the sandbox: to the gateway and its model, with a token that is good for one dispatch."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agents.acp.kit import BUILDER, READER, TOKEN, Ground, endpoint
from agents.jobs import GOOD
from fairwitness.agents.base import AgentTurn, Endpoint
from fairwitness.agents.gateway.app import gateway
from fairwitness.agents.gateway.log import Log
from fairwitness.agents.gateway.modes import Grant
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.dispatch import Stop
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.contracts.common.tools import Role
from fairwitness.sandbox.scratch import interpreter
from fairwitness.testing.script_steps import ReadStep, RunStep, SayStep, Script, ScriptStep, SubmitStep, WriteStep
from fairwitness.testing.scripted_model import ScriptMode, marker

pytestmark = pytest.mark.req("X3")


@asynccontextmanager
async def model(*steps: ScriptStep, token: str = TOKEN) -> AsyncIterator[tuple[Endpoint, Log]]:
    """A scripted model behind a socket."""
    app = gateway(
        ScriptMode([Script(name="it", steps=steps)]), lambda given: Grant(token, "d-1") if given == token else None
    )
    with tempfile.TemporaryDirectory() as folder:
        async with serving(app, socket=Path(folder) / "g.sock") as served:
            yield endpoint(served.socket), app.log


def asked(
    ground: Ground, variant: str, *steps: ScriptStep, role: Role = BUILDER, token: str = TOKEN, submit: bool = False
) -> AgentTurn:
    async def whole() -> AgentTurn:
        async with model(*steps, token=token) as (where, _log):
            ours = ground.job(role, endpoint=where)
            try:
                async with ground.backend(variant, submit=submit).open(ours) as session:
                    return await session.ask(f"{marker('it', str(ground.worktree))} go")
            finally:
                await ours.tools.close()

    return asyncio.run(whole())


@pytest.mark.parametrize("variant", ["works", "asks", "acts"])
def test_an_agent_in_the_sandbox_reaches_its_model_and_does_what_it_says(ground: Ground, variant: str) -> None:
    steps = (ReadStep(path="README.md"), WriteStep(path="src/new.py", content="new = 1\n"), SubmitStep(answer=GOOD))
    turn = asked(ground, variant, *steps)
    assert turn.stop is Stop.DONE, turn
    assert '"recommendation": "proceed"' in turn.text
    assert (ground.worktree / "src" / "new.py").read_text() == "new = 1\n"
    assert (turn.usage.tokens_in, turn.usage.tokens_out) == (3000, 150)


def test_an_answer_can_be_handed_in_by_a_tool(ground: Ground) -> None:
    turn = asked(ground, "works", SubmitStep(answer=GOOD), SayStep(text="Done."), role=READER, submit=True)
    assert turn.submitted == GOOD
    assert turn.text == "Done."


def test_another_token_opens_nothing(ground: Ground) -> None:
    turn = asked(ground, "works", SubmitStep(answer=GOOD), token="another-token-than-the-agents")
    assert turn.stop is Stop.FAILED
    assert turn.cause is ErrorCause.PERMISSION_DENIED


def test_there_is_no_other_way_out(ground: Ground) -> None:
    dial = f"{interpreter()} -c \"import socket; socket.create_connection(('127.0.0.1', 22), 2)\""
    asked(ground, "acts", RunStep(command=f"{dial}; echo $? > src/code"), SubmitStep(answer=GOOD))
    assert (ground.worktree / "src" / "code").read_text() == "1\n"


def test_a_command_that_the_client_runs_has_no_way_to_the_model(ground: Ground) -> None:
    async def whole() -> list[str]:
        async with model(RunStep(command="cat src/a.py"), SubmitStep(answer=GOOD)) as (where, _log):
            ours = ground.job(endpoint=where)
            async with ground.backend("works").open(ours) as session:
                await session.ask(f"{marker('it', str(ground.worktree))} go")
            await ours.tools.close()
        return [command.purpose for command in ground.runner.asked if command.confinement.ways]

    assert asyncio.run(whole()) == ["agent scripted as implementer"]
