"""The words of the toolset: what is offered, what a call came to, and what commands may reach beside the worktree."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Limits, Network, Violation

ToolSource = Callable[..., Awaitable[str] | str]
"""Answers a tool that the toolset has no way of its own for; called with the tool's arguments by name."""
GitReader = Callable[[tuple[str, ...]], Awaitable[str] | str]
"""Answers `git …` outside the sandbox, for a command line that was judged before."""

TEXT_LIMIT = 24_000
"""Characters of a result; a model that wants more asks for another part."""
FILE_LIMIT = 2 << 20
"""Bytes of a file that is read, edited or written as a whole."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered to a model."""

    name: str
    description: str
    schema: dict[str, Any]
    """JSON Schema of the arguments, without references."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to."""

    ok: bool
    """Whether the tool did what it was asked for. A command that failed was run: its exit code is the answer."""
    text: str
    """What the model sees: bounded, without the worktree's absolute path, durations of ours, or terminal codes."""


@dataclass(frozen=True, slots=True)
class CommandEnvironment:
    """What commands may reach beside the worktree."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    network: Network = Network.LOOPBACK
    wall_s: float = 120
    limits: Limits | None = None
    """Where both say how long a command may take, the shorter time holds."""
    min_tier: SandboxTier = SandboxTier.UID
    """The weakest way of keeping commands in that will do."""


class ToolFailed(Exception):
    """Why a tool did not do what it was asked for, in a sentence for the model."""

    def __init__(self, why: str, *, violations: tuple[Violation, ...] = ()) -> None:
        super().__init__(why)
        self.violations = violations
        """What a command tried that it may not."""


class ToolCancelled(Exception):
    """The caller is gone; nobody waits for a result any more."""
