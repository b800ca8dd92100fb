"""The promise of every backend: a job in, a session that answers; it never decides whether the job succeeded.

The driver (`agents.driver`) owns the wall clock, the validation, the one retry and the outcome. A backend turns a
prompt into words, tool calls and usage, tells what happened, and leaves nothing running when its session is closed.
"""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Happening, Kind, Probe, Stop, Usage
from fairwitness.contracts.agents.model import Dialect
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.sandbox.runner import Runner

OnHappening = Callable[[Happening], None]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is: our gateway, always; the token is good for this dispatch and for nothing else."""

    dialect: Dialect
    token: str = field(repr=False)
    model: str
    url: str | None = None
    """On this machine's loopback, for what runs in our own process."""
    socket: Path | None = None
    """A unix socket, the only way out of the sandbox of an external agent."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """What the answer must look like: the contract's name, and the JSON Schema of what the agent itself writes."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentJob:
    """Everything a backend needs for one dispatch."""

    spec: RoleSpec
    brief: Brief
    prompt: str
    """The whole of it, rendered: words of the role, task, boxed inputs, schema, self-check, anchor."""
    form: AnswerForm
    worktree: Path
    limits: DispatchLimits
    tools: Toolbox
    runner: Runner
    """Keeps commands in; for an external agent, the agent itself."""
    endpoint: Endpoint | None
    """None only where no model is asked."""
    tell: OnHappening
    began: float
    """`time.monotonic()` when the dispatch began."""

    def happened(self, kind: Kind, text: str = "", **more: Any) -> None:
        """Tells of something, with its time."""
        self.tell(Happening(kind=kind, ms=max(0, int((time.monotonic() - self.began) * 1000)), text=text, **more))


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """What came of one prompt, the agent's own tool calls included."""

    text: str
    """The agent's last message; the answer is looked for in here."""
    stop: Stop
    usage: Usage
    """Of the whole session so far."""
    submitted: dict[str, Any] | None = None
    """An answer that was handed in by a tool."""
    cause: ErrorCause | None = None
    """Why it failed, if it did."""
    error: str = ""
    model: str | None = None


class Session(Protocol):
    """One conversation."""

    async def ask(self, prompt: str) -> AgentTurn:
        """One prompt, to the agent's last word; failures of the model or the agent are a turn that says so."""
        ...

    async def cancel(self) -> None:
        """Asks politely, waits briefly, then kills; whatever it had started is gone afterwards. At any time."""
        ...


class Backend(Protocol):
    """A way to reach an agent."""

    @property
    def name(self) -> str:
        """As people choose it: `cassette`, `claude`, `api`."""
        ...

    def probe(self) -> Probe:
        """Whether it is there, which version, and what is missing; starts nothing that talks to a model."""
        ...

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """A session for one job; leaving it reaps everything, whatever happened inside.

        `NotReady` or `UsageError` if it cannot be opened at all.
        """
        ...
