"""Whether an attempt got out, from what can be seen outside and from nothing that it says."""

import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.escapes.attacks.writes import EXIT_CODE
from sandbox.escapes.table import MIB, Attempt, Channel
from sandbox.escapes.watcher import Seen
from sandbox.escapes.world import Decoy, Found, Scene

_LINGER_S = 0.3
_MOMENT_S = 1.0
"""For so long something may be above its limit without being stopped."""
GAVE_UP = "gave up"
"""How a control ends that nobody but the control itself would have ended."""
_LARGEST_READ = MIB
_THREADS = 4
"""So many threads may come on each process that is allowed."""


@dataclass(frozen=True)
class Ran:
    """What whoever ran the attempt has to say: the runner, or a plain subprocess."""

    stdout: bytes
    stderr: bytes
    end: str
    exit_code: int | None
    limit_hit: str | None
    elapsed_s: float
    total: int
    """Bytes that came on stdout."""
    facts: dict[str, Any]
    """For the person who reads a failure."""


Escapes = dict[Channel, list[str]]


class Bench:
    """Collects what is found on each channel."""

    def __init__(self, attempt: Attempt, scene: Scene, ran: Ran, life_s: float) -> None:
        self.escapes: Escapes = {}
        self._attempt = attempt
        self._scene = scene
        self._ran = ran
        self._life_s = life_s
        """How long it would have gone on by itself."""

    @property
    def _is_stopped(self) -> bool:
        """Whether the runner ended it for what it used, before it came to its own end; however long that took."""
        return self._ran.limit_hit is not None and f"ended {self._attempt.id}".encode() not in self._ran.stdout

    def note(self, channel: Channel, what: str) -> None:
        self.escapes.setdefault(channel, []).append(what)

    def outside(self, before: dict[str, Found], pointer: str | None) -> None:
        """Everything outside is as it was, and so is the worktree's pointer."""
        after = self._scene.snapshot()
        for path in sorted(before.keys() | after.keys()):
            if before.get(path) != after.get(path):
                self.note(Channel.FILES, f"{path}: {before.get(path)} became {after.get(path)}")
        for place in self._scene.elsewhere():
            self.note(Channel.FILES, f"{place} was made")
        if self._scene.pointer() != pointer:
            self.note(Channel.GIT, f"the worktree's .git is now {self._scene.pointer()!r}")

    def worktree(self, secrets: list[str]) -> None:
        """The worktree holds no loot, no devices, and nothing that lends rights."""
        wanted = [secret.encode() for secret in secrets]
        for name, text in (("stdout", self._ran.stdout), ("stderr", self._ran.stderr)):
            if any(secret in text for secret in wanted):
                self.note(Channel.SECRET, f"a canary stands in {name}")
        for path in self._scene.worktree.rglob("*"):
            status = path.lstat()
            if stat.S_ISBLK(status.st_mode) or stat.S_ISCHR(status.st_mode):
                self.note(Channel.PLANTED, f"{path} is a device")
            if not stat.S_ISREG(status.st_mode):
                continue
            if status.st_mode & (stat.S_ISUID | stat.S_ISGID):
                self.note(Channel.PLANTED, f"{path} has mode {status.st_mode:o}")
            if "security.capability" in os.listxattr(path):
                self.note(Channel.PLANTED, f"{path} has capabilities")
            if status.st_size <= _LARGEST_READ and any(secret in path.read_bytes() for secret in wanted):
                self.note(Channel.SECRET, f"a canary stands in {path}")

    def survivors(self, left: list[int]) -> None:
        """Nothing of it lives on or writes on."""
        if left:
            self.note(Channel.SURVIVOR, f"processes {left} are alive")
        if self._attempt.channel is Channel.SURVIVOR:
            before = _sizes(self._scene.worktree)
            time.sleep(_LINGER_S)
            if _sizes(self._scene.worktree) != before:
                self.note(Channel.SURVIVOR, "the worktree changed after the command had ended")

    def seen(self, seen: Seen) -> None:
        """What was seen of its processes while they ran."""
        for what in sorted(seen.forbidden):
            self.note(Channel.HANDLE, f"it held {what}")
        if seen.tracers:
            self.note(Channel.SIGNAL, "the decoy was traced")
        for kind, found in (("user", seen.user_namespaces), ("mount", seen.mount_namespaces)):
            if len(found) > 1:
                self.note(Channel.NAMESPACE, f"it was in {len(found)} {kind} namespaces")

    def decoy(self, decoy: Decoy) -> None:
        for trouble in decoy.troubles():
            self.note(Channel.SIGNAL, trouble)

    def limits(self, seen: Seen) -> None:
        """It had no more than it was allowed, or was stopped."""
        limits, ran = self._attempt.limits, self._ran
        if "processes" in limits:
            above = seen.longest_above(seen.processes, limits["processes"])
            self._above(above, f"{max((count for _, count in seen.processes), default=0)} processes")
            above = seen.longest_above(seen.threads, limits["processes"] * _THREADS)
            self._above(above, f"{max((count for _, count in seen.threads), default=0)} threads")
        if "memory" in limits:
            above = seen.longest_above(seen.memory, limits["memory"] * 1.1)
            self._above(above, f"{max((size for _, size in seen.memory), default=0) // MIB} MiB")
        if self._attempt.amount and seen.filled >= self._attempt.amount and not self._is_stopped:
            self.note(Channel.LIMIT, f"it filled {seen.filled // MIB} MiB")
        if "file_size" in limits:
            largest = max(path.lstat().st_size for path in self._scene.worktree.rglob("*"))
            if largest > limits["file_size"]:
                self.note(Channel.LIMIT, f"it made a file of {largest // MIB} MiB")
        if "output_killed" in limits:
            if len(ran.stdout) > limits["output_kept"] + 1024:
                self.note(Channel.LIMIT, f"{len(ran.stdout)} bytes of output were kept")
            if ran.total >= self._attempt.amount and not self._is_stopped:
                self.note(Channel.LIMIT, f"it was let to print all of its {ran.total} bytes")
        if not self._attempt.watch and self._life_s and (ran.elapsed_s >= self._life_s or ran.end == GAVE_UP):
            self.note(Channel.LIMIT, f"it went on for {ran.elapsed_s:.1f} s, as long as it wanted")

    def _above(self, seconds: float, height: str) -> None:
        if seconds > _MOMENT_S and not self._is_stopped:
            self.note(Channel.LIMIT, f"it had {height} for {seconds:.1f} s")

    def report(self) -> None:
        """An attempt on the runner's own channels is reported with the code that it left with."""
        honest: dict[str, set[int | None]] = {
            "W15": {EXIT_CODE},
            "X02": {EXIT_CODE, None},
        }  # None: whoever would know was killed
        if self._attempt.id in honest and self._ran.exit_code not in honest[self._attempt.id]:
            self.note(Channel.REPORT, f"it left with {EXIT_CODE}, and {self._ran.exit_code} was reported")


def _sizes(folder: Path) -> dict[Path, int]:
    return {path: path.lstat().st_size for path in folder.rglob("*")}
