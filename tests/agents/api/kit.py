"""What the tests of models stand on: the scripted gateway on loopback, and a project to work in."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agents.jobs import Kept, job
from fairwitness.agents.backends.api import ApiBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Endpoint
from fairwitness.agents.gateway.app import Gateway, gateway
from fairwitness.agents.gateway.log import Log
from fairwitness.agents.gateway.modes import Grant, Mode
from fairwitness.agents.gateway.server import serving
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.testing.script_steps import Script, ScriptStep
from fairwitness.testing.scripted_model import ScriptMode, marker

TOKEN = "test-token-good-for-one-dispatch"
MODELS = {
    ApiDialect.ANTHROPIC: "claude-opus-5",
    ApiDialect.OPENAI_CHAT: "gpt-5.5",
    ApiDialect.OPENAI_RESPONSES: "gpt-5.5",
    ApiDialect.GEMINI: "gemini-3-pro-preview",
}
DIALECTS = tuple(ApiDialect)
SCRIPT = "it"
PROMPT = f"Do what the script says. {marker(SCRIPT)}"
SCOPE = Scope(folder="docs/feature/x", writes=("src/**", "notes.md"))


@dataclass(frozen=True)
class Model:
    """A scripted model that can be reached."""

    url: str
    app: Gateway

    @property
    def log(self) -> Log:
        return self.app.log

    def endpoint(self, dialect: ApiDialect, token: str = TOKEN) -> Endpoint:
        return Endpoint(dialect=dialect, token=token, model=MODELS[dialect], url=self.url)


def granted(token: str) -> Grant | None:
    """Only one token is good."""
    return Grant(TOKEN, "d-1") if token == TOKEN else None


@asynccontextmanager
async def behind_gateway(mode: Mode) -> AsyncIterator[Model]:
    """A mode of the gateway, on loopback."""
    app = gateway(mode, granted)
    async with serving(app, tcp=True) as served:
        assert served.url is not None
        yield Model(served.url, app)


@asynccontextmanager
async def scripted(*steps: ScriptStep) -> AsyncIterator[Model]:
    """A model that does these steps."""
    async with behind_gateway(script_mode(steps)) as model:
        yield model


def script_mode(steps: Sequence[ScriptStep]) -> ScriptMode:
    """The mode that plays one script."""
    return ScriptMode([Script(name=SCRIPT, steps=tuple(steps))])


def project(folder: Path) -> Path:
    """A worktree with two files."""
    worktree = folder / "project"
    (worktree / "src").mkdir(parents=True)
    (worktree / "src" / "add.py").write_text("def add(a, b):\n    return a - b\n")
    (worktree / "notes.md").write_text("# Notes\n")
    (worktree / ".git").mkdir()
    (worktree / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    return worktree


def tree(worktree: Path) -> dict[str, str]:
    """Every file and its text."""
    files = (path for path in sorted(worktree.rglob("*")) if path.is_file())
    return {str(path.relative_to(worktree)): path.read_text() for path in files}


def job_in(
    worktree: Path,
    *,
    role: Role = Role.IMPLEMENTER,
    prompt: str = PROMPT,
    kept: Kept | None = None,
    tokens: int | None = None,
    **more: Any,
) -> AgentJob:
    """A job for the scripted model."""
    made = job(worktree, role=role, prompt=prompt, scope=SCOPE, kept=kept, **more)
    return replace(made, limits=made.limits.model_copy(update={"tokens": tokens}))


async def asked(job: AgentJob, *prompts: str, backend: ApiBackend | None = None) -> list[AgentTurn]:
    """A session of some prompts."""
    async with (backend or ApiBackend()).open(job) as session:
        return [await session.ask(prompt) for prompt in prompts or (PROMPT,)]


def play(
    tmp_path: Path, dialect: ApiDialect, *steps: ScriptStep, kept: Kept | None = None, **more: Any
) -> tuple[AgentTurn, AgentJob]:
    """One ask of a model that does these steps."""

    async def run() -> tuple[AgentTurn, AgentJob]:
        async with scripted(*steps) as model:
            job = job_in(project(tmp_path), endpoint=model.endpoint(dialect), kept=kept, **more)
            return (await asked(job))[0], job

    return asyncio.run(run())
