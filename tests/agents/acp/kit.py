"""What the tests of external agents stand on: a repository, the real sandbox, and a dispatch of the scripted agent."""

import asyncio
import json
import re
import socket as sockets
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from agents.jobs import GOOD, Kept, job
from fairwitness.agents.backends.acp.backend import AcpBackend
from fairwitness.agents.base import AgentJob, AgentTurn, Endpoint, Session
from fairwitness.app.assembly import backends
from fairwitness.contracts.agents.dispatch import Kind
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Features
from fairwitness.contracts.common.tools import Role, Scope
from fairwitness.sandbox.runner import Finished
from fairwitness.testing.scripted_agent import scripted_profile
from sandbox.kit import living, require

T = TypeVar("T")
TOKEN = "token-good-for-one-dispatch-0123456789"
BUILDER, READER = Role.IMPLEMENTER, Role.REVIEWER
SCOPE = Scope(folder="docs/run", writes=("src/**",))


class Noting:
    """A real runner that remembers what it was asked for."""

    def __init__(self) -> None:
        self._runner = backends.runner(SandboxTier.NAMESPACES)
        self.asked: list[Command] = []

    @property
    def features(self) -> Features:
        return self._runner.features

    @property
    def tier(self) -> SandboxTier:
        return self._runner.tier

    def run(self, command: Command, **more: Any) -> Finished:
        self.asked.append(command)
        return self._runner.run(command, **more)


@dataclass
class Ground:
    """One repository, and everything that a test needs to look at afterwards."""

    folder: Path
    kept: Kept = field(default_factory=Kept)
    mark: str = ""

    def __post_init__(self) -> None:
        require("ns")
        self.runner = Noting()
        self.worktree, self.outside = self.folder / "worktree", self.folder / "outside"
        self.outside.mkdir(parents=True)
        (self.worktree / "src").mkdir(parents=True)
        (self.worktree / "README.md").write_text("# A toy\nsecond line\nthird line\n")
        (self.worktree / "src" / "a.py").write_text("a = 1\n")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "toy")):
            name = ("-c", "user.name=Kit", "-c", "user.email=kit@localhost")
            subprocess.run(("git", *name, *words), cwd=self.worktree, check=True, capture_output=True)
        self.mark = f"mark-of-{self.folder.name}"
        self.before = self.files()

    def files(self) -> dict[str, str]:
        """Everything in the worktree, its repository too."""
        found = sorted(path for path in self.worktree.rglob("*") if path.is_file())
        return {str(path.relative_to(self.worktree)): path.read_text(errors="replace") for path in found}

    def changed(self) -> set[str]:
        """Paths that are not as they were."""
        after = self.files()
        return {path for path in self.before.keys() | after.keys() if self.before.get(path) != after.get(path)}

    def job(self, role: Role = BUILDER, **more: Any) -> AgentJob:
        """A job in the real sandbox."""
        return job(
            self.worktree, role=role, runner=self.runner, kept=self.kept, **{"wall_s": 60, "scope": SCOPE, **more}
        )

    @property
    def home(self) -> Path:
        """The agent's own, if it was started."""
        return Path(self.runner.asked[0].confinement.env["HOME"])

    def backend(self, variant: str, *, env: dict[str, str] | None = None, **changes: Any) -> AcpBackend:
        """The scripted agent."""
        variables = {
            "SCRIPTED_MARK": self.mark,
            "SCRIPTED_OUTSIDE": str(self.outside),
            "SCRIPTED_ANSWER": json.dumps(GOOD),
            **(env or {}),
        }
        return AcpBackend(scripted_profile(variant, env=variables, **changes))

    def ask(self, backend: AcpBackend, ours: AgentJob | None = None, *, times: int = 1) -> AgentTurn:
        """The last of so many turns of one session."""

        async def talk(session: Session) -> AgentTurn:
            turn = await session.ask("Do it.")
            for _ in range(times - 1):
                turn = await session.ask("Do it again.")
            return turn

        return self.within(backend, talk, ours)

    def within(self, backend: AcpBackend, talk: Callable[[Session], Awaitable[T]], ours: AgentJob | None = None) -> T:
        """What comes of a talk in a session, which is left afterwards."""
        chosen = ours or self.job()

        async def whole() -> T:
            try:
                async with backend.open(chosen) as session:
                    return await talk(session)
            finally:
                await chosen.tools.close()

        return asyncio.run(whole())

    def orphans(self) -> list[int]:
        """What is left of everything the agent started."""
        return living(self.mark)

    def notes(self) -> str:
        """Everything that was noted."""
        return "\n".join(self.kept.texts(Kind.NOTE))


def report(turn: AgentTurn) -> dict[str, Any]:
    """What the agent says it did."""
    found = re.search(r"Report:\n```json\n(.+)\n```", turn.text)
    assert found is not None, turn
    value = json.loads(found.group(1))
    assert isinstance(value, dict)
    return value


def endpoint(socket: Path | None) -> Endpoint:
    """Where the model is, for the agent."""
    return Endpoint(dialect=ApiDialect.OPENAI_CHAT, token=TOKEN, model="model-1", socket=socket)


def unanswered(folder: Path) -> Endpoint:
    """A model that nobody answers for, which is enough for an agent that does not ask it."""
    path = folder / "g.sock"
    with sockets.socket(sockets.AF_UNIX) as made:
        made.bind(str(path))
    return endpoint(path)
