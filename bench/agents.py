"""What a turn of a model costs us beside the bare HTTP that it takes, and how much each role says before it begins."""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2

from bench.measure import medians, report
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.backends.cassette import CassetteBackend
from fairwitness.agents.base import AgentJob, AnswerForm, Backend, Endpoint
from fairwitness.agents.gateway.app import gateway
from fairwitness.agents.gateway.modes import Grant
from fairwitness.agents.gateway.server import serving
from fairwitness.agents.prompt_text import estimate_tokens, render
from fairwitness.agents.recorder import recorded_backend
from fairwitness.agents.roles import ROLES
from fairwitness.agents.schema_text import form_of
from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Stop
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.testing.script_steps import ForceStep, SayStep, Script
from fairwitness.testing.scripted_model import ScriptMode, marker

TURNS = 41
BARE = "bare HTTP loop"
TOKEN = "bench-token-of-one-dispatch"
PROMPT = f"Look around. {marker('look')}"
SCRIPT = Script(name="look", steps=(*[ForceStep(tool="list_dir", args={})] * (TURNS - 1), SayStep(text="done")))
SCOPE = Scope(folder="docs/feature/x", writes=("src/**",))


def run() -> bool:
    """Prints the ratios of a turn, and the size of each role's first request."""
    with tempfile.TemporaryDirectory(prefix="fairwitness-bench-") as folder:
        worktree = Path(folder) / "worktree"
        (worktree / "src").mkdir(parents=True)
        (worktree / "README.md").write_text("# A project\n")
        server = subprocess.Popen([sys.executable, "-m", "bench.agents"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            met = _turns(Path(folder) / "tapes", worktree, server.stdout.readline().strip())
        finally:
            server.kill()
            server.wait()
        asyncio.run(_first_requests(worktree))
    return met


def _turns(tapes: Path, worktree: Path, url: str) -> bool:
    _ask(recorded_backend(ApiBackend(), tapes), _job(worktree, url))
    (tape,) = tapes.iterdir()
    candidates: dict[str, Callable[[], object]] = {
        BARE: lambda: _bare(url),
        "api": lambda: _ask(ApiBackend(), _job(worktree, url)),
        "cassette": lambda: _ask(CassetteBackend(tape), _job(worktree, url)),
    }
    began = time.process_time()
    measured = {name: seconds / TURNS for name, seconds in medians(candidates, rounds=7).items()}
    print(f"\n{time.process_time() - began:.1f} s of CPU here, the server's not counted")
    met = report(f"one turn of {TURNS}", measured, BARE, {"api": 12.0, "cassette": 1.0})
    for name, seconds in measured.items():
        print(f"  {seconds * 1000:6.2f} ms {name}")
    return met


def _bare(url: str) -> None:
    """The same conversation, with nothing but what the wire needs."""

    async def talk() -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
        tools = [{"type": "function", "function": {"name": "list_dir", "parameters": {"type": "object"}}}]
        headers = {"authorization": f"Bearer {TOKEN}"}
        said: dict[str, Any] = {}
        async with httpx2.AsyncClient(headers=headers, trust_env=False) as client:
            for _ in range(TURNS):
                body = {"model": "m", "messages": messages, "tools": tools}
                said = (await client.post(f"{url}/v1/chat/completions", json=body)).json()["choices"][0]["message"]
                messages.append(said)
                for call in said.get("tool_calls") or ():
                    messages.append({"role": "tool", "tool_call_id": call["id"], "content": "README.md\nsrc/"})
            assert said["content"] == "done", said

    asyncio.run(talk())


def _ask(backend: Backend, job: AgentJob) -> None:
    async def talk() -> None:
        async with backend.open(job) as session:
            turn = await session.ask(PROMPT)
        assert (turn.stop, turn.text, turn.usage.turns) == (Stop.DONE, "done", TURNS), turn

    asyncio.run(talk())


def _job(worktree: Path, url: str, role: Role = Role.IMPLEMENTER, parameters: dict[str, str] | None = None) -> AgentJob:
    spec = ROLES[role]
    brief = Brief(
        dispatch_id="bench",
        run_id="2026-02-26T14:30:00Z",
        role=role,
        instance=spec.instances[0] if spec.instances else role.value,
        task="Look around.",
        parameters=parameters or {},
        scope=SCOPE,
    )
    runner = backends.runner()
    return AgentJob(
        spec=spec,
        brief=brief,
        prompt=PROMPT,
        form=AnswerForm(str(spec.answer), {"type": "object"}),
        worktree=worktree,
        limits=DispatchLimits(wall_s=60, turns=TURNS + 1),
        tools=Toolbox(role=role, scope=SCOPE, worktree=worktree, runner=runner),
        runner=runner,
        endpoint=Endpoint(dialect=ApiDialect.OPENAI_CHAT, token=TOKEN, model="gpt-5.5", url=url),
        on_happening=lambda _: None,
        began=time.monotonic(),
    )


async def _first_requests(worktree: Path) -> None:
    """Prompt, tools and the schema of the answer, as they go over the wire; the inputs of a task come on top."""
    print("\nthe first request of each role, without inputs")
    app = _app()
    async with serving(app, tcp=True) as served:
        for role, spec in ROLES.items():
            if spec.answer is None:
                continue
            parameters = {name: _value(role, name) for name in spec.parameters}
            job = _job(worktree, str(served.url), role, parameters)
            words = render(spec, job.brief, tools=[tool.name for tool in job.tools.offered()])
            async with ApiBackend().open(replace(job, form=form_of(spec.answer, ()))) as session:
                await session.ask(f"{words}\n{marker('look')}")
            # a role without list_dir is refused it, and asks on: only its first request counts here
            size = next(one.size for one in reversed(app.log.requests) if one.step == 0)
            print(
                f"  {size:6d} bytes, {len(words.encode()):6d} of them prompt ({estimate_tokens(words)} tokens)  {role}"
            )


def _value(role: Role, parameter: str) -> str:
    instance = ROLES[role].instances[0] if ROLES[role].instances else ""
    return {"focus": instance.removeprefix("researcher-"), "perspective": instance}.get(parameter, "x")


def _app() -> Any:
    return gateway(ScriptMode([SCRIPT]), lambda token: Grant(token, "bench") if token == TOKEN else None)


async def _serve() -> None:
    async with serving(_app(), tcp=True) as served:
        print(served.url, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_serve())
