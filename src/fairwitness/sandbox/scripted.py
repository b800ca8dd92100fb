"""A runner that answers from a script, for tests and the demo; it passes the same conformance tests as the others.

It runs and confines nothing, so its tier is "none" unless the caller chooses one to imitate.
"""

import fnmatch
import io
import os
import select
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fairwitness.contracts.common.evidence import SandboxTier
from fairwitness.contracts.common.sandbox import Command, Features, Violation
from fairwitness.errors import UsageError
from fairwitness.kit.clock import Clock, system_clock
from fairwitness.sandbox import result
from fairwitness.sandbox.capture import Capture
from fairwitness.sandbox.checked_command import CheckedCommand, check_command
from fairwitness.sandbox.integrity_watch import IntegrityWatch
from fairwitness.sandbox.launch import CommandFacts
from fairwitness.sandbox.runner import Attached, Finished
from fairwitness.sandbox.streams import Streams
from fairwitness.sandbox.watchdog import LimitName

_LOOK_S = 0.05


@dataclass(frozen=True)
class Reply:
    """The scripted outcome of a command."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    signal: int | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to write, relative to the worktree or absolute in a folder that the command may write to."""
    stopped: LimitName | None = None
    lost: str | None = None
    violations: tuple[Violation, ...] = ()
    wall_s: float = 0.0
    talks: Callable[[BinaryIO, BinaryIO], None] | None = None
    """The command's side of a conversation, given its stdin and stdout. It should return when stdin ends, which also
    happens when the command is cancelled."""


@dataclass(frozen=True)
class ScriptedAnswer:
    """A reply, or a function that makes one, for commands whose command line matches the pattern (`*pytest*`)."""

    pattern: str
    reply: Reply | Callable[[Command], Reply]


@dataclass
class _Seen:
    """The violations that a script claims an observer saw."""

    violations: tuple[Violation, ...]
    failed: str | None = None
    blind: bool = False
    lacked: set[str] = field(default_factory=set)

    def start(self) -> None:
        """Do nothing."""

    def finish(self) -> None:
        """Do nothing."""


class ScriptedRunner:
    """Answers each command with the first answer whose pattern matches; a command without an answer is lost."""

    def __init__(
        self, answers: Sequence[ScriptedAnswer], *, tier: SandboxTier = SandboxTier.NONE, clock: Clock = system_clock
    ) -> None:
        self.tier = tier
        self.features = Features(
            tier=tier, tiers=(tier,), landlock_abi=0, userns=False, seccomp=False, notify=False, cgroup=False
        )
        self.commands: list[Command] = []
        """Every command received, in order."""
        self._answers = tuple(answers)
        self._clock = clock
        self._lock = threading.Lock()

    def run(
        self,
        command: Command,
        *,
        stdin: bytes = b"",
        cancel: threading.Event | None = None,
        attached: Attached | None = None,
    ) -> Finished:
        """Return the scripted result of a command."""
        with Streams(stdin, attached) as streams:
            return self._finished(command, streams, cancel)

    def _finished(self, command: Command, streams: Streams, cancel: threading.Event | None) -> Finished:
        checked = check_command(command, self.tier)
        with self._lock:
            self.commands.append(command)
        limits = command.limits
        ended = CommandFacts(Capture(limits.output_kept), Capture(limits.output_kept), lost=checked.problem)
        survey = IntegrityWatch(checked, SandboxTier.NONE)
        ended.lost = ended.lost or survey.problem
        if cancel is not None and cancel.is_set():
            ended.cancelled = True
        elif ended.lost is None:
            self._play(checked, ended, streams, cancel or threading.Event())
        return result.finished(
            checked,
            ended,
            tier=self.tier,
            features=self.features,
            warnings=(),
            started_at=self._clock(),
            changed=survey.changed(),
        )

    def _play(self, checked: CheckedCommand, ended: CommandFacts, streams: Streams, cancel: threading.Event) -> None:
        command, limits = checked.command, checked.command.limits
        line = shlex.join(command.argv)
        answer = next((answer for answer in self._answers if fnmatch.fnmatchcase(line, answer.pattern)), None)
        if answer is None:
            ended.lost = f"the script has no answer for {line}"
            return
        reply = answer.reply if isinstance(answer.reply, Reply) else answer.reply(command)
        if (reply.talks is None) is not (streams.pipes is None):
            has_talk = reply.talks is not None
            ended.lost = (
                f"no program is attached to {line}" if has_talk else f"the script has no conversation for {line}"
            )
            return
        for path, content in reply.files.items():
            _write(checked, path, content)
        if reply.talks is not None:
            ended.cancelled = _talk(reply.talks, streams, cancel)
        ended.stdout.take(reply.stdout)
        ended.stderr.take(reply.stderr)
        ended.lost, ended.stopped, ended.wall_s = reply.lost, reply.stopped, min(reply.wall_s, limits.wall_s)
        ended.survivors, ended.peak_processes = 0, 1
        ended.observer = _Seen(reply.violations) if reply.violations else None
        if max(ended.stdout.total, ended.stderr.total) > limits.output_killed:
            ended.stopped = "output"
        if reply.wall_s > limits.wall_s:
            ended.stopped = "wall"
        if ended.stopped is None and ended.lost is None:
            ended.wait_status = reply.signal if reply.signal is not None else reply.exit_code << 8


def _talk(talks: Callable[[BinaryIO, BinaryIO], None], streams: Streams, cancel: threading.Event) -> bool:
    """Hold the conversation; return whether it was cancelled."""
    assert streams.pipes is not None
    stdin, stdout = (os.dup(handle) for handle in streams.pipes)
    streams.close()
    with (
        suppress(BrokenPipeError),
        io.BufferedReader(_CancellableStdin(stdin, cancel)) as heard,
        os.fdopen(stdout, "wb") as said,
    ):
        talks(heard, said)
    return cancel.is_set()


class _CancellableStdin(io.RawIOBase):
    """The command's stdin; it ends when the other side closes it or the command is cancelled."""

    def __init__(self, handle: int, cancel: threading.Event) -> None:
        self._handle = handle
        self._cancel = cancel

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not select.select([self._handle], [], [], _LOOK_S)[0]:
            if self._cancel.is_set():
                return 0
        return os.readv(self._handle, [buffer])

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()


def _write(checked: CheckedCommand, path: str, content: bytes) -> None:
    target = Path(os.path.realpath(Path(checked.cwd, path)))
    if not any(target.is_relative_to(folder) for folder in checked.write):
        raise UsageError(f"the script writes {path}, which the command may not", next_step="correct the script")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
