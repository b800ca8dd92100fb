"""A command that is not ours: what it may reach, how much it may use, and what came of it.

Paths are absolute texts of this machine, unless a field says otherwise. Nothing here defaults to the passing side:
a result without an exit code is never a pass, and a tier below the wanted one says so.
"""

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, Strict, model_validator

from fairwitness.contracts.common.base import Contract, Count, Flag, Integer, Maybe, Positive, Text, Texts, Timestamp
from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.ids import Sha256
from fairwitness.contracts.common.problems import FieldRefusal, refuse_if_any
from fairwitness.contracts.common.vocabulary import Assessment

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]

TIERS = (SandboxTier.NAMESPACES, SandboxTier.LANDLOCK, SandboxTier.UID, SandboxTier.NONE)
"""Strongest first."""


class Network(StrEnum):
    """What a command may talk to."""

    OFF = "off"
    LOOPBACK = "loopback"
    """Itself, where the tier has a network of its own; nothing where it has none."""
    OPEN = "open"
    """Everything: only for preparing dependencies, and for a check that a person declared to need it."""


class SandboxLimits(Contract):
    """How much one command and everything it starts may use."""

    wall_s: Seconds = 60
    cpu_s: Positive = 120
    """Per process, as the kernel counts."""
    processes: Positive = 256
    memory: Positive = 2 << 30
    """Of the whole tree, in bytes."""
    memory_process: Positive = 2 << 30
    file_size: Positive = 256 << 20
    disk: Positive = 1 << 30
    """Bytes by which the places it may write to may grow."""
    files: Positive = 500_000
    """Files that it may make there, empty ones included."""
    temporary: Positive = 512 << 20
    open_files: Positive = 1024
    output_kept: Positive = 1 << 20
    """Bytes of each stream that are kept, half from its head and half from its tail."""
    output_killed: Positive = 64 << 20
    """Bytes of one stream at which the command is stopped."""


Port = Annotated[int, Strict(), Field(ge=1024, le=65_535)]


class Way(Contract):
    """A port on the command's own loopback that leads to a unix socket of this machine: the only way out."""

    port: Port
    """On 127.0.0.1, as the command sees it."""
    socket: Text


class Confinement(Contract):
    """What a command may see and change."""

    worktree: Text
    writable: Flag
    """Whether the worktree may be changed; its `.git` never may."""
    read: Texts = ()
    """Folders and files it may read and run beside the system's own."""
    write: Texts = ()
    """Folders beside the worktree that it may change."""
    guards: Texts = ()
    """Files and small folders, wherever they are, that must be after it as they were before: content, mode, owner,
    time and attributes. What is not there must not appear. Looked at in every tier, whatever the walls hold."""
    hidden: Texts = ()
    """Paths relative to the worktree that it does not see, where they are: something empty stands there instead, which
    it cannot change or move. Only for a command with a view of its own, which the `ns` tier has: elsewhere it is not
    run."""
    network: Network = Network.LOOPBACK
    ways: tuple[Way, ...] = ()
    """Only for a command with a network of its own, which the `ns` tier has: elsewhere it is not run."""
    env: dict[str, str]
    """Complete: nothing is inherited."""
    min_tier: SandboxTier = SandboxTier.UID
    """The weakest tier that will do; `none` runs unconfined, and what it says opens no gate."""


class Command(Contract):
    """One command, to be run once."""

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """`argv[0]` is an absolute path, so that nothing in the worktree can stand in for it."""
    cwd: str = "."
    """Relative to the worktree."""
    confinement: Confinement
    limits: SandboxLimits = SandboxLimits()
    purpose: Text
    observe: Flag = True


class Warned(Contract):
    """Something about the isolation that is less than it could be."""

    code: Text
    text: Text


class Features(Contract):
    """What the kernel and the machine offer, asked once per process."""

    tier: SandboxTier
    """The strongest there is."""
    tiers: tuple[SandboxTier, ...]
    """All that work here, strongest first; `none` is always last."""
    landlock_abi: Count
    userns: Flag
    seccomp: Flag
    notify: Flag
    cgroup: Flag
    warnings: tuple[Warned, ...] = ()


class End(StrEnum):
    """How a command came to its end."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    LIMIT = "limit"
    VIOLATION = "violation"
    SANDBOX_ERROR = "sandbox_error"
    CANCELLED = "cancelled"


ASSESSED: dict[End, Assessment] = {
    End.OK: Assessment.PASS,
    End.FAILED: Assessment.FAIL,
    End.TIMEOUT: Assessment.TIMEOUT,
    # a tree that had to be stopped for its size has no result, just like one that ran too long
    End.LIMIT: Assessment.TIMEOUT,
    End.VIOLATION: Assessment.VIOLATION,
    End.SANDBOX_ERROR: Assessment.LOST,
    End.CANCELLED: Assessment.LOST,
}


class Violation(Contract):
    """Something a command tried that it may not."""

    kind: Text
    """`write`, `git-dir`, `network`, `guard`, `limit`, …"""
    call: Text
    path: Text
    count: Positive = 1
    blocked: Flag
    source: Literal["observer", "errno", "guard", "limit"]


class OutputStream(Contract):
    """What came out of one stream; the kept bytes travel beside the result.

    A stream that was attached to the caller is not read here: it says 0 bytes and the hash of nothing.
    """

    total: Count
    sha256: Sha256
    """Of everything that was read, kept or not."""
    truncated: Flag


class Confined(Contract):
    """What came of one command."""

    argv: tuple[str, ...]
    exe: Text | None
    """The file that was run, with links resolved."""
    exe_sha256: Sha256 | None
    cwd: str
    env_keys: tuple[str, ...]
    env_sha256: Sha256
    policy_sha256: Sha256
    limits: SandboxLimits
    purpose: Text
    tier: SandboxTier
    tier_wanted: SandboxTier
    """The strongest tier this machine could have had if nothing were missing: `ns`."""
    degraded: Flag
    warnings: tuple[Warned, ...]
    end: End
    exit_code: Integer | None
    signal: Positive | None
    limit_hit: Maybe[Literal["wall", "cpu", "processes", "memory", "disk", "output"]] = None
    started_at: Timestamp
    wall_ms: Count
    setup_ms: Count
    cpu_ms: Count
    peak_memory: Count
    peak_processes: Count
    stdout: OutputStream
    stderr: OutputStream
    violations: tuple[Violation, ...]
    observation: Literal["full", "none"]
    """Whether every write outside was watched, or only stopped."""
    dotgit_ok: Flag
    """Whether the worktree holds the repositories it held before, untouched, and no other one."""
    guards_ok: Flag
    """Whether every guarded path is as it was; a command without guards has none that changed."""
    survivors_killed: Count | None
    """Processes that were left when the command ended; None where the kernel ends them all unseen."""
    sandbox_error: Maybe[Text] = None

    @property
    def assessment(self) -> Assessment:
        return ASSESSED[self.end]

    @model_validator(mode="after")
    def _end_follows(self) -> Self:
        refusals = []
        if self.end is End.OK and self.exit_code != 0:
            refusals.append(FieldRefusal(("exit_code",), "0, since the end is ok", self.exit_code))
        if self.end is End.SANDBOX_ERROR and self.sandbox_error is None:
            refusals.append(FieldRefusal(("sandbox_error",), "why the sandbox was lost", None))
        refuse_if_any("Confined", refusals)
        return self
