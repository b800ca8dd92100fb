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
"""The isolation tiers, strongest first."""


class Network(StrEnum):
    """The network access of a command."""

    OFF = "off"
    LOOPBACK = "loopback"
    """Only its own loopback, if the tier provides a separate network; otherwise none."""
    OPEN = "open"
    """Full access: only for installing dependencies, and for checks that the user declared to need it."""


class SandboxLimits(Contract):
    """Resource limits of one command and all its child processes."""

    wall_s: Seconds = 60
    cpu_s: Positive = 120
    """CPU seconds for each process."""
    processes: Positive = 256
    memory: Positive = 2 << 30
    """Bytes for the whole process tree, including its files in memory."""
    memory_process: Positive = 2 << 30
    file_size: Positive = 256 << 20
    disk: Positive = 1 << 30
    """Bytes by which the writable folders may grow."""
    files: Positive = 500_000
    """The maximum number of new files there, including empty ones."""
    temporary: Positive = 512 << 20
    """Bytes in the private home and the temporary folders together; in the `ns` tier they are in memory."""
    open_files: Positive = 1024
    output_kept: Positive = 1 << 20
    """Bytes kept of each output stream, half from its start and half from its end."""
    output_killed: Positive = 64 << 20
    """Bytes of output at which the command is stopped."""


Port = Annotated[int, Strict(), Field(ge=1024, le=65_535)]


class Way(Contract):
    """A port on the command's own loopback that is forwarded to a unix socket of this machine."""

    port: Port
    """The port on 127.0.0.1 inside the sandbox."""
    socket: Text


class Confinement(Contract):
    """What a command may read, write and reach."""

    worktree: Text
    writable: Flag
    """Whether the worktree is writable; its `.git` never is."""
    read: Texts = ()
    """Additional folders and files that it may read and execute."""
    write: Texts = ()
    """Additional folders that it may write."""
    guards: Texts = ()
    """Files and small folders that must not change: content, mode, owner, time and attributes. Missing ones must not
    appear. They are checked in every tier.
    """
    hidden: Texts = ()
    """Paths relative to the worktree that it does not see, where they are: something empty stands there instead, which
    it cannot change or move. Only for a command with a view of its own, which the `ns` tier has: elsewhere it is not
    run."""
    network: Network = Network.LOOPBACK
    ways: tuple[Way, ...] = ()
    """Forwarded ports; they need the separate network of the `ns` tier, and the command is not run without it."""
    env: dict[str, str]
    """The complete environment; nothing is inherited."""
    min_tier: SandboxTier = SandboxTier.UID
    """The weakest acceptable tier; results from `none` open no gate."""


class Command(Contract):
    """One command and how it is run."""

    argv: Annotated[tuple[str, ...], Field(min_length=1)]
    """The arguments; `argv[0]` is an absolute path, so that no file of the worktree can replace the program."""
    cwd: str = "."
    """Relative to the worktree."""
    confinement: Confinement
    limits: SandboxLimits = SandboxLimits()
    purpose: Text
    observe: Flag = True


class Warned(Contract):
    """A weakness of the isolation on this machine."""

    code: Text
    text: Text


class Features(Contract):
    """The isolation features of this machine, detected once per process."""

    tier: SandboxTier
    """The strongest available tier."""
    tiers: tuple[SandboxTier, ...]
    """All available tiers, strongest first; `none` is always last."""
    landlock_abi: Count
    userns: Flag
    seccomp: Flag
    notify: Flag
    cgroup: Flag
    warnings: tuple[Warned, ...] = ()


class End(StrEnum):
    """How a command ended."""

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
    # a process tree that was stopped for its size has no result, like one that timed out
    End.LIMIT: Assessment.TIMEOUT,
    End.VIOLATION: Assessment.VIOLATION,
    End.SANDBOX_ERROR: Assessment.LOST,
    End.CANCELLED: Assessment.LOST,
}


class Violation(Contract):
    """A forbidden action that a command attempted."""

    kind: Text
    """`write`, `git-dir`, `network`, `guard`, `limit`, …"""
    call: Text
    path: Text
    count: Positive = 1
    blocked: Flag
    source: Literal["observer", "errno", "guard", "limit"]


class OutputStream(Contract):
    """The output of one stream; what is kept of it is stored next to the result, without secrets.

    A stream attached to the caller is not read: it reports 0 bytes and the hash of empty input.
    """

    total: Count
    sha256: Sha256
    """The hash of the complete output as the command wrote it, including secrets and what was not kept."""
    stored_sha256: Sha256
    """The hash of what is kept, without secrets."""
    truncated: Flag


class Confined(Contract):
    """The result of one command in the sandbox."""

    argv: tuple[str, ...]
    exe: Text | None
    """The executed file, with links resolved."""
    exe_sha256: Sha256 | None
    cwd: str
    env_keys: tuple[str, ...]
    env_sha256: Sha256
    policy_sha256: Sha256
    limits: SandboxLimits
    purpose: Text
    tier: SandboxTier
    tier_wanted: SandboxTier
    """The tier to aim for on every machine: `ns`."""
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
    """Whether every write outside was observed, or only prevented."""
    dotgit_ok: Flag
    """Whether the worktree's git repositories are unchanged and no new one appeared."""
    guards_ok: Flag
    """Whether every guarded path is unchanged; true for a command without guards."""
    survivors_killed: Count | None
    """Processes left when the command ended; null if the kernel ends them without reporting."""
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
