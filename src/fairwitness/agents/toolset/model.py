"""The types of the toolset: offered tools, results, and the environment of commands."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Network, SandboxLimits, Violation

ToolSource = Callable[..., Awaitable[str] | str]
"""Answers a tool that the toolset does not implement; called with the tool's arguments by name."""
GitReader = Callable[[tuple[str, ...]], Awaitable[str] | str]
"""Answers `git …` outside the sandbox, for a command that the policy allowed."""

TEXT_LIMIT = 24_000
"""Characters of a result; a model can ask for another part."""
FILE_LIMIT = 2 << 20
"""Bytes of a file that is read, edited or written as a whole."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that is offered to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments, without references."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a call."""

    ok: bool
    """Whether the tool did its work. A command that ran and failed is True: its exit code is the result."""
    text: str
    """The text for the model: bounded, without the worktree's absolute path, our durations, or terminal codes."""


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """What commands may access beside the worktree, and their limits."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    network: Network = Network.LOOPBACK
    wall_s: float = 120
    limits: SandboxLimits | None = None
    """The shorter of its time and `wall_s` applies."""
    min_tier: SandboxTier = SandboxTier.UID
    """The weakest sandbox that is acceptable."""


NO_SURROUNDINGS = CommandEnvironment()
Surroundings = Callable[[], CommandEnvironment]
"""Returns the environment of commands when the first one is run: preparing it may take a while."""


class ToolFailed(Exception):
    """A tool failed; the message is a sentence for the model."""

    def __init__(self, why: str, *, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(why)
        self.violations = violations
        """Accesses of the command that the sandbox found."""


class ToolCancelled(Exception):
    """The call was cancelled; nothing waits for its result."""
