"""The interface of backends: a backend opens a session for a job; it never decides whether the job succeeded.

The driver (`agents.driver`) owns the wall clock, the validation, the one retry and the outcome. A backend turns a
prompt into text, tool calls and usage, reports what happens, and leaves nothing running when its session is closed.
"""

import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fairwitness.agents.toolset.toolbox import Toolbox
from fairwitness.contracts.agents.dispatch import Brief, DispatchLimits, Happening, Kind, Probe, Stop, Usage
from fairwitness.contracts.agents.model import ApiDialect
from fairwitness.contracts.agents.role import RoleSpec
from fairwitness.contracts.common.base import Contract
from fairwitness.contracts.common.decisions import ErrorCause
from fairwitness.rules.provider_faults import ModelTrouble
from fairwitness.sandbox.runner import Runner

OnHappening = Callable[[Happening], None]
AnswerCheck = Callable[[Contract], tuple[str, ...]]
"""Returns what is wrong with an answer that has the shape of its contract, such as a command that cannot be run."""
AwaitedCheck = Callable[[Contract], Awaitable[tuple[str, ...]]]
"""An `AnswerCheck` that does not block the event loop."""


def no_objection(_answer: Contract) -> tuple[str, ...]:
    """Object to nothing."""
    return ()


async def no_awaited_objection(_answer: Contract) -> tuple[str, ...]:
    """Object to nothing."""
    return ()


def no_wait() -> float:
    """Return 0: nothing waits for a provider."""
    return 0.0


def no_trouble() -> ModelTrouble | None:
    """Return None: no call of a model failed."""
    return None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is: always our gateway. The token is valid for this dispatch only."""

    dialect: ApiDialect
    token: str = field(repr=False)
    model: str
    url: str | None = None
    """On the loopback interface, for backends that run in our own process."""
    socket: Path | None = None
    """A Unix socket: the only way out of the sandbox of an external agent."""


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """The form of an answer: the name of its contract, and the JSON Schema of the fields that the agent writes."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentJob:
    """Everything that a backend needs for one dispatch."""

    spec: RoleSpec
    brief: Brief
    prompt: str
    """The rendered prompt: text of the role, task, fenced inputs, schema, self-check."""
    form: AnswerForm
    worktree: Path
    limits: DispatchLimits
    tools: Toolbox
    runner: Runner
    """Runs commands in the sandbox; for an external agent, also the agent itself."""
    endpoint: Endpoint | None
    """None only if no model is called."""
    on_happening: OnHappening
    began: float
    """`time.monotonic()` when the dispatch began."""
    check: AwaitedCheck = no_awaited_objection
    waited: Callable[[], float] = no_wait
    """Returns the seconds that the dispatch has waited for its provider; they do not count as its time."""
    trouble: Callable[[], ModelTrouble | None] = no_trouble
    """Returns the fault of its last call of a model; None if that was answered."""

    def report(self, kind: Kind, text: str = "", **more: Any) -> None:
        """Report an event with its time since the dispatch began."""
        self.on_happening(
            Happening(kind=kind, ms=max(0, int((time.monotonic() - self.began) * 1000)), text=text, **more)
        )


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """The result of one prompt, including the tool calls that the agent made."""

    text: str
    """The last message of the agent; it holds the answer unless one was submitted."""
    stop: Stop
    usage: Usage
    """Usage of the whole session so far."""
    submitted: dict[str, Any] | None = None
    """An answer that the agent submitted by calling a tool."""
    cause: ErrorCause | None = None
    """The cause of a failure, if the turn failed."""
    error: str = ""
    model: str | None = None


class Session(Protocol):
    """A conversation with an agent."""

    async def ask(self, prompt: str) -> AgentTurn:
        """Send a prompt and return the finished turn; a failure of the model or the agent is a turn that says so."""
        ...

    async def cancel(self) -> None:
        """Ask the agent to stop, wait briefly, then kill it with everything it started. May be called at any time."""
        ...


class Backend(Protocol):
    """A way to run an agent."""

    @property
    def name(self) -> str:
        """The name by which people choose it: `cassette`, `claude`, `api`."""
        ...

    def probe(self) -> Probe:
        """Return whether the agent is installed, its version, and what is missing, without calling a model."""
        ...

    def open(self, job: AgentJob) -> AbstractAsyncContextManager[Session]:
        """Open a session for one job; leaving it ends everything that it started, whatever happened inside.

        Raises `NotReady` or `UsageError` if it cannot be opened.
        """
        ...
