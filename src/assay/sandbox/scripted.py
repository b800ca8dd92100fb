"""A runner that answers from a script; for tests and the demo, held to the same conformance kit.

It runs nothing and keeps nothing in, so it calls itself unconfined unless it is told which tier to play.
"""

import fnmatch
import os
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from assay.contracts.common.evidence import SandboxTier
from assay.contracts.common.sandbox import Command, Features, Violation
from assay.errors import UsageError
from assay.kit.clock import Clock, system_clock
from assay.sandbox import result
from assay.sandbox.capture import Capture
from assay.sandbox.launch import Ended
from assay.sandbox.request import Request, request
from assay.sandbox.runner import Finished
from assay.sandbox.survey import Survey
from assay.sandbox.watchdog import LimitName


@dataclass(frozen=True)
class Reply:
    """What a command is said to have done."""

    exit_code: int = 0
    stdout: bytes = b""
    stderr: bytes = b""
    signal: int | None = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Written where the command may write: relative to the worktree, or absolute in a folder it was given."""
    stopped: LimitName | None = None
    lost: str | None = None
    violations: tuple[Violation, ...] = ()
    wall_s: float = 0.0


@dataclass(frozen=True)
class Answer:
    """A reply, or what makes one, for commands whose line fits the pattern (`*pytest*`)."""

    pattern: str
    reply: Reply | Callable[[Command], Reply]


@dataclass
class _Seen:
    """What a script says that an observer saw."""

    violations: tuple[Violation, ...]
    failed: str | None = None
    blind: bool = False

    def start(self) -> None:
        """Nothing is watched."""

    def finish(self) -> None:
        """Nothing was watched."""


class ScriptedRunner:
    """Answers each command by the first answer whose pattern fits; one without an answer is lost."""

    def __init__(
        self, answers: Sequence[Answer], *, tier: SandboxTier = SandboxTier.NONE, clock: Clock = system_clock
    ) -> None:
        self.tier = tier
        self.features = Features(
            tier=tier, tiers=(tier,), landlock_abi=0, userns=False, seccomp=False, notify=False, cgroup=False
        )
        self.asked: list[Command] = []
        """Every command that came, in order."""
        self._answers = tuple(answers)
        self._clock = clock
        self._lock = threading.Lock()

    def run(self, command: Command, *, stdin: bytes = b"", cancel: threading.Event | None = None) -> Finished:
        """Plays one command."""
        asked = request(command, self.tier)
        with self._lock:
            self.asked.append(command)
        limits = command.limits
        ended = Ended(Capture(limits.output_kept), Capture(limits.output_kept), lost=asked.problem)
        survey = Survey(asked, SandboxTier.NONE)
        ended.lost = ended.lost or survey.problem
        if cancel is not None and cancel.is_set():
            ended.cancelled = True
        elif ended.lost is None:
            self._play(asked, ended)
        return result.finished(
            asked,
            ended,
            tier=self.tier,
            features=self.features,
            warnings=(),
            started_at=self._clock(),
            changed=survey.changed(),
        )

    def _play(self, asked: Request, ended: Ended) -> None:
        command, limits = asked.command, asked.command.limits
        line = shlex.join(command.argv)
        answer = next((answer for answer in self._answers if fnmatch.fnmatchcase(line, answer.pattern)), None)
        if answer is None:
            ended.lost = f"the script has no answer for {line}"
            return
        reply = answer.reply if isinstance(answer.reply, Reply) else answer.reply(command)
        for path, content in reply.files.items():
            _write(asked, path, content)
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


def _write(asked: Request, path: str, content: bytes) -> None:
    target = Path(os.path.realpath(Path(asked.cwd, path)))
    if not any(target.is_relative_to(folder) for folder in asked.write):
        raise UsageError(f"the script writes {path}, which the command may not", next_step="correct the script")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
